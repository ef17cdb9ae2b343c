"""Retrieval on a red flag: runs whose certificate reaches a threshold are answered again."""

from __future__ import annotations

import math

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY
from kvstats.policies.registry import policy
from kvstats.policies.switch import add_arm, check_new_arm, switched
from kvstats.tables import FULL, arm_rows, require_values, runs_with_inputs

__all__ = ["retrieve"]

FLAG = "flagged"


@policy
def retrieve(
    log: Log,
    *,
    base: str,
    signal: str = "certificate",
    tau: float = 1.0,
    source: str = FULL,
    higher: str = "flagged",
    name: str = "retrieve",
) -> Log:
    """Add the arm that answers a run again from another arm's cache where a signal raises a red flag.

    For each row of `base`: when its own signal is at or above `tau`, the outcome is that of the source's run
    of the same input; otherwise the row's own.

    Parameters
    ----------
    log : Log
        The log.
    base : str
        Name of the arm whose runs raise the flag.
    signal : str, default "certificate"
        Numeric column of the runs or of their input records.
    tau : float, default 1.0
        Threshold of the signal; not NaN. A certificate of 1 says that the error may be as large as the
        attention output itself.
    source : str, default "full"
        Arm that answers flagged runs: ``full``, or an arm such as ``poisson+ranked`` that has a run of the
        same input, budgets and seed.
    higher : {"flagged", "safe"}
        Which runs have the higher signal: with ``safe``, as for a log-probability, runs at or below `tau` are
        flagged.
    name : str, default "retrieve"
        Name of the new arm.

    Returns
    -------
    Log
        The log with one row more for each row of `base`: budgets and seed are those of the base row,
        everything else is that of the chosen row. The Boolean column ``flagged`` is null for other arms.

    Raises
    ------
    InputError
        When an arm or the signal is not known, a signal is null, the name is taken, rows are duplicated, or a
        flagged run has no run of the source.

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
    >>> answered.runs.filter(pl.col("arm") == "retrieve").select("budget", "score", "flagged").rows()
    [(0.25, 1.0, True), (0.5, 0.0, False)]
    """
    function = "retrieve"
    if isinstance(tau, bool) or not isinstance(tau, int | float) or math.isnan(tau):
        raise InputError.argument(function, "tau", tau, "is not a number", "pass the threshold of the signal")
    directions = ("flagged", "safe")
    if higher not in directions:
        raise InputError.argument(
            function, "higher", higher, "is not known", nearest_name(str(higher), directions)
        )
    check_new_arm(function, log, name)
    rows = arm_rows(runs_with_inputs(log, function), base, function, "base")
    known = [column for column in rows.columns if rows.schema[column].is_numeric()]
    if signal not in known:
        raise InputError.argument(
            function, "signal", signal, "is not a numeric column of the runs", nearest_name(signal, known)
        )
    require_values(function, rows, signal)
    raised = pl.col(signal) >= tau if higher == "flagged" else pl.col(signal) <= tau
    marked = rows.with_columns(raised.alias(FLAG))
    marked = marked.select(name for name in marked.columns if name in (*log.runs.columns, FLAG))
    others = arm_rows(log.runs, source, function, "source")
    on = INPUT_KEY if source == FULL else (*INPUT_KEY, "budget", "budget_tokens", "seed")
    chosen = switched(
        function, marked, others, taken=pl.col(FLAG), argument="source", other_name=source, on=on
    )
    return add_arm(log, chosen, name)
