"""The interval of a rate from a survey sample: Clopper-Pearson on an effective sample size."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

from kvstats.statistics.statistic import FloatArray
from kvstats.statistics.student import student_ratio

__all__ = ["clopper_pearson_interval", "effective_trials"]


def clopper_pearson_interval(
    p: npt.ArrayLike, n: npt.ArrayLike, level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    r"""Return the Clopper-Pearson interval for a proportion, from quantiles of the beta distribution.

    The lower bound is the (1 - level) / 2 quantile of Beta(np, n(1 - p) + 1), 0 when p is 0; the upper one
    the (1 + level) / 2 quantile of Beta(np + 1, n(1 - p)), 1 when p is 1.

    Parameters
    ----------
    p : array-like of float
        Proportion, in [0, 1].
    n : array-like of float
        Number of trials, above 0; need not be whole.
    level : float
        Confidence level.

    Returns
    -------
    low, high : array of float
        In [0, 1]; never of width 0.

    References
    ----------
    .. [1] Clopper and Pearson, Biometrika 26, 1934.

    Examples
    --------
    >>> low, high = clopper_pearson_interval([0.0, 0.5], 10)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0, 0.1871], [0.3085, 0.8129])
    """
    share, trials = np.broadcast_arrays(np.asarray(p, dtype=np.float64), np.asarray(n, dtype=np.float64))
    tail = (1 - level) / 2
    low = special.betaincinv(trials * share, trials * (1 - share) + 1, tail)
    high = special.betainccinv(trials * share + 1, trials * (1 - share), tail)
    return np.where(share <= 0, 0.0, low), np.where(share >= 1, 1.0, high)


def effective_trials(p: float, se: float, n: int, df: float, level: float) -> float:
    r"""Return the number of independent trials that a rate is worth, less what the doubt about its se costs.

    .. math:: n^* = \min\Bigl(n, \frac{p (1 - p)}{\mathrm{se}^2}\Bigr) \min\Bigl(1,
        \frac{t_{n-1}}{t_{df}}\Bigr)^2

    Parameters
    ----------
    p, se : float
        Rate in (0, 1) and its standard error, above 0.
    n : int
        Sampled units, at least 2.
    df : float
        Degrees of freedom of the standard error, above 0.
    level : float
        Confidence level in (0, 1).

    References
    ----------
    Korn and Graubard, Survey Methodology 24, 1998, section 2.

    Examples
    --------
    >>> round(effective_trials(0.2, 0.08, 100, 99, 0.95), 6)
    25.0
    """
    return min(n, p * (1 - p) / se**2) * float(student_ratio(n, df, (1 - level) / 2))
