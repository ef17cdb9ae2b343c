"""Means and ratios of weighted sums."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.statistic import (
    FloatArray,
    IntArray,
    Statistic,
    as_column,
    as_weight_matrix,
    as_weights,
    group_sums,
    resampled_sums,
    weighted_sum,
)

__all__ = ["Mean", "Ratio", "quotients"]


class Ratio(Statistic):
    """Ratio of two weighted sums, ``sum(w * numerator) / sum(w * denominator)``.

    Undefined (NaN) where the weighted sum of the denominator is 0. The influence of row i is
    ``(numerator_i - ratio * denominator_i) / sum(w * denominator)``, the linearised variable of a ratio
    [1]_.

    Parameters
    ----------
    numerator, denominator : array-like of float, shape [n]
        The two columns, in any units; the ratio has the unit of their quotient.

    Raises
    ------
    InputError
        When the columns differ in length or hold a number that is not finite.

    References
    ----------
    .. [1] Särndal, Swensson and Wretman, *Model Assisted Survey Sampling*, 1992, result 5.6.2.

    Examples
    --------
    >>> ratio = Ratio([1.0, 2.0, 0.0], [2.0, 2.0, 4.0])
    >>> ratio.value([1, 1, 1])
    0.375
    >>> ratio.value([1, 1, 0])
    0.75
    >>> ratio.influence([1, 1, 1]).round(5).tolist()
    [0.03125, 0.15625, -0.1875]
    """

    def __init__(self, numerator: npt.ArrayLike, denominator: npt.ArrayLike) -> None:
        name = type(self).__name__
        self.numerator = as_column(name, "numerator", numerator)
        self.denominator = as_column(name, "denominator", denominator)
        self.n = self.numerator.size
        if self.denominator.size != self.n:
            raise InputError.argument(
                name,
                "denominator",
                f"array of shape {self.denominator.shape}",
                f"does not fit a numerator of {self.n} rows",
                "pass columns of the same length",
            )

    def value(self, weights: npt.ArrayLike) -> float:
        """Return the ratio for row weights of shape [n]."""
        w = as_weights(type(self).__name__, weights, self.n)
        total = weighted_sum(w, self.denominator)
        return weighted_sum(w, self.numerator) / total if total != 0 else float("nan")

    def values(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the ratios for a matrix of weights, shape [B, n], by two matrix products."""
        w = as_weight_matrix(type(self).__name__, weights, self.n)
        return quotients(w @ self.numerator, w @ self.denominator)

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the ratio with respect to each weight, shape [n]."""
        w = as_weights(type(self).__name__, weights, self.n)
        ratio, total = self.value(w), weighted_sum(w, self.denominator)
        if np.isnan(ratio):
            return np.full(self.n, np.nan)
        centred: FloatArray = self.numerator - ratio * self.denominator
        # The ratio is rounded, which is much beside the spread of values that are all far from 0.
        centred -= weighted_sum(w, centred) / total * self.denominator
        return centred / total

    def cluster_sums(
        self, codes: IntArray, weights: npt.ArrayLike, n_clusters: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return the weighted sums of numerator and denominator in each cluster, both of shape [C]."""
        w = as_weights(type(self).__name__, weights, self.n)
        tops = group_sums(codes, w * self.numerator, n_clusters)
        return tops, group_sums(codes, w * self.denominator, n_clusters)

    def cluster_values(self, counts: FloatArray, codes: IntArray, weights: npt.ArrayLike) -> FloatArray:
        """Return the ratios for resampled clusters, by cluster sums."""
        tops, bottoms = self.cluster_sums(codes, weights, counts.shape[1])
        return quotients(resampled_sums(counts, tops), resampled_sums(counts, bottoms))


def quotients(tops: FloatArray, bottoms: FloatArray) -> FloatArray:
    """Return quotients, NaN where the divisor is 0."""
    ratios = np.full(tops.shape, np.nan)
    np.divide(tops, bottoms, out=ratios, where=bottoms != 0)
    return ratios


class Mean(Ratio):
    """Weighted mean, ``sum(w * y) / sum(w)``; undefined (NaN) without any weight.

    Parameters
    ----------
    y : array-like of float, shape [n]
        The values; the mean has their unit and lies between the smallest and the largest.

    Raises
    ------
    InputError
        When a value is not finite.

    Examples
    --------
    >>> mean = Mean([0.0, 1.0, 1.0])
    >>> mean.value([2, 1, 1])
    0.5
    >>> mean.influence([2, 1, 1]).tolist()
    [-0.125, 0.125, 0.125]
    """

    def __init__(self, y: npt.ArrayLike) -> None:
        column = as_column("Mean", "y", y)
        super().__init__(column, np.ones(column.size))
