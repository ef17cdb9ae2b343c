"""Results: what an estimator returns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from numbers import Real
from typing import Any

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.inference.cell import Cell, infer_cell
from kvstats.inference.contrast import contrast_samples
from kvstats.inference.design import Design
from kvstats.inference.p_values import Alternative, cell_p_value
from kvstats.inference.rows import SelectableRows
from kvstats.inference.sample import Sample

__all__ = ["RESULT_SCHEMA", "Result", "infer"]

RESULT_SCHEMA: dict[str, pl.DataType] = {
    "estimate": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "se": pl.Float64(),
    "df": pl.Float64(),
    "n": pl.Int64(),
    "clusters": pl.Int64(),
    "status": pl.String(),
}
"""Columns of every result after its by-columns."""

POSITION = "__position__"


@dataclass(frozen=True, eq=False, repr=False)
class Result(SelectableRows):
    """Estimates with intervals, one row for each combination of the by-columns.

    Attributes
    ----------
    estimator : str
        Name of the estimator.
    by : tuple of str
        Columns that the rows are for.
    frame : polars.DataFrame
        The by-columns, then ``estimate``, ``low``, ``high``, ``se``, ``df``, ``n`` (rows of the
        population), ``clusters`` and ``status``; sorted by the by-columns. What is undefined is null, and
        ``status`` says why; otherwise it is ``ok``.
    design : Design
        How it was judged.
    samples : tuple of Sample
        The samples behind the rows, in the same order.
    null : float or None
        The value that tests of this estimator hold against, such as 0 for differences.

    Examples
    --------
    >>> import numpy as np
    >>> from kvstats.statistics import Mean
    >>> clusters = tuple((str(i),) for i in range(4))
    >>> sample = Sample((), Mean([1.0, 2.0, 2.0, 4.0]), np.ones(4), np.arange(4), clusters, "mean")
    >>> infer("mean", [sample], Design(), null=0.0)
    mean, 95% interval
    estimate  low  high    se  df  n  clusters  status
         2.2  0.2   4.3  0.63   3  4         4  ok
    """

    estimator: str
    by: tuple[str, ...]
    frame: pl.DataFrame
    design: Design
    samples: tuple[Sample, ...]
    null: float | None = None

    @property
    def title(self) -> str:
        """Name of the estimator and level of the interval."""
        return f"{self.estimator}, {100 * self.design.level:g}% interval"

    def at(self, positions: Sequence[int]) -> Result:
        """Return the rows at some positions, in their order."""
        rows = list(positions)
        return replace(self, frame=self.frame[rows], samples=tuple(self.samples[i] for i in rows))

    def p_value(self, null: float | None = None, alternative: Alternative = "two-sided") -> pl.DataFrame:
        """Test each row, by inverting the interval that it shows.

        Parameters
        ----------
        null : float, optional
            Value under the null hypothesis; default: the estimator's own.
        alternative : {"two-sided", "greater", "less"}
            Which values count against the null hypothesis.

        Returns
        -------
        polars.DataFrame
            The by-columns and ``p_value``: of the t test, of the interval for a rate, or (b + 1) / (m + 1)
            for a bootstrap of m replicates, b of them beyond the null value (for ``basic`` and
            ``studentized`` after the reflection that makes their bounds; ``bca`` takes that share back
            through its correction of levels). A two-sided one is twice the smaller one-sided one, at most 1.
            Null where there is no interval; 1 for identical series.

        Raises
        ------
        InputError
            When neither the call nor the estimator names a null value, or the alternative is not known.
        """
        value = self.null if null is None else null
        if value is None:
            raise InputError.argument(
                "Result.p_value",
                "null",
                null,
                f"is not given and {self.estimator} has no null value of its own",
                "pass a number",
            )
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            raise InputError.argument(
                "Result.p_value", "null", value, "is not a finite number", "pass one such as 0.0"
            )
        known = ("two-sided", "greater", "less")
        if alternative not in known:
            raise InputError.argument(
                "Result.p_value",
                "alternative",
                alternative,
                "is not known",
                nearest_name(str(alternative), known),
            )
        found = [
            cell_p_value(
                label_of(self.estimator, self.by, sample.key),
                sample,
                self.design,
                Cell(**row),
                float(value),
                alternative,
            )
            for sample, row in zip(
                self.samples, self.frame.select(*RESULT_SCHEMA).iter_rows(named=True), strict=True
            )
        ]
        p_values = pl.Series("p_value", found, dtype=pl.Float64)
        return self.frame.with_columns(p_values).select(*self.by, "p_value")

    def contrast(self, **columns: tuple[Any, Any]) -> Result:
        """Return the difference between two values of by-columns, within each combination of the others.

        The two sides are compared on their joint clusters: clusters that both have get the same
        resampling count, and influences subtract within clusters. Intervals for rates give way to
        ``linear`` ones, since a difference is no rate, and for quantiles to ``percentile``.

        Parameters
        ----------
        **columns : tuple of two values
            ``arm=("gate", "plain")`` stands for gate minus plain. With several columns the first values
            make the first side, and the second values the second.

        Returns
        -------
        Result
            With the other by-columns, and 0 as null value. Where a side is missing the status is ``no
            rows``.

        Raises
        ------
        InputError
            When a column is not among the by-columns, or a value not among its values.

        Examples
        --------
        >>> import numpy as np
        >>> from kvstats.statistics import Mean
        >>> clusters = tuple((str(i),) for i in range(4))
        >>> samples = [
        ...     Sample((arm,), Mean(y), np.ones(4), np.arange(4), clusters, "mean")
        ...     for arm, y in (("gate", [1.0, 1.0, 0.5, 1.0]), ("plain", [1.0, 0.0, 0.0, 0.5]))
        ... ]
        >>> infer("accuracy", samples, Design(), {"arm": pl.String()}).contrast(arm=("gate", "plain"))
        accuracy difference (arm: ('gate', 'plain')), 95% interval
        estimate   low  high    se  df  n  clusters  status
             0.5  -0.1   1.1  0.20   3  8         4  ok
        """
        others = [name for name in self.by if name not in columns]
        names = ", ".join(f"{name}: {values!r}" for name, values in columns.items())
        return infer(
            f"{self.estimator} difference ({names})",
            contrast_samples(self.samples, self.by, columns),
            self.design,
            {name: self.frame.schema[name] for name in others},
            null=0.0,
        )


def label_of(estimator: str, by: Sequence[str], key: Sequence[Any]) -> str:
    """Return the name of a cell, which seeds its bootstrap.

    Examples
    --------
    >>> label_of("auc", ["task"], ("qa",))
    "auc[task='qa']"
    """
    named = ", ".join(f"{name}={value!r}" for name, value in zip(by, key, strict=True))
    return f"{estimator}[{named}]" if named else estimator


def infer(
    estimator: str,
    samples: Sequence[Sample],
    design: Design,
    by: Mapping[str, pl.DataType] | None = None,
    null: float | None = None,
) -> Result:
    """Estimate every sample with its interval.

    Parameters
    ----------
    estimator : str
        Name of the estimator; with the key of a sample it seeds the sample's bootstrap.
    samples : sequence of Sample
        One for each row of the result.
    design : Design
        How they are judged.
    by : mapping of str to polars.DataType, optional
        Names and types of the by-columns, whose values are the samples' keys.
    null : float, optional
        The estimator's own value under the null hypothesis.

    Returns
    -------
    Result
        Rows in the order of the by-columns' values, null first.

    Examples
    --------
    >>> import numpy as np
    >>> from kvstats.statistics import Mean
    >>> sample = Sample(("qa",), Mean([1.0]), np.ones(1), np.zeros(1, dtype=np.int64), (("1",),), "mean")
    >>> infer("mean", [sample], Design(), {"task": pl.String()}).frame.select("task", "status").row(0)
    ('qa', 'one cluster')
    """
    columns = dict(by or {})
    cells = [asdict(infer_cell(label_of(estimator, list(columns), s.key), s, design)) for s in samples]
    keys = pl.DataFrame([s.key for s in samples], schema=columns, orient="row") if columns else pl.DataFrame()
    frame = pl.concat([keys, pl.DataFrame(cells, schema=RESULT_SCHEMA)], how="horizontal")
    if columns:
        order = frame.with_row_index(POSITION).sort(*columns, maintain_order=True)[POSITION]
        frame, samples = frame[order], [samples[i] for i in order]
    return Result(
        estimator=estimator,
        by=tuple(columns),
        frame=frame,
        design=design,
        samples=tuple(samples),
        null=null,
    )
