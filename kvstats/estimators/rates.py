"""Rates: how often runs succeed, are harmed by eviction, and recover."""

from __future__ import annotations

import polars as pl

from kvstats.estimators.per_input import per_input
from kvstats.estimators.population import By, check_outcome, estimate, mean_or_rate, runs_of
from kvstats.estimators.registry import estimator
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.log.frames import Log
from kvstats.selection import select
from kvstats.tables import EVICTED, pairs_of, require_values

__all__ = ["accuracy", "harm_rate", "induced_failure_rate", "recovery_rate"]


@estimator
def accuracy(
    log: Log,
    *,
    arm: str | None = None,
    outcome: str = "score",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Mean score, or share of successes, of the runs of an arm.

    Formula: ``sum(w * y) / sum(w)`` over runs, y the outcome. Budgets may be averaged; arms may not.

    Parameters
    ----------
    log : Log
        The log.
    arm : str, optional
        The arm. Needed where several arms are left and `by` does not keep them apart.
    outcome : {"score", "success"}
        Which outcome: the task's score, or whether it reached the task's threshold.
    where : str, optional
        SQL expression over the runs with the columns of their input records.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it. ``auto`` takes a Korn-Graubard interval for a row whose outcomes are all 0 or 1, and
        else a linearised one.

    Returns
    -------
    Result
        In the unit of the outcome. Null with status ``no rows`` where none is left; without interval where
        there is one cluster, or fractional outcomes that are all equal (``zero variance``).

    Raises
    ------
    InputError
        When arms would be pooled, an outcome is null, or a name is not known.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm="snapkv", budget=0.25,
    ...               score=float(i % 4 > 0))
    ...     for i in range(40)
    ... ])
    >>> accuracy(log)
    accuracy, 95% interval
    estimate   low  high     se  df   n  clusters  status
        0.75  0.59  0.87  0.069  39  40        40  ok
    """
    rows = runs_of("accuracy", log, arm, where, by)
    check_outcome("accuracy", rows, outcome)
    return estimate("accuracy", log, rows, by, design, mean_or_rate(outcome))


@estimator
def harm_rate(
    log: Log,
    *,
    arm: str,
    baseline: str = "full",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Share of runs that score below their twin of the baseline.

    Formula: ``sum(w * [score < baseline score]) / sum(w)`` over pairs, in [0, 1]. Scores that differ by no
    more than 1e-9 are equal. Runs whose twin scores the least possible count too: they cannot be harmed.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm that evicts.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a Korn-Graubard interval.

    Returns
    -------
    Result
        Null with status ``no rows`` where no pair is left.

    Raises
    ------
    InputError
        When a run has no twin, a score is null, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", table 27.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget, score=score)
    ...     for i in range(20)
    ...     for arm, budget, score in (("full", 1.0, 1.0), ("snapkv", 0.25, float(i > 3)))
    ... ])
    >>> harm_rate(log, arm="snapkv", by="budget")
    harm_rate, 95% interval
    budget  estimate   low  high     se  df   n  clusters  status
      0.25      0.20  0.05  0.44  0.092  19  20        20  ok
    """
    pairs = pairs_of("harm_rate", log, arm, baseline, where)
    return estimate("harm_rate", log, pairs, by, design, mean_or_rate("harm"))


@estimator
def induced_failure_rate(
    log: Log,
    *,
    arm: str,
    baseline: str = "full",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Share of failures among the runs whose twin of the baseline succeeded.

    Formula: ``sum(w * [twin succeeded, run failed]) / sum(w * [twin succeeded])``, in [0, 1]. Pairs whose
    twin failed are outside the population by definition: nothing was there to be lost.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm that evicts.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a Korn-Graubard interval.

    Returns
    -------
    Result
        Null with status ``no rows`` where no twin succeeded.

    Raises
    ------
    InputError
        When a run has no twin, a success is null on either side, or a name is not known.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget,
    ...               score=float(success), success=success)
    ...     for i in range(20)
    ...     for arm, budget, success in (("full", 1.0, i > 9), ("snapkv", 0.25, i > 12))
    ... ])
    >>> induced_failure_rate(log, arm="snapkv").frame.select("estimate", "n").rows()
    [(0.3, 10)]
    """
    pairs = pairs_of("induced_failure_rate", log, arm, baseline, where)
    for column in ("success", "baseline_success"):
        require_values("induced_failure_rate", pairs, column)
    return estimate(
        "induced_failure_rate",
        log,
        pairs.filter("baseline_success"),
        by,
        design,
        mean_or_rate("induced_failure"),
    )


@estimator
def recovery_rate(
    log: Log,
    *,
    arm: str,
    baseline: str = "full",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Share of inputs for which the arm beats the baseline at some budget below 1.

    Formula: ``sum(w * max over budgets of [score > baseline score]) / sum(w)`` over inputs, in [0, 1]. Runs
    at budget 1 are left out; budgets given in tokens count as below 1. The more budgets were run, the
    larger the rate.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm that evicts.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to estimate within; an input counts in each part that it has runs in.
    design : Design
        How to judge it; ``auto`` takes a Korn-Graubard interval. Cluster, strata and weight columns must
        have one value for each input.

    Returns
    -------
    Result
        ``n`` is the number of inputs. Null with status ``no rows`` where none is left.

    Raises
    ------
    InputError
        When a run has no twin, a score is null, a cluster, strata or weight column differs between runs of
        one input, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", table 1.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget, score=score)
    ...     for i in range(20)
    ...     for arm, budget, score in (
    ...         ("full", 1.0, 0.0), ("snapkv", 0.25, float(i == 0)), ("snapkv", 0.5, float(i == 1)))
    ... ])
    >>> recovery_rate(log, arm="snapkv").frame.select("estimate", "n").rows()
    [(0.1, 20)]
    """
    function = "recovery_rate"
    pairs = select(pairs_of(function, log, arm, baseline, where), EVICTED, function)
    inputs = per_input(function, pairs, by, design, {"recovered": pl.col("help").any()})
    return estimate(function, log, inputs, by, design, mean_or_rate("recovered"))
