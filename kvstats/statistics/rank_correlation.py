"""Spearman's rank correlation, as a functional of a weighted sample."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.statistic import (
    FloatArray,
    IntArray,
    Statistic,
    as_column,
    as_weights,
    group_sums,
    weighted_sum,
)

__all__ = ["RankCorrelation"]


class RankCorrelation(Statistic):
    r"""Spearman's correlation: Pearson's correlation of weighted mid-ranks.

    With :math:`h(a, b) = 1[a < b] + \tfrac12\, 1[a = b]` and :math:`W = \sum_j w_j`, the mid-ranks are
    :math:`u_i = \sum_j w_j h(x_j, x_i) / W` and :math:`v_i` likewise from y, both with weighted mean 1/2,
    and

    .. math::

        \rho = \frac{E[uv] - 1/4}{\sqrt{(E[u^2] - 1/4)(E[v^2] - 1/4)}}, \qquad E[z] = \sum_i w_i z_i / W

    in [-1, 1]. Ties get the mean of their ranks, so that equal weights give the usual coefficient. Undefined
    (NaN) where x or y takes one value only among rows with weight.

    The influence takes into account that the ranks depend on the weights too:
    :math:`\partial u_k / \partial w_i = (h(x_i, x_k) - u_k) / W`. The sums over k come from cumulative sums
    in sorted order, O(n log n).

    Parameters
    ----------
    x, y : array-like of float, shape [n]
        The two columns, in any units.

    Raises
    ------
    InputError
        When a value is not finite or the lengths differ.

    References
    ----------
    .. [1] Borkowf, Computational Statistics & Data Analysis 39, 2002, for the variance of the coefficient
       from the same expansion.

    Examples
    --------
    >>> rho = RankCorrelation([1, 2, 3, 4], [1, 3, 2, 9])
    >>> round(rho.value([1, 1, 1, 1]), 12)
    0.8
    >>> rho.value([1, 0, 0, 0])
    nan
    """

    def __init__(self, x: npt.ArrayLike, y: npt.ArrayLike) -> None:
        first = as_column("RankCorrelation", "x", x)
        second = as_column("RankCorrelation", "y", y)
        if first.size != second.size:
            raise InputError.argument(
                "RankCorrelation",
                "y",
                f"array of shape {second.shape}",
                f"does not fit an x of {first.size} rows",
                "pass columns of the same length",
            )
        self.n = first.size
        self._x: IntArray = np.unique(first, return_inverse=True)[1]
        self._y: IntArray = np.unique(second, return_inverse=True)[1]

    def _moments(self, w: FloatArray) -> tuple[FloatArray, FloatArray, float, float, float] | None:
        """Return the centred mid-ranks and their three moments, None where they have no spread."""
        used = w > 0
        if not used.any() or np.ptp(self._x[used]) == 0 or np.ptp(self._y[used]) == 0:
            return None
        total = w.sum()
        a, b = (half_below(codes, w) / total - 0.5 for codes in (self._x, self._y))
        ab, aa, bb = (weighted_sum(w, one * other) / total for one, other in ((a, b), (a, a), (b, b)))
        return a, b, ab, aa, bb

    def value(self, weights: npt.ArrayLike) -> float:
        """Return the coefficient for row weights of shape [n]."""
        moments = self._moments(as_weights("RankCorrelation", weights, self.n))
        if moments is None:
            return float("nan")
        _, _, ab, aa, bb = moments
        return float(np.clip(ab / np.sqrt(aa * bb), -1, 1))

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the coefficient with respect to each weight, shape [n]."""
        w = as_weights("RankCorrelation", weights, self.n)
        moments = self._moments(w)
        if moments is None:
            return np.full(self.n, np.nan)
        a, b, ab, aa, bb = moments
        total = w.sum()

        def derivative(first: FloatArray, second: FloatArray, moment: float, ranks: FloatArray) -> FloatArray:
            # Its own term, the ranks' response, and the change of both ranks' means.
            return np.asarray((first * second - 3 * moment + ranks / total) / total)

        d_ab = derivative(a, b, ab, half_above(self._x, w * b) + half_above(self._y, w * a))
        d_aa = derivative(a, a, aa, 2 * half_above(self._x, w * a))
        d_bb = derivative(b, b, bb, 2 * half_above(self._y, w * b))
        rho = ab / np.sqrt(aa * bb)
        return np.asarray(d_ab / np.sqrt(aa * bb) - rho / 2 * (d_aa / aa + d_bb / bb))


def half_below(codes: IntArray, mass: FloatArray) -> FloatArray:
    """Return for each row i the sum of the mass of rows k with ``codes[k] < codes[i]``, ties one half."""
    masses = group_sums(codes, mass, 0)
    return np.asarray((np.cumsum(masses) - masses / 2)[codes])


def half_above(codes: IntArray, mass: FloatArray) -> FloatArray:
    """Return for each row i the sum of the mass of rows k with ``codes[k] > codes[i]``, ties one half."""
    return np.asarray(mass.sum() - half_below(codes, mass))
