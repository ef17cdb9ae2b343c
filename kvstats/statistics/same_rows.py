"""Sums, differences and quotients of statistics of the same rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.ratios import quotients
from kvstats.statistics.statistic import FloatArray, IntArray, Statistic

__all__ = ["Combination", "OfSameRows", "Quotient", "atoms"]


class OfSameRows(Statistic):
    """A function of statistics that share their rows, and so one vector of weights.

    The squares of its influence hold the covariances of the parts. For statistics of different rows see
    `kvstats.statistics.Difference`.
    """

    def __init__(self, statistics: Sequence[Statistic]) -> None:
        sizes = [statistic.n for statistic in statistics]
        if len(set(sizes)) != 1:
            raise InputError.argument(
                type(self).__name__, "statistics", sizes, "are numbers of rows that differ", "pass equal ones"
            )
        self.statistics = tuple(statistics)
        self.n = sizes[0]
        first = statistics[0].classes
        alike = first is not None and all(
            other.classes is not None and np.array_equal(first, other.classes) for other in statistics[1:]
        )
        self.classes = first if alike else None

    @abstractmethod
    def combined(self, values: Sequence[FloatArray]) -> FloatArray:
        """Return the function's values, from arrays of the values of its parts."""

    def value(self, weights: npt.ArrayLike) -> float:
        """Return the value for row weights of shape [n]; NaN where a part is undefined."""
        return float(self.combined([np.array([part.value(weights)]) for part in self.statistics])[0])

    def cluster_values(self, counts: FloatArray, codes: IntArray, weights: npt.ArrayLike) -> FloatArray:
        """Return the values for resampled clusters, all parts under the same counts."""
        return self.combined([part.cluster_values(counts, codes, weights) for part in self.statistics])


class Combination(OfSameRows):
    r"""Linear combination of statistics of the same rows, :math:`\sum_j c_j \theta_j`.

    Undefined (NaN) where a part is.

    Parameters
    ----------
    coefficients : sequence of float
        One for each statistic.
    statistics : sequence of Statistic
        The parts, of the same rows in the same order.

    Raises
    ------
    InputError
        When the numbers of rows, or of coefficients and parts, differ.

    Examples
    --------
    >>> from kvstats.statistics.ratios import Mean
    >>> gain = Combination([1.0, -1.0], [Mean([1.0, 1.0, 0.0]), Mean([1.0, 0.0, 0.0])])
    >>> round(gain.value([1, 1, 1]), 6), gain.influence([1, 1, 2]).tolist()
    (0.333333, [-0.0625, 0.1875, -0.0625])
    """

    def __init__(self, coefficients: Sequence[float], statistics: Sequence[Statistic]) -> None:
        if len(coefficients) != len(statistics) or not statistics:
            raise InputError.argument(
                "Combination",
                "coefficients",
                list(coefficients),
                f"does not fit {len(statistics)} statistics",
                "pass one for each, and one at least",
            )
        super().__init__(statistics)
        self.coefficients = tuple(map(float, coefficients))

    def combined(self, values: Sequence[FloatArray]) -> FloatArray:
        """Return the combination of arrays of the parts' values."""
        total = np.zeros_like(values[0])
        for coefficient, part in zip(self.coefficients, values, strict=True):
            total += coefficient * part
        return total

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the combination with respect to each weight, shape [n]."""
        return self.combined([part.influence(weights) for part in self.statistics])


class Quotient(OfSameRows):
    r"""Quotient of two statistics of the same rows, :math:`\theta_1 / \theta_2`.

    Undefined (NaN) where either is, or the divisor is 0. The influence is
    :math:`(\mathrm{IF}_1 - \theta\, \mathrm{IF}_2) / \theta_2`.

    Parameters
    ----------
    top, bottom : Statistic
        The statistics, of the same rows in the same order.

    Raises
    ------
    InputError
        When the numbers of rows differ.

    Examples
    --------
    >>> from kvstats.statistics.ratios import Mean
    >>> Quotient(Mean([1.0, 0.5]), Mean([0.5, 0.5])).value([1, 1])
    1.5
    """

    def __init__(self, top: Statistic, bottom: Statistic) -> None:
        super().__init__([top, bottom])

    def combined(self, values: Sequence[FloatArray]) -> FloatArray:
        """Return the quotients of arrays of both parts' values."""
        top, bottom = values
        return quotients(top, bottom)

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the quotient with respect to each weight, shape [n]."""
        top, bottom = self.statistics
        divisor = bottom.value(weights)
        ratio = self.value(weights)
        if np.isnan(ratio):
            return np.full(self.n, np.nan)
        return np.asarray((top.influence(weights) - ratio * bottom.influence(weights)) / divisor)


def atoms(statistic: Statistic) -> Iterator[Statistic]:
    """Yield the statistics that combinations and quotients are made of; any other is its own.

    Examples
    --------
    >>> from kvstats.statistics.ratios import Mean
    >>> first, second = Mean([1.0]), Mean([2.0])
    >>> whole = Quotient(Combination([1.0, -1.0], [first, second]), second)
    >>> [part.value([1]) for part in atoms(whole)]
    [1.0, 2.0, 2.0]
    """
    if isinstance(statistic, OfSameRows):
        for part in statistic.statistics:
            yield from atoms(part)
    else:
        yield statistic
