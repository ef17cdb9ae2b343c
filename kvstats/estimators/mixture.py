"""Mixtures of tasks: what an arm gains where a share of the inputs is of some tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real

import numpy as np
import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.estimators.per_input import Builder, estimate_each, others_than
from kvstats.estimators.population import By, estimate, numbers, outcome_difference
from kvstats.estimators.registry import estimator, table_estimator
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.inference.sample import Kind
from kvstats.log.frames import Log
from kvstats.statistics.mixture import MixtureCrossing, MixtureMean
from kvstats.statistics.statistic import Statistic
from kvstats.tables import pairs_of

__all__ = ["mixture_crossing", "mixture_delta"]

INSIDE = "__inside__"


@table_estimator(share=pl.Float64())
def mixture_delta(
    log: Log,
    *,
    arm: str,
    baseline: str = "full",
    tasks: Sequence[str],
    shares: Sequence[float] = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0),
    outcome: str = "score",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Mean paired difference of the outcome in a workload of which a share is of given tasks.

    Formula: ``f * Delta_C + (1 - f) * Delta_rest``, Delta_C the mean difference ``sum(w * (y - baseline y)) /
    sum(w)`` over the pairs of the given tasks and Delta_rest that over all others: the tasks keep their
    shares within either group.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    tasks : sequence of str
        The tasks of group C, such as those that are bound by capacity.
    shares : sequence of float
        Shares f of group C, each in [0, 1] and once.
    outcome : {"score", "success"}
        Which outcome.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a linearised interval.

    Returns
    -------
    Result
        One row a share, in the by-column ``share``; the null value is 0. Null with status ``undefined``
        where a group with a share above 0 has no pair, ``no rows`` where no pair is left.

    Raises
    ------
    InputError
        When a share or a task is not known, a run has no twin, an outcome is null, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", on mixtures of tasks.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task=task, input_id=str(i), arm=arm, budget=0.25, score=score)
    ...     for task, gain in (("keys", 6), ("qa", 1))
    ...     for i in range(10)
    ...     for arm, score in (("plain", 0.0), ("gate", float(i < gain)))
    ... ])
    >>> result = mixture_delta(log, arm="gate", baseline="plain", tasks=["keys"], shares=[0.0, 0.5, 1.0])
    >>> result.frame["estimate"].round(6).to_list()
    [0.1, 0.35, 0.6]
    """
    function = "mixture_delta"
    fractions = checked_shares(function, shares)
    pairs = grouped_pairs(function, log, arm, baseline, tasks, outcome, where)

    def at(share: float) -> Builder:
        return lambda part: (
            MixtureMean(numbers(part, "difference"), numbers(part, INSIDE), share),
            "paired",
        )

    builders = {share: at(share) for share in fractions}
    names = others_than(function, log, by, "share")
    return estimate_each(function, log, pairs, names, design, builders, ("share", pl.Float64()), null=0.0)


@estimator
def mixture_crossing(
    log: Log,
    *,
    arm: str,
    baseline: str = "full",
    tasks: Sequence[str],
    level: float = 0.0,
    outcome: str = "score",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Share of given tasks in a workload at which the mean paired difference reaches a level.

    Formula: ``(level - Delta_rest) / (Delta_C - Delta_rest)``, with the means of `mixture_delta`. It is not
    cut off: below 0 or above 1 no mixture of the two groups reaches the level.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    tasks : sequence of str
        The tasks of group C.
    level : float, default 0.0
        The level, in the unit of the outcome.
    outcome : {"score", "success"}
        Which outcome.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a linearised interval, which is for groups whose means differ by
        several standard errors. Where they hardly differ no interval of a share says much; use
        `mixture_delta` at several shares.

    Returns
    -------
    Result
        Null with status ``undefined`` where a group has no pair or both means agree, ``no rows`` where no
        pair is left.

    Raises
    ------
    InputError
        When the level is not finite, a task is not known, a run has no twin, an outcome is null, or a name
        is not known.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task=task, input_id=str(i), arm=arm, budget=0.25, score=score)
    ...     for task, gain in (("keys", 6), ("qa", 1))
    ...     for i in range(10)
    ...     for arm, score in (("plain", 0.0), ("gate", float(i < gain)))
    ... ])
    >>> found = mixture_crossing(log, arm="gate", baseline="plain", tasks=["keys"], level=0.2)
    >>> found.frame["estimate"].round(6).item()
    0.2
    """
    function = "mixture_crossing"
    if isinstance(level, bool) or not isinstance(level, Real) or not math.isfinite(level):
        raise InputError.argument(function, "level", level, "is not a finite number", "pass one such as 0.0")
    pairs = grouped_pairs(function, log, arm, baseline, tasks, outcome, where)

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        return MixtureCrossing(numbers(part, "difference"), numbers(part, INSIDE), float(level)), "mean"

    return estimate(function, log, pairs, by, design, build)


def grouped_pairs(
    function: str,
    log: Log,
    arm: str,
    baseline: str,
    tasks: Sequence[str],
    outcome: str,
    where: str | None,
) -> pl.DataFrame:
    """Return pairs with whether they are of the given tasks."""
    pairs = outcome_difference(function, pairs_of(function, log, arm, baseline, where), outcome)
    known = log.runs["task"].unique().to_list()
    if isinstance(tasks, str) or not isinstance(tasks, Sequence) or not tasks:
        raise InputError.argument(function, "tasks", tasks, "is no list of tasks", "pass one such as ['qa']")
    for task in tasks:
        if task not in known:
            raise InputError.argument(
                function, "tasks", task, "is not a task of the log", nearest_name(str(task), known)
            )
    return pairs.with_columns(pl.col("task").is_in(list(tasks)).alias(INSIDE))


def checked_shares(function: str, shares: Sequence[float]) -> list[float]:
    """Return shares, or raise `InputError` where one is out of range or named twice."""
    if not isinstance(shares, Sequence | np.ndarray) or isinstance(shares, str):
        raise InputError.argument(
            function, "shares", shares, "is no list of shares", "pass a list such as [0.0, 0.5, 1.0]"
        )
    for share in shares:
        if isinstance(share, bool) or not isinstance(share, Real) or not 0 <= share <= 1:
            raise InputError.argument(
                function, "shares", share, "is not a share in [0, 1]", "pass a list such as [0.0, 0.5, 1.0]"
            )
    if not len(shares) or len(set(shares)) < len(shares):
        raise InputError.argument(
            function, "shares", shares, "is empty or names a share twice", "name each share once"
        )
    return [float(share) for share in shares]
