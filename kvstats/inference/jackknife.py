"""Standard errors by the delete-one-cluster jackknife."""

from __future__ import annotations

import numpy as np

from kvstats.inference.linear import ClusterTotals
from kvstats.inference.sample import Sample
from kvstats.statistics.difference import signed_parts
from kvstats.statistics.ratios import Ratio, quotients
from kvstats.statistics.statistic import FloatArray, IntArray, Statistic

__all__ = ["jackknife_error"]

CELLS = 1_000_000
"""Counts that are held at once."""


def jackknife_error(sample: Sample) -> tuple[float, float]:
    r"""Return the jackknife standard error of a statistic, and its degrees of freedom.

    Each cluster is left out in turn, the others of its stratum counting :math:`C_h / (C_h - 1)` times:

    .. math::

        v = \sum_h \frac{C_h - 1}{C_h} \sum_{c \in h} (\theta_{(c)} - \bar\theta_{h})^2, \qquad
        \mathrm{se} = \sqrt v .

    Sides of a difference and degrees of freedom are treated as in `linear_error`.

    Parameters
    ----------
    sample : Sample
        A sample whose value is defined.

    Returns
    -------
    se, df : float
        NaN, both, where a side has fewer than two clusters, or a stratum one cluster of a side, or the
        statistic is undefined without some cluster.

    References
    ----------
    .. [1] Wolter, *Introduction to Variance Estimation*, 2nd edition, 2007, chapter 4.

    Examples
    --------
    >>> from kvstats.statistics import Mean
    >>> sample = Sample((), Mean([0.0, 1.0, 1.0, 4.0]), np.ones(4), np.array([0, 1, 2, 3]),
    ...     (("a",), ("b",), ("c",), ("d",)), "mean")
    >>> [round(figure, 6) for figure in jackknife_error(sample)]  # for a mean that of linearisation
    [0.866025, 3.0]
    """
    n_clusters, strata = len(sample.clusters), sample.stratum_codes
    totals, present, end = [], [], 0
    for (sign, part), whole in zip(signed_parts(sample.statistic), sample.drawn_from, strict=True):
        rows = slice(end, end + part.n)
        end += part.n
        codes = sample.codes[rows]
        own = np.bincount(codes, minlength=n_clusters) > 0
        sizes = np.bincount(strata[whole], minlength=int(strata.max(initial=0)) + 1)
        if own.sum() < 2 or (sizes == 1).any():
            return float("nan"), float("nan")
        left_out = np.where(whole, values_without(part, codes, sample.weights[rows], strata, sizes), 0.0)
        # Scaled so that the factor of linearisation, the root of C / (C - 1), makes it that of the jackknife.
        shrink = (sizes - 1) / np.maximum(sizes, 1)
        totals.append(-sign * shrink[strata] * left_out)
        present.append(own)
    return ClusterTotals.of_groups(totals, present, sample.drawn_from, strata).error()


def values_without(
    part: Statistic, codes: IntArray, weights: FloatArray, strata: IntArray, sizes: IntArray
) -> FloatArray:
    """Return the values of a statistic with each cluster left out, shape [C]."""
    n_clusters = strata.size
    raised = (sizes / np.maximum(sizes - 1, 1))[strata]
    if isinstance(part, Ratio):
        top, bottom = (
            sums.sum() + (raised - 1) * np.bincount(strata, sums, sizes.size)[strata] - raised * sums
            for sums in part.cluster_sums(codes, weights, n_clusters)
        )
        return quotients(top, bottom)
    step = max(1, CELLS // n_clusters)
    values = []
    for begin in range(0, n_clusters, step):
        left_out = np.arange(begin, min(begin + step, n_clusters))
        counts = np.where(strata[left_out][:, None] == strata, raised[left_out][:, None], 1.0)
        counts[np.arange(left_out.size), left_out] = 0.0
        values.append(part.cluster_values(counts, codes, weights))
    return np.concatenate(values)
