"""Which reader reads which of the files that a path names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatch
from typing import Any

from kvstats.errors import InputError
from kvstats.log.adapters import OWN_FORMAT, READERS, Reader, first_objects, installed, recognising
from kvstats.log.ingest import read_file
from kvstats.log.lines import Reject
from kvstats.log.sources import Source

__all__ = ["companion_names", "readers_of"]

NOT_LINES = re.compile(r"\.(json|csv|tsv|parquet|eval)(\.(gz|zst))?$")
"""Extensions of files that are no lines of JSON."""

SEAL = ".seal.json"
"""End of the names of files that lie beside registrations, and hold no rows."""

TABLE = re.compile(r"\.(csv|tsv|parquet)(\.(gz|zst))?$")
"""Extensions of tables, whose columns may be declared."""


def companion_names(format: str | Reader | None) -> tuple[str, ...]:
    """Return the patterns of names of files that readers may look for beside those that they read."""
    if isinstance(format, Reader):
        return format.companions
    readers = (*READERS.values(), *installed()[0].values()) if format == "auto" else ()
    return tuple(name for reader in readers for name in reader.companions)


def readers_of(
    sources: Sequence[Source], format: str | Reader | None, on_error: str
) -> dict[Source, Reader | None]:
    """Return the reader of each file, None for this library's own format, and leave companions out.

    Parameters
    ----------
    sources : sequence of Source
        The files.
    format : Reader, "auto" or None
        The reader of all files, None for this library's own format.
    on_error : {"raise", "skip"}
        Whether a file of JSON lines in no known format is an error, or of rejects only.

    Raises
    ------
    InputError
        When a file is in no known format and no companion of one that is, or none of its first lines can be
        read.
    """
    found: dict[Source, Reader | None] = {}
    unknown: dict[Source, list[dict[str, Any]]] = {}
    for source in sources:
        if not isinstance(format, str):
            found[source] = format
            continue
        objects = first_objects(source.file)
        found[source] = recognising(source.file, objects)
        if found[source] is None and not any("record" in fields for fields in objects):
            unknown[source] = objects
    # A file that has the name of a companion and stands alone is none: its reader says what is missing.
    companions = {
        (one.file.parent, name)
        for one, reader in found.items()
        if reader and not any(fnmatch(one.file.name, name) for name in reader.companions)
        for name in reader.companions
    }
    for source in list(found):
        if not source.chosen and (
            source.file.name.endswith(SEAL)
            or any(
                folder == source.file.parent and fnmatch(source.file.name, name)
                for folder, name in companions
            )
        ):
            del found[source]
        elif source in unknown and (
            NOT_LINES.search(source.name) or (unknown[source] and on_error == "raise")
        ):
            raise no_format(source)
        elif unknown.get(source) == [] and on_error == "raise":
            # Its first lines tell no format, and no caller's word of its rows mends that.
            first = next(read_file(source.file))
            if isinstance(first, Reject):
                raise InputError.line(source.name, first.line, first.error, first.remedy)
    if not found:
        raise InputError(f"{sources[0].name}: lies beside logs, and there are none; check the path")
    return found


def no_format(source: Source) -> InputError:
    """Build the error for a file that cannot be read."""
    readers, faults = installed()
    known = ", ".join((OWN_FORMAT, *READERS, *readers))
    failing = "".join(f"; of those installed, {fault}" for fault in faults.values())
    declared = ", columns=kv.Columns(...) to say what its columns mean" if TABLE.search(source.name) else ""
    remedy = f"pass the format if it is one of them{declared}, or a pattern that leaves the file out"
    return InputError(f"{source.name}: is in no known format ({known}){failing}; {remedy}")
