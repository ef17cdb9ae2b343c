"""Area under the receiver operating characteristic within strata, so that scales never mix."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from kvstats.statistics.auc_columns import as_classes, as_strata, level_codes
from kvstats.statistics.auc_resampling import SortedPairs
from kvstats.statistics.statistic import FloatArray, IntArray, Statistic, as_weights, group_sums, weighted_sum

__all__ = ["StratifiedAUC"]


class StratifiedAUC(Statistic):
    r"""Weighted probability that a positive row scores above a negative one of the same stratum.

    .. math::

        A = \frac{\sum_s \sum_{i \in +_s} \sum_{j \in -_s} w_i w_j h(x_j, x_i)}{\sum_s W^+_s W^-_s},
        \qquad h(a, b) = 1[a < b] + \tfrac12\, 1[a = b]

    in [0, 1]: the mean of the areas of the strata, each weighted by its number of pairs. Scores are never
    compared across strata. A stratum with rows of one class only has no pairs and adds nothing; how many
    there are is counted by `one_class_strata`. Undefined (NaN) where no stratum has both classes.

    The influence of a positive row of stratum s is :math:`(B_i - A W^-_s) / \sum_s W^+_s W^-_s`, with B_i the
    weight of the negatives of its stratum below it (ties one half), and likewise for a negative row.
    O(n log n) to prepare, O(n) for each vector of weights.

    Parameters
    ----------
    score : array-like of float, shape [n]
        The signal, on a scale that may differ between strata.
    label : array-like of bool, shape [n]
        True for the positive class; 0 and 1 are accepted.
    stratum : array-like of str or number, shape [n]
        Which stratum each row belongs to.

    Attributes
    ----------
    n : int
        Number of rows.
    n_strata : int
        Number of strata.

    Raises
    ------
    InputError
        When a score is not finite, a label is neither 0 nor 1, a stratum is null, or the lengths differ.

    References
    ----------
    .. [1] Mann and Whitney, Annals of Mathematical Statistics 18, 1947.
    .. [2] DeLong, DeLong and Clarke-Pearson, Biometrics 44, 1988, equations 4 and 5, for the influence of
       one stratum.

    Examples
    --------
    Within each of the two models the signal separates perfectly; pooled it would not:

    >>> score, label, model = [0.1, 0.4, 10.0, 40.0, 7.0], [0, 1, 0, 1, 1], ["a", "a", "b", "b", "c"]
    >>> area = StratifiedAUC(score, label, model)
    >>> area.value(np.ones(5))
    1.0
    >>> area.n_strata, area.one_class_strata(np.ones(5))
    (3, 1)
    """

    def __init__(self, score: npt.ArrayLike, label: npt.ArrayLike, stratum: npt.ArrayLike) -> None:
        name = type(self).__name__
        column, labels = as_classes(name, score, label)
        strata, n_strata = as_strata(name, "stratum", stratum, column.size)
        self._prepare(column, labels, strata, n_strata)

    def _prepare(
        self, column: FloatArray, labels: FloatArray, strata: IntArray | None, n_strata: int
    ) -> None:
        """Sort and number the levels of each stratum; None stands for a single stratum."""
        self.n = column.size
        self.n_strata = n_strata
        self._label = labels
        self.classes = labels.astype(np.int64)
        self._order, self._codes = level_codes(column, strata)
        n_levels = int(self._codes.max(initial=-1)) + 1
        self._stratum = np.zeros(n_levels, dtype=np.int64)
        if strata is not None:
            self._stratum[self._codes] = strata

    @cached_property
    def _pairs(self) -> SortedPairs:
        """What all resamples share."""
        return SortedPairs.of(self._order, self._codes, self._label == 1, self._stratum)

    def _masses(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the weight of the positives and of the negatives at each level."""
        n_levels = self._stratum.size
        positives = group_sums(self._codes, weights * self._label, n_levels)
        negatives = group_sums(self._codes, weights * (1 - self._label), n_levels)
        return positives, negatives

    def _below(self, masses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mass below each level within its stratum, own level one half, and the strata's sums."""
        sums = group_sums(self._stratum, masses, self.n_strata)
        if self.n_strata <= 1:
            return np.cumsum(masses) - masses / 2, sums
        # Each stratum is given a sum of 1: running sums of raw masses would drown a light one in a heavy one.
        scale = np.where(sums > 0, sums, 1.0)[self._stratum]
        shares = masses / scale
        through = np.cumsum(shares)
        first = np.flatnonzero(np.diff(self._stratum, prepend=-1))
        before = np.zeros(self.n_strata)
        before[self._stratum[first]] = np.concatenate([[0.0], through])[first]
        return (through - before[self._stratum] - shares / 2) * scale, sums

    def value(self, weights: npt.ArrayLike) -> float:
        """Return the area for row weights of shape [n]; NaN without any pair of both classes."""
        positives, negatives = self._masses(as_weights(type(self).__name__, weights, self.n))
        below, negative = self._below(negatives)
        pairs = weighted_sum(group_sums(self._stratum, positives, self.n_strata), negative)
        return weighted_sum(positives, below) / pairs if pairs > 0 else float("nan")

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the area with respect to each weight, shape [n]."""
        positives, negatives = self._masses(as_weights(type(self).__name__, weights, self.n))
        below, negative = self._below(negatives)
        under, positive = self._below(positives)
        pairs = weighted_sum(positive, negative)
        if not pairs > 0:
            return np.full(self.n, np.nan)
        area = weighted_sum(positives, below) / pairs
        of_positive = below - area * negative[self._stratum]
        of_negative = (1 - area) * positive[self._stratum] - under
        return np.where(self._label == 1, of_positive[self._codes], of_negative[self._codes]) / pairs

    def cluster_values(self, counts: FloatArray, codes: IntArray, weights: npt.ArrayLike) -> FloatArray:
        """Return the areas for resampled clusters; rows are sorted once for all of them."""
        w = as_weights(type(self).__name__, weights, self.n)
        return self._pairs.areas(counts, codes, w)

    def one_class_strata(self, weights: npt.ArrayLike) -> int:
        """Return how many strata with any weight lack one of the classes, and so add nothing."""
        positives, negatives = self._masses(as_weights(type(self).__name__, weights, self.n))
        positive = group_sums(self._stratum, positives, self.n_strata) > 0
        negative = group_sums(self._stratum, negatives, self.n_strata) > 0
        return int(np.sum(positive != negative))
