"""The linearised standard error of a statistic in each resample of a cluster bootstrap."""

from __future__ import annotations

import numpy as np

from kvstats.inference.linear import bessel, linear_error, row_groups
from kvstats.inference.sample import Sample
from kvstats.statistics.difference import signed_parts
from kvstats.statistics.ratios import Ratio
from kvstats.statistics.statistic import FloatArray

__all__ = ["ReplicateErrors"]

ROUNDING = 1e-6
"""Errors below this share of the sample's own are 0 up to rounding: the resample's clusters are alike."""


class ReplicateErrors:
    r"""Standard errors of resamples: what `linear_error` would give on a resampled copy of the data.

    A cluster that is drawn twice counts as two clusters. For means, ratios and their differences the
    variance is a quadratic form in sums over clusters, so that a block of resamples costs one matrix product:
    with centred numerator :math:`t_c`, denominator :math:`d_c` and count :math:`k_c` of each cluster,

    .. math::

        v = \frac{C}{C - 1} D^{-2} \sum_c k_c (t_c - r d_c)^2, \qquad
        D = \sum_c k_c d_c, \quad r = \sum_c k_c t_c / D .

    Other statistics take their influences anew in each resample.

    Parameters
    ----------
    sample : Sample
        A sample whose standard error is defined.

    Examples
    --------
    >>> from kvstats.statistics import Mean
    >>> sample = Sample((), Mean([0.0, 2.0]), np.ones(2), np.array([0, 1]), (("a",), ("b",)), "mean")
    >>> ReplicateErrors(sample)(np.array([[1.0, 1.0], [2.0, 0.0]])).tolist()
    [1.0, 0.0]
    """

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.scale, _ = linear_error(sample)
        self.parts = signed_parts(sample.statistic)
        codes = sample.stratum_codes
        self.strata = [np.flatnonzero(codes == stratum) for stratum in range(int(codes.max()) + 1)]
        n_clusters = len(sample.clusters)
        self.groups = row_groups(sample.statistic)
        self.present = [
            (np.bincount(sample.codes[group.rows], minlength=n_clusters) > 0).astype(np.float64)
            for group in self.groups
        ]
        self.drawn = [sample.drawn_from[group.part].astype(np.float64) for group in self.groups]
        self.closed = all(isinstance(part, Ratio) for _, part in self.parts)
        columns = []
        for (_, part), group, drawn in zip(self.parts, self.groups, self.drawn, strict=self.closed):
            if isinstance(part, Ratio):
                rows = group.rows
                tops, bottoms = part.cluster_sums(sample.codes[rows], sample.weights[rows], n_clusters)
                columns += [tops - tops.sum() / bottoms.sum() * bottoms, bottoms, drawn]
        self.sums = np.array(columns).T

    def __call__(self, counts: FloatArray) -> FloatArray:
        """Return the standard error of each resample, for counts of shape [B, C]."""
        variance = self._of_ratios(counts) if self.closed else np.array([self._of_row(row) for row in counts])
        errors = np.sqrt(np.maximum(variance, 0.0))
        return np.where(errors <= ROUNDING * self.scale, 0.0, errors)

    def _of_ratios(self, counts: FloatArray) -> FloatArray:
        """Return the variances, by sums over clusters of the columns and of their products."""
        n_columns = self.sums.shape[1]
        firsts = [counts[:, stratum] @ self.sums[stratum] for stratum in self.strata]
        totals = np.sum(firsts, axis=0)
        variance = np.zeros(len(counts))
        with np.errstate(divide="ignore", invalid="ignore"):
            for stratum, first in zip(self.strata, firsts, strict=True):
                block = self.sums[stratum]
                products = (block[:, :, None] * block[:, None, :]).reshape(stratum.size, -1)
                seconds = (counts[:, stratum] @ products).reshape(-1, n_columns, n_columns)
                factors = np.empty_like(first)
                for index, (sign, _) in enumerate(self.parts):
                    top, bottom, size = range(3 * index, 3 * index + 3)
                    drawn, whole = first[:, size], totals[:, bottom]
                    ratio = totals[:, top] / whole
                    scale = np.where(drawn == 0, 0.0, sign * np.sqrt(drawn / (drawn - 1)) / whole)
                    mean = (first[:, top] - ratio * first[:, bottom]) / np.maximum(drawn, 1)
                    factors[:, top] = scale
                    factors[:, bottom] = -scale * ratio
                    factors[:, size] = -scale * mean
                variance += np.einsum("bk,bkl,bl->b", factors, seconds, factors)
        return np.where(np.isfinite(variance), variance, np.nan)

    def _of_row(self, row: FloatArray) -> float:
        """Return the variance of one resample, from the influences under its weights."""
        sample, n_clusters = self.sample, row.size
        weights = sample.weights * row[sample.codes]
        influence = sample.statistic.influence(weights)
        combined = np.zeros(n_clusters)
        for group, present, drawn in zip(self.groups, self.present, self.drawn, strict=True):
            rows = group.rows
            totals = np.bincount(sample.codes[rows], sample.weights[rows] * influence[rows], n_clusters)
            if group.one_class:
                own = row @ present
                if own == 1:
                    return float("nan")
                totals *= np.sqrt(bessel(own) / bessel(row @ drawn))
            for stratum in self.strata:
                counts = row[stratum] * drawn[stratum]
                size = counts.sum()
                if size == 0:
                    continue
                if size == 1:
                    return float("nan")
                centred = drawn[stratum] * (totals[stratum] - counts @ totals[stratum] / size)
                combined[stratum] += np.sqrt(bessel(size)) * centred
        return float(row @ combined**2)
