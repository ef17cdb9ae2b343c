"""Means that depend on which rows have the highest signal: re-run the top share, compare terciles."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.auc_columns import as_rate
from kvstats.statistics.ranked_rows import RankedRows
from kvstats.statistics.ratios import Mean, Ratio, quotients
from kvstats.statistics.statistic import (
    FloatArray,
    IntArray,
    as_weights,
    group_sums,
    resampled_sums,
    weighted_sum,
)

__all__ = ["BandMean", "TopShareMean"]

ROUNDING = 1e-12
"""Parts of rows below it are 0: shares such as 1/3 are rounded."""


class TopShareMean(RankedRows):
    r"""Mean of one outcome over the rows of the highest signal, and of another over the rest.

    .. math:: \theta = \frac{\sum_i w_i \{a_i\, y_i + (1 - a_i)\, x_i\}}{\sum_i w_i}

    with :math:`a_i` the part of row i that belongs to the top share c of its stratum: what a system attains
    that has outcome x everywhere and may re-run a share of its inputs, for outcome y. In the unit of the
    outcomes. Undefined (NaN) without any weight. The limit is a function of the weights: bootstrap
    replicates refit it, and the influence allows for its being estimated. `held_fixed` does neither.

    Parameters
    ----------
    signal : array-like of float, shape [n]
        The signal; the highest are re-run first.
    inside, outside : array-like of float, shape [n]
        Outcome of each row when it is re-run, y, and when it is not, x.
    share : float
        The share c of the weight that is re-run, in [0, 1].
    stratum : array-like of str or number, shape [n], optional
        Re-run the share of each stratum, rather than of all rows.

    Raises
    ------
    InputError
        When a value is not finite, the share is not in [0, 1], a stratum is null, or the lengths differ.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", table 4.

    Examples
    --------
    >>> gated = TopShareMean([0.9, 0.1, 0.7, 0.2], [1.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0], 0.25)
    >>> gated.value([1, 1, 1, 1])
    0.5
    """

    def __init__(
        self,
        signal: npt.ArrayLike,
        inside: npt.ArrayLike,
        outside: npt.ArrayLike,
        share: float,
        stratum: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(signal, stratum)
        self.share = as_rate("TopShareMean", "share", share, least_included=True)
        self._outside = self._column("outside", outside)
        self._gain = self._column("inside", inside) - self._outside

    def value(self, weights: npt.ArrayLike) -> float:
        """Return the mean for row weights of shape [n]."""
        w = as_weights("TopShareMean", weights, self.n)
        total = float(w.sum())
        if not total > 0:
            return float("nan")
        return weighted_sum(w, self._outside + self._selected(w, self.share) * self._gain) / total

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the smoothed mean with respect to each weight, shape [n]."""
        w = as_weights("TopShareMean", weights, self.n)
        total = float(w.sum())
        if not total > 0:
            return np.full(self.n, np.nan)
        gained = self._total_influence(w, self._gain, self.share)
        return np.asarray((self._outside + gained - self.value(w)) / total)

    def cluster_values(self, counts: FloatArray, codes: IntArray, weights: npt.ArrayLike) -> FloatArray:
        """Return the means for resampled clusters, each with its own limit; rows are sorted once for all."""
        w = as_weights("TopShareMean", weights, self.n)
        gained, totals = self._resampled_sums(counts, codes, w, self._gain, self.share).T
        outside = resampled_sums(counts, group_sums(codes, w * self._outside, counts.shape[1]))
        return quotients(outside + gained, totals)

    def held_fixed(self, weights: npt.ArrayLike) -> Mean:
        """Return the mean with the rows that are re-run under given weights, whatever the weights later."""
        w = as_weights("TopShareMean", weights, self.n)
        return Mean(self._outside + self._selected(w, self.share) * self._gain)


class BandMean(RankedRows):
    r"""Mean of an outcome over the rows whose rank by a signal lies in a band, such as the top third.

    .. math:: \theta = \frac{\sum_i w_i\, a_i\, y_i}{\sum_i w_i\, a_i}

    with :math:`a_i` the part of row i that lies between the top shares `low` and `high` of its stratum, so
    that each stratum counts by its weight. In the unit of the outcome, and between its extremes. Undefined
    (NaN) without any weight. As in `TopShareMean`, the limits are functions of the weights.

    Parameters
    ----------
    signal : array-like of float, shape [n]
        The signal.
    y : array-like of float, shape [n]
        The outcome.
    low, high : float
        The band, as shares from the highest signal down: 0 and 1/3 for the top tercile.
    stratum : array-like of str or number, shape [n], optional
        Rank within strata, rather than all rows.

    Raises
    ------
    InputError
        When a value is not finite, the shares are not 0 <= low < high <= 1, a stratum is null, or the
        lengths differ.

    Examples
    --------
    >>> top = BandMean([0.9, 0.1, 0.7, 0.2], [1.0, 0.0, 1.0, 1.0], 0.0, 0.5)
    >>> top.value([1, 1, 1, 1])
    1.0
    """

    def __init__(
        self,
        signal: npt.ArrayLike,
        y: npt.ArrayLike,
        low: float,
        high: float,
        stratum: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(signal, stratum)
        if not 0 <= low < high <= 1:
            raise InputError.argument(
                "BandMean", "low", low, f"is not in [0, high={high!r}), or high above 1", "pass 0 and 1/3"
            )
        self.low, self.high = float(low), float(high)
        self._y = self._column("y", y)

    def membership(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the part of each row that lies in the band, shape [n], in [0, 1]."""
        w = as_weights("BandMean", weights, self.n)
        inside = self._selected(w, self.high) - self._selected(w, self.low)
        return np.where(inside > ROUNDING, inside, 0.0)

    def value(self, weights: npt.ArrayLike) -> float:
        """Return the mean for row weights of shape [n]."""
        w = as_weights("BandMean", weights, self.n)
        total = (self.high - self.low) * float(w.sum())
        return weighted_sum(w, self.membership(w) * self._y) / total if total > 0 else float("nan")

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the smoothed mean with respect to each weight, shape [n]."""
        w = as_weights("BandMean", weights, self.n)
        width = self.high - self.low
        total = float(w.sum())
        if not total > 0:
            return np.full(self.n, np.nan)
        upper = self._total_influence(w, self._y, self.high)
        lower = self._total_influence(w, self._y, self.low)
        return np.asarray(((upper - lower) / width - self.value(w)) / total)

    def cluster_values(self, counts: FloatArray, codes: IntArray, weights: npt.ArrayLike) -> FloatArray:
        """Return the means for resampled clusters, each with its own limits; rows are sorted once for all."""
        w = as_weights("BandMean", weights, self.n)
        lower, upper, totals = self._resampled_sums(counts, codes, w, self._y, self.low, self.high).T
        return quotients(upper - lower, (self.high - self.low) * totals)

    def held_fixed(self, weights: npt.ArrayLike) -> Ratio:
        """Return the mean with the rows that are in the band under given weights, whatever those later."""
        inside = self.membership(weights)
        return Ratio(inside * self._y, inside)
