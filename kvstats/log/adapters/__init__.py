"""Readers of formats other than this library's own, by name, and how a file's format is told."""

from __future__ import annotations

from pathlib import Path

from kvstats.log.adapters.page_profiles import PAGE_PROFILES
from kvstats.log.adapters.page_release import PAGE_RELEASE
from kvstats.log.adapters.reader import Labels, Names, Reader, stem
from kvstats.log.lines import Reject, json_object, numbered_lines

__all__ = ["READERS", "Labels", "Names", "Reader", "reader_of", "stem"]

READERS: dict[str, Reader] = {reader.name: reader for reader in (PAGE_RELEASE, PAGE_PROFILES)}
"""Every reader by its name."""

FIRST = 20
"""How many lines tell the format of a file."""


def reader_of(file: Path) -> Reader | None:
    """Return the reader that recognises the first objects of a file; None for this library's own format."""
    objects = []
    for item in numbered_lines(file):
        if isinstance(item, Reject) or item[0] > FIRST:
            break
        fields = json_object(item[1], item[0])
        if not isinstance(fields, Reject):
            objects.append(fields)
    return next((reader for reader in READERS.values() if reader.recognises(file, objects)), None)
