"""Verification: a registration held against its logs."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import asdict

from kvstats.errors import InputError, nearest_name
from kvstats.prereg.data import DataCounts, in_utc, read_evidence
from kvstats.prereg.judge import claim_outcome, guard_outcome, judge_claims, judge_guard
from kvstats.prereg.outcome import ClaimOutcome, GuardOutcome, RegistrationFacts, Report
from kvstats.prereg.plan import ClaimPlan, Plan, load_plan
from kvstats.prereg.verdict import Decision

__all__ = ["verify"]


def verify(
    path: str | os.PathLike[str],
    *,
    expect_sha256: str | None = None,
    data: str | os.PathLike[str] | None = None,
    only: str | Sequence[str] | None = None,
) -> Report:
    """Hold a registration against its logs.

    Parameters
    ----------
    path : str or path-like
        The registration, a YAML file. Everything in it is checked before any data is opened.
    expect_sha256 : str, optional
        SHA-256 of the registration's bytes, as published when it was registered. Without it nothing shows
        that the file was not changed afterwards, and the report says ``unanchored``.
    data : str or path-like, optional
        Folder that the paths of the logs are relative to; default: the registration's own.
    only : str or sequence of str, optional
        Ids of the claims to judge. Guards are checked all the same, and a family keeps all its members.

    Returns
    -------
    Report
        Claims with verdicts. When the registration is not the expected one, when files of data are not as
        registered, when lines cannot be read, or when a guard fails, every claim is ``invalid``, nothing is
        computed for it, and the report's exit code is 3.

    Raises
    ------
    InputError
        ``{file}:{line}: {fault}; {remedy}`` for the registration; and, with the id of the claim or guard, for
        what its estimator refuses in the data, such as an unknown arm.

    Notes
    -----
    A claim is decided by its rules, which are SQL conditions on the rows of its result. A rule must hold
    for all rows, for any, or for at least so many (the quantifier). Rows whose status is not ``ok`` leave
    the claim undefined where they are needed; a row with no discordant pair has no interval, and no rule
    on its ends holds there. In a family each claim has one p-value for all its rows, adjusted with those
    of the others; a claim is supported only if that is at most the family's level.

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
    plan = load_plan(path)
    selected = selected_claims(plan, only)
    digest = plan.document.sha256
    if expect_sha256 is not None:
        if not re.fullmatch("[0-9a-fA-F]{64}", expect_sha256):
            raise InputError.argument(
                "verify", "expect_sha256", expect_sha256, "is no SHA-256", "pass its 64 hexadecimal digits"
            )
        if expect_sha256.lower() != digest:
            finding = f"the registration has SHA-256 {digest}, expected was {expect_sha256.lower()}"
            reason = "the registration is not the expected one"
            return invalid_report(plan, selected, None, (finding,), guards_not_evaluated(plan), reason, False)
    anchored = expect_sha256 is not None
    evidence = read_evidence(plan.document, plan.registration.data, data)
    if evidence.findings:
        guards, reason = guards_not_evaluated(plan), "the data are not intact"
        return invalid_report(plan, selected, evidence.counts, evidence.findings, guards, reason, anchored)
    log = evidence.log
    for policy in plan.policies:
        log = policy.apply(log)
    guards = (
        *expected_counts(plan, evidence.counts),
        *(judge_guard(guard, log, plan) for guard in plan.guards),
    )
    failed = [guard.id for guard in guards if not guard.holds]
    if failed:
        reason = f"guard failed: {', '.join(failed)}"
        return invalid_report(plan, selected, evidence.counts, (), guards, reason, anchored)
    claims = judge_claims(plan, selected, log)
    return build_report(plan, evidence.counts, (), guards, claims, anchored)


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
    counts: DataCounts | None,
    findings: tuple[str, ...],
    guards: tuple[GuardOutcome, ...],
    reason: str,
    anchored: bool,
) -> Report:
    """Return the report of a verification that must not judge any claim."""
    decision = Decision("invalid", reason, None)
    claims = tuple(claim_outcome(claim, decision, ()) for claim in selected)
    return build_report(plan, counts, findings, guards, claims, anchored)


def build_report(
    plan: Plan,
    counts: DataCounts | None,
    findings: tuple[str, ...],
    guards: tuple[GuardOutcome, ...],
    claims: tuple[ClaimOutcome, ...],
    anchored: bool,
) -> Report:
    registration, family = plan.registration, plan.registration.family
    return Report(
        study=registration.study,
        description=registration.description,
        exclusions=registration.exclusions,
        stopping_rule=registration.stopping_rule,
        deviations=tuple({"at": in_utc(d.at), "text": d.text} for d in registration.deviations),
        registration=RegistrationFacts(
            file=plan.document.path.name,
            sha256=plan.document.sha256,
            registered_at=in_utc(registration.registered_at),
            anchored=anchored,
        ),
        design=asdict(plan.design),
        policies=tuple(
            {"policy": policy.step.policy, "arguments": policy.step.arguments} for policy in plan.policies
        ),
        family=None
        if family is None
        else {
            "method": family.method,
            "level": family.level,
            "claims": [claim.claim.id for claim in plan.claims if claim.in_family],
        },
        data=counts,
        integrity=findings,
        guards=guards,
        claims=claims,
    )
