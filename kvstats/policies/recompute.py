"""Recomputation: the inputs with the most suspicious signal are run again with the full cache."""

from __future__ import annotations

from collections.abc import Sequence

from kvstats.log.frames import Log
from kvstats.policies.registry import policy
from kvstats.policies.switch import add_arm, check_new_arm
from kvstats.policies.top_share import (
    DEPLOYMENT,
    check_share,
    mixed,
    signal_rows,
    top_share,
    twin_columns,
)
from kvstats.tables import FULL, arm_rows

__all__ = ["recompute"]


@policy
def recompute(
    log: Log,
    *,
    base: str,
    signal: str,
    share: float,
    within: str | Sequence[str] | None = DEPLOYMENT,
    higher: str = "positive",
    margin: str = "expected",
    full: str = FULL,
    name: str = "recompute",
) -> Log:
    """Add the arm that runs the share of inputs with the highest signal again with the full cache.

    Every row of `base` counts, and counts once. The limit is taken once, from the rows of the log: intervals
    of the new arm hold it fixed. `kvstats.recomputation` estimates the same, refits the limit in each
    replicate, and takes the share of the weights where the design has any. `kvstats.retrieve` goes by a
    threshold instead.

    Parameters
    ----------
    log : Log
        The log.
    base : str
        Name of the arm that evicts.
    signal : str
        Numeric column of the runs or of their input records, never null.
    share : float
        Share of the runs that are run again, in [0, 1].
    within : str or sequence of str, or None
        The share is taken of each group of runs that agree in these columns. Default: suite, model,
        condition, budgets and seed, the runs that one serving system would rank. Add ``task`` to give each
        task its share; None ranks all runs of the arm against each other.
    higher : {"positive", "negative"}
        Whether runs of high or of low signal are run again first; ``negative`` for a log-probability or a
        margin.
    margin : {"expected", "whole"}
        What happens where the limit falls within a run, or within runs of equal signal. ``expected``: these
        runs are re-run in part, as in the mean over all ways to break the tie, so that their score is the
        expected one and their success is null where it depends. ``whole``: only whole runs, no more than the
        share allows, ties in the order of the log's keys; every estimator can use these.
    full : str, default "full"
        Name of the arm that answers: the full cache, or an arm with a run of the same input and budgets
        (and seed, where it has several).
    name : str, default "recompute"
        Name of the new arm.

    Returns
    -------
    Log
        The log with one row more for each row of `base`: budgets and seed are those of the base row, the
        rest is of the chosen run. The column ``rerun`` of `runs`, the part that is run again, is null for
        other arms.

    Raises
    ------
    InputError
        When an arm, the signal or a column is not known, a signal is null, the share is not in [0, 1], the
        name is taken, rows are duplicated, or a run to be run again has no full-cache run.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", table 4.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget, score=score,
    ...               signals={"certificate": float(i)})
    ...     for i in range(4)
    ...     for arm, budget, score in (("full", 1.0, 1.0), ("poisson", 0.25, 0.0))
    ... ])
    >>> again = recompute(log, base="poisson", signal="certificate", share=0.25)
    >>> again.runs.filter(arm="recompute").select("input_id", "score", "rerun").rows()
    [('0', 0.0, 0.0), ('1', 0.0, 0.0), ('2', 0.0, 0.0), ('3', 1.0, 1.0)]
    """
    part = check_share("recompute", share)
    check_new_arm("recompute", log, name)
    rows = signal_rows("recompute", log, base, signal)
    others = arm_rows(log.runs, full, "recompute", "full")
    marked = top_share("recompute", rows, signal, part, within=within, higher=higher, margin=margin)
    chosen = mixed(
        "recompute", marked, others, argument="full", other_name=full, on=twin_columns(others, full)
    )
    return add_arm(log, chosen, name)
