"""The evidence of a registration: its files read, hashed, dated and counted."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

import polars as pl

from kvstats.document import Document
from kvstats.log.audit import Finding, evidence_findings
from kvstats.log.concat import concat_logs
from kvstats.log.frames import Log
from kvstats.log.read import read_log
from kvstats.log.records import INPUT_KEY
from kvstats.prereg.checksums import broken_checksums
from kvstats.prereg.data import DataCounts, DataFile, data_files
from kvstats.prereg.order import (
    Order,
    event,
    in_utc,
    inputs_to_leave_out,
    order_of,
    record_times,
    without_inputs,
)
from kvstats.prereg.schema import Registration

__all__ = ["Evidence", "read_evidence"]

SHOWN = 3
"""How many examples a finding names."""

SKEW = timedelta(minutes=10)
"""By so much the clocks of two machines may differ."""


@dataclass(frozen=True)
class Evidence:
    """What a registration's logs hold, and what is wrong with its files.

    Attributes
    ----------
    log : Log
        What claims are judged on: without the inputs that the registration leaves out for their time.
    whole : Log
        Everything that was read.
    times : polars.DataFrame
        The time of each record of `log`; see `kvstats.prereg.order.record_times`.
    counts : DataCounts
        What `log` has.
    files : tuple of DataFile
        Each file, with everything that was read from it.
    order : Order
        When everything that was read was made.
    audit : tuple of Finding
        What an audit found in `log` and in the names of the files.
    findings : tuple of str
        What is wrong with the files, and what the audit found that no estimator refuses and any would be
        wrong for.
    """

    log: Log
    whole: Log
    times: pl.DataFrame
    counts: DataCounts
    files: tuple[DataFile, ...]
    order: Order
    audit: tuple[Finding, ...]
    findings: tuple[str, ...]


def read_evidence(
    document: Document,
    registration: Registration,
    folder: str | os.PathLike[str] | None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Evidence:
    """Read the logs of a registration, file by file.

    Parameters
    ----------
    document : Document
        The registration's file, for messages, and for its folder.
    registration : Registration
        What it says about the logs, and when it was made.
    folder : str or path-like, optional
        The folder that paths are relative to, instead of the registration's.
    progress : callable, optional
        Called before each file with a few words, how many files are read, and how many there are.

    Returns
    -------
    Evidence
        With a finding for each file whose content is not the registered one, that is missing or was added,
        likewise by a list of checksums beside the registration,
        for lines that cannot be read, and for records of the future: a clock that is wrong says nothing about
        what came first.

    Raises
    ------
    InputError
        When a pattern matches no file, or a file that lies outside the folder.
    """
    data, moment = registration.data, registration.registered_at
    base, files = data_files(document, data, folder)
    digests = {PurePosixPath(name).as_posix(): digest for name, digest in data.sha256.items()}
    read: list[DataFile] = []
    logs: list[Log] = []
    times: list[pl.DataFrame] = []
    seen: set[Path] = set()
    for done, name in enumerate(sorted(files)):
        if progress is not None:
            progress(f"reading {name}", done, len(files))
        file = files[name]
        # A link to a file that was read already is no second file of data, but it is hashed.
        again = file.resolve() in seen
        seen.add(file.resolve())
        log = Log() if again else read_log(file, on_error="skip")
        dated = record_times(log, name)
        read.append(file_facts(name, file, log, dated, moment, digests))
        if not again:
            logs.append(log)
            times.append(dated)
    whole, every = concat_logs(logs), pl.concat(times)
    left_out = inputs_to_leave_out(every, registration.evidence, moment)
    kept = without_inputs(whole, left_out) if left_out.height else whole
    if left_out.height:
        key = list(INPUT_KEY)
        times = [every.join(left_out, on=key, how="anti", nulls_equal=True, maintain_order="left")]
    counts = DataCounts(
        files=len(files),
        runs=kept.runs.height,
        inputs=kept.runs.select(INPUT_KEY).n_unique(),
        replays=kept.replays.height,
        rejects=whole.rejects.height,
        hashed=bool(data.sha256),
        first_record=first_record(whole),
    )
    sizes = {file.name: file.runs + file.inputs + file.replays for file in read}
    audit = evidence_findings(kept, sizes)
    return Evidence(
        log=kept,
        whole=whole,
        times=pl.concat(times),
        counts=counts,
        files=tuple(read),
        order=order_of(every, registration.evidence, moment, later_moments(registration), left_out.height),
        audit=audit,
        findings=(
            *changed_files(read, digests),
            *broken_checksums(document.path.parent, files if folder is None else ()),
            *unreadable_lines(whole, base),
            *refused(audit),
            *future_records(read, datetime.now(UTC)),
        ),
    )


def file_facts(
    name: str, file: Path, log: Log, dated: pl.DataFrame, moment: datetime, digests: Mapping[str, str]
) -> DataFile:
    """Return what is reported of a file."""
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    counted = event(dated, "registration", moment)
    return DataFile(
        name=name,
        sha256=digest,
        as_registered=None if not digests else digests.get(name) == digest,
        runs=log.runs.height,
        inputs=log.inputs.height,
        replays=log.replays.height,
        rejects=log.rejects.height,
        begun=as_text(log.studies["started_at"].min()),
        first=as_text(dated["at"].min()),
        last=as_text(dated["at"].max()),
        before_registration=counted.before,
        without_time=counted.unknown,
    )


def as_text(time: object) -> str | None:
    return in_utc(time) if isinstance(time, datetime) else None


def later_moments(registration: Registration) -> dict[str, datetime]:
    """Return when deviations and amendments were written."""
    return {
        **{f"deviation {number}": d.at for number, d in enumerate(registration.deviations, start=1)},
        **{f"amendment {number}": a.at for number, a in enumerate(registration.amendments, start=1)},
    }


def first_record(log: Log) -> str | None:
    """Return the earliest time among the records of a log, in UTC."""
    times = [
        time
        for time in (
            log.studies["started_at"].min(),
            log.inputs["recorded_at"].min(),
            log.runs["recorded_at"].min(),
        )
        if isinstance(time, datetime)
    ]
    return in_utc(min(times)) if times else None


def changed_files(files: Iterable[DataFile], registered: Mapping[str, str]) -> Iterable[str]:
    """Yield a finding for each file that is not as registered; nothing when no hash is registered."""
    if not registered:
        return
    found = {file.name: file.sha256 for file in files}
    for name in sorted({*found, *registered}):
        if name not in found:
            yield f"{name} is registered, but not among the data"
        elif name not in registered:
            yield f"{name} is among the data, but not registered"
        elif found[name] != registered[name]:
            yield f"{name} has SHA-256 {found[name]}, registered was {registered[name]}"


def unreadable_lines(log: Log, base: Path) -> Iterable[str]:
    """Yield a finding when lines could not be read, with the first of them."""
    count = log.rejects.height
    if count:
        examples = "; ".join(
            f"{os.path.relpath(row['file'], base)}:{row['line']} {row['error']}"
            for row in log.rejects.head(SHOWN).iter_rows(named=True)
        )
        yield f"{count} {'line' if count == 1 else 'lines'} cannot be read: {examples}"


def refused(audit: Iterable[Finding]) -> Iterable[str]:
    """Yield the findings that make every pair doubtful, and that no estimator sees."""
    for finding in audit:
        if finding.check in ("reused id", "full cache not whole"):
            yield f"{finding.message}, such as {finding.examples[0]}"


def future_records(files: Iterable[DataFile], now: datetime) -> Iterable[str]:
    """Yield a finding for each file with a time that lies in the future."""
    for file in files:
        for what, time in (("was begun at", file.begun), ("has records of", file.last)):
            if time is not None and datetime.fromisoformat(time) > now + SKEW:
                yield f"{file.name} {what} {time}, which lies in the future"
