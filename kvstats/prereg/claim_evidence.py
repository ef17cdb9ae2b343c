"""Which claims rest on records whose time is in question."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from kvstats.log.frames import Log
from kvstats.prereg.evidence import Evidence
from kvstats.prereg.isolation import VirtualArm, arms_behind
from kvstats.prereg.order import ClaimEvidence, claim_evidence, event, tables_of
from kvstats.prereg.plan import ClaimPlan, Plan

__all__ = ["evidence_by_claim"]


def evidence_by_claim(
    plan: Plan, found: Evidence, arms: tuple[VirtualArm, ...], log: Log
) -> Callable[[ClaimPlan], ClaimEvidence | None]:
    """Return what says of a claim when its records were made.

    Parameters
    ----------
    plan : Plan
        The registration.
    found : Evidence
        What was read.
    arms : tuple of VirtualArm
        What became of its policies.
    log : Log
        What claims are judged on, with virtual arms.

    Returns
    -------
    callable
        Of a claim; None where no record of the log is early for it, and none without a time. An amended claim
        is registered when its last amendment is.
    """
    tables = None

    def of(claim: ClaimPlan) -> ClaimEvidence | None:
        nonlocal tables
        moment = registered(plan, claim.claim.id)
        counted = event(found.times, "registration", moment)
        if not counted.before and not counted.unknown:
            return None
        tables = tables_of(log) if tables is None else tables
        return claim_evidence(found.times, tables, claim.query, arms_behind(claim.query, arms, log), moment)

    return of


def registered(plan: Plan, claim: str) -> datetime:
    """Return when a claim got its present form."""
    times = [amendment.at for amendment in plan.registration.amendments if claim in amendment.changes]
    return max([plan.registration.registered_at, *times])
