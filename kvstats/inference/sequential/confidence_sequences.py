"""Intervals for a bounded mean that hold at all times together, however often one looks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.inference.sequential.betting_interval import BettingInterval
from kvstats.inference.sequential.capital import Bets
from kvstats.inference.sequential.outcomes import (
    ConfidenceSequence,
    checked_level,
    checked_outcomes,
    checked_population,
)
from kvstats.statistics.empirical_bernstein import psi_exponential
from kvstats.statistics.statistic import FloatArray

__all__ = [
    "betting_confidence_sequence",
    "empirical_bernstein_sequence",
]

LARGEST_BET = 0.5


def betting_confidence_sequence(
    outcomes: npt.ArrayLike,
    *,
    level: float = 0.95,
    population: int | None = None,
    bets: Bets = "mixture",
    running_intersection: bool = True,
    candidates: int = 2000,
) -> ConfidenceSequence:
    r"""Intervals for a mean from bets against every possible mean.

    After each outcome the interval holds the means m against which neither player of `BettingCapital` has
    reached the capital 2 / (1 - level).

    Parameters
    ----------
    outcomes : array-like of float, shape (n,)
        In [0, 1], in order of arrival, n at least 1. Booleans count as 0 and 1.
    level : float, default 0.95
        Probability with which all intervals together hold the mean, in (0, 1).
    population : int, optional
        Number of units N, when the outcomes are drawn one by one without replacement in random order; the
        mean is then that of the population. By default outcomes are draws whose conditional mean given the
        past is constant.
    bets : {"mixture", "plug_in"}, default "mixture"
        ``mixture`` averages eight constant bets; ``plug_in`` is the hedged capital of [1]_, theorem 3, with
        weight 1/2 on each direction and truncation 1/2. The mixture finds that a rare rate has risen with
        fewer outcomes, and needs no tuning.
    running_intersection : bool, default True
        Whether each interval is cut down to those before it.
    candidates : int, default 2000
        Number of means in the grid, at least 10. It is finest near 0 and 1. Bounds are rounded outwards to
        it, which keeps the intervals valid.

    Returns
    -------
    ConfidenceSequence

    Raises
    ------
    InputError
        ``outcomes`` is empty, not one-dimensional, or holds a value outside [0, 1] or NaN; ``level`` is
        outside (0, 1); ``population`` is not a whole number of at least n; ``bets`` is unknown;
        ``candidates`` is below 10.

    Notes
    -----
    The capital of each direction is monotone in m, so the means that are left form an interval. By Ville's
    inequality the probability that a player ever reaches 2 / (1 - level) against the true mean is at most
    (1 - level) / 2. When sampling without replacement, the interval is also cut to the means that are still
    possible, and is the mean itself once all N are seen.

    References
    ----------
    .. [1] Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting, Journal of
       the Royal Statistical Society B 86, theorem 3 and section 5.

    Examples
    --------
    >>> sequence = betting_confidence_sequence([0] * 99 + [1])
    >>> round(float(sequence.low[-1]), 4), round(float(sequence.high[-1]), 4)
    (0.0, 0.0607)
    """
    name = "betting_confidence_sequence"
    checked_level(name, level)
    checked_population(name, population)
    if candidates < 10:
        raise InputError.argument(name, "candidates", candidates, "is below 10", "pass 2000")
    values = checked_outcomes(name, outcomes, population)
    interval = BettingInterval(
        (1 - level) / 2, bets=bets, population=population, running=running_intersection, candidates=candidates
    )
    low, high = interval.advance(values)
    return finished(values, low, high, population, running_intersection)


def empirical_bernstein_sequence(
    outcomes: npt.ArrayLike,
    *,
    level: float = 0.95,
    population: int | None = None,
    running_intersection: bool = True,
) -> ConfidenceSequence:
    r"""Intervals for a mean in closed form: the predictable plug-in empirical-Bernstein sequence.

    .. math:: \frac{\sum_{i\le t} \lambda_i x_i}{\sum_{i\le t} \lambda_i} \pm \frac{\log(2/\alpha) +
        \sum_{i\le t} (x_i - \hat\mu_{i-1})^2 \psi_E(\lambda_i)}{\sum_{i\le t} \lambda_i}, \qquad
        \lambda_t = \min\Bigl(\tfrac12,
        \sqrt{\frac{2\log(2/\alpha)}{\hat\sigma^2_{t-1}\, t \log(1 + t)}}\Bigr)

    with :math:`\hat\mu_t = (1/2 + \sum_{i\le t} x_i)/(t+1)`, :math:`\hat\sigma^2_t = (1/4 + \sum_{i\le t}
    (x_i - \hat\mu_i)^2)/(t+1)` and psi_E of `psi_exponential`. Without replacement from N, :math:`x_i`
    becomes :math:`x_i + S_{i-1}/(N-i+1)` in the centre, with :math:`S_{i-1}` the sum before, and
    :math:`\lambda_i` becomes :math:`\lambda_i N / (N - i + 1)` in both denominators.

    Parameters
    ----------
    outcomes, level, population, running_intersection
        As for `betting_confidence_sequence`, whose intervals are narrower, most of all for rare events.

    Returns
    -------
    ConfidenceSequence

    Raises
    ------
    InputError
        As for `betting_confidence_sequence`.

    References
    ----------
    .. [1] Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting, Journal of
       the Royal Statistical Society B 86, theorem 2, and section 5 without replacement.

    Examples
    --------
    >>> sequence = empirical_bernstein_sequence([0] * 99 + [1])
    >>> round(float(sequence.low[-1]), 4), round(float(sequence.high[-1]), 4)
    (0.0, 0.0761)
    """
    name = "empirical_bernstein_sequence"
    checked_level(name, level)
    checked_population(name, population)
    values = checked_outcomes(name, outcomes, population)
    log_term = float(np.log(2 / (1 - level)))
    time = np.arange(1, values.size + 1)
    total = np.cumsum(values)
    mean = (0.5 + total) / (time + 1)
    mean_before = np.concatenate([[0.5], mean[:-1]])
    spread = (0.25 + np.cumsum((values - mean) ** 2)) / (time + 1)
    spread_before = np.concatenate([[0.25], spread[:-1]])
    bet = np.minimum(np.sqrt(2 * log_term / (spread_before * time * np.log1p(time))), LARGEST_BET)
    shift, stretch = np.zeros(values.size), np.ones(values.size)
    if population is not None:
        left = population - time + 1
        shift, stretch = (total - values) / left, population / left
    weight = np.cumsum(bet * stretch)
    centre = np.cumsum(bet * (values + shift)) / weight
    margin = (log_term + np.cumsum((values - mean_before) ** 2 * psi_exponential(bet))) / weight
    low, high = np.maximum(centre - margin, 0.0), np.minimum(centre + margin, 1.0)
    return finished(values, low, high, population, running_intersection)


def finished(
    values: FloatArray, low: FloatArray, high: FloatArray, population: int | None, running_intersection: bool
) -> ConfidenceSequence:
    """Cut intervals to the means that are possible and to one another, and void those left empty."""
    total = np.cumsum(values)
    time = np.arange(1, values.size + 1)
    if population is not None:
        low = np.maximum(low, total / population)
        high = np.minimum(high, (total + population - time) / population)
    if running_intersection:
        low, high = np.maximum.accumulate(low), np.minimum.accumulate(high)
    # Once all units are seen both bounds are the mean, each with its own rounding.
    empty = low > high + 1e-12
    return ConfidenceSequence(
        total / time, np.where(empty, np.nan, low), np.where(empty, np.nan, np.maximum(low, high))
    )
