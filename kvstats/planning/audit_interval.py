"""Intervals for a rate that was estimated by an audit."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from scipy import special

from kvstats.statistics.statistic import FloatArray

__all__ = ["AuditInterval", "gamma_interval", "most_hidden"]

AuditInterval = Literal["gamma", "cautious"]
"""Whether a further event is taken to have the mean weight of the re-runs, or the largest of all runs."""


def most_hidden(inclusion_probability: FloatArray, tail: float) -> int:
    r"""Return the largest number of events that an audit may miss altogether with a given probability.

    .. math:: \max\Bigl\{M : \prod_{i \le M} (1 - \pi_{(i)}) \ge \alpha\Bigr\}

    over the runs of least probability. Where no event was drawn, more events than these can be ruled out at
    level 1 - alpha, wherever they are: exactly under Poisson sampling, and on the safe side under conditional
    Poisson sampling, whose draws are negatively associated.

    Parameters
    ----------
    inclusion_probability : array of float, shape [N]
        Of all runs of the population, in (0, 1].
    tail : float
        Alpha, between 0 and 1.

    Examples
    --------
    >>> most_hidden(np.full(1000, 0.1), 0.05)  # 0.9**28 = 0.052
    28
    """
    missed = np.sort(np.log1p(-inclusion_probability[inclusion_probability < 1]))[::-1]
    return int((np.cumsum(missed) >= math.log(tail)).sum())


def gamma_interval(
    estimate: float, variance: float, weight: float, square: float, level: float
) -> tuple[float, float]:
    r"""Return the gamma interval of a weighted rate, whose upper end allows for one more event.

    The lower end is the :math:`\alpha / 2` quantile of the gamma distribution of mean p and variance V, the
    upper one the :math:`1 - \alpha / 2` quantile of that of mean :math:`p + w` and variance :math:`V + w^2`,
    for a further event that adds w to the rate: the largest weight keeps the level whatever the weights [1]_,
    the means of weight and squared weight very nearly, and are far narrower [2]_. With equal weights both are
    the exact interval of a Poisson count.

    Parameters
    ----------
    estimate : float
        Estimated rate p, in [0, 1].
    variance : float
        Its estimated variance V, at least 0.
    weight, square : float
        What a further event adds to the rate and to the variance, above 0.
    level : float
        Confidence level.

    Returns
    -------
    low, high : float
        In [0, 1]; never of width 0.

    References
    ----------
    .. [1] Fay and Feuer, Statistics in Medicine 16, 1997.
    .. [2] Tiwari, Clegg and Zou, Statistical Methods in Medical Research 15, 2006.

    Examples
    --------
    >>> low, high = gamma_interval(0.0, 0.0, 0.01, 0.01**2, 0.95)  # 3.689 events of weight 0.01
    >>> round(low, 4), round(high, 4)
    (0.0, 0.0369)
    """
    tail = (1 - level) / 2
    low = 0.0
    shape = estimate**2 / variance if variance > 0 else 0.0
    if shape > 0:
        low = float(special.gammaincinv(shape, tail)) * variance / estimate
    mean, spread = estimate + weight, variance + square
    high = float(special.gammainccinv(mean**2 / spread, tail)) * spread / mean
    return low, min(high, 1.0)
