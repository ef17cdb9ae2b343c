"""Logs that this library wrote as Parquet; see `kvstats.log.parquet`.

Each row is checked against the contract, as lines are. What a row has in columns that its kind does not know
is a fault, since it would be lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from kvstats.errors import InputError
from kvstats.log.adapters.reader import Labels, Reader
from kvstats.log.lines import Reject
from kvstats.log.parquet import MAGIC, SIGNALS, VERSION
from kvstats.log.records import RECORD_TYPES, SCHEMA_VERSION, Record
from kvstats.log.rows import SCHEMAS, record_of
from kvstats.log.write import not_finite

__all__ = ["KVSTATS_PARQUET"]

BATCH = 10_000
"""Rows that are held at once."""

Signals = dict[type[Record], list[str]]


def recognises(file: Path, objects: Sequence[dict[str, Any]]) -> bool:
    """Say whether a file is Parquet that this library wrote."""
    if objects:
        return False
    with file.open("rb") as stream:
        if stream.read(len(MAGIC)) != MAGIC:
            return False
    try:
        return VERSION in pl.read_parquet_metadata(file)
    except pl.exceptions.ComputeError:
        return False


def read(file: Path, labels: Labels) -> Iterator[Record | Reject]:
    """Yield the record of each row, or a reject that names the row by its number."""
    metadata = pl.read_parquet_metadata(file)
    version = metadata.get(VERSION)
    if version != str(SCHEMA_VERSION):
        raise InputError(
            f"{file}: has schema_version={version}, this library reads {SCHEMA_VERSION}; "
            "install the version of kvstats that wrote it"
        )
    signals = {kind: names_in(file, metadata.get(key)) for kind, key in SIGNALS.items()}
    table = pl.scan_parquet(file)
    check_columns(file, table.collect_schema(), signals)
    begin = 0
    while (rows := table.slice(begin, BATCH).collect()).height:
        finite = all_finite(rows)
        for number, row in enumerate(rows.iter_rows(named=True), start=begin + 1):
            yield read_row(row, number, signals, finite)
        begin += BATCH


def names_in(file: Path, text: str | None) -> list[str]:
    """Return the names of signals from the metadata."""
    try:
        return msgspec.json.decode(text or "null", type=list[str])
    except msgspec.MsgspecError as error:
        raise InputError(f"{file}: does not say which signals it has; restore the file") from error


def check_columns(file: Path, found: pl.Schema, signals: Signals) -> None:
    """Refuse a table that lacks columns, or has others, or of other types."""
    expected: dict[str, pl.DataType] = {"record": pl.String()}
    for kind, schema in SCHEMAS.items():
        expected |= schema
        expected |= {f"signals.{name}": pl.Float64() for name in signals.get(kind, ())}
    for name in sorted({*expected, *found}):
        if expected.get(name) != found.get(name):
            raise InputError(
                f"{file}: the column {name!r} is {found.get(name, 'missing')}, "
                f"not {expected.get(name, 'a field of the contract')}; restore the file"
            )


def all_finite(rows: pl.DataFrame) -> bool:
    """Say whether all numbers are finite, those in lists too."""
    for values in rows:
        while isinstance(values.dtype, pl.List):
            values = values.explode()
        if values.dtype.is_float() and not values.is_finite().all():
            return False
    return True


def read_row(row: dict[str, Any], number: int, signals: Signals, finite: bool) -> Record | Reject:
    """Return the record of a row, or a reject."""
    kind = RECORD_TYPES.get(row["record"])
    if kind is None:
        return reject(row, number, f"has record={row['record']!r}")
    fields = {name: row[name] for name in SCHEMAS[kind]}
    named = {f"signals.{name}": name for name in signals.get(kind, ())}
    for name, value in row.items():
        if name in named:
            fields[named[name]] = value
        elif value is not None and name != "record" and name not in fields:
            return reject(row, number, f"has {name}={value!r}, which is no field of {row['record']} records")
    if not finite:
        # As in lines, the logarithm of a probability of zero is admitted.
        admitted = {"signals.logprob": None} if row.get("signals.logprob") == -math.inf else {}
        if (found := not_finite(row | admitted)) is not None:
            return reject(row, number, f"has {found[0]}={found[1]}, which is not finite")
    try:
        return record_of(kind, fields, signals.get(kind, ()))
    except msgspec.MsgspecError as error:
        return reject(row, number, f"breaks the contract of {row['record']} records ({error})")


def reject(row: dict[str, Any], number: int, fault: str) -> Reject:
    filled = {name: value for name, value in row.items() if value is not None}
    return Reject(
        number, fault, str(filled)[:200], "repair the row, or pass on_error='skip' to list it in log.rejects"
    )


KVSTATS_PARQUET = Reader("kvstats_parquet", recognises, read)
