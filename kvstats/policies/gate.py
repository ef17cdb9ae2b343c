"""The gate: the whole cache for inputs whose prefill signal is low, eviction for the others."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from kvstats.errors import InputError
from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY
from kvstats.policies.input_signal import SIGNAL, check_input_signal, with_signal
from kvstats.policies.pilot import SCALE
from kvstats.policies.registry import policy
from kvstats.policies.switch import add_arm, check_new_arm, switched
from kvstats.policies.threshold import DROP, Threshold, as_threshold, pilot_frame
from kvstats.tables import FULL, arm_rows

__all__ = ["gate", "gated_by", "refuse_other_scales"]

GATE = "gate_open"
PILOT = "in_pilot"


@policy
def gate(
    log: Log,
    *,
    tau: float | Threshold,
    base: str,
    name: str = "gate",
    signal: str = DROP,
    full: str = FULL,
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
    tau : float or Threshold
        Threshold of the signal; not NaN. A plain number is one of ``drop``; for another signal it is a
        `Threshold` of that signal, calibrated or stated on purpose (`Threshold.given`). Registrations write
        ``tau: {value: 0.3, signal: attention_entropy}``.
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
        is null for other arms, and for base rows that ended in an error before there was a signal: those
        stay without a score. Where the threshold was calibrated on a pilot, ``in_pilot`` says which rows
        are of its inputs: ``where="NOT in_pilot"`` leaves them out.

    Raises
    ------
    InputError
        When an arm or the signal is not known, the name is taken, rows are duplicated, an input has no
        signal or no full-cache run, the threshold is one of another signal, or it was calibrated on another
        model or condition than those of the rows.

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
    check_input_signal("gate", log, signal)
    threshold = as_threshold("gate", tau, signal)
    rows = arm_rows(log.runs, base, "gate", "base")
    refuse_other_scales("gate", rows, threshold)
    return gated_by("gate", log, [(rows, threshold)], base, name, full)


def gated_by(
    function: str,
    log: Log,
    parts: Sequence[tuple[pl.DataFrame, Threshold]],
    base: str,
    name: str,
    full: str,
) -> Log:
    """Add the arm of a gate whose threshold may differ between parts of the base rows."""
    check_new_arm(function, log, name)
    full_rows = arm_rows(log.runs, full, function, "full")
    marked = pl.concat([opened(function, log, rows, threshold) for rows, threshold in parts])
    if not any(threshold.pilot for _, threshold in parts):
        marked = marked.drop(PILOT)
    # Where a run that ended in an error has no signal, no decision is due: it stays what it is.
    closed = ~pl.col(GATE).fill_null(value=True)
    chosen = switched(function, marked, full_rows, taken=closed, other_name=full)
    return add_arm(log, chosen, name)


def opened(function: str, log: Log, rows: pl.DataFrame, threshold: Threshold) -> pl.DataFrame:
    """Return base rows with what the gate decides, and whether their input was in the pilot."""
    marked = with_signal(function, log, rows.drop(GATE, PILOT, strict=False), threshold.signal, failed=True)
    pilot = pilot_frame(threshold).with_columns(pl.lit(True).alias(PILOT))
    return (
        marked.join(pilot, on=list(INPUT_KEY), how="left", nulls_equal=True, maintain_order="left")
        .with_columns((pl.col(SIGNAL) >= threshold.value).alias(GATE), pl.col(PILOT).fill_null(value=False))
        .drop(SIGNAL)
    )


def refuse_other_scales(function: str, rows: pl.DataFrame, threshold: Threshold) -> None:
    """Raise `InputError` where rows are of a model or condition that the pilot had no input of."""
    if not threshold.pilot:
        return
    others = rows.select(SCALE).unique().join(pilot_frame(threshold), on=SCALE, how="anti", nulls_equal=True)
    if others.height:
        named = "; ".join(
            ", ".join(f"{column}={value}" for column, value in row.items() if value is not None)
            for row in others.sort(SCALE).head(3).iter_rows(named=True)
        )
        raise InputError.argument(
            function,
            "tau",
            threshold,
            f"was calibrated on other inputs than those of {named}, which has a scale of its own",
            "calibrate one on it, or state the number on purpose with "
            f"Threshold.given({threshold.value:.6g}, signal={threshold.signal!r})",
        )
