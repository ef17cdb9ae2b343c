"""Whether a signal rises along an ordered set of groups."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.auc import AUC
from kvstats.statistics.statistic import FloatArray, IntArray, Statistic, as_column, as_weights

__all__ = ["OrderedConcordance"]


class OrderedConcordance(Statistic):
    r"""Mean probability that a row of a later group has the higher value.

    .. math:: C = \binom{G}{2}^{-1} \sum_{g < h} \Pr(y_g < y_h) + \tfrac12 \Pr(y_g = y_h)

    over all pairs of G ordered groups, each pair with the same weight, in [0, 1]: 1 where every row exceeds
    all rows of earlier groups, 0.5 without order, 0 where it falls throughout. The Jonckheere-Terpstra
    statistic, normalised pair by pair. Undefined (NaN) where a group has no weight.

    Parameters
    ----------
    y : array-like of float, shape [n]
        The values.
    group : array-like of int, shape [n]
        Place of each row's group in the order, from 0.

    Raises
    ------
    InputError
        When a value is not finite, the lengths differ, or there are fewer than two groups.

    References
    ----------
    .. [1] Jonckheere, Biometrika 41, 1954.

    Examples
    --------
    >>> OrderedConcordance([1, 2, 3, 2.5], [0, 1, 2, 2]).value(np.ones(4))
    1.0
    """

    def __init__(self, y: npt.ArrayLike, group: npt.ArrayLike) -> None:
        column = as_column("OrderedConcordance", "y", y)
        places = np.asarray(group, dtype=np.int64)
        self.n = column.size
        if places.shape != (self.n,):
            raise InputError.argument(
                "OrderedConcordance",
                "group",
                f"array of shape {places.shape}",
                f"does not fit {self.n} rows",
                "pass one place a row",
            )
        self.classes = places
        present = np.unique(places)
        if self.n and present.size < 2:
            raise InputError.argument(
                "OrderedConcordance", "group", int(present[0]), "is the only group", "pass two or more"
            )
        self._pairs: list[tuple[IntArray, AUC]] = []
        for first, second in combinations(present, 2):
            rows = np.flatnonzero((places == first) | (places == second))
            self._pairs.append((rows, AUC(column[rows], places[rows] == second)))

    def value(self, weights: npt.ArrayLike) -> float:
        """Return the concordance for row weights of shape [n]."""
        w = as_weights("OrderedConcordance", weights, self.n)
        if not self._pairs:
            return float("nan")
        return float(np.mean([area.value(w[rows]) for rows, area in self._pairs]))

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the concordance with respect to each weight, shape [n]."""
        w = as_weights("OrderedConcordance", weights, self.n)
        total = np.zeros(self.n)
        for rows, area in self._pairs:
            total[rows] += area.influence(w[rows])
        return total / len(self._pairs) if np.isfinite(total).all() else np.full(self.n, np.nan)

    def cluster_values(self, counts: FloatArray, codes: IntArray, weights: npt.ArrayLike) -> FloatArray:
        """Return the concordances for resampled clusters."""
        w = as_weights("OrderedConcordance", weights, self.n)
        areas = [area.cluster_values(counts, codes[rows], w[rows]) for rows, area in self._pairs]
        return np.asarray(np.mean(areas, axis=0))
