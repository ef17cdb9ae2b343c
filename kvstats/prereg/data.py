"""The data of a registration: which files they are, and what is reported of them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kvstats.document import Document, Place, dotted
from kvstats.errors import InputError
from kvstats.prereg.order import in_utc
from kvstats.prereg.schema import Data

__all__ = ["DataCounts", "DataFile", "check_paths", "data_files", "in_utc"]

MAX_NAME, MAX_PATH = 255, 1000
"""Bytes that names of files, and paths, may have."""


@dataclass(frozen=True)
class DataCounts:
    """What was read.

    Attributes
    ----------
    files : int
        Files of logs.
    runs : int
        Run records, without those of inputs that the registration leaves out for their time.
    inputs : int
        Different inputs with runs, likewise.
    replays : int
        Replay records, likewise.
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
class DataFile:
    """A file of data.

    Attributes
    ----------
    name : str
        Its path below the folder of the registration.
    sha256 : str
        SHA-256 of its bytes.
    as_registered : bool or None
        Whether the registration names it with this hash; None when it names none.
    runs, inputs, replays, rejects : int
        Its records of each kind, and lines that could not be read.
    begun : str or None
        Time of its earliest study record, in UTC.
    first, last : str or None
        Earliest and latest time among its runs and input records, in UTC; None when they have none.
    before_registration, without_time : int
        Records from before the registration, and records of which nothing tells whether they are.
    """

    name: str
    sha256: str
    as_registered: bool | None
    runs: int
    inputs: int
    replays: int
    rejects: int
    begun: str | None
    first: str | None
    last: str | None
    before_registration: int
    without_time: int


def check_paths(document: Document, data: Data) -> None:
    """Refuse patterns and names of files that leave the registration's folder."""
    named: dict[PurePosixPath, str] = {}
    for name in data.sha256:
        if (other := named.setdefault(PurePosixPath(name), name)) != name:
            raise document.error(
                ("data", "sha256", name),
                f"data.sha256 has {name!r}, which is the same file as {other!r}",
                "name each file once",
            )
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
        parts = PurePosixPath(text).parts
        if parts.count("**") > 1 or any("**" in part and part != "**" for part in parts):
            raise document.error(
                place,
                f"{dotted(place[:2])} has {text!r}, where '**' is not alone between '/' or not the only one",
                "write '**' once, such as 'logs/**/*.jsonl'",
            )
        if any(len(part.encode()) > MAX_NAME for part in parts) or len(text.encode()) > MAX_PATH:
            raise document.error(
                place, f"{dotted(place[:2])} has a path of {len(text):,} characters", "write a shorter one"
            )


def data_files(
    document: Document, data: Data, folder: str | os.PathLike[str] | None
) -> tuple[Path, dict[str, Path]]:
    """Find the files of a registration's data.

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
    pathlib.Path, dict of str to pathlib.Path
        The folder, and the files by their path below it.

    Raises
    ------
    InputError
        When the folder is none, or a pattern matches no file, or a file that lies outside the folder.
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
    return base, files


def matches(base: Path, pattern: str) -> list[str]:
    """Return the files that a pattern matches, without following links to folders under ``**``.

    As in a shell, wildcards do not match names that begin with a point.
    """
    hidden = any(part.startswith(".") for part in PurePosixPath(pattern).parts)
    found = (path.relative_to(base) for path in base.glob(pattern) if path.is_file())
    return sorted(
        {name.as_posix() for name in found if hidden or not any(part.startswith(".") for part in name.parts)}
    )
