"""Virtual arms that cannot be added to a log, and the questions that need them.

A policy that the log refuses, such as one that needs a budget it lacks, leaves undefined what asks for its
arm, and nothing else.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from kvstats.errors import InputError
from kvstats.estimators import ESTIMATORS
from kvstats.expressions import check_expression
from kvstats.log.frames import Log
from kvstats.policies import POLICIES
from kvstats.prereg.plan import Plan, Query
from kvstats.selection import truth
from kvstats.tables import FULL

__all__ = ["VirtualArm", "add_policies", "arms_behind", "refusal"]


@dataclass(frozen=True)
class VirtualArm:
    """A policy's arm: its name, the names in its policy's arguments, and why it could not be added."""

    name: str
    sources: frozenset[str]
    error: str | None


def add_policies(plan: Plan, log: Log) -> tuple[Log, tuple[VirtualArm, ...]]:
    """Add the arm of each policy that the log admits.

    Returns
    -------
    Log, tuple of VirtualArm
        The log with these arms, and for each policy, in its order, what became of it.
    """
    arms: list[VirtualArm] = []
    for policy in plan.policies:
        values = effective(POLICIES[policy.step.policy], policy.step.arguments)
        name, names = str(values.pop("name")), frozenset(texts_in(values))
        error = missing_source(names, arms)
        if error is None:
            try:
                log = policy.apply(log)
            except InputError as refused:
                error = f"policy {policy.step.policy!r}: {refused}"
        arms.append(VirtualArm(name, names, error))
    return log, tuple(arms)


def missing_source(names: frozenset[str], arms: list[VirtualArm]) -> str | None:
    """Say which arm a policy needs that could not be added."""
    for arm in arms:
        if arm.error is not None and arm.name in names:
            return f"the arm {arm.name!r} could not be added: {arm.error}"
    return None


def refusal(query: Query, arms: tuple[VirtualArm, ...], log: Log) -> str | None:
    """Say which arm a question needs that could not be added; None where it needs none such.

    A question about runs that names no arm is about all arms, save those that its `where` leaves out.
    """
    for arm in arms:
        if arm.error is not None and concerns(query, arm.name, log):
            return f"the arm {arm.name!r} could not be added: {arm.error}"
    return None


def concerns(query: Query, arm: str, log: Log) -> bool:
    """Say whether a question asks for an arm that the log has not."""
    values = effective(ESTIMATORS[query.estimator], query.arguments)
    named = {*texts_in(values), *texts_in(list(query.contrast.values()))}
    if arm in named or (query.where is not None and f"'{arm}'" in query.where):
        return True
    if "arm" not in values or values["arm"] is not None:
        return False
    if query.where is None:
        return True
    rows = log.runs.with_columns(pl.lit(arm).alias("arm"))
    columns = check_expression("verify", "where", query.where).meta.root_names()
    try:
        return not set(columns) <= set(rows.columns) or bool(truth(rows, query.where, "verify").any())
    except InputError:
        # Whatever is wrong with the condition, the estimator says it better.
        return False


def arms_behind(query: Query, arms: tuple[VirtualArm, ...], log: Log) -> frozenset[str] | None:
    """Return the arms that a question rests on: those it names and those behind virtual ones; None for all.

    A question about runs that names no arm is about all of them, and so is one about cells or inputs.
    """
    known = {*log.runs["arm"].unique(), *log.replays["arm"].unique()}
    values = effective(ESTIMATORS[query.estimator], query.arguments)
    names = set(texts_in(values))
    if values.get("arm", values.get("base")) is None and not (names & known and "arm" not in values):
        return None
    for arm in reversed(arms):
        if arm.name in names:
            names |= arm.sources
    if FULL not in known and FULL in names:
        # The rows of arm 'plain' at budget 1 stand for it.
        names.add("plain")
    return frozenset(names & known)


def effective(function: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a function's own arguments, defaults included."""
    parameters = inspect.signature(function).parameters
    return {
        name: arguments.get(name, parameter.default)
        for name, parameter in parameters.items()
        if name not in ("log", "where", "by", "design")
    }


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in nested mappings and sequences."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_in(item)
