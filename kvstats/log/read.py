"""Reading logs: every line becomes a record, an error that names it, or a counted reject."""

from __future__ import annotations

import glob
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import MAXYEAR, MINYEAR
from pathlib import Path
from typing import Any, Literal

import msgspec
import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.log.adapters import READERS, Names, reader_of
from kvstats.log.frames import REJECT_SCHEMA, Log, log_from_records
from kvstats.log.lines import Reject, json_object, numbered_lines, shown
from kvstats.log.records import RECORD_TYPES, SCHEMA_VERSION, Record, StudyRecord

__all__ = ["read_log"]

OWN_FORMAT = "kvstats"
"""Name of the format that this library writes."""


def read_log(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    format: str = "auto",
    model: str | Mapping[str, str] | None = None,
    suite: str | Mapping[str, str] | None = None,
    on_error: Literal["raise", "skip"] = "raise",
) -> Log:
    """Read JSONL logs, plain or gzipped.

    Parameters
    ----------
    path : str or path-like, or a sequence of them
        A file, or a pattern such as ``logs/*.jsonl.gz``; ``**`` matches folders. A file that several
        patterns match is read once.
    format : {"auto", "kvstats", "page_release", "page_profiles"}, default "auto"
        What the lines are: records of this library; wide rows of a gating study, one an input and budget,
        with a column ``correct_<arm>`` for each arm (see `kvstats.log.adapters.page_release`); or profiles,
        one an input, with head agreement by layer. ``auto`` tells by the first lines of each file.
    model, suite : str or mapping of str to str, optional
        For formats whose rows do not carry them: one name for all files, or the name by file name without
        its extension. Default: the file name without its extension (``gated_4k_mistral7b``), for both, so
        that files read together stay different models and their inputs different clusters; name the suite
        where the same inputs were run on several models.
    on_error : {"raise", "skip"}, default "raise"
        What to do with a line that breaks the contract: raise, or keep every other line and list this one
        in ``log.rejects``.

    Returns
    -------
    Log
        Rows sorted by key: the same log whatever the order of files and lines.

    Raises
    ------
    InputError
        ``{file}:{line}: {fault}; {remedy}`` for a line; also when no file matches, a file is empty, or a
        name is given that no file needs.

    Notes
    -----
    Fields that the contract does not know are kept under ``extra``. Ids are text: a numeric id of a log
    record is an error, never a conversion. Blank lines are passed over. NaN and infinities are errors,
    except ``-Infinity`` as the signal ``logprob``. A compressed file that ends early loses only what cannot
    be read: the fault is reported at the line where it ends.

    Examples
    --------
    >>> import tempfile, datetime
    >>> from kvstats.log import LogWriter, RunRecord
    >>> study = StudyRecord(schema_version=1, suite="s", model="m", dtype="float32", attention="sdpa",
    ...     versions={}, host="x86_64", settings={}, template_hash="0",
    ...     started_at=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with LogWriter(f"{folder}/a.jsonl", study) as writer:
    ...         writer.append([RunRecord(suite="s", model="m", task="t", input_id="1", arm="full")])
    ...     read_log(f"{folder}/*.jsonl")
    Log: 1 run of 1 input by 1 model (m), 1 task (t), 1 arm (full); 0 input records, 0 replay cells, 0 rejects
    """
    if on_error not in ("raise", "skip"):
        raise InputError.argument("read_log", "on_error", on_error, "is unknown", "pass 'raise' or 'skip'")
    formats = ("auto", OWN_FORMAT, *READERS)
    if format not in formats:
        raise InputError.argument(
            "read_log", "format", format, "is unknown", nearest_name(str(format), formats)
        )
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not paths:
        raise InputError.argument("read_log", "path", path, "names no file", "pass at least one")
    files = list({file.resolve(): file for item in paths for file in matching_files(item)}.values())
    readers = {file: reader_of(file) if format == "auto" else READERS.get(format) for file in files}
    names = Names(model, suite, [file for file in files if readers[file] is not None])
    records: list[Record] = []
    rejects: list[tuple[str, int, str, str]] = []
    for file in files:
        reader = readers[file]
        items = read_file(file) if reader is None else reader.read(file, names.of(file))
        for item in items:
            if not isinstance(item, Reject):
                records.append(item)
            elif on_error == "raise":
                raise InputError.line(file, item.line, item.error, item.remedy)
            else:
                rejects.append((str(file), item.line, item.error, item.text))
    return log_from_records(records, pl.DataFrame(rejects, schema=REJECT_SCHEMA, orient="row"))


def matching_files(path: str | os.PathLike[str]) -> list[Path]:
    text = os.fspath(path)
    if Path(text).is_file():
        return [Path(text)]
    if Path(text).is_dir():
        raise InputError.argument(
            "read_log", "path", text, "is a folder", f"pass a pattern such as {text.rstrip('/')}/*.jsonl.gz"
        )
    files = sorted(Path(name) for name in glob.glob(text, recursive=True) if Path(name).is_file())
    if not files:
        raise InputError.argument("read_log", "path", text, "matches no file", "check the path")
    return files


def read_file(file: Path) -> Iterator[Record | Reject]:
    """Yield a record or a reject for each line that is not blank."""
    begun = False
    for item in numbered_lines(file):
        if isinstance(item, Reject):
            yield item
            return
        number, line = item
        record = read_line(line, number)
        if not begun and not isinstance(record, StudyRecord | Reject):
            yield Reject(number, "the first line is not a study record", shown(line))
        begun = True
        yield record
    if not begun:
        yield Reject(1, "the file is empty", "", "remove the file, or write its study record")


DECODER: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)

KEY = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:')
"""What looks like a key. The decoder takes the last of equal keys, so lines with such are read slowly."""


def read_line(line: bytes, number: int) -> Record | Reject:
    try:
        record = DECODER.decode(line)
    except (msgspec.MsgspecError, RecursionError):
        return read_line_slowly(line, number)
    keys = KEY.findall(line)
    if len(set(keys)) < len(keys):
        return read_line_slowly(line, number)
    return refused(record, line, number) or record


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
