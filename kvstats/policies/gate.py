"""The gate: the whole cache for inputs whose prefill signal is low, eviction for the others."""

from __future__ import annotations

import math

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY
from kvstats.policies.registry import policy
from kvstats.policies.switch import add_arm, check_new_arm, switched
from kvstats.tables import FULL, arm_rows, examples, unique_inputs

__all__ = ["gate"]

GATE = "gate_open"
SIGNAL = "__signal__"


@policy
def gate(
    log: Log, *, tau: float, base: str, name: str = "gate", signal: str = "drop", full: str = FULL
) -> Log:
    """Add the arm of a gate that keeps the whole cache of inputs whose prefill signal is low.

    For each row of `base`: when the signal of its input is below `tau` the gate is closed, and the outcome
    is that of the input's full-cache run; otherwise the gate is open, the cache is evicted, and the
    outcome is the row's own. Under greedy decoding this is exact: the gated run would have made the same
    tokens.

    Parameters
    ----------
    log : Log
        The log.
    tau : float
        Threshold of the signal; not NaN.
    base : str
        Name of the arm that evicts.
    name : str, default "gate"
        Name of the new arm.
    signal : str, default "drop"
        Column of `log.inputs`. A low drop of head agreement says that eviction would destroy what the
        input needs.
    full : str, default "full"
        Name of the arm that keeps the cache; where no arm is named ``full``, the rows of arm ``plain`` at
        budget 1 stand for it.

    Returns
    -------
    Log
        The log with one row more for each row of `base`: budget, token budget and seed are those of the
        base row, everything else is that of the chosen row. The Boolean column ``gate_open`` of `runs`
        is null for other arms.

    Raises
    ------
    InputError
        When an arm or the signal is not known, the name is taken, rows are duplicated, or an input has no
        signal or no full-cache run.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", the gate at tau = 0.07.

    Examples
    --------
    >>> from kvstats.log import InputRecord, RunRecord, log_from_records
    >>> key = dict(suite="s", model="m", task="t", input_id="1")
    >>> log = log_from_records([
    ...     InputRecord(**key, drop=0.05),
    ...     RunRecord(**key, arm="full", budget=1.0, score=1.0),
    ...     RunRecord(**key, arm="snapkv", budget=0.25, score=0.0),
    ... ])
    >>> gated = gate(log, tau=0.07, base="snapkv")
    >>> gated.runs.filter(pl.col("arm") == "gate").select("budget", "score", "gate_open").rows()
    [(0.25, 1.0, False)]
    """
    if isinstance(tau, bool) or not isinstance(tau, int | float) or math.isnan(tau):
        raise InputError.argument("gate", "tau", tau, "is not a number", "pass the threshold of the signal")
    check_new_arm("gate", log, name)
    base_rows = arm_rows(log.runs, base, "gate", "base")
    full_rows = arm_rows(log.runs, full, "gate", "full")
    marked = base_rows.join(
        input_signal(log, signal), on=list(INPUT_KEY), how="left", nulls_equal=True, maintain_order="left"
    )
    missing = marked.filter(pl.col(SIGNAL).is_null())
    if missing.height:
        raise InputError.argument(
            "gate",
            "signal",
            signal,
            f"is null for {missing.select(INPUT_KEY).n_unique()} inputs, such as "
            f"{examples(missing, INPUT_KEY)}",
            "record it for every input, or gate a log without these",
        )
    marked = marked.with_columns((pl.col(SIGNAL) >= tau).alias(GATE)).drop(SIGNAL)
    chosen = switched("gate", marked, full_rows, taken=~pl.col(GATE), other_name=full)
    return add_arm(log, chosen, name)


def input_signal(log: Log, signal: str) -> pl.DataFrame:
    """Return key and signal of the inputs, once each."""
    numeric = [c for c in log.inputs.columns if log.inputs.schema[c].is_numeric()]
    if signal not in numeric:
        raise InputError.argument(
            "gate", "signal", signal, "is not a numeric column of the inputs", nearest_name(signal, numeric)
        )
    return unique_inputs(log, "gate").select(*INPUT_KEY, pl.col(signal).alias(SIGNAL))
