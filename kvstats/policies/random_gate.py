"""Random gating: every input has the same chance of the full cache, in exact expectation."""

from __future__ import annotations

import polars as pl

from kvstats.log.frames import Log
from kvstats.policies.escalate import larger_budget
from kvstats.policies.registry import policy
from kvstats.policies.switch import add_arm, check_new_arm
from kvstats.policies.top_share import RERUN, check_share, mixed, twin_columns
from kvstats.tables import FULL, arm_rows

__all__ = ["random_gate"]


@policy
def random_gate(
    log: Log,
    *,
    base: str,
    share: float,
    to_budget: float | None = None,
    full: str = FULL,
    name: str = "random",
) -> Log:
    """Add the arm that runs a random share of the inputs again, as its exact expectation.

    Nothing is drawn: the score of each row is ``share * full + (1 - share) * base``, and so is its kept
    fraction. It is what any signal must beat at the same cost.

    Parameters
    ----------
    log : Log
        The log.
    base : str
        Name of the arm that evicts.
    share : float
        Chance of each run to be run again, in [0, 1].
    to_budget : float, optional
        Run again with `base` at this budget rather than with `full`, as `escalate` does; rows of `base` at
        this budget or above are left out.
    full : str, default "full"
        Name of the arm that answers: the full cache, or an arm with a run of the same input and budgets
        (and seed, where it has several). Not used with `to_budget`.
    name : str, default "random"
        Name of the new arm.

    Returns
    -------
    Log
        The log with one row more for each row of `base` (below `to_budget`). ``success`` is null where both
        runs differ in it, so that only estimators of the score can use the arm; what was observed of one run,
        such as its signals, is null. The column ``rerun`` of `runs` holds the share.

    Raises
    ------
    InputError
        When an arm or budget is not known, the share is not in [0, 1], the name is taken, rows are
        duplicated, a run has no other to be run again by, or, with `to_budget`, a budget of `base` is null.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", table 4, column random.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> key = dict(suite="s", model="m", task="qa", input_id="1")
    >>> log = log_from_records([
    ...     RunRecord(**key, arm="full", budget=1.0, score=1.0),
    ...     RunRecord(**key, arm="poisson", budget=0.25, score=0.0),
    ... ])
    >>> gated = random_gate(log, base="poisson", share=0.25)
    >>> gated.runs.filter(arm="random").select("budget", "score", "rerun").rows()
    [(0.25, 0.25, 0.25)]
    """
    part = check_share("random_gate", share)
    check_new_arm("random_gate", log, name)
    rows = arm_rows(log.runs, base, "random_gate", "base")
    if to_budget is None:
        others = arm_rows(log.runs, full, "random_gate", "full")
        argument, other_name, on = "full", full, twin_columns(others, full)
    else:
        rows, others, on = larger_budget("random_gate", rows, base, to_budget)
        argument, other_name = "to_budget", base
    marked = rows.with_columns(pl.lit(part).alias(RERUN))
    chosen = mixed("random_gate", marked, others, argument=argument, other_name=other_name, on=on)
    return add_arm(log, chosen, name)
