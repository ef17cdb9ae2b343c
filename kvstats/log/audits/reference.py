"""Checks against other evidence: a reference log, and the time of a registration."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import polars as pl

from kvstats.errors import InputError
from kvstats.log.audits.finding import SHOWN, Finding, named, several
from kvstats.log.comparison import compare_logs
from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY, RUN_KEY

__all__ = ["check_time", "drift", "older_records"]

DRIFTS = {
    "prompt length": ("prompt length drift", "error", "input"),
    "prompt length of the run": ("prompt length drift", "error", "run"),
    "prompt": ("prompt drift", "error", "input"),
    "drop": ("D drift", "warning", "input"),
    "gate of the run": ("gate flips", "warning", "run"),
}
"""Fields of a comparison that are findings where they are not reproduced."""


def drift(log: Log, reference: Log) -> Iterator[Finding]:
    """Find inputs whose prompt, D or gate decision is not that of a reference log, by `compare_logs`."""
    keys = log.runs.select(INPUT_KEY), reference.runs.select(INPUT_KEY)
    records = log.inputs.select(INPUT_KEY), reference.inputs.select(INPUT_KEY)
    ours, theirs = (pl.concat(pair).unique() for pair in zip(keys, records, strict=True))
    if ours.join(theirs, on=list(INPUT_KEY), how="semi", nulls_equal=True).is_empty():
        message = "the reference has none of the log's inputs: read both with the same model and suite"
        yield Finding("no common input", "warning", ours.height, message, named(ours, INPUT_KEY))
        return
    found = compare_logs(without_duplicates(log), without_duplicates(reference))
    for row in found.frame.filter(pl.col("field").is_in(DRIFTS)).iter_rows(named=True):
        check, severity, noun = DRIFTS[row["field"]]
        count = row["drifted"] + row["different"]
        if not count:
            continue
        far = "" if row["max"] is None else f", by {row['mean']:.2g} on average and {row['max']:.2g} at most"
        message = (
            f"{row['field']} is not the reference's in {several(count, noun)} of {row['compared']:,}{far}"
        )
        worst = found.offenders.filter(pl.col("field") == row["field"]).head(SHOWN)
        examples = tuple(
            f"{place}: {before} there, {after} here"
            for place, before, after in worst.select("where", "reference", "new").rows()
        )
        yield Finding(check, severity, count, message, examples)


def without_duplicates(log: Log) -> Log:
    """Return a log with the first of each duplicates, which are a finding of their own."""
    runs = log.runs.unique(RUN_KEY, keep="first", maintain_order=True)
    return log.with_runs(runs).with_inputs(log.inputs.unique(INPUT_KEY, keep="first", maintain_order=True))


def check_time(registered: datetime) -> datetime:
    """Refuse a time without a zone."""
    if not isinstance(registered, datetime) or registered.tzinfo is None:
        fault = "is no time with a zone"
        raise InputError.argument("audit", "registered", registered, fault, "pass one in UTC")
    return registered


def older_records(log: Log, registered: datetime) -> Iterator[Finding]:
    """Find records from before a registration, and those whose time is unknown.

    A record without a time is no older than its file, so where all files were begun later it is not older.
    """
    times = [frame.select(*INPUT_KEY, "recorded_at") for frame in (log.runs, log.inputs)]
    records = pl.concat(times)
    older = records.filter(pl.col("recorded_at") < registered)
    if older.height:
        message = (
            f"{several(older.height, 'record')} from before {registered.isoformat()}, "
            f"the first of {min(older['recorded_at'].to_list()).isoformat()}"
        )
        yield Finding("older than the registration", "error", older.height, message, named(older, INPUT_KEY))
    begun = log.studies["started_at"].min()
    untold = records.filter(pl.col("recorded_at").is_null())
    if untold.height and not (isinstance(begun, datetime) and begun >= registered):
        message = f"{several(untold.height, 'record')} without a time"
        yield Finding("no time", "note", untold.height, message, named(untold, INPUT_KEY))
