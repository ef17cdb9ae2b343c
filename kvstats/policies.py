"""Policies: rules that choose, for each input, between arms that were run, as arms of their own."""

from __future__ import annotations

import math

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY, RUN_KEY
from kvstats.tables import FULL, arm_rows, examples, refuse_duplicates

__all__ = ["gate"]

GATE = "gate_open"
SIGNAL = "__signal__"


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
    taken = [*log.runs["arm"].unique(), FULL]
    if not isinstance(name, str) or not name or name in taken:
        raise InputError.argument(
            "gate", "name", name, "is taken or empty", f"choose another than {', '.join(sorted(set(taken)))}"
        )
    base_rows = arm_rows(log.runs, base, "gate", "base")
    full_rows = arm_rows(log.runs, full, "gate", "full")
    refuse_duplicates("gate", base_rows, RUN_KEY, f"rows of arm {base!r}")
    refuse_duplicates("gate", full_rows, INPUT_KEY, f"rows of arm {full!r}")
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
    marked = marked.with_columns((pl.col(SIGNAL) >= tau).alias(GATE))
    closed = marked.filter(~pl.col(GATE)).select(*RUN_KEY, GATE)
    without = closed.join(full_rows, on=list(INPUT_KEY), how="anti", nulls_equal=True)
    if without.height:
        raise InputError.argument(
            "gate",
            "full",
            full,
            f"has no run of {without.select(INPUT_KEY).n_unique()} inputs whose gate is closed, such as "
            f"{examples(without, INPUT_KEY)}",
            "record the full cache of every input",
        )
    outcomes = full_rows.drop(*RUN_KEY[len(INPUT_KEY) :], GATE, strict=False)
    closed = closed.join(outcomes, on=list(INPUT_KEY), how="left", nulls_equal=True)
    added = pl.concat([marked.filter(GATE), closed], how="diagonal").with_columns(pl.lit(name).alias("arm"))
    runs = log.runs
    if GATE not in runs.columns:
        runs = runs.with_columns(pl.lit(None, dtype=pl.Boolean).alias(GATE))
    return log.with_runs(pl.concat([runs, added.select(runs.columns)]))


def input_signal(log: Log, signal: str) -> pl.DataFrame:
    """Return key and signal of the inputs, once each."""
    numeric = [c for c in log.inputs.columns if log.inputs.schema[c].is_numeric()]
    if signal not in numeric:
        raise InputError.argument(
            "gate", "signal", signal, "is not a numeric column of the inputs", nearest_name(signal, numeric)
        )
    refuse_duplicates("gate", log.inputs, INPUT_KEY, "input records")
    return log.inputs.select(*INPUT_KEY, pl.col(signal).alias(SIGNAL))
