"""Retrieval on a red flag: runs whose certificate reaches a threshold are answered again."""

from __future__ import annotations

from kvstats.log.frames import Log
from kvstats.policies.registry import policy
from kvstats.policies.switch import add_arm, check_new_arm
from kvstats.policies.top_share import mixed, over_threshold, signal_rows, twin_columns
from kvstats.tables import FULL, arm_rows

__all__ = ["retrieve"]


@policy
def retrieve(
    log: Log,
    *,
    base: str,
    signal: str = "certificate",
    tau: float = 1.0,
    higher: str = "positive",
    full: str = FULL,
    name: str = "retrieve",
) -> Log:
    """Add the arm that answers a run again from another arm's cache where a signal raises a red flag.

    For each row of `base`: when its own signal is at or above `tau`, the outcome is that of the run of `full`
    of the same input; otherwise the row's own. It is `kvstats.recompute` by a threshold rather than by a
    share, so that each run is judged by itself.

    Parameters
    ----------
    log : Log
        The log.
    base : str
        Name of the arm whose runs raise the flag.
    signal : str, default "certificate"
        Numeric column of the runs or of their input records, never null.
    tau : float, default 1.0
        Threshold of the signal; not NaN. A certificate of 1 says that the error may be as large as the
        attention output itself.
    higher : {"positive", "negative"}
        Whether high or low signals raise the flag: with ``negative``, as for a log-probability, those at or
        below `tau`.
    full : str, default "full"
        Name of the arm that answers flagged runs: the full cache, or an arm such as ``poisson+ranked`` with a
        run of the same input and budgets (and seed, where it has several).
    name : str, default "retrieve"
        Name of the new arm.

    Returns
    -------
    Log
        The log with one row more for each row of `base`: budgets and seed are those of the base row,
        everything else is that of the chosen row. The column ``rerun`` of `runs`, 1 where the flag was
        raised and else 0, is null for other arms.

    Raises
    ------
    InputError
        When an arm or the signal is not known, a signal is null, the threshold is no number, the name is
        taken, rows are duplicated, or a flagged run has no run of `full`.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", the red flag at tau = 1.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> key = dict(suite="s", model="m", task="t", input_id="1")
    >>> log = log_from_records([
    ...     RunRecord(**key, arm="full", budget=1.0, score=1.0),
    ...     RunRecord(**key, arm="poisson", budget=0.25, score=0.0, signals={"certificate": 1.3}),
    ...     RunRecord(**key, arm="poisson", budget=0.50, score=0.0, signals={"certificate": 0.7}),
    ... ])
    >>> answered = retrieve(log, base="poisson")
    >>> answered.runs.filter(arm="retrieve").select("budget", "score", "rerun").rows()
    [(0.25, 1.0, 1.0), (0.5, 0.0, 0.0)]
    """
    check_new_arm("retrieve", log, name)
    rows = signal_rows("retrieve", log, base, signal)
    others = arm_rows(log.runs, full, "retrieve", "full")
    marked = over_threshold("retrieve", rows, signal, tau, higher=higher)
    chosen = mixed(
        "retrieve", marked, others, argument="full", other_name=full, on=twin_columns(others, full)
    )
    return add_arm(log, chosen, name)
