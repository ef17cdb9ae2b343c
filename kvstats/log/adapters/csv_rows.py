"""Rows of CSV files, every field as the text that it is."""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Iterator
from pathlib import Path

import zstandard

from kvstats.errors import InputError
from kvstats.log.lines import Reject, open_log

__all__ = ["csv_columns", "csv_rows"]

LONGEST = 2**31 - 1
"""Characters that a field may have. Python's own limit, 131,072, is less than a long prompt has."""

SHOWN = 200


def csv_columns(file: Path) -> list[str]:
    """Return the names in the first line; none where it cannot be read."""
    with file.open("rb") as stream:
        line = stream.readline(LONGEST)
    row = next(parsed(line.decode("utf-8-sig", errors="replace")), None)
    return row[1] if isinstance(row, tuple) else []


def csv_rows(file: Path, *, delimiter: str = ",") -> Iterator[tuple[int, dict[str, str]] | Reject]:
    """Yield the line that a row begins in and its fields by column, or a reject where it cannot be used.

    A file whose last line does not end is taken as cut there: nobody knows what its last field lacks.

    Raises
    ------
    InputError
        When the file cannot be read, is empty, or has two columns of one name.
    """
    try:
        with open_log(file) as stream:
            content = stream.read()
    except (EOFError, OSError, zlib.error, zstandard.ZstdError) as error:
        raise InputError(f"{file}: cannot be read ({error}); check the file") from error
    # Bytes that are no text are let in as half surrogates, so that they are the fault of their row alone.
    rows = parsed(content.decode("utf-8-sig", errors="surrogateescape"), delimiter)
    first = next(rows, None)
    if first is None:
        raise InputError(f"{file}: is empty; remove the file")
    if isinstance(first, Reject):
        raise InputError.line(file, 1, first.error, "repair its first line, which names the columns")
    header = first[1]
    if not is_text(header):
        raise InputError.line(file, 1, "has bytes that are no UTF-8 text", "write the file as UTF-8")
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise InputError.line(file, 1, f"has two columns {twice[0]!r}", "rename one of them")
    kept: tuple[int, list[str]] | Reject | None = None
    for item in rows:
        if kept is not None:
            yield fields(kept, header)
        kept = item
    if kept is not None:
        if isinstance(kept, tuple) and not content.endswith((b"\n", b"\r")):
            remedy = "restore the file, or end the line with a line break if it is whole"
            kept = Reject(kept[0], "is cut: the file ends in it", shown(kept[1]), remedy)
        yield fields(kept, header)


def fields(row: tuple[int, list[str]] | Reject, header: list[str]) -> tuple[int, dict[str, str]] | Reject:
    """Name the fields of a row by the columns."""
    if isinstance(row, Reject):
        return row
    number, values = row
    if len(values) != len(header):
        return Reject(number, f"has {len(values)} fields for {len(header)} columns", shown(values))
    if not is_text(values):
        return Reject(number, "has bytes that are no UTF-8 text", shown(values))
    return number, dict(zip(header, values, strict=True))


def is_text(values: list[str]) -> bool:
    """Say whether all bytes were UTF-8."""
    try:
        "".join(values).encode()
    except UnicodeEncodeError:
        return False
    return True


def parsed(text: str, delimiter: str = ",") -> Iterator[tuple[int, list[str]] | Reject]:
    """Yield the line that a row begins in and its values; blank lines are passed over."""
    limit = csv.field_size_limit()
    # strict: a quote that is never closed is an error, and not the end of the last field.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    while True:
        number = reader.line_num + 1
        csv.field_size_limit(LONGEST)
        try:
            values = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield Reject(number, f"is no row of CSV ({error})", "")
            continue
        finally:
            csv.field_size_limit(limit)
        if values:
            yield number, values


def shown(values: list[str]) -> str:
    """Return the beginning of a row as text."""
    text = ",".join(values)[:SHOWN]
    return text.encode(errors="replace").decode()
