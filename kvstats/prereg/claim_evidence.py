"""Which claims rest on records whose time is in question."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from kvstats.errors import InputError
from kvstats.expressions import check_expression, reads_other_rows
from kvstats.log.frames import Log
from kvstats.prereg.evidence import Evidence
from kvstats.prereg.isolation import VirtualArm, arms_behind
from kvstats.prereg.order import KEY, before, event, in_utc
from kvstats.prereg.plan import ClaimPlan, Plan, Query
from kvstats.prereg.schema import Registration
from kvstats.selection import truth
from kvstats.tables import FULL, runs_with_inputs

__all__ = ["ClaimEvidence", "evidence_by_claim", "evidence_fault"]


@dataclass(frozen=True)
class ClaimEvidence:
    """The records that a claim rests on, as to their time.

    They are those of its inputs, and of the arms that it names. Its inputs are those with a row that
    satisfies its `where`; where that reads columns that only the estimator has, or aggregates of other rows,
    all inputs. A virtual arm
    stands for those that its policy names. Without a named arm all arms count, and records of prefilled
    inputs always do.

    Attributes
    ----------
    registered_at : str
        When the claim got the form in which it is judged, in UTC.
    records, before, unknown : int
        How many records there are, how many were made before that, and how many have no time that tells.
    first : str or None
        Time of the first of them that was made before, in UTC.
    """

    registered_at: str
    records: int
    before: int
    unknown: int
    first: str | None


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
        Of a claim; None where no record of the log is early for it, and none without a time. A claim is
        registered when the last amendment is that changes it, a guard, which decides whether it is judged, or
        another member of its family, whose p-value is adjusted with its own.
    """
    tables = None

    def of(claim: ClaimPlan) -> ClaimEvidence | None:
        nonlocal tables
        moment = registered(plan, claim)
        counted = event(found.times, "registration", moment)
        if not counted.before and not counted.unknown:
            return None
        tables = tables_of(log) if tables is None else tables
        return claim_evidence(found.times, tables, claim.query, arms_behind(claim.query, arms, log), moment)

    return of


def registered(plan: Plan, claim: ClaimPlan) -> datetime:
    """Return when everything that decides a claim got its present form."""
    decisive = {claim.claim.id, *(guard.guard.id for guard in plan.guards)}
    if claim.in_family:
        decisive |= {member.claim.id for member in plan.claims if member.in_family}
    times = [
        amendment.at for amendment in plan.registration.amendments if decisive & amendment.changes.keys()
    ]
    return max([plan.registration.registered_at, *times])


def tables_of(log: Log) -> tuple[pl.DataFrame, ...]:
    """Return the tables on whose columns a `where` may be a condition."""
    try:
        runs = runs_with_inputs(log)
    except InputError:
        # Duplicates, which estimators on runs refuse; those on replays are judged all the same.
        runs = log.runs
    if not (runs["arm"] == FULL).any():
        # Estimators take these rows for the full cache, and so may a condition on the arm's name.
        plain = runs.filter(pl.col("arm") == "plain", pl.col("budget") == 1.0)
        runs = pl.concat([runs, plain.with_columns(pl.lit(FULL).alias("arm"))])
    return runs, log.inputs, log.replays


def selected_inputs(tables: Iterable[pl.DataFrame], where: str | None) -> pl.DataFrame | None:
    """Return the inputs with a row for which a condition is true; None for all."""
    if where is None or reads_other_rows(where):
        # An aggregate is another one over the rows of the estimator than over those of a table.
        return None
    columns = check_expression("verify", "where", where).meta.root_names()
    found = []
    for table in tables:
        if set(columns) <= set(table.columns):
            try:
                found.append(table.filter(truth(table, where, "verify")).select(KEY))
            except InputError:
                # It is a condition on another table, which has a column of the same name and another type.
                return None
    return pl.concat(found).unique() if found else None


def claim_evidence(
    times: pl.DataFrame,
    tables: tuple[pl.DataFrame, ...],
    query: Query,
    arms: frozenset[str] | None,
    moment: datetime,
) -> ClaimEvidence:
    """Count the records that a claim rests on.

    Parameters
    ----------
    times : polars.DataFrame
        What `record_times` returns, of all files.
    tables : tuple of polars.DataFrame
        What `tables_of` returns.
    query : Query
        The claim's query.
    arms : frozenset of str or None
        The arms it rests on; None for all.
    moment : datetime
        When it was registered.

    Returns
    -------
    ClaimEvidence
    """
    if arms is not None:
        times = times.filter(pl.col("arm").is_null() | pl.col("arm").is_in(sorted(arms)))
    inputs = selected_inputs(tables, query.where)
    if inputs is not None:
        times = times.join(inputs, on=KEY, how="semi", nulls_equal=True)
    counted = event(times, "registration", moment)
    first = times.filter(before(moment))["at"].min()
    return ClaimEvidence(
        registered_at=counted.at,
        records=times.height,
        before=counted.before,
        unknown=counted.unknown,
        first=in_utc(first) if isinstance(first, datetime) else None,
    )


def evidence_fault(evidence: ClaimEvidence | None, registration: Registration) -> str | None:
    """Say why the time of its records makes a claim exploratory; None where it does not.

    What was registered to be done with early records is about the registration. Those from before an
    amendment that decides the claim make it exploratory in any case, and so do those that may be.
    """
    if evidence is None:
        return None
    rules, amended = registration.evidence, evidence.registered_at != in_utc(registration.registered_at)
    moment = f"the amendment of {evidence.registered_at}" if amended else "its registration"
    if evidence.before and (amended or rules.before_registration == "exploratory"):
        return (
            f"{evidence.before:,} of its {evidence.records:,} records are from before {moment}, "
            f"the first of {evidence.first}"
        )
    if evidence.unknown and (amended or rules.without_time == "exploratory"):
        told = f" that shows them to be later than {moment}" if amended else ""
        return f"{evidence.unknown:,} of its {evidence.records:,} records have no time{told}"
    return None
