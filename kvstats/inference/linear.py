"""Cluster-robust standard errors by linearisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kvstats.inference.sample import Sample
from kvstats.statistics.difference import parts
from kvstats.statistics.statistic import FloatArray, IntArray, Statistic, group_sums

__all__ = ["ClusterTotals", "cluster_totals", "linear_error", "row_groups"]


@dataclass(frozen=True, eq=False)
class ClusterTotals:
    """What each cluster contributes to a statistic, ready for sums of squares.

    Attributes
    ----------
    values : array of float, shape [C]
        Contributions, centred within strata and scaled by the root of C / (C - 1) of the stratum; NaN
        where a stratum has one cluster only.
    present : array of bool, shape [number of parts, C]
        Which clusters have rows in which part of a difference.
    strata : array of int, shape [C]
        Stratum of each cluster.
    """

    values: FloatArray
    present: npt.NDArray[np.bool_]
    strata: IntArray

    @classmethod
    def of_parts(
        cls, totals: Sequence[FloatArray], present: npt.ArrayLike, strata: IntArray
    ) -> ClusterTotals:
        """Centre and scale the totals of each part over its own clusters, and add them."""
        inside = np.asarray(present, dtype=np.bool_)
        values = np.zeros(strata.size)
        for total, own in zip(totals, inside, strict=True):
            sizes = np.bincount(strata[own], minlength=int(strata.max(initial=0)) + 1)
            if own.sum() == 0 or (sizes == 1).any():
                return cls(np.full(strata.size, np.nan), inside, strata)
            means = np.bincount(strata[own], total[own], sizes.size) / np.maximum(sizes, 1)
            scale = np.sqrt(sizes / np.maximum(sizes - 1, 1))
            values += np.where(own, scale[strata] * (total - means[strata]), 0.0)
        return cls(values, inside, strata)

    def error(self) -> tuple[float, float]:
        """Return the standard error and its degrees of freedom; NaN, both, where it is undefined."""
        squares = self.values**2
        variance = float(squares.sum())
        if np.isnan(variance):
            return float("nan"), float("nan")
        n_strata = int(np.unique(self.strata).size)
        _, patterns = np.unique(self.present, axis=1, return_inverse=True)
        shares = np.bincount(patterns, squares)
        if variance == 0 or shares.size == 1:
            return float(np.sqrt(variance)), float(self.strata.size - n_strata)
        pairs = np.unique(np.stack([patterns, self.strata]), axis=1)[0]
        freedom = np.bincount(patterns) - np.bincount(pairs)
        df = variance**2 / float(np.sum(shares**2 / np.maximum(freedom, 1)))
        return float(np.sqrt(variance)), df

    def acceleration(self) -> float:
        """Return the acceleration of the bootstrap, a sixth of the skewness of the contributions."""
        return float(np.sum(self.values**3) / (6 * np.sum(self.values**2) ** 1.5))


def cluster_totals(sample: Sample) -> ClusterTotals:
    """Return the weighted influences of a sample, summed within clusters."""
    contributions = sample.weights * sample.statistic.influence(sample.weights)
    n_clusters = len(sample.clusters)
    totals, present = [], []
    for rows in row_groups(sample.statistic):
        codes = sample.codes[rows]
        totals.append(group_sums(codes, contributions[rows], n_clusters))
        present.append(np.bincount(codes, minlength=n_clusters) > 0)
    return ClusterTotals.of_parts(totals, present, sample.stratum_codes)


def row_groups(statistic: Statistic) -> list[IntArray]:
    """Return the rows whose spreads are estimated apart: the parts of differences, split by class.

    Examples
    --------
    >>> from kvstats.statistics import AUC, Difference, Mean
    >>> difference = Difference(Mean([1.0, 2.0]), AUC([0.1, 0.2, 0.3], [0, 1, 0]))
    >>> [rows.tolist() for rows in row_groups(difference)]
    [[0, 1], [2, 4], [3]]
    """
    groups, begin = [], 0
    for part in parts(statistic):
        if part.classes is None:
            groups.append(np.arange(begin, begin + part.n))
        else:
            groups += [begin + np.flatnonzero(part.classes == name) for name in np.unique(part.classes)]
        begin += part.n
    return groups


def linear_error(sample: Sample) -> tuple[float, float]:
    r"""Return the cluster-robust linearised standard error of a statistic, and its degrees of freedom.

    With cluster totals :math:`t_c = \sum_{i \in c} w_i\, \mathrm{influence}_i` over the :math:`C_h` clusters
    of each stratum h,

    .. math:: v = \sum_h \frac{C_h}{C_h - 1} \sum_{c \in h} (t_c - \bar t_h)^2, \qquad \mathrm{se} = \sqrt v,

    with C - H degrees of freedom for C clusters in H strata, C - 1 without strata: the variance estimator of
    with-replacement sampling of clusters [1]_.

    A difference has totals from each side, each scaled by the root of its own C / (C - 1) before they
    subtract within clusters. So has an area under the curve from its positives and its negatives: DeLong's
    variance where each row is a cluster, else Obuchowski's but for the factor of the cross term. Clusters are
    then grouped by the sides that they have rows on; with v_p the part of the variance that comes from group
    p of C_p clusters in H_p strata, the degrees of freedom are :math:`v^2 / \sum_p v_p^2 / (C_p - H_p)` [2]_.
    Where all clusters are shared this is the paired analysis with C - H, and where none is, Welch's.

    Parameters
    ----------
    sample : Sample
        A sample whose value is defined.

    Returns
    -------
    se, df : float
        NaN, both, where a side or class has fewer than two clusters, or a stratum one cluster of it. A
        standard error of 0 is returned as 0.0: what it means is for the caller to say.

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
    return cluster_totals(sample).error()
