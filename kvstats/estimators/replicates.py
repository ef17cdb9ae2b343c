"""Replicates: how much a result moves from one draw of a study to the next."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.estimators.origin_fit import Table, cell_table
from kvstats.estimators.population import By, by_columns
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result, infer
from kvstats.inference.sample import Kind, samples_by
from kvstats.statistics.ratios import Mean
from kvstats.statistics.statistic import Statistic
from kvstats.titled_table import DisplayedTable, DisplayedTables, TitledTable

__all__ = ["Replicates", "replicate_spread"]


@dataclass(frozen=True, eq=False, repr=False)
class Replicates(DisplayedTables):
    """A figure over its replicates.

    Attributes
    ----------
    mean : Result
        Mean over replicates with a t interval, whose units are the replicates: ``n`` is their number.
    spread : polars.DataFrame
        The by-columns, ``n``, ``mean``, ``sd`` (with n - 1 in the divisor; null for one replicate), ``range``
        (largest minus smallest), ``lowest`` and ``highest``.
    """

    mean: Result
    spread: pl.DataFrame

    @property
    def tables(self) -> tuple[DisplayedTable, ...]:
        """Mean and spread."""
        return self.mean, TitledTable("spread over replicates", self.spread)


def replicate_spread(
    figures: Result | Table,
    *,
    over: str = "seed",
    value: str = "estimate",
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Replicates:
    """Summarise a figure over replicates of a study, cell by cell.

    A replicate is one whole repetition: whatever was drawn anew in it is what the spread is due to. Where
    every seed ran the same inputs, the spread knows nothing of other inputs; where every seed drew inputs of
    its own, it holds both.

    Parameters
    ----------
    figures : Result, polars.DataFrame or mapping of str to sequence
        One row a cell and replicate: a result estimated by the column `over` (and others), or a table.
    over : str, default "seed"
        Column that names the replicate.
    value : str, default "estimate"
        Column of the figure.
    by : str or sequence of str, optional
        Columns that make a cell. Default: for a result its other by-columns, for a table none.
    design : Design
        Level and kind of the interval; its cluster, strata and weight are not used.

    Returns
    -------
    Replicates

    Raises
    ------
    InputError
        When a figure is null, a cell has a replicate twice, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", table 30.

    Examples
    --------
    >>> found = replicate_spread({"seed": [1, 2, 3], "delta": [0.113, 0.099, 0.122]}, value="delta")
    >>> found.spread.select("mean", "sd", "range").row(0)  # doctest: +ELLIPSIS
    (0.111..., 0.011..., 0.022...)
    >>> found.mean
    replicate_mean, 95% interval
    estimate    low   high      se  df  n  clusters  status
       0.111  0.083  0.140  0.0067   2  3         3  ok
    """
    function = "replicate_spread"
    if isinstance(figures, Result):
        by = [name for name in figures.by if name != over] if by is None else by
        table = cell_table(function, figures.frame, [value])
    else:
        table = cell_table(function, figures, [value])
    if over not in table.columns:
        raise InputError.argument(
            function, "over", over, "is not a column", nearest_name(over, table.columns)
        )
    # The figure may be called like a column of every result.
    names = by_columns(function, by, table.drop(value))
    if over in names:
        raise InputError.argument(function, "by", by, "names the replicates", "leave it out")
    if table.select(*names, over).is_duplicated().any():
        raise InputError.argument(
            function, "over", over, "names a replicate twice in one cell", "tell cells apart through `by`"
        )
    figure = pl.col(value)
    measures = (
        pl.len().cast(pl.Int64).alias("n"),
        figure.mean().alias("mean"),
        figure.std().alias("sd"),
        (figure.max() - figure.min()).alias("range"),
        figure.min().alias("lowest"),
        figure.max().alias("highest"),
    )
    spread = table.group_by(names).agg(measures).sort(names) if names else table.select(measures)
    judged = replace(design, cluster=(over,), strata=None, weight=None)

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        return Mean(part[value].to_numpy()), "mean"

    samples = samples_by(function, table, names, judged, build)
    mean = infer("replicate_mean", samples, judged, {name: table.schema[name] for name in names})
    return Replicates(mean, spread)
