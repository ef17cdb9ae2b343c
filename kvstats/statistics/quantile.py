"""Quantiles of a weighted sample, their ratios, and where along an axis they cross a level."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.auc_curve import smoothing_width
from kvstats.statistics.statistic import FloatArray, IntArray, Statistic, as_column, as_weights, weighted_sum

__all__ = ["Quantile", "QuantileCrossing", "QuantileRatio"]

ROUNDING = 1e-12
"""Shares of the weight that differ by no more are equal."""

CELLS = 4_000_000
"""Weights that are held at once while resamples are ranked: 32 MB."""


class Quantile(Statistic):
    r"""Quantile of a weighted sample: the inverse of its distribution function.

    .. math:: q = \inf \{x : \sum_{y_i \le x} w_i \ge p W\}

    and where equality holds the mean of x and the next value with weight, so that the median of 1, 2, 3, 4
    is 2.5. In the unit of y. Undefined (NaN) without any weight.

    The influence is :math:`s (p - 1[y_i \le q]) / W`, with the sparsity s estimated as the difference of the
    quantiles at :math:`p \pm h` divided by 2 h, h of `smoothing_width`: the derivative of a smoothed
    quantile. The bootstrap needs no sparsity.

    Parameters
    ----------
    y : array-like of float, shape [n]
        The values.
    p : float, default 0.5
        Which quantile, in (0, 1).

    Raises
    ------
    InputError
        When a value is not finite, or p is not in (0, 1).

    References
    ----------
    .. [1] Hyndman and Fan, The American Statistician 50, 1996, definition 2.
    .. [2] Koenker, *Quantile Regression*, 2005, section 3.2.

    Examples
    --------
    >>> median = Quantile([4.0, 1.0, 3.0, 2.0])
    >>> median.value([1, 1, 1, 1]), median.value([1, 1, 2, 1])
    (2.5, 3.0)
    """

    def __init__(self, y: npt.ArrayLike, p: float = 0.5) -> None:
        if isinstance(p, bool | str) or not 0 < float(p) < 1:
            raise InputError.argument("Quantile", "p", p, "is not between 0 and 1", "pass 0.5 for the median")
        column = as_column("Quantile", "y", y)
        self.n = column.size
        self.p = float(p)
        self._order = np.argsort(column, kind="stable")
        self._sorted = column[self._order]

    def _at(self, ranked: FloatArray, p: float) -> FloatArray:
        """Return the quantiles for weights in the order of the values, shape [B, n]."""
        ends = np.cumsum(ranked, axis=1)
        total = ends[:, -1:]
        found = np.full(len(ranked), np.nan)
        some = total[:, 0] > 0
        shares = ends[some] / total[some]
        first = (shares >= p - ROUNDING).argmax(1)
        # Where the share is reached exactly, the next value that has weight counts as much.
        exact = np.abs(np.take_along_axis(shares, first[:, None], 1)[:, 0] - p) <= ROUNDING
        after = (shares > p + ROUNDING).argmax(1)
        found[some] = np.where(exact, (self._sorted[first] + self._sorted[after]) / 2, self._sorted[first])
        return found

    def value(self, weights: npt.ArrayLike) -> float:
        """Return the quantile for row weights of shape [n]."""
        w = as_weights("Quantile", weights, self.n)
        return float(self._at(w[self._order][None], self.p)[0]) if self.n else float("nan")

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the smoothed quantile with respect to each weight, shape [n]."""
        w = as_weights("Quantile", weights, self.n)
        value = self.value(w)
        if np.isnan(value):
            return np.full(self.n, np.nan)
        width = smoothing_width(self.p, w)
        low, high = max(self.p - width, ROUNDING), min(self.p + width, 1 - ROUNDING)
        ranked = w[self._order][None]
        sparsity = float((self._at(ranked, high) - self._at(ranked, low))[0]) / (high - low)
        below = np.empty(self.n)
        below[self._order] = self._sorted <= value
        return np.asarray(sparsity * (weighted_sum(w, below) / w.sum() - below) / w.sum())

    def cluster_values(self, counts: FloatArray, codes: IntArray, weights: npt.ArrayLike) -> FloatArray:
        """Return the quantiles for resampled clusters; rows are sorted once for all of them."""
        w = as_weights("Quantile", weights, self.n)[self._order]
        places = codes[self._order]
        step = max(1, CELLS // max(self.n, 1))
        blocks = [counts[begin : begin + step] for begin in range(0, len(counts), step)]
        return np.concatenate([self._at(block[:, places] * w, self.p) for block in blocks])


class QuantileRatio(Statistic):
    r"""Ratio of the same quantile of two columns, such as that of median times.

    .. math:: r = q_p(\text{numerator}) / q_p(\text{denominator})

    Undefined (NaN) without any weight, or where the denominator's quantile is 0.

    Parameters
    ----------
    numerator, denominator : array-like of float, shape [n]
        The two columns.
    p : float, default 0.5
        Which quantile, in (0, 1).

    Raises
    ------
    InputError
        When a value is not finite, the lengths differ, or p is not in (0, 1).

    Examples
    --------
    >>> QuantileRatio([1.1, 1.3, 1.2], [1.0, 0.9, 1.1]).value([1, 1, 1])
    1.2
    """

    def __init__(self, numerator: npt.ArrayLike, denominator: npt.ArrayLike, p: float = 0.5) -> None:
        self._top, self._bottom = Quantile(numerator, p), Quantile(denominator, p)
        self.n = self._top.n
        if self._bottom.n != self.n:
            raise InputError.argument(
                "QuantileRatio",
                "denominator",
                f"array of shape ({self._bottom.n},)",
                f"does not fit a numerator of {self.n} rows",
                "pass columns of the same length",
            )

    def value(self, weights: npt.ArrayLike) -> float:
        """Return the ratio for row weights of shape [n]."""
        bottom = self._bottom.value(weights)
        return self._top.value(weights) / bottom if bottom != 0 else float("nan")

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the smoothed ratio with respect to each weight, shape [n]."""
        ratio, bottom = self.value(weights), self._bottom.value(weights)
        if np.isnan(ratio):
            return np.full(self.n, np.nan)
        return np.asarray((self._top.influence(weights) - ratio * self._bottom.influence(weights)) / bottom)

    def cluster_values(self, counts: FloatArray, codes: IntArray, weights: npt.ArrayLike) -> FloatArray:
        """Return the ratios for resampled clusters."""
        bottoms = self._bottom.cluster_values(counts, codes, weights)
        ratios = np.full(bottoms.shape, np.nan)
        tops = self._top.cluster_values(counts, codes, weights)
        np.divide(tops, bottoms, out=ratios, where=bottoms != 0)
        return ratios


class QuantileCrossing(Statistic):
    r"""Place along an axis at which the quantile of the values crosses a level.

    With :math:`q_k` the quantile of the rows at :math:`x_k`, the lowest x between neighbours
    :math:`x_k < x_{k+1}` at which the line from :math:`q_k` to :math:`q_{k+1}` reaches the level. In the unit
    of x. Undefined (NaN) where no pair of neighbours encloses the level, or some place has no weight.

    In resamples without a crossing the value is infinite rather than undefined: where all quantiles are on
    the side on which the first of them lies at the full weights, the crossing is beyond the last place, and
    otherwise before the first.

    Parameters
    ----------
    y : array-like of float, shape [n]
        The values.
    x : array-like of float, shape [n]
        Place of each row, such as its budget; at least two places.
    level : float
        The level.
    p : float, default 0.5
        Which quantile, in (0, 1).

    Raises
    ------
    InputError
        When a value is not finite, the lengths differ, there is one place only, or p is not in (0, 1).

    Examples
    --------
    >>> crossing = QuantileCrossing([1.2, 1.2, 0.8, 0.8], [0.2, 0.2, 0.3, 0.3], level=1.0)
    >>> crossing.value([1, 1, 1, 1])
    0.25
    """

    def __init__(self, y: npt.ArrayLike, x: npt.ArrayLike, level: float, p: float = 0.5) -> None:
        values, places = as_column("QuantileCrossing", "y", y), as_column("QuantileCrossing", "x", x)
        if places.size != values.size:
            raise InputError.argument(
                "QuantileCrossing",
                "x",
                f"array of shape {places.shape}",
                f"does not fit {values.size} rows",
                "pass one place a row",
            )
        self.n = values.size
        self._level = float(level)
        self._places, codes = np.unique(places, return_inverse=True)
        if self._places.size == 1:
            raise InputError.argument(
                "QuantileCrossing", "x", float(places[0]), "is the only place", "pass two places or more"
            )
        self._rows = [np.flatnonzero(codes == place) for place in range(self._places.size)]
        self._quantiles = [Quantile(values[rows], p) for rows in self._rows]
        self.classes = codes.astype(np.int64)

    def _above(self, take: Callable[[Quantile, IntArray], npt.ArrayLike]) -> FloatArray:
        """Return what each place's quantile exceeds the level by, shape [places, B]."""
        pairs = zip(self._quantiles, self._rows, strict=True)
        return np.stack([np.atleast_1d(take(*pair)) for pair in pairs]) - self._level

    def _crossings(self, above: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return the first crossing of each column, NaN without one, and the place before it."""
        left, right = np.sign(above[:-1]), np.sign(above[1:])
        # A quantile at the level is reached by the pair that ends there; only the first place begins none.
        crossed = (left != right) & (left != 0)
        crossed[0] |= left[0] == 0
        place = crossed.argmax(0)
        columns = np.arange(above.shape[1])
        before, after = above[place, columns], above[place + 1, columns]
        # A curve that runs along the level crosses it nowhere in particular.
        point = before != after
        start, width = self._places[place], np.diff(self._places)[place]
        found = start + before / np.where(point, before - after, 1.0) * width
        found = np.where(crossed.any(0) & point & np.isfinite(above).all(0), found, np.nan)
        return found, place

    def value(self, weights: npt.ArrayLike) -> float:
        """Return the crossing for row weights of shape [n]."""
        w = as_weights("QuantileCrossing", weights, self.n)
        if self.n == 0:
            return float("nan")
        return float(self._crossings(self._above(lambda quantile, rows: quantile.value(w[rows])))[0][0])

    def influence(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the derivative of the smoothed crossing with respect to each weight, shape [n]."""
        w = as_weights("QuantileCrossing", weights, self.n)
        if np.isnan(self.value(w)):
            return np.full(self.n, np.nan)
        above = self._above(lambda quantile, rows: quantile.value(w[rows]))
        place = int(self._crossings(above)[1][0])
        before, after = above[place, 0], above[place + 1, 0]
        width = self._places[place + 1] - self._places[place]
        result = np.zeros(self.n)
        for at, slope in ((place, -after), (place + 1, before)):
            rows = self._rows[at]
            result[rows] = slope * width / (before - after) ** 2 * self._quantiles[at].influence(w[rows])
        return result

    def cluster_values(self, counts: FloatArray, codes: IntArray, weights: npt.ArrayLike) -> FloatArray:
        """Return the crossings for resampled clusters, infinite where there is none."""
        w = as_weights("QuantileCrossing", weights, self.n)
        above = self._above(lambda quantile, rows: quantile.cluster_values(counts, codes[rows], w[rows]))
        found = self._crossings(above)[0]
        first = self._above(lambda quantile, rows: quantile.value(w[rows]))[0, 0]
        defined = np.isfinite(above).all(0)
        beyond = np.where(np.sign(above[0]) == np.sign(first), np.inf, -np.inf)
        return np.where(np.isnan(found) & defined, beyond, found)
