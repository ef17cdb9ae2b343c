"""A log as one Parquet file: all records in one table, whose column ``record`` names the kind.

Fields have the columns of the log's frames, dictionaries as JSON text, and each signal a column
``signals.<name>``. The file's metadata hold the version of the contract and the names of the signals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

import msgspec
import polars as pl

from kvstats.log.records import RECORD_TYPES, SCHEMA_VERSION, InputRecord, Record, RunRecord
from kvstats.log.rows import SCHEMAS, Rows

__all__ = ["MAGIC", "SIGNALS", "VERSION", "write_parquet"]

MAGIC = b"PAR1"
VERSION = "kvstats.schema_version"
SIGNALS: dict[type[Record], str] = {RunRecord: "kvstats.run_signals", InputRecord: "kvstats.input_signals"}
"""Keys of the metadata that name signals."""


def write_parquet(rows: Sequence[Rows], stream: BinaryIO) -> None:
    """Write records as one table."""
    metadata = {VERSION: str(SCHEMA_VERSION)}
    tables = []
    for kind, frame, signals in rows:
        tag = next(name for name, known in RECORD_TYPES.items() if known is kind)
        for _ in Rows(kind, frame, signals).records():
            pass  # A row that breaks the contract could not be read again.
        fields = frame.select(pl.lit(tag).alias("record"), *SCHEMAS[kind])
        tables.append(fields.hstack([frame[name].alias(f"signals.{name}") for name in signals]))
        if kind in SIGNALS:
            metadata[SIGNALS[kind]] = msgspec.json.encode(signals).decode()
    pl.concat(tables, how="diagonal").write_parquet(stream, metadata=metadata, row_group_size=100_000)
