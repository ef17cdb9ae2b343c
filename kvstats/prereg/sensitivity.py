"""How the verdicts of claims depend on choices: the interval, the clusters, and what was left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from kvstats.inference.design import BOOTSTRAPS, Design
from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY, REPLAY_KEY, RUN_KEY
from kvstats.prereg.claim_evidence import ClaimEvidence
from kvstats.prereg.conditions import without_conditions_on
from kvstats.prereg.display import row_label
from kvstats.prereg.isolation import VirtualArm, add_policies
from kvstats.prereg.judge import Answer, ask, ask_all, decide_claims
from kvstats.prereg.outcome import ClaimOutcome
from kvstats.prereg.plan import ClaimPlan, Plan
from kvstats.prereg.variant import Variant

__all__ = ["OUTCOMES", "with_sensitivity"]

OUTCOMES = frozenset(
    name for column in ("score", "success", "prediction") for name in (column, f"baseline_{column}")
) | {"difference", "harm", "help", "failure", "induced_failure", "error"}
"""Columns that are known only after a run: a condition on them chooses rows by their outcome."""

FEW = 10
"""With fewer clusters an interval that relies on their number is not to be trusted."""

ROW = "cluster: each row"


@dataclass(frozen=True)
class Choice:
    """Another choice, and the claims that it is one for."""

    name: str
    question: Callable[[ClaimPlan], Answer]
    concerns: Callable[[ClaimPlan], bool]


def with_sensitivity(
    plan: Plan,
    claims: Sequence[ClaimOutcome],
    selected: Sequence[ClaimPlan],
    answers: dict[str, Answer],
    evidence: Callable[[ClaimPlan], ClaimEvidence | None],
    log: Log,
    whole: Log | None,
    arms: tuple[VirtualArm, ...],
    progress: Callable[[str, int, int], None],
) -> tuple[ClaimOutcome, ...]:
    """Return claims, each with its verdicts under other choices.

    Under each choice the whole family is asked and its p-values are adjusted anew. The choices are

    - another interval: ``percentile`` (``auto`` where the registered one is a bootstrap) and ``jackknife``;
    - other clusters: the input's id alone, the task, and each row its own, which takes rows of one input for
      independent and is there to show what that would do;
    - where a `where` selects rows by their outcome: the claim without these conditions, and with a score of 0
      for runs that have none;
    - where inputs were left out for the time of their records: the claim with them.

    Parameters
    ----------
    plan : Plan
        The registration.
    claims : sequence of ClaimOutcome
        The selected claims, decided.
    selected : sequence of ClaimPlan
        The same, as registered.
    answers : dict of str to Answer
        What was answered to them and to their family.
    evidence : callable
        Says of a claim when its records were made.
    log : Log
        What they were judged on, with virtual arms.
    whole : Log or None
        Everything that was read; None where that is the same.
    arms : tuple of VirtualArm
        What became of the policies.
    progress : callable
        Called before each choice with its name, how many are done, and how many there are.

    Returns
    -------
    tuple of ClaimOutcome
    """
    found: dict[str, list[Variant]] = {claim.id: [] for claim in claims}
    concerned = [
        choice
        for choice in choices(plan, log, whole, arms)
        if any(choice.concerns(claim) for claim in selected)
    ]
    for done, choice in enumerate(concerned):
        progress(choice.name, done, len(concerned))

        def question(claim: ClaimPlan, choice: Choice = choice) -> Answer:
            return choice.question(claim) if choice.concerns(claim) else answers[claim.claim.id]

        told = decide_claims(plan, selected, ask_all(plan, selected, question), evidence)
        for claim, outcome in zip(selected, told, strict=True):
            if choice.concerns(claim):
                found[outcome.id].append(variant(choice.name, outcome))
    return tuple(replace(claim, sensitivity=tuple(found[claim.id])) for claim in claims)


def variant(name: str, outcome: ClaimOutcome) -> Variant:
    """Return what is reported of a claim under another choice."""
    clusters = [row["clusters"] for row in outcome.rows]
    note = None
    if clusters and min(clusters) < FEW and name != ROW:
        note = f"few clusters ({min(clusters)}): not an interval to be trusted"
    if name == ROW:
        note = "takes rows of one input for independent"
    return Variant(
        name=name,
        verdict=outcome.verdict,
        reason=outcome.reason,
        note=note,
        rows=tuple(
            {
                "row": row_label(row),
                **{name: row[name] for name in ("estimate", "low", "high", "clusters", "status", "p_value")},
            }
            for row in outcome.rows
        ),
    )


def choices(plan: Plan, log: Log, whole: Log | None, arms: tuple[VirtualArm, ...]) -> Iterator[Choice]:
    """Yield the other choices."""
    design = plan.design
    for interval in ("auto" if design.interval in BOOTSTRAPS else "percentile", "jackknife"):
        if interval != design.interval:
            yield Choice(
                f"interval: {interval}", asking(log, arms, [with_interval(design, interval)]), always
            )
    for name, keys in (
        ("cluster: input_id", [("input_id",)]),
        ("cluster: task", [("task",)]),
        # The key of runs, of attention cells, or of input records, whichever the rows have.
        (ROW, [RUN_KEY, REPLAY_KEY, INPUT_KEY]),
    ):
        if design.cluster != keys[0]:
            yield Choice(name, asking(log, arms, [replace(design, cluster=key) for key in keys]), always)

    def unconditional(claim: ClaimPlan) -> ClaimPlan:
        where = without_conditions_on(OUTCOMES, claim.query.where)
        return replace(claim, query=replace(claim.query, where=where))

    def conditional(claim: ClaimPlan) -> bool:
        return without_conditions_on(OUTCOMES, claim.query.where) != claim.query.where

    every = asking(scored(log), arms, [design])
    yield Choice("no selection by outcome", lambda claim: every(unconditional(claim)), conditional)
    if whole is not None:
        full, full_arms = add_policies(plan, whole)
        yield Choice("no input left out for its time", asking(full, full_arms, [design]), always)


def always(claim: ClaimPlan) -> bool:
    return True


def asking(
    log: Log, arms: tuple[VirtualArm, ...], designs: Sequence[Design]
) -> Callable[[ClaimPlan], Answer]:
    """Return what asks a claim's question under the first design that its rows admit."""

    def question(claim: ClaimPlan) -> Answer:
        for design in designs:
            answer = ask(claim, log, design, arms)
            if answer.error is None:
                break
        return answer

    return question


def with_interval(design: Design, interval: str) -> Design:
    """Return a design with another interval, and with resamples enough for it."""
    least = math.ceil(2 / (1 - design.level))
    return replace(design, interval=interval, n_resamples=max(design.n_resamples, least))


def scored(log: Log) -> Log:
    """Return a log in which a run without a score has failed."""
    return log.with_runs(
        log.runs.with_columns(
            pl.when(pl.col("score").is_null()).then(False).otherwise(pl.col("success")).alias("success"),
            pl.col("score").fill_null(0.0),
        )
    )
