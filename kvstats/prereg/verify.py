"""Verification: a registration held against its logs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict

from kvstats.errors import InputError, nearest_name
from kvstats.prereg.claim_evidence import evidence_by_claim
from kvstats.prereg.data import DataCounts, in_utc
from kvstats.prereg.evidence import Evidence, read_evidence
from kvstats.prereg.isolation import VirtualArm, add_policies
from kvstats.prereg.judge import (
    Answer,
    ask,
    ask_all,
    asked_claims,
    claim_outcome,
    decide_claims,
    guard_outcome,
    judge_guard,
)
from kvstats.prereg.outcome import ClaimOutcome, GuardOutcome
from kvstats.prereg.plan import ClaimPlan, Plan, load_plan
from kvstats.prereg.report import Report
from kvstats.prereg.sensitivity import with_sensitivity
from kvstats.prereg.standing import RegistrationFacts, registration_standing
from kvstats.prereg.verdict import Decision

__all__ = ["verify"]


def verify(
    path: str | os.PathLike[str],
    *,
    expect_sha256: str | None = None,
    data: str | os.PathLike[str] | None = None,
    only: str | Sequence[str] | None = None,
    git: str | bool = True,
    timestamp: str | os.PathLike[str] | None = None,
    timestamp_roots: str | os.PathLike[str] | None = None,
    sensitivity: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> Report:
    """Hold a registration against its logs.

    Parameters
    ----------
    path : str or path-like
        The registration, a YAML file. Everything in it is checked before any data is opened.
    expect_sha256 : str, optional
        SHA-256 as published when it was registered: of the registration's bytes, of its frozen part, or of
        an amendment. Without an anchor from outside, which is this, a named commit or a time-stamp, nothing
        shows that the file was not changed afterwards, and the report says ``unanchored``.
    data : str or path-like, optional
        Folder that the paths of the logs are relative to; default: the registration's own.
    only : str or sequence of str, optional
        Ids of the claims to judge. Guards are checked all the same, and a family keeps all its members.
    git : str or bool, default True
        A commit or tag that must hold the registration, or its seal, at the same place, with this frozen
        part. True: the earliest commit that holds it is looked for in the work tree around the file, if there
        is one, and reported, but not in the JSON, and it does not anchor it: histories can be written anew.
        False: git is not asked.
    timestamp : str or path-like, optional
        RFC 3161 time-stamp response for the SHA-256 of the file or of the frozen part, or an amendment's. It
        needs the extra ``kvstats[seal]``.
    timestamp_roots : str or path-like, optional
        PEM file of the certificates to be trusted for it.
    sensitivity : bool, default False
        Whether to judge each claim under other choices too: another interval, other clusters, and without
        selection by outcome. Each choice takes as long as the claims themselves.
    progress : callable, optional
        Called before each step with a few words, such as ``claim harm``, how many steps of this kind are
        done, and how many there are.

    Returns
    -------
    Report
        Claims with verdicts. When the registration is not the expected one, when files of data are not as
        registered, when lines cannot be read, when one key stands for several contents, or when a guard
        fails, every claim is ``invalid``, nothing is computed for it, and the report's exit code is 3. What
        the logs refuse, such as an arm that they lack, leaves the claim ``undefined``, with the message as
        its reason, and the exit code is 2; the others are judged all the same, also where it is the arm of a
        policy. A guard that cannot be asked does not hold.

    Raises
    ------
    InputError
        ``{file}:{line}: {fault}; {remedy}`` for the registration.

    Notes
    -----
    A claim is decided by its rules, which are SQL conditions on the rows of its result. A rule must hold
    for all rows, for any, or for at least so many (the quantifier). Rows whose status is not ``ok`` leave
    the claim undefined where they are needed; a row with no discordant pair has no interval, and no rule
    on its ends holds there. In a family each claim has one p-value for all its rows, adjusted with those
    of the others; a claim is supported only if that is at most the family's level.

    A claim that rests on records from before its registration is ``exploratory``, whatever its rules say; its
    estimates are shown. The registration may say otherwise, as ``evidence: {before_registration: exclude}``:
    then the inputs of these records are left out with all their records, before anything is counted or
    computed, and expected counts are those of the rest; or ``allow``, which reports them only. The field
    ``without_time`` says the same of records whose time is unknown; its default is ``allow``.

    Examples
    --------
    >>> import tempfile, datetime
    >>> from pathlib import Path
    >>> from kvstats.log import LogWriter, RunRecord, StudyRecord
    >>> study = StudyRecord(schema_version=1, suite="s", model="m", dtype="float32", attention="sdpa",
    ...     versions={}, host="x86_64", settings={}, template_hash="0",
    ...     started_at=datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC))
    >>> plan = '''
    ... study: toy
    ... registered_at: 2026-01-01T12:00:00Z
    ... data: {runs: [a.jsonl]}
    ... claims:
    ...   - id: harm
    ...     statement: Eviction harms.
    ...     estimator: delta
    ...     arguments: {arm: evict}
    ...     supported: high < 0
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "plan.yaml").write_text(plan)
    ...     with LogWriter(f"{folder}/a.jsonl", study) as log:
    ...         for i in range(8):
    ...             key = dict(suite="s", model="m", task="t", input_id=str(i))
    ...             log.append([RunRecord(**key, arm="full", budget=1.0, score=1.0),
    ...                         RunRecord(**key, arm="evict", budget=0.5, score=float(i > 5))])
    ...     report = verify(f"{folder}/plan.yaml")
    >>> report
    Report: toy; 1 claim: 1 supported; intact, unanchored
    >>> report.claims[0].rows[0]["estimate"], report.claims[0].reason
    (-0.75, 'high < 0 holds')
    """
    say = progress or (lambda text, done, total: None)
    plan = load_plan(path)
    selected = selected_claims(plan, only)
    standing = registration_standing(
        plan, expect_sha256=expect_sha256, git=git, timestamp=timestamp, timestamp_roots=timestamp_roots
    )
    facts = standing.facts
    if standing.findings:
        guards = guards_not_evaluated(plan)
        return invalid_report(plan, selected, None, standing.findings, guards, standing.reason, facts)
    found = read_evidence(plan.document, plan.registration, data, say)
    if found.findings:
        guards, reason = guards_not_evaluated(plan), "the data are not intact"
        return invalid_report(plan, selected, found, found.findings, guards, reason, facts)
    say("policies and guards", 0, 1)
    log, arms = add_policies(plan, found.log)
    guards = (
        *expected_counts(plan, found.counts),
        *(judge_guard(guard, log, plan, arms) for guard in plan.guards),
    )
    failed = [guard.id for guard in guards if not guard.holds]
    if failed:
        reason = f"guard failed: {', '.join(failed)}"
        return invalid_report(plan, selected, found, (), guards, reason, facts, arms)

    order = [claim.claim.id for claim in asked_claims(plan, selected)]

    def answer(claim: ClaimPlan) -> Answer:
        say(f"claim {claim.claim.id}", order.index(claim.claim.id), len(order))
        return ask(claim, log, plan.design, arms)

    answers = ask_all(plan, selected, answer)
    evidence = evidence_by_claim(plan, found, arms, log)
    claims = decide_claims(plan, selected, answers, evidence)
    if sensitivity:
        whole = found.whole if found.order.inputs_left_out else None
        claims = with_sensitivity(plan, claims, selected, answers, evidence, log, whole, arms, say)
    return build_report(plan, found, (), guards, claims, facts, arms)


def selected_claims(plan: Plan, only: str | Sequence[str] | None) -> tuple[ClaimPlan, ...]:
    """Return the claims to judge, in the order of the registration."""
    if only is None:
        return plan.claims
    names = [only] if isinstance(only, str) else list(only)
    known = [plan.claim.id for plan in plan.claims]
    for name in names:
        if name not in known:
            raise InputError.argument(
                "verify", "only", name, "is no claim of the registration", nearest_name(str(name), known)
            )
    if not names:
        raise InputError.argument("verify", "only", only, "names no claim", "name one, or pass None for all")
    return tuple(claim for claim in plan.claims if claim.claim.id in names)


def expected_counts(plan: Plan, counts: DataCounts) -> tuple[GuardOutcome, ...]:
    """Hold what was read against the counts that were registered."""
    found = asdict(counts)
    expected = {
        name: count
        for name in ("runs", "inputs", "replays")
        if (count := getattr(plan.registration.data.expected, name)) is not None
    }
    return tuple(
        GuardOutcome(
            id=f"data.expected.{name}",
            statement=f"The logs have {count:,} {name}.",
            estimator=None,
            arguments={},
            where=None,
            by=(),
            rule=f"{name} = {count}",
            holds=found[name] == count,
            reason=f"the logs have {found[name]:,} {name}",
            rows=(),
        )
        for name, count in expected.items()
    )


def guards_not_evaluated(plan: Plan) -> tuple[GuardOutcome, ...]:
    return tuple(guard_outcome(guard, None, "not evaluated", ()) for guard in plan.guards)


def invalid_report(
    plan: Plan,
    selected: Sequence[ClaimPlan],
    found: Evidence | None,
    findings: tuple[str, ...],
    guards: tuple[GuardOutcome, ...],
    reason: str,
    facts: RegistrationFacts,
    arms: tuple[VirtualArm, ...] = (),
) -> Report:
    """Return the report of a verification that must not judge any claim."""
    decision = Decision("invalid", reason, None)
    claims = tuple(claim_outcome(claim, decision, ()) for claim in selected)
    return build_report(plan, found, findings, guards, claims, facts, arms)


def build_report(
    plan: Plan,
    found: Evidence | None,
    findings: tuple[str, ...],
    guards: tuple[GuardOutcome, ...],
    claims: tuple[ClaimOutcome, ...],
    facts: RegistrationFacts,
    arms: tuple[VirtualArm, ...] = (),
) -> Report:
    registration, family = plan.registration, plan.registration.family
    errors = {number: arm.error for number, arm in enumerate(arms)}
    return Report(
        study=registration.study,
        description=registration.description,
        exclusions=registration.exclusions,
        stopping_rule=registration.stopping_rule,
        deviations=tuple({"at": in_utc(d.at), "text": d.text} for d in registration.deviations),
        amendments=tuple(
            {"at": in_utc(a.at), "text": a.text, "changes": a.changes, "sha256": link}
            for a, link in zip(registration.amendments, plan.chain.links[1:], strict=True)
        ),
        registration=facts,
        design=asdict(plan.design),
        policies=tuple(
            {
                "policy": policy.step.policy,
                "arguments": policy.step.arguments,
                "error": errors.get(number),
            }
            for number, policy in enumerate(plan.policies)
        ),
        family=None
        if family is None
        else {
            "method": family.method,
            "level": family.level,
            "claims": [claim.claim.id for claim in plan.claims if claim.in_family],
        },
        data=None if found is None else found.counts,
        integrity=findings,
        guards=guards,
        claims=claims,
        files=() if found is None else found.files,
        order=None if found is None else found.order,
        audit=() if found is None else found.audit,
        not_judged=tuple(
            claim.claim.id for claim in plan.claims if claim.claim.id not in {told.id for told in claims}
        ),
    )
