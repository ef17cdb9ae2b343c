"""The values that a rule compares estimates and ends of intervals with."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from kvstats.expressions import check_expression
from kvstats.inference.result import RESULT_SCHEMA

__all__ = ["Threshold", "thresholds"]

COMPARED = ("estimate", "low", "high")
"""Columns that have a place on the axis of a plot."""

PROBES = (-2.0, -1.0, 0.0, 1.0, 2.0)
"""Values that show whether one side of a comparison is linear in its column, or its absolute value."""

SIDE = "__side__"


@dataclass(frozen=True)
class Threshold:
    """A column and the values that it is compared with, one for each row of the result (None: none)."""

    column: str
    values: tuple[float | None, ...]

    @property
    def constant(self) -> float | None:
        """The value, where it is the same for every row."""
        return self.values[0] if len(set(self.values)) == 1 else None


def thresholds(rule: str, rows: Sequence[Mapping[str, Any]]) -> tuple[Threshold, ...]:
    """Return what a rule compares ``estimate``, ``low`` and ``high`` with.

    Parameters
    ----------
    rule : str
        A rule that was checked.
    rows : sequence of mappings
        The rows of the result. The other side of a comparison may depend on them, as in
        ``estimate >= MAX(CASE WHEN signal = 'certificate' THEN low END)``.

    Returns
    -------
    tuple of Threshold
        One for each comparison with a number of one of the columns, of its absolute value (two), or of a
        linear function of it; in the order of their values. Other comparisons have no place on the axis.

    Examples
    --------
    >>> rows = [{"estimate": 0.3, "low": 0.1, "high": 0.5, "task": "qa"}]
    >>> thresholds("low > 0.05 AND high - 0.1 < 1/2 AND task = 'qa'", rows)
    (Threshold(column='high', values=(0.6,)), Threshold(column='low', values=(0.05,)))
    >>> [threshold.constant for threshold in thresholds("ABS(estimate) < 0.02", rows)]
    [-0.02, 0.02]
    """
    if not rows:
        return ()
    frame = pl.DataFrame(
        rows, schema_overrides={**RESULT_SCHEMA, "p_value": pl.Float64()}, infer_schema_length=None
    )
    found = {
        item for node in nodes(check_expression("thresholds", "rule", rule)) for item in read(node, frame)
    }
    return tuple(sorted(found, key=order))


def order(threshold: Threshold) -> tuple[str, list[float]]:
    return threshold.column, [-math.inf if value is None else value for value in threshold.values]


def nodes(expression: pl.Expr) -> Iterator[pl.Expr]:
    """Yield an expression and all that it consists of."""
    yield expression
    for part in expression.meta.pop():
        yield from nodes(part)


def read(node: pl.Expr, frame: pl.DataFrame) -> Iterator[Threshold]:
    """Yield the thresholds of an expression that is a comparison of two sides."""
    sides = node.meta.pop()
    if len(sides) != 2 or value_of(node, frame, pl.Boolean()) is None:
        return
    for side, other in (sides, sides[::-1]):
        names = set(side.meta.root_names())
        if len(names) != 1 or not names <= set(COMPARED) or bare(other):
            continue
        column = names.pop()
        values = value_of(other, frame, pl.Float64())
        if values is not None:
            found = (Threshold(column, solved) for solved in solutions(side, column, values))
            yield from (item for item in found if any(value is not None for value in item.values))


def bare(side: pl.Expr) -> bool:
    """Say whether a side is one of the columns on the axis itself."""
    return side.meta.is_column() and side.meta.output_name() in COMPARED


def value_of(side: pl.Expr, frame: pl.DataFrame, kind: pl.DataType) -> list[Any] | None:
    """Return the value of an expression in each row, or None where it is not of the kind."""
    try:
        values = frame.select(side.alias(SIDE))[SIDE]
    except pl.exceptions.PolarsError:
        # A column that is null in every row has lost its type. The rule was judged on the result itself.
        return None
    if values.dtype != kind and not (kind == pl.Float64() and values.dtype.is_numeric()):
        return None
    if values.len() != frame.height:
        return values.to_list() * frame.height if values.len() == 1 else None
    return values.to_list()


def solutions(side: pl.Expr, column: str, values: Sequence[Any]) -> Iterator[tuple[float | None, ...]]:
    """Yield the values of a column at which a side of a comparison equals the other, for each row."""
    probe = pl.DataFrame({column: PROBES})
    measured = value_of(side, probe, pl.Float64())
    if measured is None or any(value is None for value in measured):
        return
    ordinates = [float(value) for value in measured]
    slope, intercept = ordinates[3] - ordinates[2], ordinates[2]
    if slope and all(
        math.isclose(intercept + slope * x, y, abs_tol=1e-12) for x, y in zip(PROBES, ordinates, strict=True)
    ):
        yield tuple(number((float(v) - intercept) / slope) if v is not None else None for v in values)
    elif ordinates == [abs(x) for x in PROBES]:
        for sign in (-1.0, 1.0):
            yield tuple(number(sign * float(v)) if v is not None and v >= 0 else None for v in values)


def number(value: float) -> float | None:
    """Return a finite number without the digits that solving for it added, None for another."""
    return float(f"{value:.12g}") if math.isfinite(value) else None
