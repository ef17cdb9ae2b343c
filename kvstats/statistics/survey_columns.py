"""Columns of a survey sample: values and domains of its units, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from kvstats.errors import InputError
from kvstats.statistics.survey_sample import SurveySample

__all__ = ["as_domain", "as_values"]


def as_values(function: str, argument: str, values: Any, sample: SurveySample, inside: Any) -> Any:
    """Return values of the sampled units as an array of float like the sample's, shape [k] or [k, d].

    Units that are not inside a domain, a mask of shape [k], need no value: NaN there becomes 0.

    Raises
    ------
    InputError
        When they are of another array library, do not fit the sample, or are not finite inside.
    """
    pi = sample.inclusion_probability
    xp = array_namespace(pi)
    if not is_array_api_obj(values):
        values = xp.asarray(values, dtype=pi.dtype, device=pi.device)
    elif array_namespace(values) is not xp:
        raise InputError.argument(
            function,
            argument,
            f"a {type(values).__module__} array",
            "is not of the sample's kind",
            "convert one",
        )
    if not xp.isdtype(values.dtype, "real floating"):
        values = xp.astype(values, pi.dtype)
    if values.ndim not in (1, 2) or values.shape[0] != sample.size:
        raise InputError.argument(
            function,
            argument,
            f"array of shape {tuple(values.shape)}",
            f"does not fit {sample.size} sampled units",
            "pass one value, or one row, for each sampled unit",
        )
    values = xp.where(inside if values.ndim == 1 else inside[:, None], values, xp.zeros_like(values))
    if not bool(xp.all(xp.isfinite(values))):
        raise InputError.argument(
            function,
            argument,
            "an array",
            "is not finite",
            "leave units without a value out on purpose, by a domain",
        )
    return values


def as_domain(function: str, domain: Any, sample: SurveySample) -> Any:
    """Return a domain as a mask of the sampled units, shape [k]; all of them without one.

    Raises
    ------
    InputError
        When it is no mask of the sample.
    """
    pi = sample.inclusion_probability
    xp = array_namespace(pi)
    if domain is None:
        return xp.ones_like(pi, dtype=xp.bool)
    mask = domain if is_array_api_obj(domain) else np.asarray(domain)
    if array_namespace(mask) is not xp:
        mask = xp.asarray(mask, device=pi.device)
    if mask.dtype != xp.bool or tuple(mask.shape) != (sample.size,):
        raise InputError.argument(
            function,
            "domain",
            f"{mask.dtype} array of shape {tuple(mask.shape)}",
            f"is no mask of {sample.size} sampled units",
            "pass True or False for each",
        )
    return mask
