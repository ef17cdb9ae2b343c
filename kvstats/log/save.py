"""Writing a whole log: one file, which appears complete or not at all."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
import polars as pl
import zstandard

from kvstats.errors import InputError, nearest_name
from kvstats.log.frames import Log
from kvstats.log.parquet import write_parquet
from kvstats.log.rows import Rows, rows_of

__all__ = ["write_log"]


def write_log(log: Log, path: str | os.PathLike[str]) -> None:
    """Write a log: what is read from the file is an equal log.

    Parameters
    ----------
    log : Log
        The log. Its rejects are not written.
    path : str or path-like
        The file; an existing one is replaced. Its name says how it is written: ``.jsonl``, ``.jsonl.gz`` or
        ``.jsonl.zst``, records in the order study, input, run, replay, each kind sorted by its key; or
        ``.parquet``, one table of all records, whose column ``record`` names the kind and whose signals are
        columns ``signals.<name>``. The same log gives the same bytes.

    Raises
    ------
    InputError
        When the name has another ending; when an arm was added by a policy, which was never run and must not
        look as if it was; when a column is no field of the contract; when there is no row. In JSON lines also
        when there is no study record, with which such a file begins, or a number is infinite, which JSON
        cannot hold: Parquet can.

    Examples
    --------
    >>> import tempfile
    >>> from kvstats.log import RunRecord, log_from_records, read_log
    >>> log = log_from_records([RunRecord(suite="s", model="m", task="t", input_id="1", arm="full")])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log.write(f"{folder}/a.parquet")
    ...     read_log(f"{folder}/a.parquet").runs.equals(log.runs)
    True
    """
    file = Path(path)
    ending = next((ending for ending in WRITERS if file.name.endswith(ending)), None)
    if ending is None:
        remedy = nearest_name("".join(file.suffixes[-2:]), WRITERS)
        raise InputError.argument(
            "Log.write", "path", str(path), "has no ending that says how to write", remedy
        )
    rows = rows_of(log)
    if not any(kind.frame.height for kind in rows):
        raise InputError("Log.write: the log has no row; a file without any is an error where it is read")
    if ending != ".parquet":
        refuse_what_json_lacks(rows)
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as stream:
            WRITERS[ending](rows, stream)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(file)
    except OSError as error:
        fault = f"cannot be written ({error.strerror})"
        raise InputError.argument("Log.write", "path", str(path), fault, "check the path") from error
    finally:
        part.unlink(missing_ok=True)


def refuse_what_json_lacks(rows: Sequence[Rows]) -> None:
    """Refuse a log without a study, and infinite numbers."""
    if not rows[0].frame.height:
        raise InputError(
            "Log.write: the log has no study record, with which a file of JSON lines begins; write .parquet"
        )
    for kind, frame, _ in rows:
        for values in frame:
            name = values.name
            while isinstance(values.dtype, pl.List):
                values = values.explode()
            if values.dtype.is_float() and (count := int(values.is_infinite().sum())):
                raise InputError(
                    f"Log.write: {name} is infinite {count} times in {kind.__name__}, which JSON cannot "
                    "hold; write .parquet"
                )


def write_lines(rows: Sequence[Rows], stream: BinaryIO) -> None:
    """Write each record as a line."""
    for kind in rows:
        for record in kind.records():
            stream.write(msgspec.json.encode(record) + b"\n")


def write_gzip(rows: Sequence[Rows], stream: BinaryIO) -> None:
    """Write lines with gzip, without name and time."""
    with gzip.GzipFile("", "wb", compresslevel=6, fileobj=stream, mtime=0) as packed:
        write_lines(rows, cast(BinaryIO, packed))


def write_zstandard(rows: Sequence[Rows], stream: BinaryIO) -> None:
    """Write lines with Zstandard and a checksum."""
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    with compressor.stream_writer(stream, closefd=False) as packed:
        write_lines(rows, cast(BinaryIO, packed))


WRITERS: dict[str, Callable[[Sequence[Rows], BinaryIO], None]] = {
    ".jsonl": write_lines,
    ".jsonl.gz": write_gzip,
    ".jsonl.zst": write_zstandard,
    ".parquet": write_parquet,
}
"""How a file is written, by the ending of its name."""
