"""Variance between and within draws: random-effects analysis of variance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from kvstats.errors import InputError
from kvstats.statistics.statistic import FloatArray, IntArray, as_column, as_numbers

__all__ = ["DrawAnalysis", "crossed_draws", "nested_draws"]


@dataclass(frozen=True)
class DrawAnalysis:
    r"""Mean squares of draws, and what follows from them.

    With k the number of values in each draw, :math:`E[M_a] = \sigma^2 + k \sigma_a^2` and
    :math:`E[M_e] = \sigma^2`. Intervals hold for effects and errors that are normal, and exactly for the
    variance within and for the share when every draw has the same number of values; that of the variance
    between is Williams's, which holds at least twice its level less 1 and in practice about its level.

    Attributes
    ----------
    between_square, within_square : float
        Mean squares M_a between draws and M_e within them (or of what neither draw nor input explains).
    between_df, within_df : int
        Their degrees of freedom.
    size : float
        k, for draws of unequal size :math:`(N - \sum n_i^2 / N) / (a - 1)`.

    References
    ----------
    .. [1] Searle, Casella and McCulloch, *Variance Components*, 1992, sections 3.5 and 3.6.
    .. [2] Williams, Biometrika 49, 1962.
    """

    between_square: float
    within_square: float
    between_df: int
    within_df: int
    size: float

    @property
    def between(self) -> float:
        """Variance between draws, sigma_a^2; negative where draws differ less than chance would have it."""
        return (self.between_square - self.within_square) / self.size

    def within_interval(self, level: float) -> tuple[float, float]:
        """Return the interval of the variance within draws, from a chi-squared distribution."""
        tail = (1 - level) / 2
        total = self.within_df * self.within_square
        return (
            total / float(special.chdtri(self.within_df, tail)),
            total / float(special.chdtri(self.within_df, 1 - tail)),
        )

    def between_interval(self, level: float) -> tuple[float, float]:
        """Return the interval of the variance between draws, cut off at 0."""
        tail = (1 - level) / 2
        bounds = []
        for share in (tail, 1 - tail):
            quantile = float(special.fdtri(self.between_df, self.within_df, 1 - share))
            excess = self.between_square - self.within_square * quantile
            bound = self.between_df * excess / (self.size * float(special.chdtri(self.between_df, share)))
            bounds.append(max(bound, 0.0))
        return bounds[0], bounds[1]

    def share(self) -> float:
        """Return the share of the variance that is between draws, from 0 to 1; NaN without any variance."""
        between = max(self.between, 0.0)
        total = between + self.within_square
        return between / total if total > 0 else float("nan")

    def share_interval(self, level: float) -> tuple[float, float]:
        """Return the interval of the share, from the distribution of the ratio of the mean squares."""
        if self.within_square == 0:
            return float("nan"), float("nan")
        tail = (1 - level) / 2
        observed = self.between_square / self.within_square
        bounds = []
        for probability in (1 - tail, tail):
            ratio = observed / float(special.fdtri(self.between_df, self.within_df, probability))
            theta = max((ratio - 1) / self.size, 0.0)
            bounds.append(theta / (1 + theta))
        return bounds[0], bounds[1]


def nested_draws(y: npt.ArrayLike, draw: npt.ArrayLike) -> DrawAnalysis:
    """Analyse values of draws that have inputs of their own, ``y = mean + draw + rest``.

    Parameters
    ----------
    y : array-like of float, shape [n]
        The values, one an input.
    draw : array-like of int, shape [n]
        Number of each value's draw, from 0.

    Returns
    -------
    DrawAnalysis

    Raises
    ------
    InputError
        When there are fewer than two draws, no draw has two values, or a value is not finite.

    Examples
    --------
    >>> analysis = nested_draws([1.0, 3.0, 4.0, 6.0], [0, 0, 1, 1])
    >>> analysis.between_square, analysis.within_square, analysis.between
    (9.0, 2.0, 3.5)
    """
    values, codes = draws_of("nested_draws", y, draw)
    sizes = np.bincount(codes)
    a, n = sizes.size, values.size
    if n == a:
        raise InputError.argument(
            "nested_draws",
            "y",
            n,
            f"values in {a} draws leave none to compare within",
            "give draws two values",
        )
    means = np.bincount(codes, values) / sizes
    between = float(sizes @ (means - values.mean()) ** 2)
    within = float(np.sum((values - means[codes]) ** 2))
    size = float((n - (sizes**2).sum() / n) / (a - 1))
    return DrawAnalysis(between / (a - 1), within / (n - a), a - 1, n - a, size)


def crossed_draws(y: npt.ArrayLike) -> DrawAnalysis:
    """Analyse values of draws that share their inputs, ``y = mean + draw + input + rest``.

    Parameters
    ----------
    y : array-like of float, shape [draws, inputs]
        The values.

    Returns
    -------
    DrawAnalysis
        Its variance within is that of the rest: what neither the draw nor the input explains.

    Raises
    ------
    InputError
        When there are fewer than two draws or inputs, or a value is not finite.

    Examples
    --------
    >>> analysis = crossed_draws([[1.0, 3.0], [4.0, 7.0]])
    >>> analysis.between_square, analysis.within_square, analysis.between
    (12.25, 0.25, 6.0)
    """
    table = as_numbers("crossed_draws", "y", y)
    if table.ndim != 2 or min(table.shape) < 2 or not np.isfinite(table).all():
        raise InputError.argument(
            "crossed_draws",
            "y",
            f"array of shape {table.shape}",
            "is no matrix of finite numbers of at least two draws and two inputs",
            "pass one row a draw, one column an input",
        )
    a, n = table.shape
    draws, inputs = table.mean(axis=1, keepdims=True), table.mean(axis=0, keepdims=True)
    between = n * float(np.sum((draws - table.mean()) ** 2))
    within = float(np.sum((table - draws - inputs + table.mean()) ** 2))
    df = (a - 1) * (n - 1)
    return DrawAnalysis(between / (a - 1), within / df, a - 1, df, float(n))


def draws_of(function: str, y: npt.ArrayLike, draw: npt.ArrayLike) -> tuple[FloatArray, IntArray]:
    """Return values and the number of their draw, or raise `InputError`."""
    values = as_column(function, "y", y)
    codes = as_numbers(function, "draw", draw)
    if codes.shape != values.shape:
        raise InputError.argument(
            function,
            "draw",
            f"array of shape {codes.shape}",
            f"does not fit {values.size} values",
            "pass one a value",
        )
    found, numbered = np.unique(codes, return_inverse=True)
    if found.size < 2:
        raise InputError.argument(
            function, "draw", found.size, "draws are too few to differ", "give at least two"
        )
    return values, numbered.astype(np.int64)
