"""The register of estimators, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Concatenate, ParamSpec

from kvstats.inference.result import Result
from kvstats.log.frames import Log

__all__ = ["ESTIMATORS", "estimator"]

P = ParamSpec("P")

ESTIMATORS: dict[str, Callable[..., Result]] = {}
"""Every estimator by its name; what a registration may name."""

COMMON = ("where", "by", "design")


def estimator(function: Callable[Concatenate[Log, P], Result]) -> Callable[Concatenate[Log, P], Result]:
    """Register an estimator under its own name.

    Its signature must be ``(log, *, <own arguments>, where=None, by=None, design=DEFAULT_DESIGN)``.

    Parameters
    ----------
    function : callable
        The estimator.

    Returns
    -------
    callable
        The same function.

    Raises
    ------
    TypeError
        When the signature is another, or the name is taken.

    Examples
    --------
    >>> from kvstats.estimators import ESTIMATORS
    >>> ESTIMATORS["accuracy"].__name__
    'accuracy'
    """
    first, *rest = inspect.signature(function).parameters.values()
    if (
        first.name != "log"
        or any(p.kind is not inspect.Parameter.KEYWORD_ONLY for p in rest)
        or tuple(p.name for p in rest[-3:]) != COMMON
        or any(p.default is inspect.Parameter.empty for p in rest[-3:])
    ):
        raise TypeError(
            f"estimator: {function.__name__} must have the signature "
            "(log, *, <own arguments>, where=None, by=None, design=DEFAULT_DESIGN)"
        )
    if function.__name__ in ESTIMATORS:
        raise TypeError(f"estimator: the name {function.__name__} is taken")
    ESTIMATORS[function.__name__] = function
    return function
