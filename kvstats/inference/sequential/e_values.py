"""E-values: evidence that may be averaged, multiplied over time, and looked at whenever one likes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.inference.sequential.capital import Bets, BettingCapital
from kvstats.inference.sequential.outcomes import (
    Alternative,
    checked_alternative,
    checked_mean,
    checked_outcomes,
    checked_population,
)
from kvstats.statistics.concentration import check_delta
from kvstats.statistics.statistic import FloatArray

__all__ = [
    "average_e_value",
    "checked_e_values",
    "first_crossing",
    "mean_e_process",
    "ville_threshold",
]


def mean_e_process(
    outcomes: npt.ArrayLike,
    mean: float,
    *,
    alternative: Alternative = "greater",
    population: int | None = None,
    bets: Bets = "mixture",
    delta: float = 0.05,
) -> FloatArray:
    r"""Test that a mean is at most (at least) a given one, by an e-value after each outcome.

    The capital of `BettingCapital` against `mean`: with alternative ``greater``, the product of
    :math:`1 + f_t (x_t / m_t - 1)`.

    Parameters
    ----------
    outcomes : array-like of float, shape (n,)
        In [0, 1], in order of arrival, n at least 1.
    mean : float
        m in [0, 1].
    alternative : {"greater", "less"}
        ``greater`` tests H0: mean <= m, ``less`` tests H0: mean >= m.
    population : int, optional
        Number of units when sampling without replacement in random order.
    bets : {"mixture", "plug_in"}, default "mixture"
        As in `BettingCapital`.
    delta : float, default 0.05
        Error probability for which the plug-in bets are tuned, in (0, 1); no other effect.

    Returns
    -------
    array of float, shape (n,)
        At least 0, infinite where H0 is impossible. Under H0 the expectation is at most 1 at every stopping
        time, and the probability that it ever reaches 1/a is at most a.

    Raises
    ------
    InputError
        As for `betting_confidence_sequence`; ``mean`` is outside [0, 1]; ``alternative`` is unknown.

    Notes
    -----
    Without replacement H0 is about the population's mean, and the process is a supermartingale if units
    come in random order. With replacement H0 says that every conditional mean given the past is at most m.

    References
    ----------
    .. [1] Waudby-Smith and Ramdas (2024), Journal of the Royal Statistical Society B 86, section 4.

    Examples
    --------
    >>> mean_e_process([1, 0, 1], 0.1).round(3).tolist()
    [3.312, 1.525, 5.573]
    """
    name = "mean_e_process"
    checked_mean(name, "mean", mean)
    checked_alternative(name, alternative)
    checked_population(name, population)
    check_delta(name, delta)
    values = checked_outcomes(name, outcomes, population)
    capital = BettingCapital(np.array([float(mean)]), bets=bets, delta=delta, population=population)
    higher, lower = capital.advance(values)
    with np.errstate(over="ignore"):
        return np.asarray(np.exp((higher if alternative == "greater" else lower)[:, 0]))


def average_e_value(e_values: npt.ArrayLike, axis: int = -1) -> FloatArray:
    r"""Merge e-values for one hypothesis, whatever their dependence, by their arithmetic mean.

    Parameters
    ----------
    e_values : array-like of float
        At least 0; infinity is allowed, NaN is not.
    axis : int, default -1
        The axis that is averaged, not empty.

    Returns
    -------
    array of float
        At least 0; an e-value, since expectations add under any dependence.

    Raises
    ------
    InputError
        An e-value is negative or NaN, or there is none.

    References
    ----------
    .. [1] Vovk and Wang (2021), E-values: calibration, combination and applications, Annals of Statistics 49,
       proposition 3.1: no other symmetric rule is better under arbitrary dependence.

    Examples
    --------
    >>> average_e_value([0.5, 40.0, 1.5]).tolist()
    14.0
    """
    values = checked_e_values("average_e_value", "e_values", e_values)
    if values.ndim == 0 or values.shape[axis] == 0:
        raise InputError.argument(
            "average_e_value",
            "e_values",
            f"array of shape {values.shape}",
            "is empty",
            "pass some",
        )
    return np.asarray(values.mean(axis=axis))


def ville_threshold(delta: float) -> float:
    """Return the value that an e-process reaches with probability delta at most under its hypothesis.

    Parameters
    ----------
    delta : float
        Error probability, in (0, 1).

    Returns
    -------
    float
        1 / delta, by Ville's inequality.

    Raises
    ------
    InputError
        ``delta`` is outside (0, 1).

    Examples
    --------
    >>> ville_threshold(0.05)
    20.0
    """
    check_delta("ville_threshold", delta)
    return 1 / delta


def first_crossing(e_process: npt.ArrayLike, delta: float) -> int | None:
    """Return how many steps an e-process took to reach Ville's threshold, None if it never did.

    Parameters
    ----------
    e_process : array-like of float, shape (n,)
        Values after each step; may be empty.
    delta : float
        Error probability, in (0, 1).

    Returns
    -------
    int or None
        At least 1.

    Raises
    ------
    InputError
        A value is negative or NaN, or ``delta`` is outside (0, 1).

    Examples
    --------
    >>> first_crossing([1.0, 12.0, 25.0, 8.0], 0.05)
    3
    """
    reached = np.flatnonzero(
        checked_e_values("first_crossing", "e_process", e_process) >= ville_threshold(delta)
    )
    return int(reached[0]) + 1 if reached.size else None


def checked_e_values(function: str, argument: str, e_values: npt.ArrayLike) -> FloatArray:
    """Return e-values as a float array, or raise."""
    values = np.asarray(e_values, dtype=np.float64)
    wrong = values[~(values >= 0)]
    if wrong.size:
        raise InputError.argument(
            function, argument, float(wrong.flat[0]), "is negative or undefined", "pass numbers >= 0"
        )
    return values
