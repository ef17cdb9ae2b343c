"""Lines of this library as records: quickly where a line is plainly fine, by the exact way elsewhere."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from datetime import MAXYEAR, MINYEAR
from pathlib import Path
from typing import Any

import msgspec

from kvstats.errors import nearest_name
from kvstats.log.chunks import JSON_FIELDS
from kvstats.log.lines import Reject, json_object, numbered_lines, shown
from kvstats.log.records import RECORD_TYPES, SCHEMA_VERSION, Record, StudyRecord

__all__ = ["read_file"]

Line = tuple[int, bytes]

BATCH_LINES, BATCH_BYTES = 50, 1 << 18
"""Lines that are read together: so few that their records are gone before Python looks for garbage."""


def read_file(file: Path) -> Iterator[Record | Reject]:
    """Yield a record or a reject for each line that is not blank."""
    begun = False
    for lines, broken in batches(file):
        for line, record in zip(lines, read_lines(lines), strict=True):
            if not begun and not isinstance(record, StudyRecord | Reject):
                yield Reject(line[0], "the first line is not a study record", shown(line[1]))
            begun = True
            yield record
        if broken is not None:
            yield broken
            return
    if not begun:
        yield Reject(1, "the file is empty", "", "remove the file, or write its study record")


def batches(file: Path) -> Iterator[tuple[list[Line], Reject | None]]:
    """Yield lines, and with the last of them a reject where the data break off."""
    lines: list[Line] = []
    size = 0
    for item in numbered_lines(file):
        if isinstance(item, Reject):
            yield lines, item
            return
        lines.append(item)
        size += len(item[1])
        if len(lines) == BATCH_LINES or size >= BATCH_BYTES:
            yield lines, None
            lines, size = [], 0
    yield lines, None


DECODER: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)
FIELDS_DECODER = msgspec.json.Decoder(dict[str, msgspec.Raw])
ENCODER = msgspec.json.Encoder()

DICTIONARIES = {
    kind: [name for name in kind.__struct_fields__ if name in ("signals", *JSON_FIELDS)]
    for kind in RECORD_TYPES.values()
}
"""The fields of each kind of record that hold dictionaries."""

SPACE_BEFORE_COLON = re.compile(rb'"\s+:')


def read_lines(lines: Sequence[Line]) -> list[Record | Reject]:
    """Read lines as `read_line` reads each.

    A record that is encoded to the very bytes that it was decoded from has no equal keys, nor anything else
    that the decoder would pass over. So it is with the lines that this library writes.
    """
    text = b"".join([line for _, line in lines])
    try:
        # Other programs write a space after the colon, or begin with another field.
        records = DECODER.decode_lines(text) if text.startswith(b'{"record":"') else []
        written = ENCODER.encode_lines(records)
    except (msgspec.MsgspecError, RecursionError):
        written = b""
    if written != text:
        return [read_line(line, number) for number, line in lines]
    return [
        refused(record, line, number) or record for record, (number, line) in zip(records, lines, strict=True)
    ]


def read_line(line: bytes, number: int) -> Record | Reject:
    """Read a line: the definition of what a line is."""
    try:
        record = DECODER.decode(line)
    except (msgspec.MsgspecError, RecursionError):
        return read_line_slowly(line, number)
    # The decoder takes the last of equal keys. Without space before colons the line has no more keys than
    # are counted here, so that as many different ones come once each.
    if line.count(b'":') != count_keys(line, record) or SPACE_BEFORE_COLON.search(line):
        return read_line_slowly(line, number)
    return refused(record, line, number) or record


def count_keys(line: bytes, record: Record) -> int:
    """Count the keys of a line that was decoded, but for deeper ones in dictionaries of any form."""
    inner = [len(getattr(record, name)) for name in DICTIONARIES[type(record)]]
    return len(FIELDS_DECODER.decode(line)) + sum(inner)


def read_line_slowly(line: bytes, number: int) -> Record | Reject:
    """Read a line that has unknown fields, -Infinity or equal keys, or find what is wrong with it."""
    fields = json_object(line, number, minus_infinity=True)
    if isinstance(fields, Reject):
        return fields
    try:
        path = minus_infinity_outside_logprob(fields)
    except RecursionError as error:
        return Reject(number, f"is not JSON ({error})", shown(line))
    kind = fields.pop("record", None)
    if not isinstance(kind, str) or kind not in RECORD_TYPES:
        return Reject(number, f"has record={kind!r}, {nearest_name(str(kind), RECORD_TYPES)}", shown(line))
    record_type = RECORD_TYPES[kind]
    known = {name: value for name, value in fields.items() if name in record_type.__struct_fields__}
    unknown = {name: value for name, value in fields.items() if name not in known}
    if path is not None:
        return Reject(number, f"has {path}=-Infinity, which only signals.logprob may be", shown(line))
    extra = known.get("extra", {})
    if unknown and isinstance(extra, dict):
        twice = sorted(extra.keys() & unknown.keys())
        if twice:
            return Reject(number, f"has {twice[0]!r} both as a field and under extra", shown(line))
        known["extra"] = {**extra, **unknown}
    try:
        record = msgspec.convert(known, record_type)
    except msgspec.ValidationError as error:
        return Reject(number, f"breaks the contract of {kind} records ({error})", shown(line))
    return refused(record, line, number) or record


def refused(record: Record, line: bytes, number: int) -> Reject | None:
    """Refuse an unknown version of the format, and times of years that have no date in some zone."""
    for name in ("recorded_at", "started_at"):
        time = getattr(record, name, None)
        if time is not None and not MINYEAR < time.year < MAXYEAR:
            return Reject(number, f"has {name} in the year {time.year}", shown(line))
    if isinstance(record, StudyRecord) and record.schema_version != SCHEMA_VERSION:
        return Reject(
            number,
            f"has schema_version={record.schema_version}, this library reads {SCHEMA_VERSION}",
            shown(line),
            "install the version of kvstats that wrote it",
        )
    return None


def minus_infinity_outside_logprob(value: Any, path: str = "") -> str | None:
    if isinstance(value, float):
        return path if value == -math.inf and path != "signals.logprob" else None
    if isinstance(value, dict):
        items = [(f"{path}.{key}" if path else str(key), item) for key, item in value.items()]
    elif isinstance(value, list):
        items = [(f"{path}[{index}]", item) for index, item in enumerate(value)]
    else:
        return None
    return next(
        (found for name, item in items if (found := minus_infinity_outside_logprob(item, name)) is not None),
        None,
    )
