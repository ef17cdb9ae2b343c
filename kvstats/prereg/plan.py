"""Plans: registrations whose every name, argument and rule was checked before any data is opened."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from kvstats.document import Document, Place, dotted, read_document
from kvstats.errors import InputError, nearest_name
from kvstats.estimators import ESTIMATORS
from kvstats.estimators.registry import ESTIMATOR_COLUMNS
from kvstats.expressions import check_expression
from kvstats.inference.design import Design
from kvstats.inference.result import RESULT_SCHEMA, Result
from kvstats.log.frames import INPUT_SCHEMA, REPLAY_SCHEMA, RUN_SCHEMA, Log
from kvstats.policies import POLICIES, POLICY_COLUMNS
from kvstats.prereg.arguments import check_arguments, check_name
from kvstats.prereg.chain import Chain, apply_amendments, chain_of
from kvstats.prereg.data import check_paths
from kvstats.prereg.rules import Rule, parse_rule
from kvstats.prereg.schema import (
    Claim,
    Family,
    Guard,
    PolicyStep,
    Question,
    Registration,
    decode_registration,
)

__all__ = ["ClaimPlan", "GuardPlan", "Plan", "PolicyPlan", "Query", "load_plan", "plan_document"]

COLUMN_TYPES = {**REPLAY_SCHEMA, **INPUT_SCHEMA, **RUN_SCHEMA, **POLICY_COLUMNS}
"""Types of the columns of the log contract, which by-columns may be of."""

ELSEWHERE = {
    **dict.fromkeys(COLUMN_TYPES, "results have it only when it is named in 'by'"),
    "p_value": "only claims have it, not guards",
    "p_adjusted": "only claims of a family have it",
}
"""Columns that a result may lack, and why."""


@dataclass(frozen=True)
class PolicyPlan:
    """A policy with its arguments."""

    step: PolicyStep

    def apply(self, log: Log) -> Log:
        """Return the log with the policy's arm."""
        return POLICIES[self.step.policy](log, **self.step.arguments)


@dataclass(frozen=True)
class Query:
    """An estimator with everything that it is to be asked."""

    name: str
    at: str
    estimator: str
    arguments: dict[str, Any]
    where: str | None
    by: tuple[str, ...]
    contrast: dict[str, tuple[Any, Any]]

    @property
    def row_columns(self) -> tuple[str, ...]:
        """By-columns of the answer."""
        return tuple(name for name in self.by if name not in self.contrast)

    def answer(self, log: Log, design: Design) -> Result:
        """Ask the log."""
        result = ESTIMATORS[self.estimator](
            log, **self.arguments, where=self.where, by=self.by or None, design=design
        )
        return result.contrast(**self.contrast) if self.contrast else result


@dataclass(frozen=True)
class GuardPlan:
    """A guard with its query and its rule."""

    guard: Guard
    query: Query
    holds: Rule


@dataclass(frozen=True)
class ClaimPlan:
    """A claim with its query and its rules."""

    claim: Claim
    query: Query
    supported: Rule
    killed: Rule | None
    in_family: bool

    @property
    def needs_p_value(self) -> bool:
        """Whether the verdict depends on a p-value, or one is asked for."""
        rules = [self.supported] + ([] if self.killed is None else [self.killed])
        named = any("p_value" in rule.columns for rule in rules)
        return named or self.in_family or self.claim.alternative != "two-sided"


@dataclass(frozen=True)
class Plan:
    """A registration that was read and checked, with its amendments applied."""

    document: Document
    chain: Chain
    registration: Registration
    design: Design
    policies: tuple[PolicyPlan, ...]
    guards: tuple[GuardPlan, ...]
    claims: tuple[ClaimPlan, ...]


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a registration and check everything in it that can be checked without data.

    Parameters
    ----------
    path : str or path-like
        The YAML file.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        ``{file}:{line}: {fault}; {remedy}``.
    """
    return plan_document(read_document(path))


def plan_document(document: Document) -> Plan:
    """Check a registration that was read, with its amendments applied."""
    registration = decode_registration(document)
    chain = chain_of(document)
    document = apply_amendments(document, registration)
    registration = decode_registration(document)
    check_paths(document, registration.data)
    check_ids(document, registration)
    family = family_members(document, registration.family, registration.claims)
    return Plan(
        document=document,
        chain=chain,
        registration=registration,
        design=build_design(document, registration),
        policies=tuple(
            plan_policy(document, ("policies", index), step)
            for index, step in enumerate(registration.policies)
        ),
        guards=tuple(
            plan_guard(document, ("guards", index), guard) for index, guard in enumerate(registration.guards)
        ),
        claims=tuple(
            plan_claim(document, ("claims", index), claim, claim.id in family)
            for index, claim in enumerate(registration.claims)
        ),
    )


def check_ids(document: Document, registration: Registration) -> None:
    """Refuse an id that a guard or claim before has."""
    seen: dict[str, int] = {}
    for block, questions in (("guards", registration.guards), ("claims", registration.claims)):
        for index, question in enumerate(questions):
            place: Place = (block, index, "id")
            if question.id in seen:
                raise document.error(
                    place,
                    f"{dotted(place)} is {question.id!r} again, first on line {seen[question.id]}",
                    "give each guard and claim an id of its own",
                )
            seen[question.id] = document.line(place)


def family_members(document: Document, family: Family | None, claims: Sequence[Claim]) -> set[str]:
    """Return the ids of the claims that share an error rate."""
    if family is None:
        return set()
    known = [claim.id for claim in claims]
    for index, name in enumerate(family.claims):
        place: Place = ("family", "claims", index)
        if name not in known:
            raise document.error(place, f"{dotted(place)} is no claim: {name!r}", nearest_name(name, known))
        if name in family.claims[:index]:
            raise document.error(place, f"{dotted(place)} names {name!r} again", "name each claim once")
    return set(family.claims or known)


def build_design(document: Document, registration: Registration) -> Design:
    """Return the design with its defaults, checked."""
    fields = msgspec.structs.asdict(registration.design)
    try:
        return Design(**{name: value for name, value in fields.items() if value is not msgspec.UNSET})
    except InputError as error:
        raise InputError(f"{document.at(('design',))}: {error}") from error


def plan_policy(document: Document, place: Place, step: PolicyStep) -> PolicyPlan:
    """Check the name and the arguments of a policy."""
    check_name(document, (*place, "policy"), "policy", step.policy, POLICIES)
    check_arguments(document, place, step.policy, POLICIES[step.policy], step.arguments)
    return PolicyPlan(step=step)


def plan_guard(document: Document, place: Place, guard: Guard) -> GuardPlan:
    """Check a guard's query and its rule."""
    query = plan_query(document, place, guard, f"guard {guard.id!r}", {})
    at = document.at((*place, "holds"))
    return GuardPlan(guard, query, parse_rule(at, "holds", guard.holds, result_columns(query), ELSEWHERE))


def plan_claim(document: Document, place: Place, claim: Claim, in_family: bool) -> ClaimPlan:
    """Check a claim's query and its rules."""
    contrast = {name: (values[0], values[1]) for name, values in claim.contrast.items()}
    query = plan_query(document, place, claim, f"claim {claim.id!r}", contrast)
    columns = {**result_columns(query), "p_value": pl.Float64()}
    if in_family:
        columns["p_adjusted"] = pl.Float64()

    def rule(field: str, text: str) -> Rule:
        return parse_rule(document.at((*place, field)), field, text, columns, ELSEWHERE)

    return ClaimPlan(
        claim=claim,
        query=query,
        supported=rule("supported", claim.supported),
        killed=None if claim.killed is None else rule("killed", claim.killed),
        in_family=in_family,
    )


def result_columns(query: Query) -> dict[str, pl.DataType | None]:
    """Return the columns that a rule may read, with their types as far as the log contract fixes them."""
    own = ESTIMATOR_COLUMNS.get(query.estimator, {})
    return {**own, **{name: COLUMN_TYPES.get(name) for name in query.row_columns}, **RESULT_SCHEMA}


def plan_query(
    document: Document, place: Place, question: Question, name: str, contrast: dict[str, tuple[Any, Any]]
) -> Query:
    """Check estimator, arguments, filter and by-columns of a guard or claim."""
    check_name(document, (*place, "estimator"), "estimator", question.estimator, ESTIMATORS)
    check_arguments(document, place, question.estimator, ESTIMATORS[question.estimator], question.arguments)
    if question.where is not None:
        check_expression(document.at((*place, "where")), "where", question.where)
    by = [question.by] if isinstance(question.by, str) else question.by
    if len(set(by)) < len(by):
        raise document.error((*place, "by"), f"{dotted(place)}.by names a column twice", "name each once")
    for column, (first, second) in contrast.items():
        if first == second:
            raise document.error(
                (*place, "contrast", column),
                f"{dotted(place)}.contrast compares {first!r} with itself",
                "name two different values",
            )
    return Query(
        name=name,
        at=document.at(place),
        estimator=question.estimator,
        arguments=question.arguments,
        where=question.where,
        by=tuple(dict.fromkeys([*by, *contrast])),
        contrast=contrast,
    )
