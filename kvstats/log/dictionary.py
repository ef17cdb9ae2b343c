"""The data dictionary of a log: each field that it has, what it means, and how often it is null."""

from __future__ import annotations

import inspect
import re

import polars as pl

from kvstats.log.frames import Log
from kvstats.log.records import RECORD_TYPES, Record
from kvstats.log.rows import SCHEMAS

__all__ = ["data_dictionary"]

COLUMNS = dict.fromkeys(("record", "field", "type"), pl.String()) | {
    "rows": pl.Int64(),
    "nulls": pl.Int64(),
    "meaning": pl.String(),
}


def data_dictionary(log: Log) -> pl.DataFrame:
    """Return the fields of a log, with what the contract says of them.

    Parameters
    ----------
    log : Log
        The log.

    Returns
    -------
    polars.DataFrame
        One row a field that is not null everywhere, and one a signal: `record` (``study``, ``input``, ``run``
        or ``replay``), `field` (``signals.<name>`` for signals), `type`, `rows`, `nulls`, and `meaning`, with
        the unit.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> run = RunRecord(suite="s", model="m", task="t", input_id="1", arm="full", score=1.0)
    >>> data_dictionary(log_from_records([run])).filter(pl.col("field") == "score").rows()
    [('run', 'score', 'Float64', 1, 0, "The task's score, higher is better; null when the run failed or was
    not scored.")]
    """
    frames: dict[str, tuple[pl.DataFrame, tuple[str, ...]]] = {
        "study": (log.studies, ()),
        "input": (log.inputs, log.input_signals),
        "run": (log.runs, log.run_signals),
        "replay": (log.replays, ()),
    }
    rows = []
    for tag, (frame, signals) in frames.items():
        told = meanings(RECORD_TYPES[tag])
        for name in [*SCHEMAS[RECORD_TYPES[tag]], *signals]:
            nulls = frame[name].null_count()
            if nulls < frame.height or (name in signals and frame.height):
                field = f"signals.{name}" if name in signals else name
                meaning = told["signals" if name in signals else name]
                rows.append((tag, field, str(frame.schema[name]), frame.height, nulls, meaning))
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def meanings(kind: type[Record]) -> dict[str, str]:
    """Return what a record's docstring says of each attribute; one that names several says it of each.

    Examples
    --------
    >>> from kvstats.log import RunRecord
    >>> meanings(RunRecord)["n_kept"]
    'Tokens in the evictable cache, and how many of them were kept.'
    """
    text = inspect.getdoc(kind) or ""
    section = re.split(r"\n\w+\n-+\n", text)[1]
    found: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        if line and not line[0].isspace():
            names = re.split(r",\s*", line.partition(" :")[0])
            found |= dict.fromkeys(names, "")
        elif line:
            found |= {name: f"{found[name]} {line.strip()}".strip() for name in names}
    return found
