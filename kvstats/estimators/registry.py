"""The register of estimators, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Concatenate, ParamSpec

import polars as pl

from kvstats.inference.result import Result
from kvstats.log.frames import Log

__all__ = ["ESTIMATORS", "ESTIMATOR_COLUMNS", "estimator", "table_estimator"]

P = ParamSpec("P")

ESTIMATORS: dict[str, Callable[..., Result]] = {}
"""Every estimator by its name; what a registration may name."""

ESTIMATOR_COLUMNS: dict[str, dict[str, pl.DataType]] = {}
"""By-columns of its own that an estimator's result has, with their types, by the estimator's name."""

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
        When the signature is another, or another module has taken the name.

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
    known = ESTIMATORS.get(function.__name__)
    # A module that is executed again, as by a reload, registers its functions again.
    if known is not None and known.__module__ != function.__module__:
        raise TypeError(f"estimator: the name {function.__name__} is taken")
    ESTIMATORS[function.__name__] = function
    return function


def table_estimator(
    **columns: pl.DataType,
) -> Callable[[Callable[Concatenate[Log, P], Result]], Callable[Concatenate[Log, P], Result]]:
    """Register an estimator whose result has by-columns of its own, as `estimator` does any other.

    Parameters
    ----------
    **columns : polars.DataType
        The names of these columns and their types; rules of registrations may read them.

    Returns
    -------
    callable
        The decorator.

    Raises
    ------
    TypeError
        As `estimator` does.

    Examples
    --------
    >>> from kvstats.estimators.registry import ESTIMATOR_COLUMNS
    >>> ESTIMATOR_COLUMNS.get("accuracy", {})
    {}
    """

    def register(
        function: Callable[Concatenate[Log, P], Result],
    ) -> Callable[Concatenate[Log, P], Result]:
        registered = estimator(function)
        ESTIMATOR_COLUMNS[function.__name__] = columns
        return registered

    return register
