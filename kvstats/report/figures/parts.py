"""Parts of results: the rows that a panel shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from kvstats.errors import InputError
from kvstats.inference.result import Result

__all__ = ["groups_of", "refuse_empty", "rows_of"]


def refuse_empty(function: str, *results: Result) -> None:
    """Raise `InputError` where a result has no rows: a figure of nothing would look like one of zeros."""
    for result in results:
        if not result.frame.height:
            raise InputError(f"{function}: {result.estimator} has nothing to draw; check `where`")


def rows_of(result: Result, rows: pl.Expr) -> Result:
    """Return the rows of a result for which an expression is true, with their samples.

    Examples
    --------
    >>> import kvstats as kv
    >>> found = kv.recovery_indicator(kv.simulate_log(seed=1, inputs=50).log, arm="plain")
    >>> rows_of(found, pl.col("quantity") == "lost").frame["quantity"].to_list()
    ['lost']
    """
    kept = result.frame.select(rows).to_series()
    samples = tuple(sample for sample, chosen in zip(result.samples, kept, strict=True) if chosen)
    return replace(result, frame=result.frame.filter(kept), samples=samples)


def groups_of(function: str, result: Result, by: str | None) -> list[Any]:
    """Return the values of the one by-column that groups of bars are for, in order, or None alone.

    Raises
    ------
    InputError
        When several columns are named: their combinations have no order on one axis.
    """
    if by is None:
        return [None]
    if not isinstance(by, str):
        raise InputError.argument(
            function,
            "by",
            by,
            "is not one column",
            "name one, and select a value of the others through `where`",
        )
    return result.frame[by].unique().sort().to_list()
