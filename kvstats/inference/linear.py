"""Cluster-robust standard errors by linearisation."""

from __future__ import annotations

import numpy as np

from kvstats.inference.sample import Sample
from kvstats.statistics.difference import parts
from kvstats.statistics.statistic import FloatArray

__all__ = ["linear_error"]


def linear_error(sample: Sample) -> tuple[float, float]:
    r"""Return the cluster-robust linearised standard error of a statistic, and its degrees of freedom.

    With cluster totals :math:`t_c = \sum_{i \in c} w_i\, \mathrm{influence}_i` over C clusters,

    .. math:: v = \frac{C}{C - 1} \sum_c (t_c - \bar t)^2, \qquad \mathrm{se} = \sqrt v,

    with C - 1 degrees of freedom: the variance estimator of with-replacement sampling of clusters [1]_.

    A difference has totals from each side, each scaled by the root of its own C / (C - 1) before they
    subtract within clusters. Clusters are then grouped by the sides that they have rows on; with v_p the
    part of the variance that comes from group p of C_p clusters, the degrees of freedom are
    :math:`v^2 / \sum_p v_p^2 / (C_p - 1)` [2]_. Where all clusters are shared this is the paired analysis
    with C - 1, and where none is, Welch's.

    Parameters
    ----------
    sample : Sample
        A sample whose value is defined.

    Returns
    -------
    se, df : float
        NaN, both, where a side has fewer than two clusters. A standard error of 0 is returned as 0.0: what it
        means is for the caller to say.

    References
    ----------
    .. [1] Binder, International Statistical Review 51, 1983.
    .. [2] Satterthwaite, Biometrics Bulletin 2, 1946; Welch, Biometrika 34, 1947.

    Examples
    --------
    >>> from kvstats.statistics import Mean
    >>> sample = Sample((), Mean([0.0, 1.0, 1.0, 4.0]), np.ones(4), np.array([0, 1, 2, 3]),
    ...     (("a",), ("b",), ("c",), ("d",)), "mean")
    >>> [round(figure, 6) for figure in linear_error(sample)]  # the standard deviation over the root of 4
    [0.866025, 3.0]
    """
    contributions = sample.weights * sample.statistic.influence(sample.weights)
    n_clusters = len(sample.clusters)
    totals: list[FloatArray] = []
    present = []
    end = 0
    for part in parts(sample.statistic):
        rows = slice(end, end + part.n)
        end += part.n
        codes = sample.codes[rows]
        inside = np.bincount(codes, minlength=n_clusters) > 0
        size = int(inside.sum())
        if size < 2:
            return float("nan"), float("nan")
        total = np.bincount(codes, contributions[rows], n_clusters)
        centred = np.where(inside, total - total[inside].mean(), 0.0)
        totals.append(np.sqrt(size / (size - 1)) * centred)
        present.append(inside)
    squares = np.sum(totals, axis=0) ** 2
    variance = float(squares.sum())
    _, patterns = np.unique(np.array(present), axis=1, return_inverse=True)
    shares = np.bincount(patterns, squares)
    sizes = np.bincount(patterns)
    if variance == 0 or shares.size == 1:
        return float(np.sqrt(variance)), float(n_clusters - 1)
    df = variance**2 / float(np.sum(shares**2 / np.maximum(sizes - 1, 1)))
    return float(np.sqrt(variance)), df
