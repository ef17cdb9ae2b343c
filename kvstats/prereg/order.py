"""The order of evidence: which records were made before the registration.

A record is from before the registration when its time is. A record without a time was written after its file
was begun; where the file was begun after the registration that settles it, and elsewhere its time is unknown.
Times are what the logs say of themselves: they show an honest mistake, not a forged log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import polars as pl

from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY
from kvstats.prereg.schema import EvidenceRules

__all__ = [
    "KEY",
    "Event",
    "Order",
    "before",
    "event",
    "in_utc",
    "inputs_to_leave_out",
    "order_of",
    "record_times",
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
