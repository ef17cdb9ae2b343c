"""Discrimination: whether a signal tells failures from successes."""

from __future__ import annotations

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.estimators.population import By, estimate, numbers, numeric_columns
from kvstats.estimators.registry import estimator
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.inference.sample import Kind
from kvstats.log.frames import Log
from kvstats.statistics.auc import AUC
from kvstats.statistics.statistic import Statistic
from kvstats.tables import pairs_of, require_values

__all__ = ["auc"]


@estimator
def auc(
    log: Log,
    *,
    signal: str,
    outcome: str = "failure",
    arm: str,
    baseline: str = "full",
    higher: str = "positive",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Area under the receiver operating characteristic of a signal for an outcome.

    Formula: the weighted probability that a run with the outcome has the higher signal than one without,
    ties one half; see `kvstats.statistics.AUC`. In [0, 1]; the null hypothesis of its tests is 0.5.

    Parameters
    ----------
    log : Log
        The log.
    signal : str
        Numeric column of the pairs: a signal of the run, of its input, or of its twin (``baseline_...``).
    outcome : str, default "failure"
        Boolean column of the pairs: ``failure`` (the run was no success), ``induced_failure`` (the twin was
        one and the run was not), ``harm``, ``help``, ``success``, ... For ``induced_failure`` the
        population is the pairs whose twin succeeded.
    arm : str
        The arm.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    higher : {"positive", "negative"}
        Which class is expected to have the higher signal: ``positive``, the runs with the outcome, or
        ``negative``, those without. ``negative`` turns an area A into 1 - A.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a linearised interval, cut off at 0 and 1: for clusters of one row
        DeLong's, up to terms that vanish as the classes grow.

    Returns
    -------
    Result
        Null with status ``one class`` where all or none have the outcome, ``no rows`` where no pair is
        left; without interval where the separation is perfect (``zero variance``).

    Raises
    ------
    InputError
        When a run has no twin, a signal or outcome is null, or a name is not known.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", table 2.
    .. [2] DeLong, DeLong and Clarke-Pearson, Biometrics 44, 1988.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget,
    ...               score=float(success), success=success, signals={"certificate": i % 7})
    ...     for i in range(40)
    ...     for arm, budget, success in (("full", 1.0, True), ("poisson", 0.5, i % 5 > i % 7))
    ... ])
    >>> auc(log, signal="certificate", outcome="induced_failure", arm="poisson")
    auc, 95% interval
    estimate   low  high     se  df   n  clusters  status
        0.87  0.76  0.98  0.055  39  40        40  ok
    """
    if higher not in ("positive", "negative"):
        raise InputError.argument(
            "auc", "higher", higher, "is not known", nearest_name(str(higher), ("positive", "negative"))
        )
    pairs = pairs_of("auc", log, arm, baseline, where)
    binary = [name for name in pairs.columns if pairs.schema[name] == pl.Boolean]
    for argument, name, known, kind in (
        ("signal", signal, numeric_columns(pairs), "numeric"),
        ("outcome", outcome, binary, "Boolean"),
    ):
        if name not in known:
            raise InputError.argument(
                "auc", argument, name, f"is not a {kind} column of the pairs", nearest_name(str(name), known)
            )
    if outcome == "induced_failure":
        for column in ("success", "baseline_success"):
            require_values("auc", pairs, column)
        pairs = pairs.filter("baseline_success")
    require_values("auc", pairs, outcome)
    require_values("auc", pairs, signal)
    sign = 1.0 if higher == "positive" else -1.0

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        return AUC(sign * numbers(part, signal), numbers(part, outcome)), "auc"

    return estimate("auc", pairs, by, design, build, null=0.5)
