"""Calibrations without labels: a threshold from the prefill signals of a pilot."""

from __future__ import annotations

import math
from numbers import Integral, Real

import numpy as np
import polars as pl

from kvstats.errors import InputError
from kvstats.log.frames import Log
from kvstats.policies.input_signal import signal_inputs
from kvstats.policies.pilot import check_one_scale, drawn, pilot_keys
from kvstats.policies.threshold import DROP, Threshold

__all__ = ["THETA_Z", "midpoint_threshold", "z_threshold"]

THETA_Z = -0.69
"""Threshold of the z-scored drop in the gating study."""


def z_threshold(
    log: Log,
    *,
    theta_z: float = THETA_Z,
    signal: str = DROP,
    where: str | None = None,
    pilot_size: int | None = None,
    seed: int = 0,
) -> Threshold:
    r"""Calibrate a threshold as a number of standard deviations from the mean of an unlabelled pilot.

    .. math:: \tau = m + \theta_z s

    with m the mean and s the standard deviation (divisor n - 1) of the signal over the n pilot inputs: an
    input is then kept whole where its z-score :math:`(D - m) / s` is below :math:`\theta_z`. The standard
    error is that of the linearised value: the standard deviation of
    :math:`D_i - m + \theta_z ((D_i - m)^2 - s^2) / 2 s` over :math:`\sqrt n`.

    Parameters
    ----------
    log : Log
        The log. Only its input records are used.
    theta_z : float, default -0.69
        Threshold of the z-score.
    signal : str, default "drop"
        Column of `log.inputs`.
    where : str, optional
        SQL expression over `log.inputs` that selects the pilot, or what it is drawn from.
    pilot_size : int, optional
        Inputs to draw, at least 2; default: all selected.
    seed : int, default 0
        Seed of the draw.

    Returns
    -------
    Threshold

    Raises
    ------
    InputError
        When the pilot is of several models or conditions, has fewer than two inputs or no spread, or lacks
        the signal.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", the z-scored gate.

    Examples
    --------
    >>> from kvstats.log import InputRecord, log_from_records
    >>> log = log_from_records([
    ...     InputRecord(suite="s", model="m", task="t", input_id=str(i), drop=0.05 + 0.01 * i)
    ...     for i in range(9)
    ... ])
    >>> z_threshold(log)
    Threshold(0.0711036 of 'drop', z, 9 pilot inputs, se 0.0095)
    """
    if isinstance(theta_z, bool) or not isinstance(theta_z, Real) or not math.isfinite(theta_z):
        raise InputError.argument(
            "z_threshold", "theta_z", theta_z, "is not a finite number", "pass one such as -0.69"
        )
    rows = signal_inputs("z_threshold", log, signal, where)
    check_one_scale("z_threshold", rows)
    pilot = drawn("z_threshold", rows, pilot_size, seed, "the selection")
    values = pilot[signal].cast(pl.Float64).to_numpy()
    if values.size < 2 or np.ptp(values) == 0:
        raise InputError(
            f"z_threshold: the pilot has {values.size} inputs without spread of {signal!r}; "
            "a z-score needs at least two that differ"
        )
    centred, s = values - values.mean(), float(values.std(ddof=1))
    linearised = centred + theta_z * (centred**2 - s**2) / (2 * s)
    return Threshold(
        value=float(values.mean() + theta_z * s),
        signal=signal,
        method="z",
        pilot=pilot_keys(pilot),
        se=float(linearised.std(ddof=1) / math.sqrt(values.size)),
    )


def midpoint_threshold(
    log: Log,
    *,
    capacity_task: str,
    dilution_task: str,
    signal: str = DROP,
    where: str | None = None,
    pilot_size: int | None = 40,
    seed: int = 0,
) -> Threshold:
    r"""Calibrate a threshold halfway between the mean signals of two tasks.

    .. math::

        \tau = \frac{\bar D_c + \bar D_d}{2}, \qquad
        \mathrm{se} = \frac12 \sqrt{\frac{s_c^2}{n_c} + \frac{s_d^2}{n_d}}

    over the pilot inputs of a capacity-bound task c, which eviction destroys, and of a dilution-prone task d,
    which it may help. No answer is looked at, only which task an input is of.

    Parameters
    ----------
    log : Log
        The log. Only its input records are used.
    capacity_task, dilution_task : str
        The two tasks.
    signal : str, default "drop"
        Column of `log.inputs`.
    where : str, optional
        SQL expression over `log.inputs` that selects what the pilot is drawn from.
    pilot_size : int or None, default 40
        Inputs to draw, half of them from each task; even. None takes all.
    seed : int, default 0
        Seed of the draw.

    Returns
    -------
    Threshold

    Raises
    ------
    InputError
        When the pilot is of several models or conditions, a task is not known or has too few inputs, the mean
        of the capacity-bound task is not below the other, or the signal is lacking.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", table 7.

    Examples
    --------
    >>> from kvstats.log import InputRecord, log_from_records
    >>> log = log_from_records([
    ...     InputRecord(suite="s", model="m", task=task, input_id=str(i), drop=mean + 0.001 * (i % 3 - 1))
    ...     for task, mean in (("niah_multikey_3", 0.045), ("vt", 0.161)) for i in range(30)
    ... ])
    >>> midpoint_threshold(log, capacity_task="niah_multikey_3", dilution_task="vt", pilot_size=None)
    Threshold(0.103 of 'drop', midpoint, 60 pilot inputs, se 0.00011)
    """
    function = "midpoint_threshold"
    whole = isinstance(pilot_size, Integral) and not isinstance(pilot_size, bool)
    if pilot_size is not None and (not whole or pilot_size % 2):
        raise InputError.argument(
            function, "pilot_size", pilot_size, "is no even number", "half of the pilot is of each task"
        )
    if capacity_task == dilution_task:
        raise InputError.argument(
            function, "dilution_task", dilution_task, "is the capacity-bound task too", "name two tasks"
        )
    rows = signal_inputs(function, log, signal, where)
    sides = []
    for argument, task in (("capacity_task", capacity_task), ("dilution_task", dilution_task)):
        of_task = rows.filter(pl.col("task") == task)
        if of_task.height < 2:
            known = ", ".join(rows["task"].unique().sort().to_list())
            raise InputError.argument(
                function,
                argument,
                task,
                f"has {of_task.height} selected inputs, and a standard error needs two",
                f"tasks of the selection: {known}",
            )
        size = None if pilot_size is None else pilot_size // 2
        sides.append(drawn(function, of_task, size, seed, task))
    pilot = pl.concat(sides)
    check_one_scale(function, pilot)
    capacity, dilution = (side[signal].cast(pl.Float64).to_numpy() for side in sides)
    if capacity.mean() >= dilution.mean():
        raise InputError(
            f"{function}: the mean {signal!r} of capacity_task={capacity_task!r} is {capacity.mean():.4g}, "
            f"not below that of dilution_task={dilution_task!r}, {dilution.mean():.4g}; a threshold between "
            "them would close the gate for the wrong task"
        )
    variances = [side.var(ddof=1) / side.size for side in (capacity, dilution)]
    return Threshold(
        value=float((capacity.mean() + dilution.mean()) / 2),
        signal=signal,
        method="midpoint",
        pilot=pilot_keys(pilot),
        se=math.sqrt(sum(variances)) / 2,
    )
