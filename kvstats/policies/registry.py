"""The register of policies, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Concatenate, ParamSpec

import polars as pl

from kvstats.log.frames import Log

__all__ = ["POLICIES", "POLICY_COLUMNS", "policy"]

P = ParamSpec("P")

POLICIES: dict[str, Callable[..., Log]] = {}
"""Every policy by its name; what a registration may name."""

POLICY_COLUMNS: dict[str, pl.DataType] = {
    "gate_open": pl.Boolean(),
    "in_pilot": pl.Boolean(),
    "rerun": pl.Float64(),
}
"""Columns of runs that policies add, null for arms that were run: what the policy decided."""


def policy(function: Callable[Concatenate[Log, P], Log]) -> Callable[Concatenate[Log, P], Log]:
    """Register a policy under its own name.

    Its signature must be ``(log, *, <own arguments>)``, with an argument ``name`` for the new arm.

    Parameters
    ----------
    function : callable
        The policy.

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
    >>> from kvstats.policies import POLICIES
    >>> POLICIES["gate"].__name__
    'gate'
    """
    first, *rest = inspect.signature(function).parameters.values()
    if (
        first.name != "log"
        or any(parameter.kind is not inspect.Parameter.KEYWORD_ONLY for parameter in rest)
        or "name" not in [parameter.name for parameter in rest]
    ):
        raise TypeError(
            f"policy: {function.__name__} must have the signature (log, *, <own arguments>), with 'name'"
        )
    known = POLICIES.get(function.__name__)
    # A module that is executed again, as by a reload, registers its functions again.
    if known is not None and known.__module__ != function.__module__:
        raise TypeError(f"policy: the name {function.__name__} is taken")
    POLICIES[function.__name__] = function
    return function
