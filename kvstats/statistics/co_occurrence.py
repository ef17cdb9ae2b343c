"""Two indicators in the same rows: covariance, product and the bounds that their means leave."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.statistic import FloatArray, as_column, as_numbers
from kvstats.statistics.totals import TotalsFunction, in_groups, quotient

__all__ = ["Covariance", "FrechetBound", "OriginSlope", "ProductOfMeans"]


class TwoColumns(TotalsFunction):
    """A function of the means of x, y and x y; undefined (NaN) without weight."""

    def __init__(self, x: npt.ArrayLike, y: npt.ArrayLike) -> None:
        name = type(self).__name__
        first, second = as_column(name, "x", x), as_column(name, "y", y)
        if first.shape != second.shape:
            raise InputError.argument(
                name,
                "y",
                f"array of shape {second.shape}",
                f"does not fit an x of {first.size} rows",
                "pass columns of the same length",
            )
        super().__init__(np.stack([np.ones(first.size), first, second, first * second], axis=1))

    def of_totals(self, totals: FloatArray) -> FloatArray:
        """Return the value for totals of shape [..., 4]."""
        return self.of_means(quotient(totals[..., 1:], totals[..., :1]))

    def gradient(self, totals: FloatArray) -> FloatArray:
        """Return its derivatives with respect to the totals."""
        means = totals[1:] / totals[0]
        derivatives = self.mean_gradient(means)
        return np.asarray(np.append(-(means @ derivatives), derivatives) / totals[0])

    @abstractmethod
    def of_means(self, means: FloatArray) -> FloatArray:
        """Return the value for the means of x, y and x y, shape [..., 3]."""

    @abstractmethod
    def mean_gradient(self, means: FloatArray) -> FloatArray:
        """Return its derivatives with respect to the three means."""


class ProductOfMeans(TwoColumns):
    """Product of two means: the share of rows with both of two indicators if these were independent.

    Parameters
    ----------
    x, y : array-like of float, shape [n]
        The two columns.

    Examples
    --------
    >>> ProductOfMeans([1, 1, 0, 0], [1, 0, 0, 0]).value([1, 1, 1, 1])
    0.125
    """

    def of_means(self, means: FloatArray) -> FloatArray:
        """Return the product."""
        return np.asarray(means[..., 0] * means[..., 1])

    def mean_gradient(self, means: FloatArray) -> FloatArray:
        """Return its derivatives with respect to the three means."""
        return np.array([means[1], means[0], 0.0])


class Covariance(TwoColumns):
    r"""Covariance of the population, :math:`E[xy] - E[x] E[y]`, by weighted means.

    Parameters
    ----------
    x, y : array-like of float, shape [n]
        The two columns.

    Examples
    --------
    >>> Covariance([1, 1, 0, 0], [1, 0, 0, 0]).value([1, 1, 1, 1])
    0.125
    """

    def of_means(self, means: FloatArray) -> FloatArray:
        """Return the covariance."""
        return np.asarray(means[..., 2] - means[..., 0] * means[..., 1])

    def mean_gradient(self, means: FloatArray) -> FloatArray:
        """Return its derivatives with respect to the three means."""
        return np.array([-means[1], -means[0], 1.0])


class FrechetBound(TwoColumns):
    r"""Fréchet's bound of the share of rows with both of two indicators, given the share with either one.

    The lower one is :math:`\max(0, E[x] + E[y] - 1)`, the upper one :math:`\min(E[x], E[y])`. At a kink the
    influence is that of the constant, or of x.

    Parameters
    ----------
    x, y : array-like of float, shape [n]
        The two indicators.
    upper : bool
        Which bound.

    Examples
    --------
    >>> x, y = [1, 1, 1, 0], [1, 1, 0, 0]
    >>> FrechetBound(x, y, upper=False).value(np.ones(4)), FrechetBound(x, y, upper=True).value(np.ones(4))
    (0.25, 0.5)
    """

    def __init__(self, x: npt.ArrayLike, y: npt.ArrayLike, *, upper: bool) -> None:
        super().__init__(x, y)
        self.upper = upper

    def of_means(self, means: FloatArray) -> FloatArray:
        """Return the bound."""
        x, y = means[..., 0], means[..., 1]
        return np.asarray(np.minimum(x, y) if self.upper else np.maximum(x + y - 1, 0 * x))

    def mean_gradient(self, means: FloatArray) -> FloatArray:
        """Return its derivatives with respect to the three means."""
        if self.upper:
            return np.array([1.0, 0.0, 0.0] if means[0] <= means[1] else [0.0, 1.0, 0.0])
        return np.array([1.0, 1.0, 0.0]) if means[0] + means[1] > 1 else np.zeros(3)


class OriginSlope(TotalsFunction):
    r"""Slope of a straight line through the origin, fitted by least squares to the means of cells.

    :math:`\sum_c \bar x_c \bar y_c / \sum_c \bar x_c^2` over cells, each counting once. Undefined (NaN)
    where a cell has no weight, or all means of x are 0.

    Parameters
    ----------
    x, y : array-like of float, shape [n]
        The two columns.
    cell : array-like of int, shape [n]
        Number of each row's cell, from 0.

    Raises
    ------
    InputError
        When columns differ in length or a value is not finite.

    Examples
    --------
    >>> round(OriginSlope([1.0, 1.0, 2.0], [0.5, 0.1, 0.7], [0, 0, 1]).value([1, 1, 1]), 6)
    0.34
    """

    def __init__(self, x: npt.ArrayLike, y: npt.ArrayLike, cell: npt.ArrayLike) -> None:
        first, second = as_column("OriginSlope", "x", x), as_column("OriginSlope", "y", y)
        codes = as_numbers("OriginSlope", "cell", cell)
        if not first.shape == second.shape == codes.shape:
            raise InputError.argument(
                "OriginSlope",
                "cell",
                f"arrays of shape {first.shape}, {second.shape} and {codes.shape}",
                "do not fit each other",
                "pass columns of the same length",
            )
        self.n_cells = int(codes.max(initial=-1)) + 1
        super().__init__(in_groups(codes.astype(np.int64), self.n_cells, np.ones(first.size), first, second))

    def of_totals(self, totals: FloatArray) -> FloatArray:
        """Return the slope for totals of shape [..., 3 C]."""
        x, y = self._means(totals)
        return quotient((x * y).sum(axis=-1), (x * x).sum(axis=-1))

    def gradient(self, totals: FloatArray) -> FloatArray:
        """Return its derivatives with respect to the totals."""
        x, y = self._means(totals)
        sizes, slope = totals.reshape(self.n_cells, 3)[:, 0], float(self.of_totals(totals))
        by_x, by_y = (y - 2 * slope * x) / (x @ x), x / (x @ x)
        return np.stack([-(by_x * x + by_y * y), by_x, by_y], axis=1).ravel() / np.repeat(sizes, 3)

    def _means(self, totals: FloatArray) -> tuple[FloatArray, FloatArray]:
        sums = totals.reshape(*totals.shape[:-1], self.n_cells, 3)
        return quotient(sums[..., 1], sums[..., 0]), quotient(sums[..., 2], sums[..., 0])
