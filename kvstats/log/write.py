"""Writing logs: strict JSON, appended and flushed, so that a killed run loses at most its last lines."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from kvstats.errors import InputError
from kvstats.log.records import (
    SCHEMA_VERSION,
    InputRecord,
    Record,
    ReplayRecord,
    RunRecord,
    StudyRecord,
)

__all__ = ["LogWriter", "encode_record"]


def encode_record(record: Record) -> bytes:
    """Encode a record as one line of strict JSON, without the line's end.

    Parameters
    ----------
    record : StudyRecord, InputRecord, RunRecord or ReplayRecord
        The record. Its types are checked against the contract.

    Returns
    -------
    bytes

    Raises
    ------
    InputError
        When a number is NaN or infinite (undefined is None), or a field breaks the contract.

    Examples
    --------
    >>> encode_record(RunRecord(suite="s", model="m", task="t", input_id="1", arm="full"))[:60]
    b'{"record":"run","suite":"s","model":"m","task":"t","input_id'
    """
    fields = msgspec.structs.asdict(record)
    where = not_finite(fields)
    if where is not None:
        path, value = where
        raise InputError.argument("encode_record", path, value, "is not finite", "write None for undefined")
    line = msgspec.json.encode(record)
    try:
        msgspec.json.decode(line, type=type(record))
    except msgspec.ValidationError as error:
        raise InputError(f"encode_record: {type(record).__name__}: {error}; correct the field") from error
    return line


def not_finite(value: Any, path: str = "") -> tuple[str, float] | None:
    """Return path and value of the first number in nested containers that JSON cannot hold."""
    if isinstance(value, float):
        return None if math.isfinite(value) else (path, value)
    if isinstance(value, dict):
        items: Iterable[tuple[str, Any]] = (
            (f"{path}.{key}" if path else str(key), item) for key, item in value.items()
        )
    elif isinstance(value, list | tuple):
        items = ((f"{path}[{index}]", item) for index, item in enumerate(value))
    else:
        return None
    return next((found for name, item in items if (found := not_finite(item, name)) is not None), None)


class LogWriter:
    """Append records to a JSONL file.

    A new file appears whole with its study record, or not at all. An existing file is continued: a last
    line without its end, which a killed writer left, is removed first.

    Parameters
    ----------
    path : str or path-like
        The file, plain JSONL.
    study : StudyRecord
        First line of a new file. The first line of an existing file must agree with it on schema version,
        suite, model, model revision, dtype, attention, template hash, settings and versions.

    Raises
    ------
    InputError
        When the existing file was begun by another study, or the name is that of a compressed file.

    Examples
    --------
    >>> import tempfile, datetime
    >>> study = StudyRecord(schema_version=1, suite="s", model="m", dtype="float32", attention="sdpa",
    ...     versions={}, host="x86_64", settings={}, template_hash="0",
    ...     started_at=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with LogWriter(f"{folder}/a.jsonl", study) as writer:
    ...         writer.append([RunRecord(suite="s", model="m", task="t", input_id="1", arm="full")])
    ...     len(Path(folder, "a.jsonl").read_text().splitlines())
    2
    """

    def __init__(self, path: str | os.PathLike[str], study: StudyRecord) -> None:
        if study.schema_version != SCHEMA_VERSION:
            raise InputError.argument(
                "LogWriter",
                "study.schema_version",
                study.schema_version,
                f"is not the version that this library writes, {SCHEMA_VERSION}",
                "use kvstats.log.records.SCHEMA_VERSION",
            )
        self.path = Path(path)
        if self.path.suffix in (".gz", ".zst"):
            raise InputError.argument(
                "LogWriter",
                "path",
                str(path),
                "names a compressed file, and what is appended is plain",
                "name it .jsonl, and compress it when it is whole",
            )
        if self.path.exists():
            self.study = self._continue(study)
        else:
            self._begin(study)
            self.study = study
        self._file = self.path.open("ab")

    def _begin(self, study: StudyRecord) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        with part.open("wb") as file:
            file.write(encode_record(study) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.path)

    def _continue(self, study: StudyRecord) -> StudyRecord:
        with self.path.open("rb+") as file:
            first = file.readline()
            try:
                begun = msgspec.json.decode(first, type=StudyRecord)
            except msgspec.MsgspecError as error:
                raise InputError.line(
                    self.path, 1, f"is not a study record ({error})", "move the file away to begin a new log"
                ) from error
            fault = difference(begun, msgspec.json.decode(encode_record(study), type=StudyRecord))
            if fault is not None:
                raise InputError.line(
                    self.path, 1, fault, "continue with the same settings, or begin another file"
                )
            end = file.seek(0, os.SEEK_END)
            file.truncate(end_of_last_line(file, end))
        return begun

    def append(self, records: Sequence[InputRecord | RunRecord | ReplayRecord]) -> None:
        """Write records as one block, and flush them to the disk.

        Parameters
        ----------
        records : sequence of InputRecord, RunRecord or ReplayRecord
            All are encoded before any is written, so that a record that breaks the contract leaves the
            file as it was.
        """
        block = b"".join(encode_record(record) + b"\n" for record in records)
        self._file.write(block)
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def difference(begun: StudyRecord, now: StudyRecord) -> str | None:
    """Say in what two studies differ that one log cannot mix; None when they agree."""
    for name in ("schema_version", "suite", "model", "model_revision", "dtype", "attention", "template_hash"):
        before, after = getattr(begun, name), getattr(now, name)
        if before != after:
            return f"was begun with {name}={before!r}, not {after!r}"
    for field in ("settings", "versions"):
        then, today = getattr(begun, field), getattr(now, field)
        for name in sorted(then.keys() | today.keys()):
            if then.get(name) != today.get(name):
                return f"was begun with {field}.{name}={then.get(name)!r}, not {today.get(name)!r}"
    return None


def end_of_last_line(file: Any, end: int, block: int = 1 << 16) -> int:
    """Return the position after the last line feed of an open binary file that is `end` bytes long."""
    while end > 0:
        begin = max(0, end - block)
        file.seek(begin)
        found = file.read(end - begin).rfind(b"\n")
        if found >= 0:
            return int(begin + found + 1)
        end = begin
    return 0
