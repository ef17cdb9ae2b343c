"""Thresholds: a number, the signal it is of, and where it comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import msgspec
import polars as pl

from kvstats.errors import InputError
from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY

__all__ = ["CALIBRATIONS", "DROP", "PilotKey", "Threshold", "as_threshold", "pilot_frame", "without_pilot"]

DROP = "drop"
"""The signal that plain numbers are thresholds of."""

PilotKey = tuple[str, str, str, str, str | None]
"""Suite, model, task, input and condition of a pilot input."""

CALIBRATIONS = "z_threshold, midpoint_threshold or risk_controlled_threshold"
"""What makes thresholds, for messages."""


@dataclass(frozen=True, repr=False)
class Threshold:
    """A threshold of a prefill signal: the gate is open where the signal is at least its value.

    A number means something on the scale of its signal only: whatever rescales the signal (another one,
    other layers, another model) moves the threshold too. So it says what it was calibrated on.

    Attributes
    ----------
    value : float
        In the unit of the signal; not NaN. With ``inf`` the gate is closed for all inputs.
    signal : str, default "drop"
        Column of `log.inputs`.
    method : {"given", "z", "midpoint", "risk_controlled"}
        Where it comes from.
    pilot : tuple of (suite, model, task, input_id, condition)
        The inputs that it was calibrated on; empty where it was given.
    se : float or None
        Standard error of the value, from the spread of the signal over the pilot; None where it was given or
        risk-controlled.
    harm_level, confidence, harm_bound : float or None
        Of a risk-controlled one: the highest harm rate that was allowed, with which confidence, and the upper
        confidence bound of the harm rate at this threshold. None for the others.

    Raises
    ------
    InputError
        When the value is not a number or the signal no name.

    Examples
    --------
    >>> Threshold.given(0.1, signal="attention_entropy")
    Threshold(0.1 of 'attention_entropy', given)
    >>> Threshold(0.07).guarantee
    'none: the number was given'
    """

    value: float
    signal: str = DROP
    method: Literal["given", "z", "midpoint", "risk_controlled"] = "given"
    pilot: tuple[PilotKey, ...] = ()
    se: float | None = None
    harm_level: float | None = None
    confidence: float | None = None
    harm_bound: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or math.isnan(self.value):
            raise InputError.argument(
                "Threshold", "value", self.value, "is not a number", "pass one such as 0.07"
            )
        if not isinstance(self.signal, str) or not self.signal:
            raise InputError.argument(
                "Threshold", "signal", self.signal, "is no name", "pass a column of the inputs such as 'drop'"
            )

    @classmethod
    def given(cls, value: float, *, signal: str = DROP) -> Threshold:
        """State a number on purpose as the threshold of a signal.

        Examples
        --------
        >>> Threshold.given(0.05, signal="drop_interior").value
        0.05
        """
        return cls(value, signal)

    @property
    def pilot_size(self) -> int:
        """Number of inputs that it was calibrated on."""
        return len(self.pilot)

    @property
    def guarantee(self) -> str:
        """What it promises, and for which population."""
        if self.method == "given":
            return "none: the number was given"
        if self.method == "z":
            return (
                "none about harm: it lies a stated number of the pilot's standard deviations from the "
                "pilot's mean"
            )
        if self.method == "midpoint":
            return "none about harm: it lies halfway between the mean signals of two tasks"
        return (
            f"with a confidence of at least {self.confidence:g} over the draw of {self.pilot_size} "
            f"independent inputs, at most a share of {self.harm_level:g} of the population that they were "
            "drawn from is harmed: inputs of the same tasks in the same proportions, with the same model, "
            "evictor and budgets"
        )

    def __repr__(self) -> str:
        parts = [f"{self.value:.6g} of {self.signal!r}", self.method]
        if self.pilot:
            parts.append(f"{self.pilot_size} pilot inputs")
        if self.se is not None:
            parts.append(f"se {self.se:.2g}")
        if self.harm_bound is not None:
            parts.append(
                f"harm rate at most {self.harm_bound:.3g} with confidence {self.confidence:g}, "
                f"level {self.harm_level:g}"
            )
        return f"Threshold({', '.join(parts)})"


def as_threshold(function: str, tau: object, signal: str) -> Threshold:
    """Return what was passed as `tau` as a threshold of a signal.

    Parameters
    ----------
    function : str
        Name of the calling function, for messages.
    tau : float, Threshold or mapping
        A plain number is a threshold of ``drop``; a mapping, as in a registration, names the fields of a
        `Threshold`.
    signal : str
        The signal that it is to be compared with.

    Raises
    ------
    InputError
        When it is a threshold of another signal, a plain number for a signal other than ``drop``, or no
        number.

    Examples
    --------
    >>> as_threshold("gate", 0.07, "drop")
    Threshold(0.07 of 'drop', given)
    >>> as_threshold("gate", {"value": 0.3, "signal": "entropy"}, "entropy")
    Threshold(0.3 of 'entropy', given)
    >>> as_threshold("gate", 0.07, "entropy")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    kvstats.errors.InputError: gate: tau=0.07 is a plain number, and 'entropy' is not on the ...
    """
    if isinstance(tau, dict):
        try:
            tau = msgspec.convert(tau, Threshold)
        except msgspec.ValidationError as error:
            raise InputError.argument(
                function, "tau", tau, f"is no threshold: {error}", "name 'value' and 'signal'"
            ) from error
    if isinstance(tau, Threshold):
        if tau.signal != signal:
            raise InputError.argument(
                function,
                "tau",
                tau,
                f"is a threshold of another signal than {signal!r}: whatever rescales the signal must "
                "recalibrate tau",
                f"calibrate one with {CALIBRATIONS}, signal={signal!r}",
            )
        return tau
    if isinstance(tau, bool) or not isinstance(tau, int | float) or math.isnan(tau):
        raise InputError.argument(function, "tau", tau, "is not a number", "pass the threshold of the signal")
    if signal != DROP:
        raise InputError.argument(
            function,
            "tau",
            tau,
            f"is a plain number, and {signal!r} is not on the scale of {DROP!r}: a sweep that rescales D "
            "must recalibrate tau",
            f"calibrate one with {CALIBRATIONS}, or state it on purpose with "
            f"Threshold.given({tau!r}, signal={signal!r})",
        )
    return Threshold(float(tau))


def pilot_frame(threshold: Threshold) -> pl.DataFrame:
    """Return the keys of the pilot inputs of a threshold, one row an input."""
    schema = {name: pl.String() for name in INPUT_KEY}
    return pl.DataFrame([tuple(key) for key in threshold.pilot], schema=schema, orient="row")


def without_pilot(log: Log, threshold: Threshold) -> Log:
    """Return the log without the inputs that a threshold was calibrated on.

    A gate that is judged on the inputs its threshold was chosen on flatters itself. The alternative to
    leaving them out here is ``where="NOT in_pilot"`` on the rows of the gated arm.

    Parameters
    ----------
    log : Log
        The log.
    threshold : Threshold
        The threshold.

    Returns
    -------
    Log
        Without the runs, input records and replays of the pilot inputs.

    Examples
    --------
    >>> from kvstats.log import InputRecord, log_from_records
    >>> log = log_from_records([
    ...     InputRecord(suite="s", model="m", task="t", input_id=str(i), drop=0.01 * i) for i in range(20)
    ... ])
    >>> from kvstats.policies.calibration import z_threshold
    >>> without_pilot(log, z_threshold(log, pilot_size=5)).inputs.height
    15
    """
    keys, on = pilot_frame(threshold), list(INPUT_KEY)

    def rest(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.join(keys, on=on, how="anti", nulls_equal=True)

    return replace(log, inputs=rest(log.inputs), runs=rest(log.runs), replays=rest(log.replays))
