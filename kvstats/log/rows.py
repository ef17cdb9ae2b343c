"""Rows of a log's frames as the records that they were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import polars as pl

from kvstats.errors import InputError
from kvstats.log.chunks import JSON_FIELDS
from kvstats.log.frames import INPUT_SCHEMA, REPLAY_SCHEMA, RUN_SCHEMA, STUDY_SCHEMA, Log
from kvstats.log.records import InputRecord, Record, ReplayRecord, RunRecord, StudyRecord

__all__ = ["SCHEMAS", "Rows", "record_of", "rows_of"]

SCHEMAS: dict[type[Record], dict[str, pl.DataType]] = {
    StudyRecord: STUDY_SCHEMA,
    InputRecord: INPUT_SCHEMA,
    RunRecord: RUN_SCHEMA,
    ReplayRecord: REPLAY_SCHEMA,
}
"""The kinds of records in the order in which they are written, and their columns without signals."""


class Rows(NamedTuple):
    """The rows of one kind of record: the kind, their frame, and which of its columns are signals."""

    kind: type[Record]
    frame: pl.DataFrame
    signals: tuple[str, ...] = ()

    def records(self) -> Iterator[Record]:
        """Yield the record of each row, or raise `InputError` where one breaks the contract."""
        for number, row in enumerate(self.frame.iter_rows(named=True)):
            try:
                yield record_of(self.kind, row, self.signals)
            except msgspec.MsgspecError as error:
                raise InputError(
                    f"Log.write: row {number} of {self.kind.__name__} breaks the contract ({error}); "
                    "correct it"
                ) from error


def rows_of(log: Log) -> list[Rows]:
    """Return what there is to write of a log.

    Raises
    ------
    InputError
        When the log has rows of an arm that was never run, or columns that are no fields of the contract.
    """
    virtual = sorted({*log.virtual_arms} & {*log.runs["arm"].unique()})
    if virtual:
        raise InputError(
            f"Log.write: the arm {virtual[0]!r} was added by a policy and never run; write the log that the "
            "policy was applied to"
        )
    every = [
        Rows(StudyRecord, log.studies),
        Rows(InputRecord, log.inputs, log.input_signals),
        Rows(RunRecord, log.runs, log.run_signals),
        Rows(ReplayRecord, log.replays),
    ]
    for kind, frame, signals in every:
        for name in {*frame.columns} ^ {*SCHEMAS[kind], *signals}:
            lacks = "is missing among" if name not in frame.columns else "is no field of"
            raise InputError(f"Log.write: the column {name!r} {lacks} {kind.__name__}; write the log as read")
    return every


def record_of(kind: type[Record], row: Mapping[str, Any], signals: Sequence[str]) -> Record:
    """Return the record of a row.

    Raises
    ------
    msgspec.MsgspecError
        When the row breaks the contract.
    """
    fields = {name: row[name] for name in SCHEMAS[kind]}
    for name in JSON_FIELDS:
        if name in fields:
            fields[name] = msgspec.json.decode(fields[name]) if fields[name] else {}
    if signals:
        fields["signals"] = {name: row[name] for name in signals}
    return msgspec.convert(fields, kind)
