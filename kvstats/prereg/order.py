"""The order of evidence: which records were made before the registration, and which claims rest on them.

A record is from before the registration when its time is. A record without a time was written after its file
was begun; where the file was begun after the registration that settles it, and elsewhere its time is unknown.
Times are what the logs say of themselves: they show an honest mistake, not a forged log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import polars as pl

from kvstats.errors import InputError
from kvstats.expressions import check_expression
from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY
from kvstats.prereg.schema import EvidenceRules
from kvstats.selection import truth
from kvstats.tables import runs_with_inputs

if TYPE_CHECKING:
    from kvstats.prereg.plan import Query

__all__ = [
    "ClaimEvidence",
    "Event",
    "Order",
    "claim_evidence",
    "event",
    "evidence_fault",
    "in_utc",
    "inputs_to_leave_out",
    "order_of",
    "record_times",
    "tables_of",
    "without_inputs",
]

KEY = list(INPUT_KEY)


@dataclass(frozen=True)
class Event:
    """A moment of the study, and how many records lie on either side of it.

    Attributes
    ----------
    what : str
        ``registration``, or what else was written down then.
    at : str
        When, in UTC.
    before, after, unknown : int
        Records made before it, not before it, and without a time that tells.
    """

    what: str
    at: str
    before: int
    after: int
    unknown: int


@dataclass(frozen=True)
class Order:
    """When the records were made, against the registration and what was added to it.

    Attributes
    ----------
    events : tuple of Event
        The registration first.
    first_before, last_before : str or None
        First and last time among the records from before the registration, in UTC.
    before_registration, without_time : str
        What was registered to be done with such records: ``exploratory``, ``exclude`` or ``allow``.
    inputs_left_out : int
        Inputs left out for them.
    """

    events: tuple[Event, ...]
    first_before: str | None
    last_before: str | None
    before_registration: str
    without_time: str
    inputs_left_out: int


@dataclass(frozen=True)
class ClaimEvidence:
    """The records that a claim rests on, as to their time.

    They are those of its inputs, and of the arms that it names. Its inputs are those with a row that
    satisfies its `where`; where that reads columns that only the estimator has, all inputs. A virtual arm
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


def in_utc(time: datetime) -> str:
    """Return a time with its zone as text, in UTC."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def record_times(log: Log, file: str) -> pl.DataFrame:
    """Return for each record of a file its input, its arm, its time, and the time when the file was begun.

    Replays have no time of their own, and study records are the file's time.
    """
    begun = log.studies["started_at"].min()
    no_arm, no_time = pl.lit(None, dtype=pl.String()), pl.lit(None, dtype=pl.Datetime("us", "UTC"))
    return pl.concat(
        [
            log.runs.select(*KEY, "arm", at="recorded_at"),
            log.inputs.select(*KEY, no_arm.alias("arm"), at="recorded_at"),
            log.replays.select(*KEY, "arm", at=no_time),
        ]
    ).with_columns(
        pl.lit(file).alias("file"), pl.lit(begun, dtype=pl.Datetime("us", "UTC")).alias("not_before")
    )


def before(moment: datetime) -> pl.Expr:
    """Whether a record was made before a moment; false where its time is unknown."""
    return (pl.col("at") < moment).fill_null(value=False)


def unknown(moment: datetime) -> pl.Expr:
    """Whether nothing tells if a record was made before a moment."""
    return pl.col("at").is_null() & (pl.col("not_before") < moment).fill_null(value=True)


def event(times: pl.DataFrame, what: str, moment: datetime) -> Event:
    """Count the records before and after a moment."""
    early, untold = (int(times.select(e.sum()).item()) for e in (before(moment), unknown(moment)))
    return Event(what, in_utc(moment), early, times.height - early - untold, untold)


def inputs_to_leave_out(times: pl.DataFrame, rules: EvidenceRules, moment: datetime) -> pl.DataFrame:
    """Return the inputs of which a record is to be excluded for its time.

    An input goes with all its records, whatever their time: what remains has no run without its twin.
    """
    out = pl.lit(value=False)
    if rules.before_registration == "exclude":
        out = out | before(moment)
    if rules.without_time == "exclude":
        out = out | unknown(moment)
    return times.filter(out).select(KEY).unique()


def without_inputs(log: Log, inputs: pl.DataFrame) -> Log:
    """Return a log without the runs, input records and replays of some inputs."""

    def kept(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.join(inputs, on=KEY, how="anti", nulls_equal=True, maintain_order="left")

    rest = log.with_runs(kept(log.runs)).with_inputs(kept(log.inputs))
    return replace(rest, replays=kept(log.replays))


def tables_of(log: Log) -> tuple[pl.DataFrame, ...]:
    """Return the tables on whose columns a `where` may be a condition."""
    try:
        runs = runs_with_inputs(log)
    except InputError:
        # Duplicates, which estimators on runs refuse; those on replays are judged all the same.
        runs = log.runs
    return runs, log.inputs, log.replays


def selected_inputs(tables: Iterable[pl.DataFrame], where: str | None) -> pl.DataFrame | None:
    """Return the inputs with a row for which a condition is true; None for all."""
    if where is None:
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


def evidence_fault(evidence: ClaimEvidence | None, rules: EvidenceRules) -> str | None:
    """Say why the time of its records makes a claim exploratory; None where it does not."""
    if evidence is None:
        return None
    if evidence.before and rules.before_registration == "exploratory":
        return (
            f"{evidence.before:,} of its {evidence.records:,} records are from before its registration, "
            f"the first of {evidence.first}"
        )
    if evidence.unknown and rules.without_time == "exploratory":
        return f"{evidence.unknown:,} of its {evidence.records:,} records have no time"
    return None


def order_of(
    times: pl.DataFrame,
    rules: EvidenceRules,
    registered: datetime,
    later: Mapping[str, datetime],
    inputs_left_out: int,
) -> Order:
    """Return when records were made, against the registration and what was added to it.

    Parameters
    ----------
    times : polars.DataFrame
        What `record_times` returns, of all files.
    rules : Evidence
        What is to be done with records from before the registration.
    registered : datetime
        When the registration was made.
    later : mapping of str to datetime
        What was written down later, and when.
    inputs_left_out : int
        Inputs left out.

    Returns
    -------
    Order
    """
    early = times.filter(before(registered))["at"]
    ends = [end for end in (early.min(), early.max()) if isinstance(end, datetime)]
    return Order(
        events=(
            event(times, "registration", registered),
            *(event(times, what, moment) for what, moment in later.items()),
        ),
        first_before=in_utc(ends[0]) if ends else None,
        last_before=in_utc(ends[1]) if ends else None,
        before_registration=rules.before_registration,
        without_time=rules.without_time,
        inputs_left_out=inputs_left_out,
    )
