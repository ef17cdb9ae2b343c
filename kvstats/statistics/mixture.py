"""Means of mixtures of two groups, and the mixture that reaches a level."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.statistic import FloatArray, IntArray, as_column, as_numbers
from kvstats.statistics.totals import TotalsFunction, in_groups, quotient

__all__ = ["MixtureCrossing", "MixtureMean"]


class TwoGroups(TotalsFunction):
    """A function of the means of two groups of rows, which are its classes."""

    def __init__(self, y: npt.ArrayLike, inside: npt.ArrayLike) -> None:
        name = type(self).__name__
        column = as_column(name, "y", y)
        flags = as_numbers(name, "inside", inside)
        if flags.shape != column.shape or not np.isin(flags, (0, 1)).all():
            raise InputError.argument(
                name,
                "inside",
                f"array of shape {flags.shape}",
                f"is not true or false for {column.size} rows",
                "pass one Boolean a row",
            )
        codes: IntArray = flags.astype(np.int64)
        super().__init__(in_groups(codes, 2, np.ones(column.size), column))
        self.classes = codes

    def means(self, totals: FloatArray) -> FloatArray:
        """Return the means outside and inside the group, shape [..., 2]; NaN without weight."""
        sums = totals.reshape(*totals.shape[:-1], 2, 2)
        return quotient(sums[..., 1], sums[..., 0])

    def mean_gradient(self, totals: FloatArray, derivatives: FloatArray) -> FloatArray:
        """Return derivatives with respect to the totals, from those with respect to the two means."""
        sums, means = totals.reshape(2, 2), self.means(totals)
        used = derivatives != 0
        gradient = np.zeros((2, 2))
        gradient[used, 1] = derivatives[used] / sums[used, 0]
        gradient[used, 0] = -derivatives[used] * means[used] / sums[used, 0]
        return gradient.ravel()


class MixtureMean(TwoGroups):
    r"""Mean of a mixture of two groups, :math:`f \bar y_C + (1 - f) \bar y_{rest}`.

    Undefined (NaN) where a group with a share above 0 has no weight.

    Parameters
    ----------
    y : array-like of float, shape [n]
        The values.
    inside : array-like of bool, shape [n]
        Whether a row is of group C.
    share : float
        The share f of group C, in [0, 1].

    Raises
    ------
    InputError
        When a value is not finite, a row's group is not known, or the share is not in [0, 1].

    Examples
    --------
    >>> mixture = MixtureMean([1.0, 0.0, 0.5, 0.5], [1, 1, 0, 0], 0.5)
    >>> mixture.value([1, 1, 1, 1]), mixture.value([2, 0, 1, 1])
    (0.5, 0.75)
    """

    def __init__(self, y: npt.ArrayLike, inside: npt.ArrayLike, share: float) -> None:
        if not 0 <= share <= 1:
            raise InputError.argument(
                "MixtureMean", "share", share, "is not in [0, 1]", "pass one such as 0.5"
            )
        super().__init__(y, inside)
        self.shares = np.array([1 - share, share])

    def of_totals(self, totals: FloatArray) -> FloatArray:
        """Return the mean of the mixture for totals of shape [..., 4]."""
        used = self.shares > 0
        return np.asarray(self.means(totals)[..., used] @ self.shares[used])

    def gradient(self, totals: FloatArray) -> FloatArray:
        """Return its derivatives with respect to the totals."""
        return self.mean_gradient(totals, self.shares)


class MixtureCrossing(TwoGroups):
    r"""The share of group C at which the mean of the mixture reaches a level.

    :math:`f^* = (\ell - \bar y_{rest}) / (\bar y_C - \bar y_{rest})`. It is not cut off: below 0 or above 1
    no mixture of the two reaches the level. Undefined (NaN) where a group has no weight or both means agree.

    Parameters
    ----------
    y : array-like of float, shape [n]
        The values.
    inside : array-like of bool, shape [n]
        Whether a row is of group C.
    level : float
        The level, in the unit of the values.

    Raises
    ------
    InputError
        When a value or the level is not finite, or a row's group is not known.

    Examples
    --------
    >>> MixtureCrossing([0.5, 0.5, -0.5, -0.5], [1, 1, 0, 0], 0.0).value([1, 1, 1, 1])
    0.5
    """

    def __init__(self, y: npt.ArrayLike, inside: npt.ArrayLike, level: float) -> None:
        if not np.isfinite(level):
            raise InputError.argument(
                "MixtureCrossing", "level", level, "is not a finite number", "pass one such as 0.0"
            )
        super().__init__(y, inside)
        self.level = float(level)

    def of_totals(self, totals: FloatArray) -> FloatArray:
        """Return the share for totals of shape [..., 4]."""
        rest, own = np.moveaxis(self.means(totals), -1, 0)
        return quotient(self.level - rest, own - rest)

    def gradient(self, totals: FloatArray) -> FloatArray:
        """Return its derivatives with respect to the totals."""
        rest, own = self.means(totals)
        gap = own - rest
        derivatives = np.array([self.level - own, rest - self.level]) / gap**2
        return self.mean_gradient(totals, derivatives)
