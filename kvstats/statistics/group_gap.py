"""The gap between two sets of groups: the lowest mean of one minus the highest of the other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.auc_columns import as_strata
from kvstats.statistics.statistic import (
    FloatArray,
    IntArray,
    Statistic,
    as_column,
    as_weights,
    group_sums,
    weighted_sum,
)

__all__ = ["GroupGap"]


class GroupGap(Statistic):
    r"""Lowest mean of the upper groups minus the highest mean of the lower ones.

    .. math::

        \Delta = \min_{g \in U} m_g - \max_{g \in L} m_g, \qquad m_g = \frac{\sum_g w y}{\sum_g w}

    in the unit of y: above 0 where a threshold exists that all means of U exceed and all of L do not.
    Standardised, it is divided by the pooled standard deviation within groups,
    :math:`s^2 = \sum_g \sum_g w (y - m_g)^2 / \sum w`, and has no unit. Undefined (NaN) where a group has no
    weight, or, standardised, where no group has spread.

    The influence is that of the two groups that attain the extremes; where two means of one side are nearly
    equal the minimum lies below each of them, so that the gap is too small rather than too large.

    Parameters
    ----------
    y : array-like of float, shape [n]
        The values.
    group : array-like of str or number, shape [n]
        Group of each row.
    upper : sequence of str or number
        Names of the upper groups; all others are lower ones.
    standardised : bool, default False
        Whether to divide by the standard deviation within groups.

    Raises
    ------
    InputError
        When a value is not finite, a group is null, the lengths differ, or a side has no group.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", separation of task means by D.

    Examples
    --------
    >>> gap = GroupGap([0.02, 0.04, 0.09, 0.11, 0.2], ["a", "a", "b", "b", "c"], ["b", "c"])
    >>> round(gap.value(np.ones(5)), 12)
    0.07
    """

    def __init__(
        self,
        y: npt.ArrayLike,
        group: npt.ArrayLike,
        upper: npt.ArrayLike,
        *,
        standardised: bool = False,
    ) -> None:
        self._y = as_column("GroupGap", "y", y)
        self.n = self._y.size
        self._group, self.n_groups = as_strata("GroupGap", "group", group, self.n)
        self.classes = self._group
        self._standardised = standardised
        names = np.asarray(group)
        above = np.isin(names, np.asarray(upper))
        self._upper = group_sums(self._group, above.astype(np.float64), self.n_groups) > 0
        if self.n and (self._upper.all() or not self._upper.any()):
            raise InputError.argument(
                "GroupGap",
                "upper",
                sorted(map(str, np.atleast_1d(upper))),
                "leaves one side without a group",
                f"name some, not all, of {sorted(set(map(str, names)))}",
            )

    def _gaps(self, sums: FloatArray, masses: FloatArray, squares: FloatArray) -> FloatArray:
        """Return the gap of each row of weighted sums by group, all of shape [B, G]."""
        means = np.full(sums.shape, np.nan)
        np.divide(sums, masses, out=means, where=masses > 0)
        gaps: FloatArray = means[:, self._upper].min(1) - means[:, ~self._upper].max(1)
        if not self._standardised:
            return gaps
        variance = (squares - masses * means**2).sum(1) / masses.sum(1)
        # Rounding of the sums is all that is left where no group has spread.
        spread = variance > 1e-14 * (squares.sum(1) / masses.sum(1))
        scaled = np.full(gaps.shape, np.nan)
        np.divide(gaps, np.sqrt(np.where(spread, variance, 1.0)), out=scaled, where=spread)
        return scaled

    def _sums(self, w: FloatArray, power: int) -> FloatArray:
        """Return the weighted sum of a power of y in each group."""
        return group_sums(self._group, w * self._centred**power, self.n_groups)

    @property
    def _centred(self) -> FloatArray:
        """The values less their plain mean, so that squares lose no digits to a common offset."""
        return self._y - self._y.mean() if self.n else self._y

    def value(self, weights: npt.ArrayLike) -> float:
        """Return the gap for row weights of shape [n]."""
        w = as_weights("GroupGap", weights, self.n)
        if self.n == 0:
            return float("nan")
        sums, masses, squares = (self._sums(w, power)[None] for power in (1, 0, 2))
        return float(self._gaps(sums, masses, squares)[0])

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the gap with respect to each weight, shape [n]."""
        w = as_weights("GroupGap", weights, self.n)
        value = self.value(w)
        if np.isnan(value):
            return np.full(self.n, np.nan)
        masses = self._sums(w, 0)
        means = self._sums(w, 1) / masses
        lowest = first_lowest(np.where(self._upper, means, np.inf))
        highest = first_lowest(np.where(self._upper, np.inf, -means))
        away = self._centred - means[self._group]
        sign = (self._group == lowest).astype(np.float64) - (self._group == highest)
        of_gap: FloatArray = sign * away / masses[self._group]
        if not self._standardised:
            return of_gap
        variance = weighted_sum(w, away**2) / float(w.sum())
        of_variance = (away**2 - variance) / w.sum()
        return np.asarray(of_gap / np.sqrt(variance) - value / (2 * variance) * of_variance)

    def cluster_values(self, counts: FloatArray, codes: IntArray, weights: npt.ArrayLike) -> FloatArray:
        """Return the gaps for resampled clusters, by the sums of each group in each cluster."""
        w = as_weights("GroupGap", weights, self.n)
        n_clusters = counts.shape[1]
        cells = codes * self.n_groups + self._group

        def resampled(power: int) -> FloatArray:
            sums = group_sums(cells, w * self._centred**power, n_clusters * self.n_groups)
            return np.asarray(np.einsum("bc,cg->bg", counts, sums.reshape(n_clusters, self.n_groups)))

        return self._gaps(resampled(1), resampled(0), resampled(2))


def first_lowest(means: FloatArray) -> int:
    """Return the first of the lowest means; those that differ by rounding, as in another order, are equal."""
    lowest = means.min()
    return int(np.argmax(means <= lowest + 1e-12 * max(abs(lowest), 1.0)))
