"""A `Log` made of records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.log.chunks import Chunks
from kvstats.log.frames import (
    FILE_SCHEMA,
    INPUT_SCHEMA,
    REJECT_SCHEMA,
    REPLAY_SCHEMA,
    RUN_SCHEMA,
    STUDY_KEY,
    STUDY_SCHEMA,
    Log,
    empty,
)
from kvstats.log.records import (
    INPUT_KEY,
    REPLAY_KEY,
    RUN_KEY,
    InputRecord,
    Record,
    ReplayRecord,
    RunRecord,
    StudyRecord,
)

__all__ = ["LogBuilder", "log_from_records"]

WAITING = 50
"""So many records are taken apart at once: few enough to be gone before Python looks for garbage."""


class LogBuilder:
    """A log in the making, of records that are not held.

    Parameters
    ----------
    without : collection of str
        Fields and signals that are left out; ``signals`` stands for all of them, ``replays`` for all of these
        records.
    """

    def __init__(self, without: Collection[str] = ()) -> None:
        self.without = frozenset([without] if isinstance(without, str) else without)
        for name in sorted(self.without & {*RUN_KEY, *REPLAY_KEY}):
            raise InputError.argument("read_log", "without", name, "tells rows apart", "leave it out")
        signals = "signals" not in self.without
        self.waiting: list[Record] = []
        self.count = 0
        """How many records were added."""
        self.columns = {
            RunRecord: Chunks(RUN_SCHEMA, signals=signals, without=self.without),
            InputRecord: Chunks(INPUT_SCHEMA, signals=signals, without=self.without),
            ReplayRecord: Chunks(REPLAY_SCHEMA, without=self.without),
            StudyRecord: Chunks(STUDY_SCHEMA),
        }

    def append(self, record: Record) -> None:
        """Add a record."""
        self.waiting.append(record)
        self.count += 1
        if len(self.waiting) == WAITING:
            self.take_apart()

    def take_apart(self) -> None:
        """Turn the waiting records into values of columns."""
        kinds = {type(record) for record in self.waiting}
        if "replays" in self.without:
            kinds.discard(ReplayRecord)
        for kind in kinds:
            self.columns[kind].add([record for record in self.waiting if type(record) is kind])
        self.waiting = []

    def log(self, rejects: pl.DataFrame | None = None, files: pl.DataFrame | None = None) -> Log:
        """Return the log, and begin anew.

        Raises
        ------
        InputError
            When a signal has the name of a field of the contract.
        """
        self.take_apart()
        runs, inputs = self.columns[RunRecord], self.columns[InputRecord]
        # A run is joined with its input, so that its signals must not have the names of the input's fields.
        refuse_names(runs.names, RUN_SCHEMA | INPUT_SCHEMA)
        refuse_names(inputs.names, INPUT_SCHEMA)
        known = {"signals", "replays", *RUN_SCHEMA, *INPUT_SCHEMA, *REPLAY_SCHEMA, *runs.names, *inputs.names}
        for name in sorted(self.without - known):
            fault = "is neither a field nor a signal of these logs"
            raise InputError.argument("read_log", "without", name, fault, nearest_name(name, known))
        return Log(
            runs=runs.frame(RUN_KEY),
            inputs=inputs.frame(INPUT_KEY),
            replays=self.columns[ReplayRecord].frame(REPLAY_KEY),
            studies=self.columns[StudyRecord].frame(STUDY_KEY),
            rejects=empty(REJECT_SCHEMA) if rejects is None else rejects,
            files=empty(FILE_SCHEMA) if files is None else files,
            run_signals=tuple(sorted(runs.names - self.without)),
            input_signals=tuple(sorted(inputs.names - self.without)),
        )


def refuse_names(signals: Collection[str], schema: Mapping[str, pl.DataType]) -> None:
    """Raise `InputError` where a signal has the name of a field."""
    for name in sorted(signals):
        if name in schema:
            raise InputError.argument(
                "log_from_records",
                "signals",
                name,
                "is the name of a field of the record",
                "rename the signal",
            )


def log_from_records(records: Iterable[Record], rejects: pl.DataFrame | None = None) -> Log:
    """Make a `Log` of records.

    Parameters
    ----------
    records : iterable of StudyRecord, InputRecord, RunRecord or ReplayRecord
        The records, in any order.
    rejects : polars.DataFrame, optional
        Lines that could not be read.

    Returns
    -------
    Log

    Raises
    ------
    InputError
        When a signal has the name of a field of the contract.

    Examples
    --------
    >>> key = dict(suite="s", model="m", task="qa", input_id="1")
    >>> log_from_records([RunRecord(**key, arm="full", budget=1.0, score=1.0)]).runs["score"].to_list()
    [1.0]
    """
    builder = LogBuilder()
    for record in records:
        builder.append(record)
    return builder.log(rejects)
