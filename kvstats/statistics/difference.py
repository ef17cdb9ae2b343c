"""The difference of two statistics, as one statistic."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kvstats.statistics.statistic import FloatArray, IntArray, Statistic, as_weight_matrix, as_weights

__all__ = ["Difference", "parts", "signed_parts"]


class Difference(Statistic):
    """First minus second statistic, on the rows of the first followed by those of the second.

    Clusters that have rows on both sides get the same resampling count on both, and their influences
    subtract, so that the standard error knows what the two sides share.

    Parameters
    ----------
    first, second : Statistic
        The two statistics; each may itself be a difference.

    Examples
    --------
    >>> from kvstats.statistics.ratios import Mean
    >>> difference = Difference(Mean([1.0, 0.0]), Mean([0.25]))
    >>> difference.value([1, 1, 1])
    0.25
    >>> difference.influence([1, 1, 1]).tolist()
    [0.25, -0.25, -0.0]
    """

    def __init__(self, first: Statistic, second: Statistic) -> None:
        self.first = first
        self.second = second
        self.n = first.n + second.n

    def value(self, weights: npt.ArrayLike) -> float:
        """Return the difference for row weights of shape [n]; NaN where either side is undefined."""
        w = as_weights("Difference", weights, self.n)
        return self.first.value(w[: self.first.n]) - self.second.value(w[self.first.n :])

    def values(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the differences for a matrix of weights, shape [B, n]."""
        w = as_weight_matrix("Difference", weights, self.n)
        return self.first.values(w[:, : self.first.n]) - self.second.values(w[:, self.first.n :])

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the difference with respect to each weight, shape [n]."""
        w = as_weights("Difference", weights, self.n)
        cut = self.first.n
        return np.concatenate([self.first.influence(w[:cut]), -self.second.influence(w[cut:])])

    def cluster_values(self, counts: FloatArray, codes: IntArray, weights: npt.ArrayLike) -> FloatArray:
        """Return the differences for resampled clusters, both sides under the same counts."""
        w = as_weights("Difference", weights, self.n)
        cut = self.first.n
        return self.first.cluster_values(counts, codes[:cut], w[:cut]) - self.second.cluster_values(
            counts, codes[cut:], w[cut:]
        )


def signed_parts(statistic: Statistic) -> list[tuple[float, Statistic]]:
    """Return the statistics that differences were made of, in the order of their rows, with their signs.

    Examples
    --------
    >>> from kvstats.statistics.ratios import Mean
    >>> difference = Difference(Mean([1.0]), Difference(Mean([1.0, 2.0]), Mean([])))
    >>> [(sign, part.n) for sign, part in signed_parts(difference)]
    [(1.0, 1), (-1.0, 2), (1.0, 0)]
    """
    if isinstance(statistic, Difference):
        second = [(-sign, part) for sign, part in signed_parts(statistic.second)]
        return [*signed_parts(statistic.first), *second]
    return [(1.0, statistic)]


def parts(statistic: Statistic) -> list[Statistic]:
    """Return the statistics that differences were made of, in the order of their rows.

    Examples
    --------
    >>> from kvstats.statistics.ratios import Mean
    >>> [part.n for part in parts(Difference(Mean([1.0]), Difference(Mean([1.0, 2.0]), Mean([]))))]
    [1, 2, 0]
    """
    return [part for _, part in signed_parts(statistic)]
