"""Area under the receiver operating characteristic, as a functional of a weighted sample."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.statistic import FloatArray, Statistic, as_column, as_weights, group_sums

__all__ = ["AUC"]


class AUC(Statistic):
    r"""Weighted Mann-Whitney probability that a positive row scores above a negative one.

    .. math::

        A = \frac{\sum_{i \in +} \sum_{j \in -} w_i w_j h(s_j, s_i)}{\sum_{i \in +} w_i \sum_{j \in -} w_j},
        \qquad h(a, b) = 1[a < b] + \tfrac12\, 1[a = b]

    in [0, 1], 0.5 without any discrimination. Undefined (NaN) where either class has no weight. The
    influence of a positive row is ``(F_i - A) / W+``, with F_i the weighted share of negatives below it
    (ties one half), and likewise for a negative row: the structural components of [1]_. O(n log n).

    Parameters
    ----------
    score : array-like of float, shape [n]
        The signal.
    label : array-like of bool, shape [n]
        True for the positive class; 0 and 1 are accepted.

    Raises
    ------
    InputError
        When a score is not finite, a label is neither 0 nor 1, or the lengths differ.

    References
    ----------
    .. [1] DeLong, DeLong and Clarke-Pearson, Biometrics 44, 1988, equations 4 and 5.

    Examples
    --------
    >>> auc = AUC([0.1, 0.4, 0.4, 0.8], [False, False, True, True])
    >>> auc.value([1, 1, 1, 1])
    0.875
    >>> auc.value([1, 1, 0, 0])
    nan
    """

    def __init__(self, score: npt.ArrayLike, label: npt.ArrayLike) -> None:
        column = as_column("AUC", "score", score)
        labels = as_column("AUC", "label", label)
        if labels.size != column.size:
            raise InputError.argument(
                "AUC",
                "label",
                f"array of shape {labels.shape}",
                f"does not fit a score of {column.size} rows",
                "pass columns of the same length",
            )
        other = labels[(labels != 0) & (labels != 1)]
        if other.size:
            raise InputError.argument("AUC", "label", float(other[0]), "is no class", "pass True or False")
        self.n = column.size
        self._label = labels
        levels, codes = np.unique(column, return_inverse=True)
        self._n_levels = levels.size
        self._codes = codes

    def _masses(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the weight of the positives and of the negatives at each distinct score."""
        positives = group_sums(self._codes, weights * self._label, self._n_levels)
        negatives = group_sums(self._codes, weights * (1 - self._label), self._n_levels)
        return positives, negatives

    def value(self, weights: npt.ArrayLike) -> float:
        """Return the area for row weights of shape [n]."""
        positives, negatives = self._masses(as_weights("AUC", weights, self.n))
        pairs = positives.sum() * negatives.sum()
        if pairs == 0:
            return float("nan")
        return float(positives @ (np.cumsum(negatives) - negatives / 2) / pairs)

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the area with respect to each weight, shape [n]."""
        w = as_weights("AUC", weights, self.n)
        positives, negatives = self._masses(w)
        positive, negative = positives.sum(), negatives.sum()
        if positive * negative == 0:
            return np.full(self.n, np.nan)
        area = self.value(w)
        below = (np.cumsum(negatives) - negatives / 2) / negative
        above = (positive - np.cumsum(positives) + positives / 2) / positive
        changes: FloatArray = np.where(
            self._label == 1,
            (below[self._codes] - area) / positive,
            (above[self._codes] - area) / negative,
        )
        return changes
