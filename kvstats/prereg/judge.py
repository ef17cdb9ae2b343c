"""Judging guards and claims: their questions are asked of the log, and the answers decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from kvstats.errors import InputError
from kvstats.inference.multiplicity import adjust
from kvstats.inference.result import Result
from kvstats.log.frames import Log
from kvstats.prereg.display import row_label
from kvstats.prereg.outcome import ClaimOutcome, GuardOutcome
from kvstats.prereg.plan import ClaimPlan, GuardPlan, Plan
from kvstats.prereg.schema import AtLeast
from kvstats.prereg.verdict import Decision, combined_p_value, decide, quantified

__all__ = ["claim_outcome", "guard_outcome", "judge_claims", "judge_guard"]


def judge_guard(plan: GuardPlan, log: Log, whole: Plan) -> GuardOutcome:
    """Ask a guard's question; it holds when its rule is true in every row, and there are rows."""
    result = plan.query.answer(log, whole.design)
    rows = tuple(result.frame.iter_rows(named=True))
    values = plan.holds.values(result.frame)
    holds = quantified(values, "all") is True
    failing = [row for row, value in zip(rows, values, strict=True) if value is not True]
    reason = f"{plan.guard.holds} holds in {len(rows) - len(failing)} of {len(rows)} rows"
    if failing:
        first = failing[0]
        label = row_label(first)
        reason += f"; estimate {first['estimate']!r}, status {first['status']!r}" + (
            f" in {label}" if label else ""
        )
    return guard_outcome(plan, holds, reason, rows)


def guard_outcome(
    plan: GuardPlan, holds: bool | None, reason: str, rows: tuple[dict[str, Any], ...]
) -> GuardOutcome:
    """Return what is reported of a guard."""
    return GuardOutcome(
        id=plan.guard.id,
        statement=plan.guard.statement,
        estimator=plan.guard.estimator,
        arguments=plan.guard.arguments,
        where=plan.guard.where,
        by=plan.query.by,
        rule=plan.guard.holds,
        holds=holds,
        reason=reason,
        rows=rows,
    )


@dataclass(frozen=True)
class Answer:
    """The result of a claim's query, with p-values where a null value is known."""

    frame: pl.DataFrame
    p_values: tuple[float | None, ...]


def ask(plan: ClaimPlan, log: Log, whole: Plan) -> Answer:
    """Ask a claim's question of the log."""
    result = plan.query.answer(log, whole.design)
    missing: tuple[float | None, ...] = (None,) * result.frame.height
    return Answer(result.frame, p_values_of(plan, result) or missing)


def p_values_of(plan: ClaimPlan, result: Result) -> tuple[float | None, ...] | None:
    """Return the rows' p-values, or None when no null value is known and none is needed."""
    if plan.claim.null is None and result.null is None:
        if not plan.needs_p_value:
            return None
        raise InputError(
            f"{plan.query.at}: {plan.query.name}: needs a p-value, and {result.estimator} has no null value "
            "of its own; give 'null'"
        )
    try:
        return tuple(result.p_value(plan.claim.null, plan.claim.alternative)["p_value"])
    except InputError as error:
        raise plan.query.error(error) from error


def judge_claims(plan: Plan, selected: Sequence[ClaimPlan], log: Log) -> tuple[ClaimOutcome, ...]:
    """Ask the questions of the selected claims and of their family, and decide the selected ones."""
    wanted = {claim.claim.id for claim in selected}
    with_family = any(claim.in_family for claim in selected)
    asked = {
        claim.claim.id: ask(claim, log, plan)
        for claim in plan.claims
        if claim.claim.id in wanted or (with_family and claim.in_family)
    }
    adjusted = adjusted_p_values(plan, asked)
    return tuple(judge_claim(claim, asked[claim.claim.id], adjusted, plan) for claim in selected)


def adjusted_p_values(plan: Plan, asked: dict[str, Answer]) -> dict[str, float]:
    """Return the adjusted p-value of each claim of the family."""
    family = plan.registration.family
    members = [claim for claim in plan.claims if claim.in_family and claim.claim.id in asked]
    if family is None or not members:
        return {}
    combined = [
        combined_p_value(asked[member.claim.id].p_values, member.claim.quantifier) for member in members
    ]
    adjusted = adjust(combined, family.method)
    return {member.claim.id: float(p) for member, p in zip(members, adjusted, strict=True)}


def judge_claim(plan: ClaimPlan, answer: Answer, adjusted: dict[str, float], whole: Plan) -> ClaimOutcome:
    """Decide a claim."""
    p_adjusted = adjusted.get(plan.claim.id)
    frame = answer.frame.with_columns(
        pl.Series("p_value", answer.p_values, dtype=pl.Float64),
        pl.lit(p_adjusted, dtype=pl.Float64).alias("p_adjusted"),
    )
    rows = tuple(frame.iter_rows(named=True))
    family = whole.registration.family
    decision = decide(
        labels=[row_label(row) for row in rows],
        statuses=[row["status"] for row in rows],
        supported=(plan.supported.text, plan.supported.values(frame)),
        killed=None if plan.killed is None else (plan.killed.text, plan.killed.values(frame)),
        quantifier=plan.claim.quantifier,
        family=None if family is None or p_adjusted is None else (p_adjusted, family.level),
    )
    return claim_outcome(plan, decision, rows)


def claim_outcome(plan: ClaimPlan, decision: Decision, rows: tuple[dict[str, Any], ...]) -> ClaimOutcome:
    """Return what is reported of a claim."""
    claim, quantifier = plan.claim, plan.claim.quantifier
    return ClaimOutcome(
        id=claim.id,
        statement=claim.statement,
        estimator=claim.estimator,
        arguments=claim.arguments,
        where=claim.where,
        by=plan.query.row_columns,
        contrast=plan.query.contrast,
        quantifier=f"at least {quantifier.at_least}" if isinstance(quantifier, AtLeast) else quantifier,
        null=claim.null,
        alternative=claim.alternative,
        supported=claim.supported,
        killed=claim.killed,
        verdict=decision.verdict,
        reason=decision.reason,
        fired=decision.rule,
        in_family=plan.in_family,
        rows=rows,
    )
