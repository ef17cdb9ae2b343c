"""Partial area under the receiver operating characteristic, as a functional of a weighted sample."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.auc_columns import as_rate
from kvstats.statistics.auc_curve import DescendingLevels
from kvstats.statistics.statistic import FloatArray, Statistic, as_weights, weighted_sum

__all__ = ["PartialAUC"]

ROUNDING = 1e-12
"""False-alarm rates that differ by no more are equal."""


class PartialAUC(Statistic):
    r"""Area under the receiver operating characteristic between two false-alarm rates, standardised.

    With T(f) the true-positive rate at the false-alarm rate f, linear across ties,

    .. math::

        P = \int_a^b T(f)\, df, \qquad
        S = \frac12\left(1 + \frac{P - (b^2 - a^2)/2}{(b - a) - (b^2 - a^2)/2}\right).

    S is 0.5 without any discrimination and 1 under perfect separation, whatever a and b. It is at least 0
    where a + b <= 1; beyond, a signal that points the wrong way can fall below. Undefined (NaN) where either
    class has no weight.

    P is a mean over the positives of the length of [a, b] in which a row is found; its influence adds how
    that length moves with the false-alarm rates of the levels. Where a bound of the range falls on a step of
    the curve the two one-sided derivatives differ, and their mean is taken. O(n log n) to prepare, O(n) for
    each vector of weights.

    Parameters
    ----------
    score : array-like of float, shape [n]
        The signal.
    label : array-like of bool, shape [n]
        True for the positive class; 0 and 1 are accepted.
    low, high : float
        The range [a, b] of false-alarm rates, 0 <= low < high <= 1.
    standardised : bool, default True
        Return S, else the plain area P, in [0, high - low].

    Raises
    ------
    InputError
        When the range is empty, a score is not finite, a label is neither 0 nor 1, or the lengths differ.

    Notes
    -----
    For a range of true-positive rates [c, d] pass ``-score`` and ``1 - label`` with low ``1 - d`` and high
    ``1 - c``: it turns the curve about its other diagonal.

    References
    ----------
    .. [1] McClish, Medical Decision Making 9, 1989.

    Examples
    --------
    >>> partial = PartialAUC([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], 0.0, 0.5)
    >>> round(partial.value([1, 1, 1, 1]), 6)
    0.666667
    >>> PartialAUC([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], 0.0, 0.5, standardised=False).value([1, 1, 1, 1])
    0.25
    """

    def __init__(
        self,
        score: npt.ArrayLike,
        label: npt.ArrayLike,
        low: float,
        high: float,
        *,
        standardised: bool = True,
    ) -> None:
        self.low = as_rate("PartialAUC", "low", low, least_included=True)
        self.high = as_rate("PartialAUC", "high", high)
        if not self.low < self.high:
            raise InputError.argument(
                "PartialAUC", "high", high, f"is not above low={low!r}", "pass a range such as 0.0 to 0.1"
            )
        self._levels = DescendingLevels("PartialAUC", score, label)
        self.n = self._levels.n
        chance = (self.high**2 - self.low**2) / 2
        self._scale = 0.5 / (self.high - self.low - chance) if standardised else 1.0
        self._shift = 0.5 - chance * self._scale if standardised else 0.0

    def value(self, weights: npt.ArrayLike) -> float:
        """Return the partial area for row weights of shape [n]."""
        positives, negatives = self._levels.masses(as_weights("PartialAUC", weights, self.n))
        if not (positives.any() and negatives.any()):
            return float("nan")
        share = found_share(negatives, self.high)[0] - found_share(negatives, self.low)[0]
        return float(self._shift + self._scale * weighted_sum(positives, share) / positives.sum())

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the partial area with respect to each weight, shape [n]."""
        positives, negatives = self._levels.masses(as_weights("PartialAUC", weights, self.n))
        if not (positives.any() and negatives.any()):
            return np.full(self.n, np.nan)
        above, below = found_share(negatives, self.high), found_share(negatives, self.low)
        share, by_start, by_end = (x - y for x, y in zip(above, below, strict=True))
        positive, negative = positives.sum(), negatives.sum()
        # What moving the false-alarm rate at the end of each level does to the area.
        weight = positives / positive
        move = weight * by_end + np.append((weight * by_start)[1:], 0.0)
        rates = np.cumsum(negatives) / negative
        of_negative = (np.cumsum(move[::-1])[::-1] - weighted_sum(move, rates)) / negative
        of_positive = (share - weighted_sum(weight, share)) / positive
        codes = self._levels.codes
        return np.asarray(
            self._scale * np.where(self._levels.positive, of_positive[codes], of_negative[codes])
        )


def found_share(negatives: FloatArray, rate: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return for each level the length of false-alarm rates up to `rate` at which its positives are found.

    A level that spans the rates from a to b is found with a probability that rises linearly between them.
    Also return the derivatives of the length with respect to a and b.
    """
    ends = np.cumsum(negatives)
    start, end = (ends - negatives) / ends[-1], ends / ends[-1]
    width = end - start
    wide = np.where(width > 0, width, 1.0)
    inside = np.clip((rate - start) / wide, 0.0, 1.0)
    step = width == 0
    past = np.where(np.abs(rate - start) <= ROUNDING, 0.5, rate > start)
    part = np.where(step, past, inside)
    length = np.where(step | (rate > end), np.maximum(rate - (start + end) / 2, 0.0), width * inside**2 / 2)
    return length, -part * (1 - part / 2) * ~step - step * part / 2, -(part**2) / 2 * ~step - step * part / 2
