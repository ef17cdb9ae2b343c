"""Checks of outcomes that arrive one after the other."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError, nearest_name
from kvstats.statistics.statistic import FloatArray

__all__ = [
    "Alternative",
    "ConfidenceSequence",
    "checked_alternative",
    "checked_level",
    "checked_mean",
    "checked_outcomes",
    "checked_population",
]

Alternative = Literal["greater", "less"]


class ConfidenceSequence(NamedTuple):
    """Intervals for a mean, one after each outcome, that hold at all times together.

    Attributes
    ----------
    estimate : array, shape (n,)
        Mean of the outcomes so far.
    low, high : array, shape (n,)
        Bounds in [0, 1]. Both are NaN from the first time on at which no mean is left: then the mean was not
        constant, or this is one of the (1 - level) cases.
    """

    estimate: FloatArray
    low: FloatArray
    high: FloatArray


def checked_outcomes(
    function: str, outcomes: npt.ArrayLike, population: int | None = None, seen: int = 0
) -> FloatArray:
    """Return outcomes as a one-dimensional float array, or raise.

    Examples
    --------
    >>> checked_outcomes("f", [True, 0.5])
    array([1. , 0.5])
    """
    try:
        values = np.atleast_1d(np.asarray(outcomes, dtype=np.float64))
    except (TypeError, ValueError):
        raise InputError.argument(
            function, "outcomes", type(outcomes).__name__, "does not hold numbers", "pass numbers in [0, 1]"
        ) from None
    if values.ndim != 1:
        raise InputError.argument(
            function,
            "outcomes",
            f"array of shape {values.shape}",
            "is not one-dimensional",
            "flatten it",
        )
    if values.size == 0:
        raise InputError.argument(function, "outcomes", "an empty array", "has no outcome", "pass one")
    wrong = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if wrong.size:
        fault = f"is outside [0, 1] or undefined at position {wrong[0]}"
        raise InputError.argument(function, "outcomes", float(values[wrong[0]]), fault, "leave it out")
    if population is not None and seen + values.size > population:
        raise InputError.argument(
            function,
            "population",
            population,
            f"is below the {seen + values.size} outcomes seen",
            "raise it",
        )
    return values


def checked_population(function: str, population: int | None) -> None:
    """Raise unless a population size is absent or a whole number of at least 1."""
    if population is not None and (
        isinstance(population, bool) or not isinstance(population, Integral) or population < 1
    ):
        raise InputError.argument(
            function, "population", population, "is not a whole number >= 1", "pass the size or None"
        )


def checked_level(function: str, level: float) -> None:
    """Raise unless a confidence level is inside (0, 1)."""
    if not isinstance(level, Real) or not 0 < level < 1:
        raise InputError.argument(function, "level", level, "is not in (0, 1)", "pass a level such as 0.95")


def checked_mean(function: str, argument: str, mean: float) -> None:
    """Raise unless a hypothetical mean is in [0, 1]."""
    if not isinstance(mean, Real) or not 0 <= mean <= 1:
        raise InputError.argument(function, argument, mean, "is not in [0, 1]", "pass a rate such as 0.01")


def checked_alternative(function: str, alternative: str) -> None:
    """Raise unless an alternative is ``greater`` or ``less``."""
    if alternative not in ("greater", "less"):
        raise InputError.argument(
            function, "alternative", alternative, "is unknown", nearest_name(alternative, ["greater", "less"])
        )
