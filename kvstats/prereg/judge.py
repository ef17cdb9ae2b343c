"""Judging guards and claims: their questions are asked of the log, and the answers decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from kvstats.errors import InputError
from kvstats.inference.design import Design
from kvstats.inference.multiplicity import adjust
from kvstats.inference.result import Result
from kvstats.log.frames import Log
from kvstats.prereg.claim_evidence import ClaimEvidence, evidence_fault
from kvstats.prereg.display import row_label
from kvstats.prereg.isolation import VirtualArm, refusal
from kvstats.prereg.outcome import ClaimOutcome, GuardOutcome, RuleOutcome
from kvstats.prereg.plan import ClaimPlan, GuardPlan, Plan, Query
from kvstats.prereg.rules import Rule
from kvstats.prereg.schema import AtLeast
from kvstats.prereg.verdict import Decision, combined_p_value, decide, explored, quantified, row_verdicts

__all__ = [
    "Answer",
    "ask",
    "ask_all",
    "claim_outcome",
    "decide_claim",
    "decide_claims",
    "guard_outcome",
    "judge_guard",
]


def judge_guard(plan: GuardPlan, log: Log, whole: Plan, arms: tuple[VirtualArm, ...]) -> GuardOutcome:
    """Ask a guard's question; it holds when its rule is true in every row, and there are rows."""
    asked = answered(plan.query, log, whole.design, arms)
    if isinstance(asked, str):
        return guard_outcome(plan, False, f"cannot be asked of these logs: {asked}", ())
    rows = tuple(asked.frame.iter_rows(named=True))
    values = plan.holds.values(asked.frame)
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


def answered(query: Query, log: Log, design: Design, arms: tuple[VirtualArm, ...]) -> Result | str:
    """Ask a question, or say why the log refuses it."""
    missing = refusal(query, arms, log)
    if missing is not None:
        return missing
    try:
        return query.answer(log, design)
    except InputError as error:
        return str(error)


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
    """The result of a claim's query, with p-values where a null value is known, or why there is none."""

    frame: pl.DataFrame
    p_values: tuple[float | None, ...]
    error: str | None = None


def ask(plan: ClaimPlan, log: Log, design: Design, arms: tuple[VirtualArm, ...]) -> Answer:
    """Ask a claim's question of the log."""
    result = answered(plan.query, log, design, arms)
    if isinstance(result, str):
        return Answer(pl.DataFrame(), (), result)
    if plan.claim.null is None and result.null is None:
        if plan.needs_p_value:
            raise InputError(
                f"{plan.query.at}: {plan.query.name}: needs a p-value, and {result.estimator} has no null "
                "value of its own; give 'null'"
            )
        return Answer(result.frame, (None,) * result.frame.height)
    try:
        p_values = result.p_value(plan.claim.null, plan.claim.alternative)["p_value"]
    except InputError as error:
        return Answer(pl.DataFrame(), (), str(error))
    return Answer(result.frame, tuple(p_values))


def ask_all(
    plan: Plan, selected: Sequence[ClaimPlan], question: Callable[[ClaimPlan], Answer]
) -> dict[str, Answer]:
    """Ask the questions of the selected claims and of their family."""
    return {claim.claim.id: question(claim) for claim in asked_claims(plan, selected)}


def asked_claims(plan: Plan, selected: Sequence[ClaimPlan]) -> tuple[ClaimPlan, ...]:
    """Return the selected claims and their family, in the order of the registration."""
    wanted = {claim.claim.id for claim in selected}
    with_family = any(claim.in_family for claim in selected)
    return tuple(
        claim for claim in plan.claims if claim.claim.id in wanted or (with_family and claim.in_family)
    )


def decide_claims(
    plan: Plan,
    selected: Sequence[ClaimPlan],
    answers: Mapping[str, Answer],
    evidence: Callable[[ClaimPlan], ClaimEvidence | None],
) -> tuple[ClaimOutcome, ...]:
    """Decide the selected claims by what was answered to them and to their family."""
    adjusted = adjusted_p_values(plan, answers)
    return tuple(
        decide_claim(
            claim,
            answers[claim.claim.id],
            adjusted.get(claim.claim.id),
            plan,
            evidence(claim) if answers[claim.claim.id].error is None else None,
        )
        for claim in selected
    )


def adjusted_p_values(plan: Plan, answers: Mapping[str, Answer]) -> dict[str, float]:
    """Return the adjusted p-value of each claim of the family."""
    family = plan.registration.family
    members = [claim for claim in plan.claims if claim.in_family and claim.claim.id in answers]
    if family is None or not members:
        return {}
    combined = [
        combined_p_value(answers[member.claim.id].p_values, member.claim.quantifier) for member in members
    ]
    adjusted = adjust(combined, family.method)
    return {member.claim.id: float(p) for member, p in zip(members, adjusted, strict=True)}


def decide_claim(
    plan: ClaimPlan,
    answer: Answer,
    p_adjusted: float | None,
    whole: Plan,
    evidence: ClaimEvidence | None,
) -> ClaimOutcome:
    """Decide a claim, and each row by itself."""
    if answer.error is not None:
        reason = f"cannot be asked of these logs: {answer.error}"
        return claim_outcome(plan, Decision("undefined", reason, None), (), error=reason)
    frame = answer.frame.with_columns(
        pl.Series("p_value", answer.p_values, dtype=pl.Float64),
        pl.lit(p_adjusted, dtype=pl.Float64).alias("p_adjusted"),
    )
    rows = list(frame.iter_rows(named=True))
    family = whole.registration.family
    supported = (plan.supported.text, plan.supported.values(frame))
    killed = None if plan.killed is None else (plan.killed.text, plan.killed.values(frame))
    level = None if family is None or p_adjusted is None else (p_adjusted, family.level)
    labels, statuses = [row_label(row) for row in rows], [row["status"] for row in rows]
    decision = decide(
        labels=labels,
        statuses=statuses,
        supported=supported,
        killed=killed,
        quantifier=plan.claim.quantifier,
        family=level,
    )
    verdicts = row_verdicts(labels, statuses, supported, killed, level)
    fault = evidence_fault(evidence, whole.registration)
    if fault is not None:
        decision, verdicts = explored(decision, verdicts, fault)
    rules = [rule_outcome("supported", plan.supported, frame, supported[1])]
    if plan.killed is not None and killed is not None:
        rules.append(rule_outcome("killed", plan.killed, frame, killed[1]))
    return claim_outcome(
        plan,
        decision,
        tuple({**row, "verdict": verdict} for row, verdict in zip(rows, verdicts, strict=True)),
        rules=tuple(rules),
        evidence=evidence,
    )


def rule_outcome(field: str, rule: Rule, frame: pl.DataFrame, holds: Sequence[bool | None]) -> RuleOutcome:
    """Return what a rule read in each row, and what it said."""
    return RuleOutcome(
        field=field,
        text=rule.text,
        holds=tuple(holds),
        saw=tuple(frame.select(sorted(rule.columns)).iter_rows(named=True)),
    )


def claim_outcome(
    plan: ClaimPlan,
    decision: Decision,
    rows: tuple[dict[str, Any], ...],
    *,
    rules: tuple[RuleOutcome, ...] = (),
    evidence: ClaimEvidence | None = None,
    error: str | None = None,
) -> ClaimOutcome:
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
        rules=rules,
        evidence=evidence,
        error=error,
    )
