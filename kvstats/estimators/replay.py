"""Replayed attention cells: how large the errors are, how loose the certificate, and what permuting moves."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from kvstats.errors import InputError
from kvstats.estimators.population import (
    By,
    by_columns,
    drawn_rows,
    estimate,
    mean_or_rate,
    numbers,
    refuse_pooling,
)
from kvstats.estimators.registry import estimator, table_estimator
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result, infer
from kvstats.inference.sample import Kind, Sample, samples_by
from kvstats.log.frames import Log
from kvstats.log.records import REPLAY_KEY
from kvstats.selection import select
from kvstats.statistics.quantile import Quantile
from kvstats.statistics.ratios import Mean, Ratio
from kvstats.statistics.statistic import Statistic
from kvstats.tables import examples, permuted_replays, require_values, unique_replays

__all__ = ["looseness", "permutation_range", "read_error"]

MOVED = 1e-6
"""True errors of a cell that differ by more, relative to the largest, have moved: float32 carries 6e-8."""


@estimator
def read_error(
    log: Log,
    *,
    median: bool = False,
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Mean true error of attention reads, relative to the norm of what was read.

    Formula: ``sum(w * true_error) / sum(w)`` over replay cells, or their weighted median; at least 0. By
    ``["arm", "design"]`` it compares sampled with and without the offset, highest scores and uniform draws.

    Parameters
    ----------
    log : Log
        The log.
    median : bool, default False
        Whether to take the median, which single reads of near-zero norm do not move.
    where : str, optional
        SQL expression over `log.replays`.
    by : str or sequence of str, optional
        Columns to estimate within, such as budget, layer or head.
    design : Design
        How to judge it; ``auto`` takes a linearised interval, and a percentile bootstrap for the median.

    Returns
    -------
    Result
        Null with status ``no rows`` where no cell is left.

    Raises
    ------
    InputError
        When arms or designs would be pooled, an error is null, or a name is not known.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", comparison of estimators.

    Examples
    --------
    >>> from kvstats.log import ReplayRecord, log_from_records
    >>> log = log_from_records([
    ...     ReplayRecord(suite="s", model="m", task="qa", input_id=str(i), arm="poisson", design="poisson",
    ...                  budget=0.5, layer=layer, head=0, step=0, variance_estimate=0.01,
    ...                  radius=0.2, true_error=0.02 * ((i + layer) % 7), delta=0.1)
    ...     for i in range(20) for layer in range(4)
    ... ])
    >>> read_error(log).frame["estimate"].round(4).item()
    0.0608
    """
    function = "read_error"
    cells = select(unique_replays(log, function), where, function)
    for column in ("arm", "design"):
        refuse_pooling(function, cells, by, column)
    require_values(function, cells, "true_error")

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        error = numbers(part, "true_error")
        return (Quantile(error), "quantile") if median else (Mean(error), "mean")

    return estimate(function, log, cells, by, design, build)


@estimator
def looseness(
    log: Log, *, where: str | None = None, by: By = None, design: Design = DEFAULT_DESIGN
) -> Result:
    """How many times the certified radius is larger than the true error, on average.

    Formula: ``sum(w * radius) / sum(w * true_error)`` over replay cells: the ratio of the means, which cells
    without any error do not send to infinity. Below 1 the radius is too small on average.

    Parameters
    ----------
    log : Log
        The log.
    where : str, optional
        SQL expression over `log.replays`.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a linearised interval on the scale of the logarithm.

    Returns
    -------
    Result
        Without unit. Null with status ``no rows`` where no cell is left, ``undefined`` where no cell has an
        error.

    Raises
    ------
    InputError
        When arms, designs or nominal levels (`delta`) would be pooled, a radius or an error is null, or a
        name is not known.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", looseness of the radius.

    Examples
    --------
    >>> from kvstats.log import ReplayRecord, log_from_records
    >>> log = log_from_records([
    ...     ReplayRecord(suite="s", model="m", task="qa", input_id=str(i), arm="poisson", design="poisson",
    ...                  budget=0.5, layer=layer, head=0, step=0, variance_estimate=0.01,
    ...                  radius=0.2, true_error=0.05 * (1 + (i + layer) % 3), delta=0.1)
    ...     for i in range(21) for layer in range(4)
    ... ])
    >>> looseness(log).frame["estimate"].round(4).item()
    2.0
    """
    function = "looseness"
    cells = select(unique_replays(log, function), where, function)
    for column in ("arm", "design", "delta"):
        refuse_pooling(function, cells, by, column)
    for column in ("radius", "true_error"):
        require_values(function, cells, column)

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        return Ratio(numbers(part, "radius"), numbers(part, "true_error")), "ratio"

    return estimate(function, log, cells, by, design, build, null=1.0)


@table_estimator(quantity=pl.String())
def permutation_range(
    log: Log, *, where: str | None = None, by: By = None, design: Design = DEFAULT_DESIGN
) -> Result:
    """Say what moves when evicted values change places: the true error, and nothing that is retained.

    Formula, over cells that were replayed under several permutations of their evicted values:
    ``retained_identical``, the share whose retained statistics are the same to the bit in all of them;
    ``error_moves``, the share whose true errors differ; ``error_range``, the mean of the largest minus the
    smallest true error; ``relative_range``, the summed ranges over the summed true errors of the true order.

    Parameters
    ----------
    log : Log
        The log.
    where : str, optional
        SQL expression over `log.replays`, permutations included.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a Korn-Graubard interval for the shares, else a linearised one, for
        ``relative_range`` on the scale of the logarithm.

    Returns
    -------
    Result
        By-columns and ``quantity``; ``n`` counts cells. Null with status ``no rows`` where no cell was
        permuted.

    Raises
    ------
    InputError
        When arms or designs would be pooled, a permuted cell has no replay in its true order, an error or a
        hash is null, or a name is not known.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", theorem 1.

    Examples
    --------
    >>> from kvstats.log import ReplayRecord, log_from_records
    >>> log = log_from_records([
    ...     ReplayRecord(suite="s", model="m", task="qa", input_id=str(i), arm="snapkv", budget=0.5,
    ...                  design="deterministic", layer=0, head=0, step=0, permutation=permutation,
    ...                  variance_estimate=None, radius=None, delta=None, retained_hash=f"{i:064}",
    ...                  true_error=0.1 + 0.01 * (i % 3) + 0.05 * permutation)
    ...     for i in range(20) for permutation in range(3)
    ... ])
    >>> permutation_range(log).frame.select("quantity", pl.col("estimate").round(2), "n").rows()
    [('error_moves', 1.0, 20), ('error_range', 0.1, 20), ('relative_range', 0.91, 20),
    ('retained_identical', 1.0, 20)]
    """
    function = "permutation_range"
    cells = select(permuted_replays(log, function), where, function)
    names = by_columns(function, by, cells)
    for column in ("arm", "design"):
        refuse_pooling(function, cells, by, column)
    key = [name for name in REPLAY_KEY if name != "permutation"]
    # Cells that were replayed in their true order only are no part of the experiment.
    cells = cells.filter(pl.len().over(key) > 1)
    for column in ("true_error", "retained_hash"):
        require_values(function, cells, column)
    carried = [
        name for name in cells.columns if name in (*names, *design.cluster, *design.stratum, design.weight)
    ]
    found = cells.group_by(list(dict.fromkeys([*key, *carried])), maintain_order=True).agg(
        (pl.col("retained_hash").n_unique() == 1).alias("retained_identical"),
        (pl.col("true_error").max() - pl.col("true_error").min()).alias("error_range"),
        pl.col("true_error").max().alias("largest"),
        pl.col("true_error").filter(pl.col("permutation") == 0).first().alias("true_order"),
    )
    found = found.with_columns(error_moves=pl.col("error_range") > MOVED * pl.col("largest"))
    missing = found.filter(pl.col("true_order").is_null())
    if missing.height:
        raise InputError(
            f"{function}: {missing.height} permuted cells have no replay in true order (permutation 0), such "
            f"as {examples(missing, key)}; record it, or do not leave it out through `where`"
        )

    def relative(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        return Ratio(numbers(part, "error_range"), numbers(part, "true_order")), "ratio"

    def mean(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        return Mean(numbers(part, "error_range")), "mean"

    builds = {
        "error_moves": mean_or_rate("error_moves"),
        "error_range": mean,
        "relative_range": relative,
        "retained_identical": mean_or_rate("retained_identical"),
    }
    samples: list[Sample] = []
    for quantity, build in builds.items():
        parts = samples_by(function, found, names, design, build, drawn_rows(log, design))
        samples += [replace(sample, key=(*sample.key, quantity)) for sample in parts]
    columns = {**{name: found.schema[name] for name in names}, "quantity": pl.String()}
    return infer(function, samples, design, columns)
