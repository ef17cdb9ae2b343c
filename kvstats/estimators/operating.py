"""Operating points: what a signal finds where few false alarms can be afforded."""

from __future__ import annotations

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.estimators.population import By, estimate, numbers
from kvstats.estimators.registry import estimator
from kvstats.estimators.signal_pairs import check_signal, oriented, outcome_pairs
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.inference.sample import Kind
from kvstats.log.frames import Log
from kvstats.statistics.operating_point import OperatingThreshold, TruePositiveRate
from kvstats.statistics.partial_auc import PartialAUC
from kvstats.statistics.statistic import Statistic
from kvstats.tables import require_values

__all__ = ["operating_point", "partial_auc"]


@estimator
def partial_auc(
    log: Log,
    *,
    signal: str,
    outcome: str = "failure",
    arm: str,
    baseline: str = "full",
    higher: str = "positive",
    low: float = 0.0,
    high: float = 0.1,
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Standardised area under the receiver operating characteristic between two false-alarm rates.

    Formula: McClish's ``(1 + (P - c) / (high - low - c)) / 2`` with P the area between the rates and
    ``c = (high**2 - low**2) / 2`` that of a signal without any use; see `kvstats.statistics.PartialAUC`. At
    most 1, and 0.5 without any discrimination, which is the null hypothesis of its tests.

    Parameters
    ----------
    log : Log
        The log.
    signal : str
        Numeric column of the pairs; see `auc`.
    outcome : str, default "failure"
        Boolean column of the pairs; see `auc`.
    arm : str
        The arm.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    higher : {"positive", "negative"}
        Which class is expected to have the higher signal; see `auc`. ``negative`` ranks the runs by the
        negated signal.
    low, high : float
        The range of false-alarm rates, 0 <= low < high <= 1.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a linearised interval.

    Returns
    -------
    Result
        Null where all or none have the outcome, with status ``one class`` (``undefined`` where low + high is
        above 1, and the value has no bound at 0), ``no rows`` where no pair is left; without interval where
        the separation is perfect within the range (``zero variance``).

    Raises
    ------
    InputError
        When the range is empty, a run has no twin, a signal or outcome is null, or a name is not known.

    Notes
    -----
    Simulated coverage of the linearised 95% interval, for clusters of four correlated rows, a signal that is
    1 standard deviation higher in runs with the outcome, and an outcome in the share p of runs. It is within
    simulation error of 0.95 (400 samples; p 0.2 and 0.5; 10, 40 and 200 clusters) where no figure is given.

    For rates from 0 to 0.2: 0.89 with 10 clusters and p = 0.2, 0.90 with 10 clusters and p = 0.5. Smaller p
    were not simulated.

    References
    ----------
    .. [1] McClish, Medical Decision Making 9, 1989.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget,
    ...               score=float(success), success=success, signals={"certificate": i % 7})
    ...     for i in range(40)
    ...     for arm, budget, success in (("full", 1.0, True), ("poisson", 0.5, i % 5 > i % 7))
    ... ])
    >>> partial_auc(log, signal="certificate", arm="poisson", high=0.2)
    partial_auc, 95% interval
    estimate   low  high     se  df   n  clusters  status
        0.82  0.70  0.94  0.058  39  40        40  ok
    """
    sign = oriented("partial_auc", "higher", higher)
    pairs = outcome_pairs("partial_auc", log, arm, baseline, outcome, where)
    check_signal("partial_auc", "signal", pairs, signal)
    require_values("partial_auc", pairs, signal)

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        statistic = PartialAUC(sign * numbers(part, signal), numbers(part, outcome), low, high)
        return statistic, "auc" if low + high <= 1 else "mean"

    return estimate("partial_auc", log, pairs, by, design, build, null=0.5)


@estimator
def operating_point(
    log: Log,
    *,
    signal: str,
    false_alarm_rate: float,
    report: str = "true_positive_rate",
    outcome: str = "failure",
    arm: str,
    baseline: str = "full",
    higher: str = "positive",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """True-positive rate of a signal at a fixed false-alarm rate, or the threshold that keeps to it.

    Formula: the receiver operating characteristic at the rate, linear between its points, in [0, 1]; or the
    lowest value at or beyond which no more than that share of the runs without the outcome lies. See
    `kvstats.statistics.TruePositiveRate` and `kvstats.statistics.OperatingThreshold`.

    Parameters
    ----------
    log : Log
        The log.
    signal : str
        Numeric column of the pairs; see `auc`.
    false_alarm_rate : float
        Share of the runs without the outcome that may be flagged, in (0, 1).
    report : {"true_positive_rate", "threshold"}
        What to estimate.
    outcome : str, default "failure"
        Boolean column of the pairs; see `auc`.
    arm : str
        The arm.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    higher : {"positive", "negative"}
        Which class is expected to have the higher signal: with ``negative`` runs at or below the threshold
        are flagged.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it. ``auto`` takes a linearised interval, whose slope is estimated over a range of rates;
        ``percentile`` needs no slope.

    Returns
    -------
    Result
        The threshold is in the unit of the signal. Null where all or none have the outcome, with status ``one
        class`` (for the threshold ``undefined``, as where so many runs share the extreme value that no
        threshold keeps to the rate), ``no rows`` where no pair is left.

    Raises
    ------
    InputError
        When the rate is not in (0, 1), a run has no twin, a signal or outcome is null, or a name is not
        known.

    Notes
    -----
    Simulated coverage of the linearised 95% interval, for clusters of four correlated rows, a signal that is
    1 standard deviation higher in runs with the outcome, and an outcome in the share p of runs. It is within
    simulation error of 0.95 (400 samples; p 0.2 and 0.5; 10, 40 and 200 clusters) where no figure is given.

    At a false-alarm rate of 0.2, the true-positive rate: 0.91 with 10 clusters and p = 0.5; the threshold: no
    shortfall. With 40 clusters and p = 0.2 the percentile interval of the true-positive rate holds 0.95 as
    well. Smaller p were not simulated.

    References
    ----------
    .. [1] Hsieh and Turnbull, Annals of Statistics 24, 1996.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget,
    ...               score=float(success), success=success, signals={"certificate": i % 7})
    ...     for i in range(40)
    ...     for arm, budget, success in (("full", 1.0, True), ("poisson", 0.5, i % 5 > i % 7))
    ... ])
    >>> operating_point(log, signal="certificate", arm="poisson", false_alarm_rate=0.2)
    operating_point, 95% interval
    estimate   low  high     se  df   n  clusters  status
        0.77  0.55  0.98  0.107  39  40        40  ok
    """
    function, known = "operating_point", ("true_positive_rate", "threshold")
    if report not in known:
        raise InputError.argument(
            function, "report", report, "is not known", nearest_name(str(report), known)
        )
    sign = oriented(function, "higher", higher)
    pairs = outcome_pairs(function, log, arm, baseline, outcome, where)
    check_signal(function, "signal", pairs, signal)
    require_values(function, pairs, signal)

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        score, label = numbers(part, signal), numbers(part, outcome)
        if report == "true_positive_rate":
            return TruePositiveRate(sign * score, label, false_alarm_rate), "auc"
        threshold = OperatingThreshold(score, label, false_alarm_rate, flagged="high" if sign > 0 else "low")
        return threshold, "mean"

    return estimate(function, log, pairs, by, design, build)
