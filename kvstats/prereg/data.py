"""The evidence of a registration: which files it is, whether they are intact, and what they hold."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from kvstats.document import Document, Place, dotted
from kvstats.errors import InputError
from kvstats.log.frames import Log
from kvstats.log.read import read_log
from kvstats.log.records import INPUT_KEY
from kvstats.prereg.schema import Data

__all__ = ["DataCounts", "Evidence", "check_paths", "read_evidence"]

SHOWN = 3
"""How many examples a finding names."""


@dataclass(frozen=True)
class DataCounts:
    """What was read.

    Attributes
    ----------
    files : int
        Files of logs.
    runs : int
        Run records.
    inputs : int
        Different inputs with runs.
    replays : int
        Replay records.
    rejects : int
        Lines that could not be read.
    hashed : bool
        Whether the registration names the SHA-256 of each file.
    first_record : str or None
        Earliest time among the records, in UTC; None when they have none.
    """

    files: int
    runs: int
    inputs: int
    replays: int
    rejects: int
    hashed: bool
    first_record: str | None


@dataclass(frozen=True)
class Evidence:
    """The log of a registration, what it holds, and what is wrong with its files."""

    log: Log
    counts: DataCounts
    findings: tuple[str, ...]


def check_paths(document: Document, data: Data) -> None:
    """Refuse patterns and names of files that leave the registration's folder."""
    places: list[tuple[Place, str]] = [
        (("data", "runs", index), text) for index, text in enumerate(data.runs)
    ]
    places += [(("data", "sha256", name), name) for name in data.sha256]
    for place, text in places:
        if (
            text.startswith(("/", "~"))
            or "\\" in text
            or ":" in text
            or "\0" in text
            or ".." in PurePosixPath(text).parts
        ):
            raise document.error(
                place,
                f"{dotted(place[:2])} has {text!r}, which is not below the folder of the registration",
                "write a path relative to it, with '/' and without '..'",
            )


def read_evidence(document: Document, data: Data, folder: str | os.PathLike[str] | None) -> Evidence:
    """Read the logs of a registration.

    Parameters
    ----------
    document : Document
        The registration's file, for messages, and for its folder.
    data : Data
        What it says about the logs.
    folder : str or path-like, optional
        The folder that paths are relative to, instead of the registration's.

    Returns
    -------
    Evidence
        With a finding for each file whose content is not the registered one, that is missing or was added,
        and for lines that cannot be read.

    Raises
    ------
    InputError
        When a pattern matches no file, or a file that lies outside the folder.
    """
    base = document.path.parent if folder is None else Path(folder)
    if not base.is_dir():
        raise InputError.argument("verify", "data", str(folder), "is no folder", "check the path")
    files: dict[str, Path] = {}
    for index, pattern in enumerate(data.runs):
        names = [pattern] if (base / pattern).is_file() else matches(base, pattern)
        if not names:
            raise document.error(
                ("data", "runs", index), f"{pattern!r} matches no file in {base}", "check the path"
            )
        for name in names:
            file = base / name
            if not file.resolve().is_relative_to(base.resolve()):
                raise document.error(
                    ("data", "runs", index),
                    f"{name!r} leads out of the folder of the registration",
                    "put the file itself there, not a link",
                )
            files[PurePosixPath(name).as_posix()] = file
    log = read_log([files[name] for name in sorted(files)], on_error="skip")
    findings = [*changed_files(files, data.sha256), *unreadable_lines(log, base)]
    counts = DataCounts(
        files=len(files),
        runs=log.runs.height,
        inputs=log.runs.select(INPUT_KEY).n_unique(),
        replays=log.replays.height,
        rejects=log.rejects.height,
        hashed=bool(data.sha256),
        first_record=first_record(log),
    )
    return Evidence(log=log, counts=counts, findings=tuple(findings))


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


def in_utc(time: datetime) -> str:
    """Return a time with its zone as text, in UTC."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def matches(base: Path, pattern: str) -> list[str]:
    found = glob.glob(pattern, root_dir=base, recursive=True)
    return [Path(name).as_posix() for name in found if (base / name).is_file()]


def changed_files(files: dict[str, Path], registered: dict[str, str]) -> Iterable[str]:
    """Yield a finding for each file that is not as registered; nothing when no hash is registered."""
    if not registered:
        return
    digests = {PurePosixPath(name).as_posix(): digest for name, digest in registered.items()}
    for name in sorted({*files, *digests}):
        if name not in files:
            yield f"{name} is registered, but not among the data"
        elif name not in digests:
            yield f"{name} is among the data, but not registered"
        else:
            with files[name].open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            if digest != digests[name]:
                yield f"{name} has SHA-256 {digest}, registered was {digests[name]}"


def unreadable_lines(log: Log, base: Path) -> Iterable[str]:
    """Yield a finding when lines could not be read, with the first of them."""
    count = log.rejects.height
    if count:
        examples = "; ".join(
            f"{os.path.relpath(row['file'], base)}:{row['line']} {row['error']}"
            for row in log.rejects.head(SHOWN).iter_rows(named=True)
        )
        yield f"{count} {'line' if count == 1 else 'lines'} cannot be read: {examples}"
