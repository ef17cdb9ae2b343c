"""Readers of formats other than this library's own, by name, and how a file's format is told."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from kvstats.errors import InputError, nearest_name
from kvstats.log.adapters.infinitebench import INFINITEBENCH
from kvstats.log.adapters.inspect_ai import INSPECT
from kvstats.log.adapters.kvpress import KVPRESS
from kvstats.log.adapters.kvstats_parquet import KVSTATS_PARQUET
from kvstats.log.adapters.lm_eval import LM_EVAL
from kvstats.log.adapters.longbench import LONGBENCH
from kvstats.log.adapters.page_profiles import PAGE_PROFILES
from kvstats.log.adapters.page_release import PAGE_RELEASE
from kvstats.log.adapters.reader import Labels, Reader, stem
from kvstats.log.adapters.ruler import RULER
from kvstats.log.lines import Reject, json_object, numbered_lines

__all__ = [
    "GROUP",
    "OWN_FORMAT",
    "READERS",
    "Labels",
    "Reader",
    "first_objects",
    "installed",
    "reader_named",
    "reader_of",
    "recognising",
    "stem",
]


OWN_FORMAT = "kvstats"
"""Name of the format that this library writes, which needs no reader."""

READERS: dict[str, Reader] = {
    reader.name: reader
    for reader in (
        KVSTATS_PARQUET,
        PAGE_RELEASE,
        PAGE_PROFILES,
        LONGBENCH,
        INFINITEBENCH,
        KVPRESS,
        RULER,
        LM_EVAL,
        INSPECT,
    )
}
"""Every reader of this library by its name."""

GROUP = "kvstats.readers"
"""Entry points of this group, each a `Reader`, add formats. Those of this library keep their names."""

FIRST = 20
"""How many lines tell the format of a file."""


@cache
def installed() -> tuple[dict[str, Reader], dict[str, str]]:
    """Return the readers that other packages add, by name, and why those that fail do."""
    readers: dict[str, Reader] = {}
    faults: dict[str, str] = {}
    for point in entry_points(group=GROUP):
        try:
            reader = point.load()
        except Exception as error:  # Whatever a foreign module does, other formats stay readable.
            faults[point.name] = f"{point.value} fails with {type(error).__name__}: {error}"
            continue
        if not isinstance(reader, Reader) or reader.name != point.name:
            faults[point.name] = f"{point.value} is no Reader of this name"
        elif point.name in ("auto", OWN_FORMAT, *READERS) or point.name in readers:
            faults[point.name] = f"{point.value} has the name of another reader"
        else:
            readers[point.name] = reader
    return readers, faults


def reader_named(name: str) -> Reader | None:
    """Return the reader of a format; None for this library's own.

    Raises
    ------
    InputError
        When there is no such reader, or when it comes from a package that fails.
    """
    if name == OWN_FORMAT:
        return None
    others, faults = installed()
    readers = READERS | others
    if name in readers:
        return readers[name]
    if name in faults:
        fault = f"cannot be used: {faults[name]}"
        raise InputError.argument("read_log", "format", name, fault, "repair or remove that package")
    known = nearest_name(str(name), ("auto", OWN_FORMAT, *readers))
    raise InputError.argument("read_log", "format", name, "is unknown", known)


def first_objects(file: Path) -> list[dict[str, Any]]:
    """Return the JSON objects among the first lines of a file."""
    objects = []
    for item in numbered_lines(file):
        if isinstance(item, Reject) or item[0] > FIRST:
            break
        number, line = item
        if line.lstrip()[:1] == b"{" and not isinstance(fields := json_object(line, number), Reject):
            objects.append(fields)
    return objects


def reader_of(file: Path) -> Reader | None:
    """Return the reader that recognises a file; None where none does, as for this library's own format."""
    return recognising(file, first_objects(file))


def recognising(file: Path, objects: Sequence[dict[str, Any]]) -> Reader | None:
    """Return the reader that recognises a file with such first objects, or None.

    Raises
    ------
    InputError
        When several do.
    """
    readers = (*READERS.values(), *installed()[0].values())
    found = [reader for reader in readers if reader.recognises(file, objects)]
    if len(found) > 1:
        names = " or ".join(f"format={reader.name!r}" for reader in found)
        raise InputError(f"{file}: has the form of several formats; pass {names}")
    return found[0] if found else None
