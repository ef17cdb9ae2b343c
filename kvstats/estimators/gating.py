"""Gating: what a policy gains over a baseline, the drop it gates on, and the cache it keeps."""

from __future__ import annotations

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.estimators.population import (
    By,
    estimate,
    numbers,
    numeric_columns,
    outcome_difference,
    runs_of,
    with_kept_fraction,
)
from kvstats.estimators.registry import estimator
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.inference.sample import Kind
from kvstats.log.frames import Log
from kvstats.selection import select
from kvstats.statistics.ratios import Mean
from kvstats.statistics.statistic import Statistic
from kvstats.tables import pairs_of, require_values, unique_inputs

__all__ = ["delta", "kept_fraction", "mean_drop"]


@estimator
def delta(
    log: Log,
    *,
    arm: str,
    baseline: str = "full",
    outcome: str = "score",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Mean paired difference of the outcome, arm minus baseline.

    Formula: ``sum(w * (y - baseline y)) / sum(w)`` over pairs, in the unit of the outcome; the null
    hypothesis of its tests is 0.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    outcome : {"score", "success"}
        Which outcome. Scores that differ by no more than 1e-9 are equal.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a linearised interval.

    Returns
    -------
    Result
        Where no pair differs, the estimate is 0 with status ``no discordant pairs``, without interval, and
        the p-value is 1. Null with status ``no rows`` where no pair is left.

    Raises
    ------
    InputError
        When a run has no twin, an outcome is null, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", table 12.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=0.25, score=score)
    ...     for i in range(20)
    ...     for arm, score in (("plain", float(i > 9)), ("gate", float(i > 3)))
    ... ])
    >>> delta(log, arm="gate", baseline="plain")
    delta, 95% interval
    estimate   low  high    se  df   n  clusters  status
        0.30  0.08  0.52  0.105  19  20        20  ok
    """
    pairs = outcome_difference("delta", pairs_of("delta", log, arm, baseline, where), outcome)

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        return Mean(numbers(part, "difference")), "paired"

    return estimate("delta", log, pairs, by, design, build, null=0.0)


@estimator
def mean_drop(
    log: Log,
    *,
    column: str = "drop",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Mean over inputs of the drop of head agreement, or of another prefill signal.

    Formula: ``sum(w * D) / sum(w)`` over input records; D is in [-1, 1].

    Parameters
    ----------
    log : Log
        The log.
    column : str, default "drop"
        Numeric column of `log.inputs`, such as ``drop_interior`` or a signal.
    where : str, optional
        SQL expression over `log.inputs`.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a linearised interval.

    Returns
    -------
    Result
        In the unit of the column. Null with status ``no rows`` where no input is left; without interval
        where there is one cluster or all values are equal (``zero variance``).

    Raises
    ------
    InputError
        When a value is null, two input records have the same key, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", table 24.

    Examples
    --------
    >>> from kvstats.log import InputRecord, log_from_records
    >>> log = log_from_records([
    ...     InputRecord(suite="s", model="m", task="qa", input_id=str(i), drop=0.06 + 0.01 * (i % 3))
    ...     for i in range(30)
    ... ])
    >>> mean_drop(log, by="task")
    mean_drop, 95% interval
    task  estimate     low    high       se  df   n  clusters  status
    qa      0.0700  0.0669  0.0731  0.00152  29  30        30  ok
    """
    return mean_of(
        "mean_drop", log, select(unique_inputs(log, "mean_drop"), where, "mean_drop"), column, by, design
    )


@estimator
def kept_fraction(
    log: Log,
    *,
    arm: str | None = None,
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Mean fraction of the cache that the runs of an arm kept.

    Formula: ``sum(w * kept) / sum(w)`` over runs, where kept is ``kept_fraction`` as measured or, where that
    is null, ``n_kept / n_prompt``.

    Parameters
    ----------
    log : Log
        The log.
    arm : str, optional
        The arm. Needed where several arms are left and `by` does not keep them apart.
    where : str, optional
        SQL expression over the runs with the columns of their input records.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a linearised interval.

    Returns
    -------
    Result
        In [0, 1]. Null with status ``no rows`` where no run is left; without interval where there is one
        cluster or all runs kept the same fraction (``zero variance``).

    Raises
    ------
    InputError
        When arms would be pooled, a run tells neither figure, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", table 22.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm="gate", budget=0.25, score=1.0,
    ...               n_prompt=100, n_kept=100 if i < 5 else 25)
    ...     for i in range(20)
    ... ])
    >>> kept_fraction(log).frame["estimate"].item()
    0.4375
    """
    rows = with_kept_fraction("kept_fraction", runs_of("kept_fraction", log, arm, where, by))
    return mean_of("kept_fraction", log, rows, "kept_fraction", by, design)


def mean_of(function: str, log: Log, frame: pl.DataFrame, column: str, by: By, design: Design) -> Result:
    """Estimate the mean of a numeric column without nulls."""
    numeric = numeric_columns(frame)
    if column not in numeric:
        raise InputError.argument(
            function, "column", column, "is not a numeric column", nearest_name(str(column), numeric)
        )
    require_values(function, frame, column)

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        return Mean(numbers(part, column)), "mean"

    return estimate(function, log, frame, by, design, build)
