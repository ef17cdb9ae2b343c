"""Intervals of closed form for one proportion, and the effective sample size of clustered data.

Quantiles come from `scipy.special`: `scipy.stats` evaluates the same functions, and takes longer to load
than everything else together.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from kvstats.statistics.rate_interval import clopper_pearson_interval
from kvstats.statistics.statistic import FloatArray
from kvstats.statistics.student import student_quantile, student_ratio

__all__ = [
    "clopper_pearson_interval",
    "clustered_wilson_interval",
    "effective_size",
    "korn_graubard_interval",
    "log_interval",
    "logit_interval",
    "student_quantile",
    "student_ratio",
    "wilson_interval",
    "wilson_size",
]


LARGEST_EXPONENT = 700.0
"""The exponential of more is no float."""


def logit_interval(area: float, se: float, df: float, level: float = 0.95) -> tuple[float, float]:
    r"""Return the t interval of an area in (0, 1) on the scale of its log odds.

    .. math:: \mathrm{expit}\left(\mathrm{logit}(A) \pm t_{df}\, \frac{\mathrm{se}}{A (1 - A)}\right)

    Parameters
    ----------
    area, se : float
        The area, in (0, 1), and its standard error, above 0.
    df : float
        Degrees of freedom of the standard error.
    level : float
        Confidence level.

    Returns
    -------
    low, high : float
        Within (0, 1).

    References
    ----------
    .. [1] Qin and Hotilovac, Statistical Methods in Medical Research 17, 2008, for its coverage.

    Examples
    --------
    >>> low, high = logit_interval(0.9, 0.05, 20.0)
    >>> round(low, 4), round(high, 4)
    (0.7385, 0.9663)
    """
    half = float(student_quantile((1 - level) / 2, df)) * se / (area * (1 - area))
    centre = float(special.logit(area))
    return float(special.expit(centre - half)), float(special.expit(centre + half))


def log_interval(ratio: float, se: float, df: float, level: float = 0.95) -> tuple[float, float]:
    r"""Return the t interval of a ratio above 0 on the scale of its logarithm.

    .. math:: R \exp\left(\pm t_{df}\, \frac{\mathrm{se}}{R}\right)

    Parameters
    ----------
    ratio, se : float
        The ratio and its standard error, both above 0.
    df : float
        Degrees of freedom of the standard error.
    level : float
        Confidence level.

    Returns
    -------
    low, high : float
        At least 0; their product is the square of the ratio, unless the upper one is beyond all floats, and
        infinite.

    References
    ----------
    .. [1] Katz, Baptista, Azen and Pike, Biometrics 34, 1978, for risk ratios.

    Examples
    --------
    >>> low, high = log_interval(0.5, 0.1, 30.0)
    >>> round(low, 4), round(high, 4)
    (0.3323, 0.7522)
    """
    half = float(student_quantile((1 - level) / 2, df)) * se / ratio
    # With two clusters and a high level the upper bound is beyond what a float holds.
    high = ratio * math.exp(half) if half < LARGEST_EXPONENT else math.inf
    return ratio * math.exp(-half), high


def wilson_interval(p: npt.ArrayLike, n: npt.ArrayLike, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
    r"""Return Wilson's score interval for a proportion.

    .. math:: \frac{p + z^2 / 2n \pm z \sqrt{p (1 - p) / n + z^2 / 4n^2}}{1 + z^2 / n}

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
    .. [1] Wilson, Journal of the American Statistical Association 22, 1927.

    Examples
    --------
    >>> low, high = wilson_interval(6 / 100, 100)
    >>> round(float(low), 4), round(float(high), 4)
    (0.0278, 0.1248)
    """
    share, trials = np.asarray(p, dtype=np.float64), np.asarray(n, dtype=np.float64)
    z2 = special.ndtri((1 - level) / 2) ** 2
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = np.sqrt(z2 * share * (1 - share) / trials + (z2 / (2 * trials)) ** 2) / (1 + z2 / trials)
    # At 0 and 1 centre and half are equal in exact arithmetic.
    return np.where(share <= 0, 0.0, centre - half), np.where(share >= 1, 1.0, centre + half)


def effective_size(
    p: npt.ArrayLike, se: npt.ArrayLike, n: npt.ArrayLike, clusters: npt.ArrayLike
) -> FloatArray:
    """Return the number of independent trials whose proportion has the given standard error.

    It is ``p (1 - p) / se**2``, at most n. At p = 0 and p = 1, where the standard error is 0 and the design
    effect cannot be known, it is the number of clusters: right when the rows of a cluster are all alike,
    and on the safe side otherwise.

    Parameters
    ----------
    p, se : array-like of float
        Proportion and its cluster-robust standard error.
    n, clusters : array-like of float
        Numbers of rows and of clusters, where they differ in weight their effective numbers (`rate_size`).

    Returns
    -------
    array of float
        In (0, n].

    Examples
    --------
    >>> effective_size([0.5, 0.0], [0.1, 0.0], 80, 10).round(6).tolist()
    [25.0, 10.0]
    """
    share, error, rows, groups = np.broadcast_arrays(
        *(np.asarray(a, dtype=np.float64) for a in (p, se, n, clusters))
    )
    spread = share * (1 - share)
    size = np.divide(spread, error**2, out=np.full(share.shape, np.inf), where=error > 0)
    return np.where(spread <= 0, groups, np.minimum(size, rows))


def korn_graubard_interval(
    p: npt.ArrayLike,
    se: npt.ArrayLike,
    n: npt.ArrayLike,
    clusters: npt.ArrayLike,
    df: npt.ArrayLike,
    level: float = 0.95,
    effective_clusters: npt.ArrayLike | None = None,
) -> tuple[FloatArray, FloatArray]:
    r"""Return the Korn-Graubard interval: Clopper-Pearson on an effective sample size.

    .. math:: n^* = \min\Bigl(n, \frac{p (1 - p)}{\mathrm{se}^2}\Bigr) \Bigl(\frac{t_{n-1}}{t_{df}}\Bigr)^2

    At p = 0 and p = 1 the effective number of clusters takes the place of n*.

    Parameters
    ----------
    p, se : array-like of float
        Proportion in [0, 1] and its cluster-robust standard error.
    n : array-like of float
        Number of rows, above 1; where they differ in weight, Kish's size.
    clusters : array-like of int
        Number of clusters, at least 2.
    df : array-like of float
        Degrees of freedom of the standard error; where clusters differ in size, shrunk as in `rate_size`.
    level : float
        Confidence level.
    effective_clusters : array-like of float, optional
        Number of clusters of equal size that are worth as much; default: `clusters`.

    Returns
    -------
    low, high : array of float
        In [0, 1]; never of width 0.

    Notes
    -----
    With a handful of events that all fall into few clusters the standard error is itself unreliable, and
    the interval is too narrow; the bound at no event at all does not suffer from this.

    References
    ----------
    .. [1] Korn and Graubard, Survey Methodology 24, 1998, section 2.

    Examples
    --------
    >>> low, high = korn_graubard_interval([0.2, 0.0], [0.06, 0.0], 80, 10, 9)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0836, 0.0], [0.3711, 0.3085])
    """
    share = np.asarray(p, dtype=np.float64)
    size = effective_size(p, se, n, clusters if effective_clusters is None else effective_clusters)
    inner = (share > 0) & (share < 1)
    return clopper_pearson_interval(
        share, np.where(inner, size * student_ratio(n, df, (1 - level) / 2), size), level
    )


def wilson_size(
    p: npt.ArrayLike,
    se: npt.ArrayLike,
    n: npt.ArrayLike,
    clusters: npt.ArrayLike,
    effective_clusters: npt.ArrayLike | None = None,
) -> FloatArray:
    """Return the effective size for Wilson's interval, n itself where each row is a cluster of its own.

    It is `effective_size` without the factor C / (C - 1) in the variance, so that Wilson's interval of
    independent rows is the textbook one.

    Examples
    --------
    >>> wilson_size(0.2, (0.2 * 0.8 / 99) ** 0.5, 100, 100).round(6).tolist()
    100.0
    """
    groups = np.asarray(clusters, dtype=np.float64)
    worth = groups if effective_clusters is None else effective_clusters
    return effective_size(p, np.asarray(se) * np.sqrt((groups - 1) / groups), n, worth)


def clustered_wilson_interval(
    p: npt.ArrayLike,
    se: npt.ArrayLike,
    n: npt.ArrayLike,
    clusters: npt.ArrayLike,
    df: npt.ArrayLike,
    level: float = 0.95,
    effective_clusters: npt.ArrayLike | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's interval on an effective sample size.

    Parameters, bounds and the case of p = 0 or 1 are those of `korn_graubard_interval`; the size is that of
    `wilson_size`, shrunk likewise for few degrees of freedom.

    References
    ----------
    .. [1] Dean and Pagano, Survey Methodology 41, 2015, for Wilson's interval with an effective size.

    Examples
    --------
    >>> low, high = clustered_wilson_interval([0.2, 0.0], [0.06, 0.0], 80, 10, 9)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.1035, 0.0], [0.3513, 0.2775])
    """
    share = np.asarray(p, dtype=np.float64)
    size = wilson_size(p, se, n, clusters, effective_clusters)
    inner = (share > 0) & (share < 1)
    return wilson_interval(share, np.where(inner, size * student_ratio(n, df, (1 - level) / 2), size), level)
