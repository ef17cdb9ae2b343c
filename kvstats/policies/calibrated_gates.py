"""Gates that calibrate their own threshold, for each model and condition of a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl

from kvstats.errors import InputError
from kvstats.log.frames import Log
from kvstats.policies.calibration import THETA_Z, midpoint_threshold, z_threshold
from kvstats.policies.gate import gated_by
from kvstats.policies.pilot import SCALE
from kvstats.policies.registry import policy
from kvstats.policies.risk_control import Reduce, risk_controlled_threshold
from kvstats.policies.switch import check_new_arm
from kvstats.policies.threshold import DROP, Threshold
from kvstats.tables import FULL, arm_rows

__all__ = ["midpoint_gate", "risk_controlled_gate", "z_gate"]


@policy
def z_gate(
    log: Log,
    *,
    base: str,
    theta_z: float = THETA_Z,
    pilot: str | None = None,
    pilot_size: int | None = None,
    seed: int = 0,
    signal: str = DROP,
    full: str = FULL,
    name: str = "z_gate",
) -> Log:
    """Add the arm of a gate on the z-scored signal, for each model and condition with a pilot of its own.

    Parameters
    ----------
    log : Log
        The log.
    base : str
        Name of the arm that evicts.
    theta_z, pilot_size, seed, signal
        See `z_threshold`.
    pilot : str, optional
        SQL expression over `log.inputs` that selects the pilot, or what it is drawn from.
    full : str, default "full"
        Name of the arm that keeps the cache; see `gate`.
    name : str, default "z_gate"
        Name of the new arm.

    Returns
    -------
    Log
        As `gate` returns it, with ``in_pilot``.

    Raises
    ------
    InputError
        As `gate` and `z_threshold`.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", the z-scored gate.

    Examples
    --------
    >>> from kvstats.log import InputRecord, RunRecord, log_from_records
    >>> keys = [dict(suite="s", model="m", task="t", input_id=str(i)) for i in range(9)]
    >>> log = log_from_records([
    ...     record for i, key in enumerate(keys) for record in (
    ...         InputRecord(**key, drop=0.01 * i), RunRecord(**key, arm="full", budget=1.0, score=1.0),
    ...         RunRecord(**key, arm="snapkv", budget=0.25, score=0.0))
    ... ])
    >>> gated = z_gate(log, base="snapkv").runs.filter(pl.col("arm") == "z_gate")
    >>> gated["gate_open"].sum(), gated["in_pilot"].sum()
    (6, 9)
    """

    def calibrate(part: Log) -> Threshold:
        return z_threshold(
            part, theta_z=theta_z, signal=signal, where=pilot, pilot_size=pilot_size, seed=seed
        )

    return calibrated_gate("z_gate", log, base, name, full, calibrate)


@policy
def midpoint_gate(
    log: Log,
    *,
    base: str,
    capacity_task: str,
    dilution_task: str,
    pilot: str | None = None,
    pilot_size: int | None = 40,
    seed: int = 0,
    signal: str = DROP,
    full: str = FULL,
    name: str = "midpoint_gate",
) -> Log:
    """Add the arm of a gate halfway between two tasks' mean signals, for each model and condition apart.

    Parameters
    ----------
    log : Log
        The log.
    base : str
        Name of the arm that evicts.
    capacity_task, dilution_task, pilot_size, seed, signal
        See `midpoint_threshold`.
    pilot : str, optional
        SQL expression over `log.inputs` that selects what the pilot is drawn from.
    full : str, default "full"
        Name of the arm that keeps the cache; see `gate`.
    name : str, default "midpoint_gate"
        Name of the new arm.

    Returns
    -------
    Log
        As `gate` returns it, with ``in_pilot``.

    Raises
    ------
    InputError
        As `gate` and `midpoint_threshold`.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", table 7.

    Examples
    --------
    >>> from kvstats.log import InputRecord, RunRecord, log_from_records
    >>> keys = [dict(suite="s", model="m", task=task, input_id=str(i)) for task in "cd" for i in range(20)]
    >>> log = log_from_records([
    ...     record for key in keys for record in (
    ...         InputRecord(**key, drop=0.05 if key["task"] == "c" else 0.15),
    ...         RunRecord(**key, arm="full", budget=1.0, score=1.0),
    ...         RunRecord(**key, arm="snapkv", budget=0.25, score=0.0))
    ... ])
    >>> gated = midpoint_gate(log, base="snapkv", capacity_task="c", dilution_task="d")
    >>> gated.runs.filter("gate_open")["task"].unique().to_list()
    ['d']
    """

    def calibrate(part: Log) -> Threshold:
        return midpoint_threshold(
            part,
            capacity_task=capacity_task,
            dilution_task=dilution_task,
            signal=signal,
            where=pilot,
            pilot_size=pilot_size,
            seed=seed,
        )

    return calibrated_gate("midpoint_gate", log, base, name, full, calibrate)


@policy
def risk_controlled_gate(
    log: Log,
    *,
    base: str,
    level: float = 0.05,
    confidence: float = 0.9,
    reduce: Reduce = None,
    pilot: str | None = None,
    pilot_size: int | None = None,
    seed: int = 0,
    signal: str = DROP,
    full: str = FULL,
    name: str = "risk_controlled_gate",
) -> Log:
    """Add the arm of the loosest gate whose harm rate a labelled pilot shows to be below a level.

    Each model and condition has a pilot of its own; with several, the stated confidence is that of each
    alone.

    Parameters
    ----------
    log : Log
        The log.
    base : str
        Name of the arm that evicts.
    level, confidence, reduce, pilot_size, seed, signal
        See `risk_controlled_threshold`.
    pilot : str, optional
        SQL expression over the pairs of `base` and `full` that selects the labelled runs, such as
        ``budget = 0.25``.
    full : str, default "full"
        Name of the arm that keeps the cache; see `gate`.
    name : str, default "risk_controlled_gate"
        Name of the new arm.

    Returns
    -------
    Log
        As `gate` returns it, with ``in_pilot``.

    Raises
    ------
    InputError
        As `gate` and `risk_controlled_threshold`.

    Examples
    --------
    >>> from kvstats.log import InputRecord, RunRecord, log_from_records
    >>> keys = [dict(suite="s", model="m", task="t", input_id=f"{i:03}") for i in range(100)]
    >>> log = log_from_records([
    ...     record for i, key in enumerate(keys) for record in (
    ...         InputRecord(**key, drop=0.001 * i), RunRecord(**key, arm="full", budget=1.0, score=1.0),
    ...         RunRecord(**key, arm="snapkv", budget=0.25, score=float(i > 40)))
    ... ])
    >>> risk_controlled_gate(log, base="snapkv", level=0.05).runs["gate_open"].sum()
    60
    """

    def calibrate(part: Log) -> Threshold:
        return risk_controlled_threshold(
            part,
            base=base,
            level=level,
            confidence=confidence,
            signal=signal,
            full=full,
            reduce=reduce,
            where=pilot,
            pilot_size=pilot_size,
            seed=seed,
        )

    return calibrated_gate("risk_controlled_gate", log, base, name, full, calibrate)


def calibrated_gate(
    function: str, log: Log, base: str, name: str, full: str, calibrate: Callable[[Log], Threshold]
) -> Log:
    """Add the arm of a gate whose threshold is calibrated within each model and condition."""
    check_new_arm(function, log, name)
    rows = arm_rows(log.runs, base, function, "base")
    parts = []
    for scale in rows.select(SCALE).unique().sort(SCALE).iter_rows(named=True):
        own = pl.all_horizontal(pl.col(column).eq_missing(pl.lit(value)) for column, value in scale.items())
        part = replace(log, inputs=log.inputs.filter(own), runs=log.runs.filter(own))
        try:
            parts.append((rows.filter(own), calibrate(part)))
        except InputError as error:
            named = ", ".join(f"{column}={value}" for column, value in scale.items() if value is not None)
            raise InputError(f"{function}: {named}: {error}") from error
    return gated_by(function, log, parts, base, name, full)
