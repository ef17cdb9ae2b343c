"""Checks of what files are called: names of bad ones, numbered twins, and stubs beside large files."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import PurePosixPath

from kvstats.log.audits.finding import SHOWN, Finding, several

__all__ = ["bad_names", "numbered_twins", "stubs"]

BAD = re.compile(r"(?<![a-z])(invalid|partial|incomplete|broken|corrupt|discarded)(?![a-z])", re.IGNORECASE)
"""Words by which people set results aside."""

NUMBERED = re.compile(r"(?P<name>.+?)(?:[ _.-]+(?:v|copy)?[ _.-]?\d{1,2}|[ _.-]*\(\d{1,2}\)|[ _.-]+copy)")
"""A name with a number after it, as copying or running again makes it."""

STUB = 20
"""A stub has less than a twentieth of the records of the file beside it."""

ALIKE = 0.8
"""Names are nearly the same where so large a share of their letters is common (Ratcliff and Obershelp)."""


def bad_names(paths: Sequence[str]) -> Iterator[Finding]:
    """Find files that are set aside by their name or by that of a folder that they are in."""
    found = [path for path in paths if any(BAD.search(part) for part in PurePosixPath(path).parts)]
    if found:
        message = f"{several(len(found), 'path')} whose name says that it is not to be used"
        yield Finding("name of a bad file", "warning", len(found), message, tuple(found[:SHOWN]))


def numbered_twins(paths: Sequence[str]) -> Iterator[Finding]:
    """Find files and folders named as another one beside them, with a number after it."""
    places: dict[PurePosixPath, set[str]] = defaultdict(set)
    for path in map(PurePosixPath, paths):
        places[path.parent].add(stem_of(path.name))
        for folder in path.parents:
            places[folder.parent].add(folder.name)
    pairs = sorted(
        (str(folder / name), match["name"])
        for folder, names in places.items()
        for name in names
        if (match := NUMBERED.fullmatch(name)) is not None and match["name"] in names
    )
    if pairs:
        message = f"{several(len(pairs), 'name')} that only a number tells from another beside it"
        examples = tuple(f"{path} beside {name}" for path, name in pairs[:SHOWN])
        yield Finding("numbered twin", "warning", len(pairs), message, examples)


def stubs(records: Mapping[str, int]) -> Iterator[Finding]:
    """Find files with few records beside a file of nearly the same name with many.

    Parameters
    ----------
    records : mapping of str to int
        How many records each file has.
    """
    folders: dict[PurePosixPath, list[str]] = defaultdict(list)
    for path in sorted(records):
        folders[PurePosixPath(path).parent].append(path)
    found = []
    for paths in folders.values():
        most = max(records[path] for path in paths)
        large = [path for path in paths if records[path] * STUB >= most]
        for path in paths:
            beside = [
                other for other in large if records[path] * STUB < records[other] and alike(path, other)
            ]
            if beside:
                other = max(beside, key=lambda name: likeness(path, name))
                found.append(f"{path} has {records[path]:,} records, {other} has {records[other]:,}")
    if found:
        message = (
            f"{several(len(found), 'file')} with few records beside one of nearly the same name with many"
        )
        yield Finding("stub beside a large file", "warning", len(found), message, tuple(found[:SHOWN]))


def alike(one: str, other: str) -> bool:
    return likeness(one, other) >= ALIKE


def likeness(one: str, other: str) -> float:
    """Return what share of two files' names is common."""
    name, beside = (stem_of(PurePosixPath(path).name) for path in (one, other))
    return SequenceMatcher(None, name, beside, autojunk=False).ratio()


def stem_of(name: str) -> str:
    """Return a file's name without its extensions of data; an ending such as ``.875`` is part of it."""
    return re.sub(r"(?<=.)(\.(jsonl|ndjson|json|csv|parquet|eval))?(\.(gz|zst))?$", "", name)
