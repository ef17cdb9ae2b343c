"""Numbers given once for everything, or by model, task, condition, arm or budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from kvstats.errors import InputError

__all__ = ["Rate", "rate_at"]

Rate = float | Mapping[Any, "Rate"]
"""A share; or a mapping from the names of one dimension to shares, or to mappings of another dimension."""


def rate_at(
    function: str, argument: str, rate: Rate, names: Mapping[str, Sequence[Any]], place: Mapping[str, Any]
) -> float:
    """Return the share that holds in one place.

    Parameters
    ----------
    function, argument : str
        For messages.
    rate : Rate
        The share. The keys of a mapping say what it depends on: they are the names of one dimension, all of
        them.
    names : mapping of str to sequence
        The names of each dimension that the share may depend on.
    place : mapping of str to name
        One name for each dimension.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    InputError
        When the keys of a mapping are not the names of exactly one dimension, or a share is not in [0, 1].

    Examples
    --------
    >>> names = {"task": ("qa", "code"), "budget": (0.25, 0.5)}
    >>> rate = {"qa": {0.25: 0.2, 0.5: 0.1}, "code": 0.0}
    >>> rate_at("f", "harm", rate, names, {"task": "qa", "budget": 0.5})
    0.1
    >>> rate_at("f", "harm", rate, names, {"task": "code", "budget": 0.5})
    0.0
    """
    if isinstance(rate, Mapping):
        fitting = [dimension for dimension, values in names.items() if set(values) == set(rate)]
        if len(fitting) != 1:
            known = "; ".join(f"{dimension}: {', '.join(map(str, v))}" for dimension, v in names.items())
            raise InputError.argument(
                function,
                argument,
                dict(rate),
                "has keys that are not the names of exactly one dimension",
                f"name all of one of these, or pass one number ({known})",
            )
        others = {dimension: values for dimension, values in names.items() if dimension != fitting[0]}
        return rate_at(function, argument, rate[place[fitting[0]]], others, place)
    if isinstance(rate, bool) or not isinstance(rate, Real) or not math.isfinite(rate) or not 0 <= rate <= 1:
        raise InputError.argument(
            function, argument, rate, "is not a share in [0, 1]", "pass one such as 0.1"
        )
    return float(rate)
