"""Escalation: the inputs with the most suspicious signal are run again at a larger budget."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real

import polars as pl

from kvstats.errors import InputError
from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY, RUN_KEY
from kvstats.policies.registry import policy
from kvstats.policies.switch import add_arm, check_new_arm
from kvstats.policies.top_share import (
    DEPLOYMENT,
    check_share,
    mixed,
    over_threshold,
    signal_rows,
    top_share,
)
from kvstats.tables import examples

__all__ = ["escalate", "larger_budget"]

SAME = 1e-9
"""Budgets that differ by no more are equal."""


@policy
def escalate(
    log: Log,
    *,
    base: str,
    to_budget: float,
    signal: str,
    share: float | None = None,
    tau: float | None = None,
    within: str | Sequence[str] | None = DEPLOYMENT,
    higher: str = "positive",
    margin: str = "expected",
    name: str = "escalate",
) -> Log:
    """Add the arm that runs suspicious inputs again with the same eviction at a larger budget.

    Rows of `base` below `to_budget` count; those that are chosen take the outcome of the run of `base` at
    `to_budget` of the same input and seed. The limit is taken once, from the rows of the log.

    Parameters
    ----------
    log : Log
        The log.
    base : str
        Name of the arm that evicts.
    to_budget : float
        The larger budget, as logged.
    signal : str
        Numeric column of the runs or of their input records, never null.
    share : float, optional
        Share of the runs that are run again, in [0, 1]: those of the highest signal.
    tau : float, optional
        Threshold of the signal, in place of a share: runs at or above it (with ``negative``, at or below it)
        are run again.
    within, higher, margin
        How the share is taken; see `kvstats.policies.recompute`.
    name : str, default "escalate"
        Name of the new arm.

    Returns
    -------
    Log
        The log with one row more for each row of `base` below `to_budget`: budgets and seed are those of the
        base row, the rest, kept tokens included, is of the chosen run. The column ``rerun`` of `runs` is null
        for other arms.

    Raises
    ------
    InputError
        When not one of share and tau is given, an arm, budget, signal or column is not known, a signal is
        null, a budget of `base` is null, the name is taken, rows are duplicated, or a run to be run again has
        no run at the larger budget.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", claim R4.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm="poisson", budget=budget,
    ...               score=2 * budget, signals={"certificate": float(i)})
    ...     for i in range(2)
    ...     for budget in (0.25, 0.5)
    ... ])
    >>> raised = escalate(log, base="poisson", to_budget=0.5, signal="certificate", share=0.5)
    >>> raised.runs.filter(arm="escalate").select("input_id", "budget", "score").rows()
    [('0', 0.25, 0.5), ('1', 0.25, 1.0)]
    """
    function = "escalate"
    if (share is None) == (tau is None):
        raise InputError(
            f"{function}: share={share!r} and tau={tau!r}: one limit is needed; pass one of them"
        )
    check_new_arm(function, log, name)
    rows, others, on = larger_budget(function, signal_rows(function, log, base, signal), base, to_budget)
    if share is not None:
        part = check_share(function, share)
        marked = top_share(function, rows, signal, part, within=within, higher=higher, margin=margin)
    else:
        marked = over_threshold(function, rows, signal, tau, higher=higher)
    chosen = mixed(function, marked, others, argument="to_budget", other_name=base, on=on)
    return add_arm(log, chosen, name)


def larger_budget(
    function: str, rows: pl.DataFrame, base: str, to_budget: float
) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """Return the rows below a budget, those at it, and the columns in which both agree."""
    unknown = rows["budget"].null_count()
    if unknown:
        raise InputError.argument(
            function,
            "base",
            base,
            f"has no budget in {unknown} of {rows.height} rows, such as "
            f"{examples(rows.filter(pl.col('budget').is_null()), RUN_KEY)}, so that none is larger",
            "use a log whose budgets are fractions of the cache",
        )
    known = rows["budget"].unique().sort().to_list()
    if isinstance(to_budget, bool) or not isinstance(to_budget, Real):
        raise InputError.argument(
            function, "to_budget", to_budget, "is not a number", f"it has {', '.join(map(str, known))}"
        )
    at = (pl.col("budget") - to_budget).abs() <= SAME
    others = rows.filter(at)
    lower = rows.filter((pl.col("budget") < to_budget) & ~at)
    for chosen, fault in ((others, "is no budget"), (lower, "is the smallest budget")):
        if not chosen.height:
            raise InputError.argument(
                function,
                "to_budget",
                to_budget,
                f"{fault} of arm {base!r}",
                f"it has {', '.join(map(str, known))}",
            )
    return lower, others, [*INPUT_KEY, "seed"]
