"""The kept part of an attention read, checked, without what stands in the place of evicted units."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from kvstats.errors import InputError

__all__ = ["as_floats", "kept_part", "kept_sum", "refuse_unless_finite"]


def kept_part(
    function: str, logits: Any, values: Any, inclusion_probability: Any, kept: Any
) -> tuple[Any, Any, Any]:
    """Return logits, values and probabilities in one type of float: -inf and 1 for units that were not kept.

    Parameters
    ----------
    function : str
        Name for the errors.
    logits, values, inclusion_probability, kept : array
        As for `attention_certificate`.

    Raises
    ------
    InputError
        A read keeps no unit, or a kept unit has a probability outside (0, 1] or a logit that is not finite.

    Examples
    --------
    >>> shown, _, pi = kept_part(
    ...     "f", np.array([0, 7]), np.array([[1], [2]]), np.array([0.5, 0.5]), np.array([True, False]))
    >>> shown, pi
    (array([  0., -inf]), array([0.5, 1. ]))
    """
    logits, values, pi = as_floats(logits, values, inclusion_probability)
    xp = array_namespace(logits, kept)
    if bool(xp.any(kept & ~((pi > 0) & (pi <= 1)))):
        raise InputError.argument(
            function,
            "inclusion_probability",
            "an array",
            "is outside (0, 1] for a kept unit",
            "pass the design's own",
        )
    if not bool(xp.all(xp.any(kept, axis=-1))):
        raise InputError.argument(
            function, "kept", "an array", "keeps no unit of a read", "keep at least one"
        )
    refuse_unless_finite(
        function, "logits", xp.where(kept, logits, xp.zeros_like(logits)), " for a kept unit"
    )
    shown = xp.where(kept, logits, xp.full_like(logits, -math.inf))
    return shown, values, xp.where(kept, pi, xp.ones_like(logits))


def kept_sum(function: str, weight: Any, values: Any, kept: Any) -> tuple[Any, Any]:
    """Return the weighted sum of the kept values, and the values, masked where one of them is not finite.

    Parameters
    ----------
    function : str
        Name for the errors.
    weight : array of float, shape (..., n)
        At least 0; 0 for the units that were not kept.
    values : array of float, shape (..., n, d)
        Value vectors; those of units that were not kept may be anything, such as the NaN of a freed slot.
    kept : array of bool, shape (..., n)
        The sample.

    Returns
    -------
    total : array, shape (..., d)
    values : array, shape (..., n, d)
        Finite.

    Raises
    ------
    InputError
        A kept value is not finite.

    Examples
    --------
    >>> kept_sum("f", np.array([2.0, 0.0]), np.array([[1.0], [np.nan]]), np.array([True, False]))
    (array([2.]), array([[1.],
           [0.]]))
    """
    xp = array_namespace(weight, values)
    with np.errstate(invalid="ignore"):
        total = xp.sum(weight[..., None] * values, axis=-2)
    # 0 times a number that is not finite is NaN: a finite sum has no such number, and values need no mask.
    if bool(xp.all(xp.isfinite(total))):
        return total, values
    masked = xp.where(kept[..., None], values, xp.zeros_like(values))
    refuse_unless_finite(function, "values", masked, " for a kept unit")
    return xp.sum(weight[..., None] * masked, axis=-2), masked


def as_floats(*arrays: Any) -> tuple[Any, ...]:
    """Return arrays in one type of float: the one that holds them all, else the default."""
    xp = array_namespace(*arrays)
    dtype = xp.result_type(*arrays)
    if not xp.isdtype(dtype, "real floating"):
        dtype = xp.__array_namespace_info__().default_dtypes()["real floating"]
    return tuple(xp.astype(array, dtype, copy=False) for array in arrays)


def refuse_unless_finite(function: str, argument: str, array: Any, where: str = "") -> None:
    """Raise unless all numbers of an array are finite."""
    xp = array_namespace(array)
    if not bool(xp.all(xp.isfinite(array))):
        raise InputError.argument(
            function, argument, "an array", f"is not finite{where}", "look for an overflow upstream"
        )
