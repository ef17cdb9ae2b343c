"""Rows of tables in files, by column, each with its line or number; and the reader of declared columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from kvstats.errors import InputError
from kvstats.log.adapters.csv_rows import csv_rows
from kvstats.log.adapters.reader import EXTENSION, Labels, Reader, stem
from kvstats.log.declared_columns import CONSTANTS, Columns
from kvstats.log.declared_rows import DeclaredRows
from kvstats.log.lines import Reject, json_object, numbered_lines
from kvstats.log.records import Record

__all__ = ["reader_of_columns"]

Row = tuple[int, Mapping[str, Any]] | Reject

DELIMITERS = {"csv": ",", "tsv": "\t"}
NOUNS = {"parquet": "row"}
"""What the number of a row counts, where it is not lines."""


def reader_of_columns(columns: Columns) -> Reader:
    """Return the reader of tables with declared columns: CSV, TSV, Parquet and JSON lines, by extension.

    What neither columns nor constants tell, labels may; model and suite are else the name of the file.
    """
    needed = columns.untold()
    taken = [name for name in CONSTANTS if getattr(columns, name) is None and name not in columns.constants]
    if columns.arms and "arm" in taken:
        taken.remove("arm")

    def read(file: Path, labels: Labels) -> Iterator[Record | Reject]:
        known = Labels(
            model=labels.model or (stem(file) if "model" in needed else None),
            suite=labels.suite or (stem(file) if "suite" in needed else None),
            task=labels.task,
            arm=labels.arm,
            condition=labels.condition,
            budget=labels.budget,
        )
        kind = extension(file)
        table = DeclaredRows(columns, known, delimited=kind in DELIMITERS, noun=NOUNS.get(kind, "line"))
        empty = True
        for item in table.records(rows_of(file, kind, columns)):
            empty = False
            yield item
        if empty:
            yield Reject(1, "the file has no row", "", "remove the file")

    return Reader(
        "columns",
        lambda file, objects: False,
        read,
        takes=tuple(taken),
        requires=tuple(name for name in needed if name in ("task", "arm")),
    )


def extension(file: Path) -> str:
    """Return what kind of file it is by its name, compression aside."""
    found = EXTENSION.search(file.name)
    return (found[2] if found and found[2] else "").lower()


def rows_of(file: Path, kind: str, columns: Columns) -> Iterator[Row]:
    """Yield the rows of a table."""
    if kind in DELIMITERS:
        return delimited_rows(file, DELIMITERS[kind], columns)
    if kind in ("jsonl", "ndjson"):
        return object_rows(file, columns)
    if kind == "parquet":
        return parquet_rows(file, columns)
    raise InputError(
        f"{file}: is no table by its extension; name it .csv, .tsv, .parquet or .jsonl, or pass a frame to "
        "kv.from_frame"
    )


def delimited_rows(file: Path, delimiter: str, columns: Columns) -> Iterator[Row]:
    """Yield the rows of CSV or TSV, all cells as text, each with the line that it begins on."""
    checked = False
    for row in csv_rows(file, delimiter=delimiter):
        if not isinstance(row, Reject) and not checked:
            columns.check_header(list(row[1]), file)
            checked = True
        yield row


def object_rows(file: Path, columns: Columns) -> Iterator[Row]:
    """Yield JSON objects, one a line; a column that is not in an object is missing there."""
    seen: dict[str, None] = {}
    for item in numbered_lines(file):
        if isinstance(item, Reject):
            yield item
            break
        number, line = item
        fields = json_object(line, number)
        if isinstance(fields, Reject):
            yield fields
            continue
        seen |= dict.fromkeys(fields)
        yield number, fields
    if seen:
        columns.check_header(list(seen), file)


def parquet_rows(file: Path, columns: Columns) -> Iterator[Row]:
    """Yield the rows of Parquet, by number from 1."""
    try:
        frame = pl.read_parquet(file)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{file}: is not Parquet ({error}); check the file") from error
    columns.check_header(frame.columns, file)
    yield from enumerate(frame.iter_rows(named=True), 1)
