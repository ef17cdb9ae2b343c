"""Cluster-robust standard errors by linearisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kvstats.inference.sample import Sample
from kvstats.statistics.difference import parts
from kvstats.statistics.statistic import FloatArray, IntArray, Statistic, group_sums

__all__ = ["ClusterTotals", "RowGroup", "bessel", "cluster_totals", "linear_error", "row_groups"]


@dataclass(frozen=True, eq=False)
class ClusterTotals:
    """What each cluster contributes to a statistic, ready for sums of squares.

    Attributes
    ----------
    values : array of float, shape [C]
        Contributions, centred within strata and scaled; NaN where they have no variance.
    present : array of bool, shape [number of groups, C]
        Which clusters have rows in which group of `row_groups`.
    strata : array of int, shape [C]
        Stratum of each cluster.
    """

    values: FloatArray
    present: npt.NDArray[np.bool_]
    strata: IntArray

    @classmethod
    def of_groups(
        cls, totals: Sequence[FloatArray], present: npt.ArrayLike, drawn: npt.ArrayLike, strata: IntArray
    ) -> ClusterTotals:
        """Centre and scale the totals of each group over the clusters that it was drawn from, and add them.

        Parameters
        ----------
        totals : sequence of array of float, shape [C]
            Totals of each group.
        present, drawn : array-like of bool, shape [number of groups, C]
            Which clusters have rows of the group, and over which its totals are centred, zeros included:
            those of its part of the statistic.
        strata : array of int, shape [C]
            Stratum of each cluster.
        """
        inside, wholes = np.asarray(present, dtype=np.bool_), np.asarray(drawn, dtype=np.bool_)
        values = np.zeros(strata.size)
        for total, own, whole in zip(totals, inside, wholes, strict=True):
            sizes = np.bincount(strata[whole], minlength=int(strata.max(initial=0)) + 1)
            if own.sum() < 2 or (sizes == 1).any():
                return cls(np.full(strata.size, np.nan), inside, strata)
            means = np.bincount(strata[whole], total[whole], sizes.size) / np.maximum(sizes, 1)
            scale = np.sqrt(bessel(sizes))
            values += np.where(whole, scale[strata] * (total - means[strata]), 0.0)
        return cls(values, inside, strata)

    def error(self) -> tuple[float, float]:
        """Return the standard error and its degrees of freedom; NaN, both, where it is undefined."""
        squares = self.values**2
        variance = float(squares.sum())
        if np.isnan(variance):
            return float("nan"), float("nan")
        some = self.present.any(axis=0)
        freedom_of_all = int(some.sum()) - int(np.unique(self.strata[some]).size)
        if freedom_of_all == 0:
            return float("nan"), float("nan")
        kinds, patterns = np.unique(self.present, axis=1, return_inverse=True)
        if variance == 0 or kinds.any(axis=0).sum() == 1:
            return float(np.sqrt(variance)), float(freedom_of_all)
        shares = np.bincount(patterns, squares)
        pairs = np.unique(np.stack([patterns, self.strata]), axis=1)[0]
        freedom = np.bincount(patterns) - np.bincount(pairs)
        df = variance**2 / float(np.sum(shares**2 / np.maximum(freedom, 1)))
        return float(np.sqrt(variance)), df

    def acceleration(self) -> float:
        """Return the acceleration of the bootstrap, a sixth of the skewness of the contributions."""
        return float(np.sum(self.values**3) / (6 * np.sum(self.values**2) ** 1.5))


def bessel(sizes: npt.ArrayLike) -> FloatArray:
    """Return n / (n - 1), 1 where n is below 2."""
    n = np.asarray(sizes, dtype=np.float64)
    return n / np.maximum(n - 1, 1)


def cluster_totals(sample: Sample) -> ClusterTotals:
    """Return the weighted influences of a sample, summed within clusters."""
    contributions = sample.weights * sample.statistic.influence(sample.weights)
    n_clusters = len(sample.clusters)
    totals, present, drawn = [], [], []
    for group in row_groups(sample.statistic):
        codes = sample.codes[group.rows]
        own = np.bincount(codes, minlength=n_clusters) > 0
        whole = sample.drawn_from[group.part]
        total = group_sums(codes, contributions[group.rows], n_clusters)
        if group.one_class:
            # A class's factor is that of its own clusters, whatever strata they are in.
            total *= np.sqrt(bessel(own.sum()) / bessel(whole.sum()))
        totals.append(total)
        present.append(own)
        drawn.append(whole)
    return ClusterTotals.of_groups(totals, present, drawn, sample.stratum_codes)


class RowGroup(NamedTuple):
    """Rows whose spread is estimated apart from that of others."""

    rows: IntArray
    part: int
    """Number of the part of the difference that they are of."""
    one_class: bool
    """Whether they are one class of it only."""


def row_groups(statistic: Statistic) -> list[RowGroup]:
    """Return the groups of rows of a statistic: the parts of differences, split by class.

    Examples
    --------
    >>> from kvstats.statistics import AUC, Difference, Mean
    >>> difference = Difference(Mean([1.0, 2.0]), AUC([0.1, 0.2, 0.3], [0, 1, 0]))
    >>> [(group.rows.tolist(), group.part) for group in row_groups(difference)]
    [([0, 1], 0), ([2, 4], 1), ([3], 1)]
    """
    groups, begin = [], 0
    for number, part in enumerate(parts(statistic)):
        if part.classes is None:
            groups.append(RowGroup(np.arange(begin, begin + part.n), number, one_class=False))
        else:
            groups += [
                RowGroup(begin + np.flatnonzero(part.classes == name), number, one_class=True)
                for name in np.unique(part.classes)
            ]
        begin += part.n
    return groups


def linear_error(sample: Sample) -> tuple[float, float]:
    r"""Return the cluster-robust linearised standard error of a statistic, and its degrees of freedom.

    With cluster totals :math:`t_c = \sum_{i \in c} w_i\, \mathrm{influence}_i` over the :math:`C_h` clusters
    of each stratum h,

    .. math:: v = \sum_h \frac{C_h}{C_h - 1} \sum_{c \in h} (t_c - \bar t_h)^2, \qquad \mathrm{se} = \sqrt v,

    with C - H degrees of freedom for C clusters in H strata, C - 1 without strata: the variance estimator of
    with-replacement sampling of clusters [1]_. Within strata the clusters of :math:`C_h` are all that the
    rows were selected from: those without a row that belongs count with a total of 0, and not as degrees of
    freedom [2]_.

    A difference has totals from each side, each scaled by the root of its own C / (C - 1) before they
    subtract within clusters. So has an area under the curve from its positives and its negatives: DeLong's
    variance where each row is a cluster, else Obuchowski's but for the factor of the cross term. Within
    strata the totals of a class are centred over the clusters of both classes, since its total over a
    stratum varies with how many of the stratum's clusters are of the class; the factor of a class with K of
    C clusters is :math:`C_h / (C_h - 1)` times :math:`K / (K - 1)` over :math:`C / (C - 1)`. Clusters are
    then grouped by the sides that they have rows on; with v_p the part of the variance that comes from group
    p of C_p clusters in H_p strata, the degrees of freedom are :math:`v^2 / \sum_p v_p^2 / (C_p - H_p)` [3]_.
    Where all clusters are shared this is the paired analysis with C - H, and where none is, Welch's.

    Parameters
    ----------
    sample : Sample
        A sample whose value is defined.

    Returns
    -------
    se, df : float
        NaN, both, where a side or class has fewer than two clusters, a stratum one cluster of a side, or
        there are as many strata as clusters. A standard error of 0 is returned as 0.0: what it means is for
        the caller to say.

    References
    ----------
    .. [1] Binder, International Statistical Review 51, 1983.
    .. [2] Lumley, *Complex Surveys*, 2010, section 2.2, on domains.
    .. [3] Satterthwaite, Biometrics Bulletin 2, 1946; Welch, Biometrika 34, 1947.

    Examples
    --------
    >>> from kvstats.statistics import Mean
    >>> sample = Sample((), Mean([0.0, 1.0, 1.0, 4.0]), np.ones(4), np.array([0, 1, 2, 3]),
    ...     (("a",), ("b",), ("c",), ("d",)), "mean")
    >>> [round(figure, 6) for figure in linear_error(sample)]  # the standard deviation over the root of 4
    [0.866025, 3.0]
    """
    return cluster_totals(sample).error()
