"""Quantiles: medians of signals, the budget at which they cross a level, and ratios of median times."""

from __future__ import annotations

import math
from numbers import Real

import msgspec
import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.estimators.population import By, by_columns, estimate, numbers
from kvstats.estimators.registry import estimator
from kvstats.estimators.signal_pairs import check_signal
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.inference.sample import Kind
from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY
from kvstats.selection import select
from kvstats.statistics.quantile import Quantile, QuantileCrossing, QuantileRatio
from kvstats.statistics.statistic import Statistic
from kvstats.tables import pairs_of, require_values, runs_with_inputs

__all__ = ["crossing_budget", "signal_quantile", "time_ratio"]


@estimator
def signal_quantile(
    log: Log,
    *,
    signal: str,
    arm: str,
    p: float = 0.5,
    baseline: str = "full",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Quantile of a signal over the runs of an arm, such as the median certificate among its failures.

    Formula: the inverse of the weighted distribution function at p; see `kvstats.statistics.Quantile`. In the
    unit of the signal.

    Parameters
    ----------
    log : Log
        The log.
    signal : str
        Numeric column of the pairs; see `auc`.
    arm : str
        The arm.
    p : float, default 0.5
        Which quantile, in (0, 1).
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    where : str, optional
        SQL expression over the pairs, such as ``failure``.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a percentile bootstrap of clusters.

    Returns
    -------
    Result
        Null with status ``no rows`` where no pair is left; without interval where there is one cluster, or
        the values around the quantile are equal (``zero variance``).

    Raises
    ------
    InputError
        When p is not in (0, 1), a run has no twin, a signal is null, or a name is not known.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", table 6.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget,
    ...               score=float(success), success=success, signals={"certificate": i / 40})
    ...     for i in range(41)
    ...     for arm, budget, success in (("full", 1.0, True), ("poisson", 0.5, i < 30))
    ... ])
    >>> signal_quantile(log, signal="certificate", arm="poisson", where="failure")
    signal_quantile, 95% interval
    estimate   low  high     se  df   n  clusters  status
        0.88  0.80  0.95  0.037   –  11        11  ok
    """
    function = "signal_quantile"
    pairs = pairs_of(function, log, arm, baseline, where)
    check_signal(function, "signal", pairs, signal)
    require_values(function, pairs, signal)

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        return Quantile(numbers(part, signal), p), "quantile"

    return estimate(function, log, pairs, by, design, build)


@estimator
def crossing_budget(
    log: Log,
    *,
    signal: str,
    arm: str,
    level: float = 1.0,
    p: float = 0.5,
    baseline: str = "full",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Budget at which the median of a signal crosses a level, interpolated between the budgets that were run.

    Formula: the lowest budget at which the line through the quantiles of neighbouring budgets reaches the
    level; see `kvstats.statistics.QuantileCrossing`.

    Parameters
    ----------
    log : Log
        The log.
    signal : str
        Numeric column of the pairs; see `auc`.
    arm : str
        The arm.
    level : float, default 1.0
        The level, in the unit of the signal; 1 is the red flag of a certificate.
    p : float, default 0.5
        Which quantile, in (0, 1).
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    where : str, optional
        SQL expression over the pairs, such as ``failure``.
    by : str or sequence of str, optional
        Columns to estimate within; not the budget.
    design : Design
        How to judge it; ``auto`` takes a percentile bootstrap of clusters, in which a resample without a
        crossing counts as one beyond the end of the range on whose side its quantiles lie.

    Returns
    -------
    Result
        A budget. Null with status ``undefined`` where no neighbouring budgets enclose the level, ``no rows``
        where no pair is left, ``undefined in bootstrap`` where a bound lies beyond the budgets that were run.

    Raises
    ------
    InputError
        When a cell has one budget only, a budget or signal is null, the level is not finite, a run has no
        twin, or a name is not known.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", table 6.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget,
    ...               score=float(budget == 1), success=budget == 1,
    ...               signals={"certificate": 1.4 - budget + i % 7 / 20})
    ...     for i in range(40)
    ...     for arm, budget in (("full", 1.0), ("poisson", 0.25), ("poisson", 0.5), ("poisson", 0.75))
    ... ])
    >>> result = crossing_budget(log, signal="certificate", arm="poisson", where="failure")
    >>> result.frame["estimate"].round(3).item()
    0.55
    """
    function = "crossing_budget"
    if isinstance(level, bool) or not isinstance(level, Real) or not math.isfinite(level):
        raise InputError.argument(function, "level", level, "is not a finite number", "pass one such as 1.0")
    pairs = pairs_of(function, log, arm, baseline, where)
    check_signal(function, "signal", pairs, signal)
    for column in (signal, "budget"):
        require_values(function, pairs, column)

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        if part["budget"].n_unique() == 1:
            raise InputError.argument(
                function,
                "where",
                where,
                f"leaves one budget, {part['budget'][0]:g}, of arm {arm!r} in a cell",
                "take in the budgets between which the signal is to cross the level",
            )
        return QuantileCrossing(numbers(part, signal), numbers(part, "budget"), level, p), "quantile"

    return estimate(function, log, pairs, by, design, build)


@estimator
def time_ratio(
    log: Log,
    *,
    numerator: str = "decode_certified",
    denominator: str = "decode_plain",
    p: float = 0.5,
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Ratio of median times of two phases, such as decoding with and without the certificate.

    Formula: ``quantile of the numerator's seconds / quantile of the denominator's`` over measurements.

    Parameters
    ----------
    log : Log
        The log.
    numerator, denominator : str
        Keys of the runs' ``seconds``.
    p : float, default 0.5
        Which quantile, in (0, 1).
    where : str, optional
        SQL expression over the runs with the columns of their input records.
    by : str or sequence of str, optional
        Columns to estimate within, such as the model.
    design : Design
        How to judge it; ``auto`` takes a percentile bootstrap of clusters.

    Returns
    -------
    Result
        Without unit; 1.1 means ten percent more. Rows of one batch carry the same two times, and those of one
        input count once (in each part, where `by` names what a batch holds several of, such as the budget);
        runs without both times do not count, and ``n`` says how many measurements did. Null with status ``no
        rows`` where there is none.

    Raises
    ------
    InputError
        When runs are left and none of them has a phase of a name.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", cost of the certificate.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm="poisson", budget=0.5, score=1.0,
    ...               seconds={"decode_certified": 1.1 + i % 5 / 100, "decode_plain": 1.0 + i % 3 / 100})
    ...     for i in range(30)
    ... ])
    >>> time_ratio(log).frame["estimate"].round(3).item()
    1.109
    """
    function = "time_ratio"
    runs = select(runs_with_inputs(log, function), where, function)
    known = phases(runs)
    for argument, name in (("numerator", numerator), ("denominator", denominator)):
        if runs.height and name not in known:
            raise InputError.argument(
                function, argument, name, "is no phase that was timed", nearest_name(name, known)
            )
    timed = runs.with_columns(
        pl.col("seconds").str.json_path_match(f"$['{name}']").cast(pl.Float64).alias(f"seconds_{name}")
        for name in (numerator, denominator)
    )
    columns = [f"seconds_{name}" for name in (numerator, denominator)]
    # Rows of one batch are one measurement, in each part that any of them is in.
    once = list(dict.fromkeys([*INPUT_KEY, *by_columns(function, by, timed), *columns]))
    measured = timed.drop_nulls(columns).unique(once, keep="first", maintain_order=True)

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        top, bottom = (numbers(part, column) for column in columns)
        return QuantileRatio(top, bottom, p), "quantile"

    return estimate(function, log, measured, by, design, build, null=1.0)


def phases(runs: pl.DataFrame) -> list[str]:
    """Return the names of the phases that were timed in any run."""
    texts = runs["seconds"].drop_nulls().unique().to_list()
    return sorted({name for text in texts for name in msgspec.json.decode(text, type=dict[str, float])})
