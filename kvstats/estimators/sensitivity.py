"""Sensitivity: how often the smallest budget destroys an answer, in all and below a threshold."""

from __future__ import annotations

import polars as pl

from kvstats.errors import InputError
from kvstats.estimators.population import By, by_columns, estimate, mean_or_rate
from kvstats.estimators.registry import estimator
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY
from kvstats.policies.gate import refuse_other_scales
from kvstats.policies.input_signal import SIGNAL, check_input_signal, with_signal
from kvstats.policies.threshold import DROP, Threshold, as_threshold
from kvstats.selection import select
from kvstats.tables import EVICTED, FULL, examples, pairs_of, require_values

__all__ = ["at_smallest_budget", "prevalence", "sensitivity"]


@estimator
def sensitivity(
    log: Log,
    *,
    arm: str,
    baseline: str = FULL,
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Share of the inputs answered with the full cache whose answer the smallest budget destroys.

    Formula: ``sum(w * [twin succeeded, run failed]) / sum(w * [twin succeeded])`` over the pairs at the
    smallest budget of each part, in [0, 1].

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm that evicts.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's. The smallest budget is that of what is
        selected.
    by : str or sequence of str, optional
        Columns to estimate within, each part at its own smallest budget.
    design : Design
        How to judge it; ``auto`` takes a Korn-Graubard interval.

    Returns
    -------
    Result
        Null with status ``no rows`` where no twin succeeded.

    Raises
    ------
    InputError
        When a run has no twin, a success is null, budgets are partly in tokens, an input has no run at the
        smallest budget, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", the classes of tasks.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget,
    ...               score=float(success), success=success)
    ...     for i in range(20)
    ...     for arm, budget, success in (
    ...         ("full", 1.0, i > 9), ("snapkv", 0.0625, i > 13), ("snapkv", 0.5, i > 10))
    ... ])
    >>> sensitivity(log, arm="snapkv").frame.select("estimate", "n").rows()
    [(0.4, 10)]
    """
    pairs = at_smallest_budget("sensitivity", log, arm, baseline, where, by)
    return estimate(
        "sensitivity", log, pairs.filter("baseline_success"), by, design, mean_or_rate("induced_failure")
    )


@estimator
def prevalence(
    log: Log,
    *,
    arm: str,
    tau: float | Threshold,
    signal: str = DROP,
    baseline: str = FULL,
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    r"""Share of inputs that the gate is there for: answered, destroyed by eviction, and with a low signal.

    Formula: ``sum(w * [twin succeeded, run failed, D < tau]) / sum(w)`` over the pairs at the smallest budget
    of each part, in [0, 1]: the most accuracy that a gate at tau can save there.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm that evicts.
    tau : float or Threshold
        Threshold of the signal, as `kvstats.gate` takes it.
    signal : str, default "drop"
        Column of `log.inputs`.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to estimate within, each part at its own smallest budget.
    design : Design
        How to judge it; ``auto`` takes a Korn-Graubard interval.

    Returns
    -------
    Result
        Null with status ``no rows`` where no pair is left.

    Raises
    ------
    InputError
        As `sensitivity`, and when an input has no signal or tau is a threshold of another one.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", prevalence of capacity-bound inputs.

    Examples
    --------
    >>> from kvstats.log import InputRecord, RunRecord, log_from_records
    >>> keys = [dict(suite="s", model="m", task="t", input_id=f"{i:02}") for i in range(20)]
    >>> log = log_from_records([
    ...     record for i, key in enumerate(keys) for record in (
    ...         InputRecord(**key, drop=0.01 * i),
    ...         RunRecord(**key, arm="full", budget=1.0, score=1.0, success=True),
    ...         RunRecord(**key, arm="snapkv", budget=0.25, score=0.0, success=i == 0))
    ... ])
    >>> prevalence(log, arm="snapkv", tau=0.045).frame["estimate"].item()
    0.2
    """
    function = "prevalence"
    check_input_signal(function, log, signal)
    threshold = as_threshold(function, tau, signal)
    pairs = at_smallest_budget(function, log, arm, baseline, where, by)
    refuse_other_scales(function, pairs, threshold)
    marked = with_signal(function, log, pairs, signal).with_columns(
        prevalent=pl.col("baseline_success") & ~pl.col("success") & (pl.col(SIGNAL) < threshold.value)
    )
    return estimate(function, log, marked, by, design, mean_or_rate("prevalent"))


def at_smallest_budget(
    function: str, log: Log, arm: str, baseline: str, where: str | None, by: By
) -> pl.DataFrame:
    """Return the pairs at the smallest budget of each part, of which every input has one.

    Raises
    ------
    InputError
        When budgets are partly in tokens, or an input has no run at the smallest budget of its part.
    """
    pairs = select(pairs_of(function, log, arm, baseline, where), EVICTED, function)
    for column in ("success", "baseline_success"):
        require_values(function, pairs, column)
    names = by_columns(function, by, pairs)
    if not pairs.height:
        return pairs
    in_tokens = pairs["budget"].null_count()
    if in_tokens not in (0, pairs.height):
        raise InputError(
            f"{function}: {in_tokens} of {pairs.height} budgets are in tokens and the others are fractions, "
            "and which is the smallest cannot be said; select one kind through `where`"
        )
    column = "budget_tokens" if in_tokens else "budget"
    require_values(function, pairs, column)
    least = pl.col(column).min()
    smallest = pairs.filter(pl.col(column) == (least.over(names) if names else least))
    without = pairs.join(smallest, on=list(dict.fromkeys([*INPUT_KEY, *names])), how="anti", nulls_equal=True)
    if without.height:
        raise InputError(
            f"{function}: {without.select(INPUT_KEY).n_unique()} inputs have no run at the smallest {column} "
            f"of their part, such as {examples(without, INPUT_KEY)}; estimate within parts of one grid of "
            "budgets through `by`, or select budgets that all inputs have through `where`"
        )
    return smallest
