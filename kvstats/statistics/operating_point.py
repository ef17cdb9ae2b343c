"""Operating points: what a threshold finds at a fixed false-alarm rate, and where it lies."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.auc_curve import DescendingLevels, smoothing_width
from kvstats.statistics.statistic import FloatArray, Statistic, as_column, as_weights, weighted_sum

__all__ = ["OperatingThreshold", "TruePositiveRate"]

ROUNDING = 1e-12
"""Shares of the negatives that differ by no more are equal."""


class TruePositiveRate(Statistic):
    r"""Share of the positives that are found at a fixed false-alarm rate.

    .. math:: T(\alpha) = F^+(q) + \theta\, P^+(q)

    with q the score level at which the share of negatives reaches :math:`\alpha` from the top,
    :math:`F^+(q)` the share of positives above it, :math:`P^+(q)` at it, and :math:`\theta` the part of the
    level that fills the share up to :math:`\alpha`: the receiver operating characteristic at
    :math:`\alpha`, linear between its points, and the upper end where it steps there. In [0, 1]. Undefined
    (NaN) where either class has no weight.

    The influence adds to the spread of the positives that of the threshold, times the slope of the curve at
    :math:`\alpha`. The step of an empirical curve is no estimate of its slope, and so a difference over
    :math:`\alpha \pm h` is taken, with h of `smoothing_width`. It is therefore the derivative of a smoothed
    curve; the bootstrap needs no slope.

    Parameters
    ----------
    score : array-like of float, shape [n]
        The signal; runs at or above the threshold are flagged.
    label : array-like of bool, shape [n]
        True for the positive class; 0 and 1 are accepted.
    false_alarm_rate : float
        The share of negatives to be flagged, in (0, 1).

    Raises
    ------
    InputError
        When the rate is not in (0, 1), a score is not finite, a label is neither 0 nor 1, or the lengths
        differ.

    References
    ----------
    .. [1] Hsieh and Turnbull, Annals of Statistics 24, 1996, theorem 2.2, for the variance.

    Examples
    --------
    >>> found = TruePositiveRate([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], 0.25)
    >>> found.value([1, 1, 1, 1])
    0.5
    """

    def __init__(self, score: npt.ArrayLike, label: npt.ArrayLike, false_alarm_rate: float) -> None:
        self.false_alarm_rate = open_rate("TruePositiveRate", false_alarm_rate)
        self._levels = DescendingLevels("TruePositiveRate", score, label)
        self.n = self._levels.n

    def value(self, weights: npt.ArrayLike) -> float:
        """Return the true-positive rate for row weights of shape [n]."""
        positives, negatives = self._levels.masses(as_weights("TruePositiveRate", weights, self.n))
        if not (positives.any() and negatives.any()):
            return float("nan")
        return curve_at(positives, negatives, self.false_alarm_rate)

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the smoothed rate with respect to each weight, shape [n]."""
        w = as_weights("TruePositiveRate", weights, self.n)
        positives, negatives = self._levels.masses(w)
        if not (positives.any() and negatives.any()):
            return np.full(self.n, np.nan)
        rate = self.false_alarm_rate
        width = smoothing_width(rate, w[~self._levels.positive])
        low, high = max(rate - width, 0.0), min(rate + width, 1.0)
        slope = (curve_at(positives, negatives, high) - curve_at(positives, negatives, low)) / (high - low)
        flagged = flagged_share(negatives, rate)
        of_positive = (flagged - weighted_sum(positives, flagged) / positives.sum()) / positives.sum()
        of_negative = (
            -slope * (flagged - weighted_sum(negatives, flagged) / negatives.sum()) / negatives.sum()
        )
        codes = self._levels.codes
        return np.asarray(np.where(self._levels.positive, of_positive[codes], of_negative[codes]))


class OperatingThreshold(Statistic):
    r"""Lowest score level at or above which at most a given share of the negatives lies.

    .. math:: t = \min \{x \in \text{scores} : \sum_{j \in -} w_j 1[s_j \ge x] \le \alpha W^-\}

    in the unit of the score. Undefined (NaN) where the negatives have no weight, or so many share the highest
    score that no level keeps to the rate.

    Its influence is that of the quantile of the negatives, with the density estimated over
    :math:`\alpha \pm h`; see `TruePositiveRate`. It is 0 where the quantiles there are equal.

    Parameters
    ----------
    score : array-like of float, shape [n]
        The signal; runs at or above the threshold are flagged.
    label : array-like of bool, shape [n]
        True for the positive class; 0 and 1 are accepted. The positives only add levels.
    false_alarm_rate : float
        The largest share of negatives to be flagged, in (0, 1).
    flagged : {"high", "low"}, default "high"
        Which runs are flagged. With ``low`` it is the highest level at or below which at most the share of
        the negatives lies.

    Raises
    ------
    InputError
        When the rate is not in (0, 1), `flagged` is not known, a score is not finite, a label is neither 0
        nor 1, or the lengths differ.

    References
    ----------
    .. [1] Koenker, *Quantile Regression*, 2005, section 3.2.

    Examples
    --------
    >>> OperatingThreshold([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], 0.25).value([1, 1, 1, 1])
    0.8
    >>> OperatingThreshold([0.1, 0.4, 0.35, 0.4], [0, 0, 1, 1], 0.25).value([1, 1, 1, 1])
    nan
    """

    def __init__(
        self,
        score: npt.ArrayLike,
        label: npt.ArrayLike,
        false_alarm_rate: float,
        *,
        flagged: Literal["high", "low"] = "high",
    ) -> None:
        self.false_alarm_rate = open_rate("OperatingThreshold", false_alarm_rate)
        if flagged not in ("high", "low"):
            raise InputError.argument(
                "OperatingThreshold", "flagged", flagged, "is not known", "pass 'high' or 'low'"
            )
        self._sign = 1.0 if flagged == "high" else -1.0
        column = self._sign * as_column("OperatingThreshold", "score", score)
        self._levels = DescendingLevels("OperatingThreshold", column, label)
        self.n = self._levels.n

    def value(self, weights: npt.ArrayLike) -> float:
        """Return the threshold for row weights of shape [n]."""
        w = as_weights("OperatingThreshold", weights, self.n)
        positives, negatives = self._levels.masses(w)
        held = (positives > 0) | (negatives > 0)
        return self._sign * level_within(self._levels.scores[held], negatives[held], self.false_alarm_rate)

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the smoothed threshold with respect to each weight, shape [n]."""
        w = as_weights("OperatingThreshold", weights, self.n)
        if np.isnan(self.value(w)):
            return np.full(self.n, np.nan)
        negatives = self._levels.masses(w)[1]
        rate = self.false_alarm_rate
        width = smoothing_width(rate, w[~self._levels.positive])
        low, high = max(rate - width, 0.0), min(rate + width, 1.0)
        held = negatives > 0
        shares = np.cumsum(negatives[held]) / negatives.sum()
        ends = np.minimum(np.searchsorted(shares, [low, high]), shares.size - 1)
        upper, lower = self._levels.scores[held][ends]
        sparsity = self._sign * float(upper - lower) / (high - low)
        flagged = flagged_share(negatives, rate)
        of_negative = (
            sparsity * (flagged - weighted_sum(negatives, flagged) / negatives.sum()) / negatives.sum()
        )
        return np.where(self._levels.positive, 0.0, of_negative[self._levels.codes])


def open_rate(function: str, rate: float) -> float:
    """Return a rate strictly between 0 and 1, or raise `InputError`."""
    if not 0 < float(rate) < 1:
        raise InputError.argument(
            function, "false_alarm_rate", rate, "is not between 0 and 1", "pass a share such as 0.1"
        )
    return float(rate)


def flagged_share(negatives: FloatArray, rate: float) -> FloatArray:
    """Return the part of each level, from the highest down, that is flagged when a share of negatives is."""
    ends = np.cumsum(negatives)
    start, width = (ends - negatives) / ends[-1], negatives / ends[-1]
    step = (start <= rate + ROUNDING).astype(np.float64)
    inside = np.clip((rate - start) / np.where(width > 0, width, 1.0), 0.0, 1.0)
    return np.asarray(np.where(width > 0, inside, step))


def curve_at(positives: FloatArray, negatives: FloatArray, rate: float) -> float:
    """Return the receiver operating characteristic at a false-alarm rate, linear between its points."""
    return weighted_sum(positives, flagged_share(negatives, rate)) / float(positives.sum())


def level_within(scores: FloatArray, negatives: FloatArray, rate: float) -> float:
    """Return the lowest of descending scores down to which no more than a share of the negatives lies."""
    ends = np.cumsum(negatives)
    if ends.size == 0 or ends[-1] == 0:
        return float("nan")
    within = int(np.searchsorted(ends / ends[-1], rate + ROUNDING, side="right"))
    return float(scores[within - 1]) if within else float("nan")
