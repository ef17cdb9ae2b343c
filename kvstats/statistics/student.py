"""Quantiles of Student's t distribution."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

from kvstats.statistics.statistic import FloatArray

__all__ = ["student_quantile", "student_ratio"]

SMALLEST_RATIO = 1e-100
"""Keeps effective sizes above 0 where t quantiles overflow."""


def student_quantile(tail: float, df: npt.ArrayLike) -> FloatArray:
    """Return the upper quantile of Student's t distribution.

    Examples
    --------
    >>> student_quantile(0.025, [10, 1e9]).round(3).tolist()
    [2.228, 1.96]
    """
    return np.asarray(-special.stdtrit(df, tail))


def student_density_at_zero(df: FloatArray) -> FloatArray:
    """Return the density of Student's t distribution at 0."""
    return np.asarray(np.exp(special.gammaln((df + 1) / 2) - special.gammaln(df / 2)) / np.sqrt(np.pi * df))


def student_ratio(n: npt.ArrayLike, df: npt.ArrayLike, tail: float) -> FloatArray:
    """Return the squared ratio of upper t quantiles with n - 1 and with df degrees of freedom, at most 1.

    It shrinks an effective size for the few degrees of freedom that its standard error rests on. At
    ``tail = 0.5``, where both quantiles are 0, it is the limit.

    Examples
    --------
    >>> student_ratio(80, 9, 0.025).round(4).tolist()
    0.7742
    """
    rows, freedom = np.asarray(n, dtype=np.float64), np.asarray(df, dtype=np.float64)
    if abs(tail - 0.5) < 1e-4:
        ratio = student_density_at_zero(freedom) / student_density_at_zero(rows - 1)
    else:
        ratio = student_quantile(tail, rows - 1) / student_quantile(tail, freedom)
    return np.asarray(np.clip(ratio**2, SMALLEST_RATIO, 1.0))
