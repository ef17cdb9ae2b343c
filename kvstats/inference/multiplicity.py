"""P-values adjusted for a family of tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kvstats.errors import InputError, nearest_name
from kvstats.statistics.statistic import FloatArray

__all__ = ["METHODS", "adjust"]

METHODS = ("bh", "by", "holm", "bonferroni", "none")
"""Names of the adjustments."""


def adjust(p_values: Sequence[float | None], method: str = "bh") -> FloatArray:
    """Adjust p-values for the family that they form.

    Parameters
    ----------
    p_values : sequence of float or None, length m
        P-values in [0, 1]. An undefined one (None) counts as 1 and stays in the family: a test that was
        registered and could not be made is no reason to be kinder to the others.
    method : {"bh", "by", "holm", "bonferroni", "none"}
        ``bh`` (Benjamini-Hochberg) controls the false discovery rate of independent or positively dependent
        tests, ``by`` (Benjamini-Yekutieli) of any; ``holm`` and ``bonferroni`` control the probability
        of any false rejection.

    Returns
    -------
    array of float, shape [m]
        Adjusted p-values in [0, 1], in the given order; empty for an empty family.

    Raises
    ------
    InputError
        When a p-value is not in [0, 1] or the method is not known.

    References
    ----------
    .. [1] Benjamini and Hochberg, Journal of the Royal Statistical Society B 57, 1995.
    .. [2] Benjamini and Yekutieli, Annals of Statistics 29, 2001.
    .. [3] Holm, Scandinavian Journal of Statistics 6, 1979.

    Examples
    --------
    >>> adjust([0.01, 0.04, None, 0.03]).round(4).tolist()
    [0.04, 0.0533, 1.0, 0.0533]
    >>> adjust([0.01, 0.04, None, 0.03], method="holm").round(4).tolist()
    [0.04, 0.09, 1.0, 0.09]
    """
    if method not in METHODS:
        raise InputError.argument(
            "adjust", "method", method, "is not known", nearest_name(str(method), METHODS)
        )
    family = np.array([1.0 if p is None else p for p in p_values], dtype=np.float64)
    outside = family[~((family >= 0) & (family <= 1))]
    if outside.size:
        raise InputError.argument(
            "adjust", "p_values", float(outside[0]), "is no probability", "pass p-values in [0, 1], or None"
        )
    if family.size == 0 or method == "none":
        return family
    if method == "bonferroni":
        return np.minimum(family * family.size, 1.0)
    order = np.argsort(family, kind="stable")
    ranks = np.arange(1, family.size + 1)
    if method == "holm":
        stepped = np.maximum.accumulate(family[order] * ranks[::-1])
    else:
        factor = family.size * (np.sum(1 / ranks) if method == "by" else 1.0)
        stepped = np.minimum.accumulate((family[order] * factor / ranks)[::-1])[::-1]
    adjusted = np.empty(family.size)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
