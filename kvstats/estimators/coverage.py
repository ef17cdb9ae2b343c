"""Coverage: how often certificates hold, and whether they order the errors."""

from __future__ import annotations

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.estimators.population import (
    By,
    estimate,
    mean_or_rate,
    numbers,
    numeric_columns,
    refuse_pooling,
)
from kvstats.estimators.registry import estimator
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.inference.sample import Kind
from kvstats.log.frames import Log
from kvstats.selection import select
from kvstats.statistics.rank_correlation import RankCorrelation
from kvstats.statistics.statistic import Statistic
from kvstats.tables import require_values, runs_with_inputs, unique_inputs, unique_replays

__all__ = ["certificate_coverage", "rank_correlation"]

POOLED = {"replays": ("arm", "design", "delta"), "runs": ("arm",), "inputs": ()}
"""Columns in which the rows of each table must not differ within one estimate."""


@estimator
def certificate_coverage(
    log: Log, *, where: str | None = None, by: By = None, design: Design = DEFAULT_DESIGN
) -> Result:
    """Share of replayed attention cells whose true error is within the certified radius.

    Formula: ``sum(w * [true_error <= radius]) / sum(w)`` over replay cells, in [0, 1], to be held against 1 -
    delta. The cells of one input are one cluster.

    Parameters
    ----------
    log : Log
        The log.
    where : str, optional
        SQL expression over `log.replays`.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a Korn-Graubard interval.

    Returns
    -------
    Result
        Null with status ``no rows`` where no cell is left.

    Raises
    ------
    InputError
        When arms, designs or nominal levels (`delta`) would be pooled, a radius or an error is null, or a
        name is not known.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", table 1.

    Examples
    --------
    >>> from kvstats.log import ReplayRecord, log_from_records
    >>> log = log_from_records([
    ...     ReplayRecord(suite="s", model="m", task="qa", input_id=str(i), arm="poisson", design="poisson",
    ...                  budget=0.5, layer=layer, head=0, step=0, variance_estimate=0.01,
    ...                  radius=0.1, true_error=0.02 * ((i + layer) % 7), delta=0.1)
    ...     for i in range(20) for layer in range(4)
    ... ])
    >>> certificate_coverage(log)
    certificate_coverage, 95% interval
    estimate   low  high     se  df   n  clusters  status
        0.86  0.76  0.93  0.029  19  80        20  ok
    """
    function = "certificate_coverage"
    replays = select(unique_replays(log, function), where, function)
    for column in ("arm", "design", "delta"):
        refuse_pooling(function, replays, by, column)
    for column in ("radius", "true_error"):
        require_values(function, replays, column)
    covered = replays.with_columns(covered=pl.col("true_error") <= pl.col("radius"))
    return estimate(function, log, covered, by, design, mean_or_rate("covered"))


@estimator
def rank_correlation(
    log: Log,
    *,
    x: str = "radius",
    y: str = "true_error",
    table: str = "replays",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Spearman's rank correlation of two columns, by default of certified radius and true error.

    Formula: the correlation of weighted mid-ranks; see `kvstats.statistics.RankCorrelation`. In [-1, 1]; the
    null hypothesis of its tests is 0.

    Parameters
    ----------
    log : Log
        The log.
    x, y : str
        Numeric columns.
    table : {"replays", "runs", "inputs"}
        Where the columns are: in `log.replays`, in the runs with the columns of their input records, or in
        `log.inputs`.
    where : str, optional
        SQL expression over the table.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a linearised interval, cut off at -1 and 1.

    Returns
    -------
    Result
        Null with status ``undefined`` where a column takes one value only, ``no rows`` where no row is
        left.

    Raises
    ------
    InputError
        When arms (of replays: arms, designs or nominal levels) would be pooled, a value is null, or a name is
        not known.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", table 1.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm="snapkv", budget=0.25,
    ...               score=(i * i % 11) / 11, signals={"margin": float(i % 11)})
    ...     for i in range(44)
    ... ])
    >>> rank_correlation(log, x="margin", y="score", table="runs").frame["estimate"].round(4).item()
    0.2529
    """
    function = "rank_correlation"
    tables = {"replays": unique_replays, "runs": runs_with_inputs, "inputs": unique_inputs}
    if table not in tables:
        raise InputError.argument(function, "table", table, "is not known", nearest_name(str(table), tables))
    rows = select(tables[table](log, function), where, function)
    for column in POOLED[table]:
        refuse_pooling(function, rows, by, column)
    numeric = numeric_columns(rows)
    for argument, name in (("x", x), ("y", y)):
        if name not in numeric:
            raise InputError.argument(
                function, argument, name, "is not a numeric column", nearest_name(str(name), numeric)
            )
        require_values(function, rows, name)

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        return RankCorrelation(numbers(part, x), numbers(part, y)), "correlation"

    return estimate(function, log, rows, by, design, build, null=0.0)
