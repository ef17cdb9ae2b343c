"""Profiles of a gating study: one row an input, with head agreement by layer and no outcome.

Columns are ``task``, ``head_agreement_per_layer``, and ``T`` and ``drop`` where they are known; others are
kept under ``extra``. Such rows may lack an id. Since each is an input of its own, its line is its id then, as
``line 12``: no row of another file has this id, so that nothing is paired by position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kvstats.log.adapters.reader import Labels, Reader, stem
from kvstats.log.adapters.release_row import CORRECT, input_id
from kvstats.log.lines import REPEATED, Reject, json_object, numbered_lines, shown
from kvstats.log.records import InputRecord, Record

__all__ = ["PAGE_PROFILES"]

PROFILE = "head_agreement_per_layer"


def recognises(file: Path, objects: Sequence[dict[str, Any]]) -> bool:
    """Say whether objects are profiles: a task and agreement by layer, no outcome and no kind of record."""
    return any({"task", PROFILE} <= fields.keys() for fields in objects) and not any(
        name == "record" or name.startswith(CORRECT) for fields in objects for name in fields
    )


def read(file: Path, labels: Labels) -> Iterator[Record | Reject]:
    """Yield the input record of each row, or a reject."""
    model, suite = labels.model or stem(file), labels.suite or stem(file)
    lines: dict[tuple[str, str], int] = {}
    number = 0
    for item in numbered_lines(file):
        if isinstance(item, Reject):
            yield item
            return
        number, line = item
        fields = json_object(line, number)
        if isinstance(fields, Reject):
            yield fields
            continue
        record = profile(fields, model, suite, number)
        if isinstance(record, InputRecord):
            before = lines.setdefault((record.task, record.input_id), number)
            if before != number:
                fault = f"repeats task and id of line {before}"
                yield Reject(number, fault, shown(line), REPEATED, duplicate=True)
                continue
        yield Reject(number, record, shown(line)) if isinstance(record, str) else record
    if not number:
        yield Reject(1, "the file is empty", "", "remove the file")


def profile(fields: dict[str, Any], model: str, suite: str, number: int) -> InputRecord | str:
    """Make the input record of a row, or say what is wrong with it."""
    columns = dict(fields)
    for name in ("task", PROFILE):
        if columns.get(name) is None:
            return f"has no {name}"
    identity = columns.pop("id", None)
    text = f"line {number}" if identity is None else input_id(identity)
    if text is None:
        return f"has id={identity!r}, which is neither text nor a whole number"
    taken = {name: columns.pop(name, None) for name in ("task", "drop", PROFILE)}
    made = {"suite": suite, "model": model, "input_id": text, "context_tokens": columns.pop("T", None)}
    try:
        return msgspec.convert({**taken, **made, "extra": columns}, InputRecord)
    except msgspec.ValidationError as error:
        return f"breaks the form of its rows ({error})"


PAGE_PROFILES = Reader("page_profiles", recognises, read, takes=("model", "suite"))
