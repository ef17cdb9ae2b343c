"""How much the rows and clusters of a rate are worth where they differ in weight and size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kvstats.inference.sample import Sample
from kvstats.statistics.statistic import FloatArray, group_sums, weighted_sum

__all__ = ["RateSize", "component_variance", "kish_size", "rate_size"]

ROUNDING = 1e-12
"""Shares of the mass below it are 0 up to rounding: each row is then a cluster."""


def kish_size(weights: FloatArray) -> float:
    r"""Return Kish's number of equal weights that average as well, :math:`(\sum w)^2 / \sum w^2`.

    Parameters
    ----------
    weights : array of float, shape [n]
        At least 0, not all 0.

    Returns
    -------
    float
        In [1, n]; n itself, exactly, where all weights above 0 are equal.

    References
    ----------
    .. [1] Kish, *Survey Sampling*, 1965, section 11.7.

    Examples
    --------
    >>> kish_size(np.array([0.1, 0.1, 0.1])), round(kish_size(np.array([3.0, 1.0])), 6)
    (3.0, 1.6)
    """
    shares = weights[weights > 0] / weights.max()
    return float(shares.sum() ** 2 / weighted_sum(shares, shares))


def component_variance(sample: Sample) -> float:
    r"""Return the variance of a rate by analysis of variance between and within its clusters.

    Of each stratum h of rows with weights w in clusters of mass :math:`M_c = \sum_{i \in c} w_i`, the
    components :math:`\sigma_b^2` between and :math:`\sigma_w^2` within clusters equate the weighted sums of
    squares with their expectations, and

    .. math:: v = \frac{1}{(\sum w)^2} \sum_h
        \Bigl(\sigma_{b,h}^2 \sum_{c \in h} M_c^2 + \sigma_{w,h}^2 \sum_{i \in h} w_i^2\Bigr).

    It is the linearised variance itself where the clusters of a stratum are of equal size and weight.
    Elsewhere the linearised one is too small in the samples whose large clusters happen to be alike, and
    this one, which lends them the spread of the small ones, is not. It assumes that size says nothing of
    the outcome.

    Parameters
    ----------
    sample : Sample
        A sample of a mean.

    Returns
    -------
    float
        0 for strata of one cluster; may be below 0 with negative components.

    References
    ----------
    .. [1] Searle, Casella and McCulloch, *Variance Components*, 1992, section 3.6.

    Examples
    --------
    >>> from kvstats.statistics import Mean
    >>> names = (("a",), ("b",))
    >>> sample = Sample((), Mean([0, 1, 1, 1]), np.ones(4), np.array([0, 0, 1, 1]), names, "rate")
    >>> component_variance(sample)  # the squared standard error of the mean of 1/2 and 1
    0.0625
    """
    w, codes, n_clusters = sample.weights / sample.weights.max(), sample.codes, len(sample.clusters)
    deviations = sample.statistic.influence(w) * w.sum()
    masses, squares = group_sums(codes, w, n_clusters), group_sums(codes, w**2, n_clusters)
    full = masses > 0
    own = np.where(full, masses, 1.0)
    means = group_sums(codes, w * deviations, n_clusters) / own
    within = group_sums(codes, w * (deviations - means[codes]) ** 2, n_clusters)
    n_strata = int(sample.stratum_codes.max()) + 1

    def sums(column: FloatArray) -> FloatArray:
        return group_sums(sample.stratum_codes, column, n_strata)

    mass, square, shares = sums(masses), sums(squares), sums(squares / own)
    mass = np.where(mass > 0, mass, 1.0)
    spread = sums(masses * (means - (sums(masses * means) / mass)[sample.stratum_codes]) ** 2)
    several = sums(full.astype(np.float64)) > 1
    inner = mass - shares
    repeated = inner > ROUNDING * mass
    sigma_within = np.divide(sums(within), inner, out=np.zeros(n_strata), where=repeated)
    outer = mass - sums(masses**2) / mass
    sigma_between = np.divide(
        spread - sigma_within * (shares - square / mass), outer, out=np.zeros(n_strata), where=several
    )
    parts = sigma_between * sums(masses**2) + sigma_within * square
    return float(parts[several].sum() / w.sum() ** 2)


@dataclass(frozen=True)
class RateSize:
    """What an interval for a rate rests on.

    Attributes
    ----------
    se : float
        The larger of the linearised standard error and the root of `component_variance`.
    rows : float
        Kish's size of the row weights: the most independent trials that the rows can be worth.
    clusters : float
        Kish's size of the clusters' sums of weights.
    df : float
        Degrees of freedom of the standard error, shrunk by (`clusters` - 1) / (C - 1) for C clusters: a
        variance that rests on few large clusters is known no better than from those few.
    """

    se: float
    rows: float
    clusters: float
    df: float


def rate_size(sample: Sample, se: float, df: float) -> RateSize:
    """Return what the interval of a rate rests on: plain counts and error where all weigh alike.

    Parameters
    ----------
    sample : Sample
        A sample of at least two clusters with rows.
    se, df : float
        Its linearised standard error and the degrees of freedom of that.

    Examples
    --------
    >>> from kvstats.statistics import Mean
    >>> names = (("a",), ("b",), ("c",))
    >>> sample = Sample((), Mean([0, 1, 1, 1]), np.ones(4), np.array([0, 1, 2, 2]), names, "rate")
    >>> size = rate_size(sample, 0.3, 2.0)
    >>> size.rows, round(size.clusters, 4), round(size.df, 4)
    (4.0, 2.6667, 1.6667)
    """
    clusters = kish_size(group_sums(sample.codes, sample.weights, len(sample.clusters)))
    return RateSize(
        se=max(se, max(component_variance(sample), 0.0) ** 0.5),
        rows=kish_size(sample.weights),
        clusters=clusters,
        df=df * (clusters - 1) / (sample.n_clusters - 1),
    )
