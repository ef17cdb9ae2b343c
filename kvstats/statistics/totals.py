"""Functions of weighted totals: what can be computed from a few sums over the rows."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.statistic import (
    FloatArray,
    IntArray,
    Statistic,
    as_numbers,
    as_weight_matrix,
    as_weights,
)

__all__ = ["TotalsFunction", "in_groups", "quotient"]


class TotalsFunction(Statistic, ABC):
    r"""A function of weighted column totals, :math:`g(t)` with :math:`t_j = \sum_i w_i z_{ij}`.

    A subclass states g and its gradient; influences and resampled values follow: the influence of row i is
    :math:`\sum_j z_{ij}\, \partial g / \partial t_j`, and resampled totals are sums over clusters.

    Parameters
    ----------
    columns : array-like of float, shape [n, k]
        The columns z.

    Raises
    ------
    InputError
        When the columns are no matrix of finite numbers.

    Examples
    --------
    >>> class Variance(TotalsFunction):
    ...     def of_totals(self, totals):
    ...         size, first, second = np.moveaxis(totals, -1, 0)
    ...         return second / size - (first / size) ** 2
    ...     def gradient(self, totals):
    ...         size, first, second = totals
    ...         return np.array([2 * first**2 / size**3 - second / size**2, -2 * first / size**2, 1 / size])
    >>> y = np.array([1.0, 2.0, 4.0])
    >>> variance = Variance(np.stack([np.ones(3), y, y**2], axis=1))
    >>> round(variance.value([1, 1, 1]), 6), round(float(np.var(y)), 6)
    (1.555556, 1.555556)
    """

    def __init__(self, columns: npt.ArrayLike) -> None:
        name = type(self).__name__
        self.columns = as_numbers(name, "columns", columns)
        if self.columns.ndim != 2 or not np.isfinite(self.columns).all():
            raise InputError.argument(
                name,
                "columns",
                f"array of shape {self.columns.shape}",
                "is no matrix of finite numbers",
                "leave out rows without a value on purpose, before the call",
            )
        self.n = self.columns.shape[0]

    @abstractmethod
    def of_totals(self, totals: FloatArray) -> FloatArray:
        """Return g for totals of shape [..., k], shape [...]; NaN where it is undefined."""

    @abstractmethod
    def gradient(self, totals: FloatArray) -> FloatArray:
        """Return the derivatives of g with respect to the totals, shape [k], where g is defined."""

    def value(self, weights: npt.ArrayLike) -> float:
        """Return the value for row weights of shape [n]."""
        w = as_weights(type(self).__name__, weights, self.n)
        return float(self.of_totals(np.einsum("n,nk->k", w, self.columns)))

    def values(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the values for a matrix of weights, shape [B, n], by one matrix product."""
        w = as_weight_matrix(type(self).__name__, weights, self.n)
        return self.of_totals(np.einsum("bn,nk->bk", w, self.columns))

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the value with respect to each weight, shape [n]."""
        totals = np.einsum("n,nk->k", as_weights(type(self).__name__, weights, self.n), self.columns)
        if np.isnan(self.of_totals(totals)):
            return np.full(self.n, np.nan)
        return np.asarray(np.einsum("nk,k->n", self.columns, self.gradient(totals)), dtype=np.float64)

    def cluster_values(self, counts: FloatArray, codes: IntArray, weights: npt.ArrayLike) -> FloatArray:
        """Return the values for resampled clusters, by cluster sums."""
        w = as_weights(type(self).__name__, weights, self.n)
        sums = np.zeros((counts.shape[1], self.columns.shape[1]))
        np.add.at(sums, codes, w[:, None] * self.columns)
        return self.of_totals(np.einsum("bc,ck->bk", counts, sums))


def in_groups(codes: IntArray, n_groups: int, *columns: FloatArray) -> FloatArray:
    """Return columns that are 0 outside their group, shape [n, n_groups * number of columns].

    The totals of the result have, reshaped to [n_groups, number of columns], one row a group.

    Examples
    --------
    >>> in_groups(np.array([0, 1]), 2, np.array([1.0, 1.0]), np.array([5.0, 7.0])).tolist()
    [[1.0, 5.0, 0.0, 0.0], [0.0, 0.0, 1.0, 7.0]]
    """
    spread = np.zeros((codes.size, n_groups, len(columns)))
    spread[np.arange(codes.size), codes] = np.stack(columns, axis=1)
    return spread.reshape(codes.size, n_groups * len(columns))


def quotient(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """Return quotients of any shape, NaN where the divisor is 0.

    Examples
    --------
    >>> quotient(np.array([1.0, 1.0]), np.array([2.0, 0.0])).tolist()
    [0.5, nan]
    """
    ratio = np.full(np.broadcast(top, bottom).shape, np.nan)
    np.divide(top, bottom, out=ratio, where=np.asarray(bottom != 0))
    return ratio
