"""Levels of a score from the highest down: the steps of a receiver operating characteristic."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from kvstats.statistics.auc_columns import as_classes, level_codes
from kvstats.statistics.statistic import FloatArray, group_sums, weighted_sum

__all__ = ["DescendingLevels", "smoothing_width"]


class DescendingLevels:
    """Rows of two classes, numbered by their score from the highest level down.

    Parameters
    ----------
    function : str
        Name for messages.
    score : array-like of float, shape [n]
        The signal.
    label : array-like of bool, shape [n]
        True for the positive class.

    Attributes
    ----------
    n : int
        Number of rows.
    positive : array of bool, shape [n]
        Class of each row.
    codes : array of int, shape [n]
        Level of each row, 0 for the highest score.
    scores : array of float, shape [L]
        Score of each level.

    Examples
    --------
    >>> levels = DescendingLevels("f", [1.0, 3.0, 1.0], [0, 1, 1])
    >>> levels.codes.tolist(), levels.scores.tolist()
    ([1, 0, 1], [3.0, 1.0])
    >>> [masses.tolist() for masses in levels.masses(np.ones(3))]
    [[1.0, 1.0], [0.0, 1.0]]
    """

    def __init__(self, function: str, score: npt.ArrayLike, label: npt.ArrayLike) -> None:
        column, labels = as_classes(function, score, label)
        self.n = column.size
        self.positive = labels == 1
        self.codes = level_codes(-column)[1]
        self.scores: FloatArray = np.empty(int(self.codes.max(initial=-1)) + 1)
        self.scores[self.codes] = column

    def masses(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the weight of the positives and of the negatives at each level."""
        size = self.scores.size
        return (
            group_sums(self.codes, weights * self.positive, size),
            group_sums(self.codes, weights * ~self.positive, size),
        )


def smoothing_width(share: float, weights: FloatArray) -> float:
    r"""Return the half-width, in shares, over which the slope at a quantile is estimated.

    A quantile moves with its sample as 1 over the density there, and the step at one point of an empirical
    distribution estimates no density; a difference over a width that shrinks as :math:`n^{-1/3}` does:

    .. math::

        h = n^{-1/3} z_{0.975}^{2/3} \left(\frac{1.5\, \phi(z)^2}{2 z^2 + 1}\right)^{1/3}, \qquad
        z = \Phi^{-1}(\mathrm{share}),\quad n = (\sum w)^2 / \sum w^2

    Parameters
    ----------
    share : float
        Share of the quantile, in (0, 1).
    weights : array of float
        Weights of the rows whose quantile it is; some above 0.

    References
    ----------
    .. [1] Hall and Sheather, Journal of the Royal Statistical Society B 50, 1988.

    Examples
    --------
    >>> round(smoothing_width(0.5, np.ones(1000)), 4)
    0.0972
    """
    z = float(ndtri(share))
    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    n = weights.sum() ** 2 / weighted_sum(weights, weights)
    scale = float(ndtri(0.975)) ** (2 / 3) * (1.5 * density**2 / (2 * z * z + 1)) ** (1 / 3)
    return float(scale * n ** (-1 / 3))
