"""P-values and e-values adjusted for a family of tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np
import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.statistics.statistic import FloatArray

__all__ = ["METHODS", "adjust", "adjust_e_values"]

METHODS = ("bh", "by", "holm", "bonferroni", "none")
"""Names of the adjustments."""


@overload
def adjust(p_values: pl.DataFrame, method: str = "bh") -> pl.DataFrame: ...


@overload
def adjust(p_values: Sequence[float | None], method: str = "bh") -> FloatArray: ...


def adjust(p_values: Sequence[float | None] | pl.DataFrame, method: str = "bh") -> FloatArray | pl.DataFrame:
    """Adjust p-values for the family that they form.

    Parameters
    ----------
    p_values : sequence of float or None, length m, or polars.DataFrame
        What `Result.p_value` returns, all of it one family, or p-values in [0, 1]. An undefined one (None)
        counts as 1 and stays in the family: a test that was registered and could not be made is no reason to
        be kinder to the others.
    method : {"bh", "by", "holm", "bonferroni", "none"}
        ``bh`` (Benjamini-Hochberg) controls the false discovery rate of independent or positively dependent
        tests, ``by`` (Benjamini-Yekutieli) of any; ``holm`` and ``bonferroni`` control the probability
        of any false rejection.

    Returns
    -------
    array of float, shape [m], or polars.DataFrame
        Adjusted p-values in [0, 1], in the given order; empty for an empty family. For a frame the same with
        the column ``p_adjusted``, so that each stands beside what it is of.

    Raises
    ------
    InputError
        When a p-value is not in [0, 1], the method is not known, or a frame has no column ``p_value``.

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
    >>> adjust(pl.DataFrame({"task": ["qa", "code"], "p_value": [0.01, 0.04]})).rows()
    [('qa', 0.01, 0.02), ('code', 0.04, 0.04)]
    """
    if isinstance(p_values, pl.DataFrame):
        if "p_value" not in p_values.columns:
            raise InputError.argument(
                "adjust",
                "p_values",
                p_values.columns,
                "has no column p_value",
                "pass what Result.p_value returns",
            )
        adjusted_values = adjust(p_values["p_value"].to_list(), method)
        return p_values.with_columns(pl.Series("p_adjusted", adjusted_values, dtype=pl.Float64))
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
    if method in ("bh", "by"):
        # Here and not above, because importing scipy.stats takes longer than importing all of this library.
        from scipy.stats import false_discovery_control

        return np.asarray(false_discovery_control(family, method=method), dtype=np.float64)
    order = np.argsort(family, kind="stable")
    stepped = np.maximum.accumulate(family[order] * np.arange(family.size, 0, -1))
    adjusted = np.empty(family.size)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def adjust_e_values(e_values: Sequence[float | None]) -> FloatArray:
    r"""Return the smallest level at which the e-BH procedure rejects each hypothesis of a family.

    With the e-values in descending order, :math:`e_{(1)} \ge e_{(2)} \ge \dots`, e-BH at level
    :math:`\alpha` rejects the k largest, for the greatest k with :math:`k\, e_{(k)} \ge m / \alpha`. The
    false discovery rate is then at most :math:`\alpha` under any dependence between the e-values [1]_.

    Parameters
    ----------
    e_values : sequence of float or None, length m
        E-values, at least 0; infinite ones are allowed. An undefined one (None) counts as 0 and stays in
        the family.

    Returns
    -------
    array of float, shape [m]
        Levels in [0, 1], in the given order, to be read as adjusted p-values: those of Benjamini-Hochberg
        for p-values of min(1, 1 / e). Empty for an empty family.

    Raises
    ------
    InputError
        When an e-value is negative or NaN.

    References
    ----------
    .. [1] Wang and Ramdas, Journal of the Royal Statistical Society B 84, 2022, theorem 2.

    Examples
    --------
    >>> adjust_e_values([100.0, 20.0, None, 1.0]).tolist()
    [0.04, 0.1, 1.0, 1.0]
    """
    family = np.array([0.0 if e is None else e for e in e_values], dtype=np.float64)
    outside = family[~(family >= 0)]
    if outside.size:
        raise InputError.argument(
            "adjust_e_values",
            "e_values",
            float(outside[0]),
            "is no e-value",
            "pass numbers of at least 0, or None",
        )
    levels: list[float | None] = (1 / np.maximum(family, 1.0)).tolist()
    return adjust(levels, "bh")
