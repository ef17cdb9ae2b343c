"""The `Log`: what was recorded, as frames with one fixed schema and one canonical row order."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING

import polars as pl

from kvstats.errors import InputError
from kvstats.log.records import INPUT_KEY, REPLAY_KEY, RUN_KEY

if TYPE_CHECKING:
    from kvstats.log.audit import Audit

__all__ = ["REJECT_SCHEMA", "Log", "require_log"]

TEXT = pl.String()
REAL = pl.Float64()
WHOLE = pl.Int64()
TIME = pl.Datetime("us", "UTC")
LAYERS = pl.List(pl.Float64)

INPUT_SCHEMA: dict[str, pl.DataType] = {
    "suite": TEXT,
    "model": TEXT,
    "task": TEXT,
    "input_id": TEXT,
    "condition": TEXT,
    "context_tokens": WHOLE,
    "prompt_hash": TEXT,
    "agreement_window": WHOLE,
    "agreement_top_k": WHOLE,
    "agreement_bin_layers": WHOLE,
    "head_agreement_per_layer": LAYERS,
    "drop": REAL,
    "head_agreement_interior_per_layer": LAYERS,
    "drop_interior": REAL,
    "head_agreement_per_pair": pl.List(pl.List(pl.Float64)),
    "recorded_at": TIME,
    "extra": TEXT,
}
RUN_SCHEMA: dict[str, pl.DataType] = {
    "suite": TEXT,
    "model": TEXT,
    "task": TEXT,
    "input_id": TEXT,
    "condition": TEXT,
    "arm": TEXT,
    "budget": REAL,
    "budget_tokens": WHOLE,
    "seed": WHOLE,
    "score": REAL,
    "success": pl.Boolean(),
    "n_prompt": WHOLE,
    "n_kept": WHOLE,
    "kept_fraction": REAL,
    "gate_open": pl.Boolean(),
    "certificate_per_head": pl.List(pl.List(pl.Float64)),
    "prediction": TEXT,
    "references": pl.List(pl.String),
    "seconds": TEXT,
    "memory_bytes": TEXT,
    "error": TEXT,
    "recorded_at": TIME,
    "extra": TEXT,
}
REPLAY_SCHEMA: dict[str, pl.DataType] = {
    "suite": TEXT,
    "model": TEXT,
    "task": TEXT,
    "input_id": TEXT,
    "condition": TEXT,
    "arm": TEXT,
    "design": TEXT,
    "budget": REAL,
    "seed": WHOLE,
    "layer": WHOLE,
    "head": WHOLE,
    "step": WHOLE,
    "variance_estimate": REAL,
    "radius": REAL,
    "true_error": REAL,
    "delta": REAL,
    "permutation": WHOLE,
    "retained_hash": TEXT,
    "extra": TEXT,
}
STUDY_SCHEMA: dict[str, pl.DataType] = {
    "suite": TEXT,
    "model": TEXT,
    "model_revision": TEXT,
    "dtype": TEXT,
    "attention": TEXT,
    "versions": TEXT,
    "host": TEXT,
    "settings": TEXT,
    "template_hash": TEXT,
    "schema_version": WHOLE,
    "started_at": TIME,
    "git_revision": TEXT,
    "extra": TEXT,
}
REJECT_SCHEMA: dict[str, pl.DataType] = {"file": TEXT, "line": WHOLE, "error": TEXT, "text": TEXT}
FILE_SCHEMA: dict[str, pl.DataType] = {"file": TEXT, "format": TEXT, "records": WHOLE, "rejects": WHOLE}

STUDY_KEY = ("started_at", "suite", "model", "settings")


def empty(schema: dict[str, pl.DataType]) -> pl.DataFrame:
    return pl.DataFrame(schema=schema)


@dataclass(frozen=True)
class Log:
    """Logged runs of a language model with its full and with compressed key-value caches.

    The frames are sorted by their keys, so that nothing computed from a log depends on the order in which
    files or lines were read.

    Attributes
    ----------
    runs : polars.DataFrame
        One row a scored generation: the fields of `RunRecord`, each signal as a column of its own name.
    inputs : polars.DataFrame
        One row a prefilled input: the fields of `InputRecord`, signals as columns likewise.
    replays : polars.DataFrame
        One row an attention cell: the fields of `ReplayRecord`.
    studies : polars.DataFrame
        One row a study record; dictionaries as JSON text.
    rejects : polars.DataFrame
        Lines that could not be read, with file, line number, error and the beginning of the text.
    files : polars.DataFrame
        One row a file that was read, with its format, and how many records and rejects it gave.
    run_signals, input_signals : tuple of str
        Names of the columns of `runs` and of `inputs` that are signals.
    virtual_arms : tuple of str
        Names of the arms that policies added: they were never run.

    Raises
    ------
    InputError
        When a number of runs, inputs or replays is NaN: what is undefined is null.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> run = RunRecord(suite="s", model="m", task="t", input_id="1", arm="full", budget=1.0, score=1.0)
    >>> log_from_records([run])
    Log: 1 run of 1 input by 1 model (m), 1 task (t), 1 arm (full); 0 input records, 0 replay cells, 0 rejects
    """

    runs: pl.DataFrame = field(default_factory=lambda: empty(RUN_SCHEMA))
    inputs: pl.DataFrame = field(default_factory=lambda: empty(INPUT_SCHEMA))
    replays: pl.DataFrame = field(default_factory=lambda: empty(REPLAY_SCHEMA))
    studies: pl.DataFrame = field(default_factory=lambda: empty(STUDY_SCHEMA))
    rejects: pl.DataFrame = field(default_factory=lambda: empty(REJECT_SCHEMA))
    files: pl.DataFrame = field(default_factory=lambda: empty(FILE_SCHEMA))
    run_signals: tuple[str, ...] = ()
    input_signals: tuple[str, ...] = ()
    virtual_arms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, key in (
            ("runs", RUN_KEY),
            ("inputs", INPUT_KEY),
            ("replays", REPLAY_KEY),
            ("studies", STUDY_KEY),
            ("rejects", ("file", "line")),
            ("files", ("file",)),
        ):
            frame = getattr(self, name)
            refuse_nan(name, frame)
            if not strictly_increasing(frame, key):
                # The other columns order rows of the same key, which a log should not have.
                rest = [c for c in frame.columns if c not in key and not frame.schema[c].is_nested()]
                frame = frame.sort(*key, *rest, nulls_last=False, maintain_order=True)
            object.__setattr__(self, name, frame)

    def with_runs(self, runs: pl.DataFrame) -> Log:
        """Return the same log with other runs."""
        return replace(self, runs=runs)

    def with_inputs(self, inputs: pl.DataFrame, *, new_signals: Sequence[str] = ()) -> Log:
        """Return the same log with other input records, and with columns of them named as signals."""
        return replace(self, inputs=inputs, input_signals=(*self.input_signals, *new_signals))

    def audit(
        self,
        *,
        grid: pl.DataFrame | None = None,
        reference: Log | None = None,
        registered: datetime | None = None,
    ) -> Audit:
        """Look for what would bias an analysis; see `kvstats.log.audit.audit_log`."""
        from kvstats.log.audit import audit_log  # An audit looks at logs, so it is made after them.

        return audit_log(self, grid=grid, reference=reference, registered=registered)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the log as JSON lines or Parquet; see `kvstats.log.save.write_log`."""
        from kvstats.log.save import write_log  # Likewise.

        write_log(self, path)

    def __repr__(self) -> str:
        n_inputs = self.runs.select(INPUT_KEY).unique().height

        def several(count: int, noun: str) -> str:
            return f"{count:,} {noun}" + ("" if count == 1 else "s")

        def named(column: str) -> str:
            names = self.runs[column].unique().sort().to_list()
            shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
            return f"{several(len(names), column)}" + (f" ({shown})" if names else "")

        return (
            f"Log: {several(self.runs.height, 'run')} of {several(n_inputs, 'input')} by {named('model')}, "
            f"{named('task')}, {named('arm')}; {several(self.inputs.height, 'input record')}, "
            f"{several(self.replays.height, 'replay cell')}, {several(self.rejects.height, 'reject')}"
        )

    def _repr_html_(self) -> str:
        counts = self.runs.group_by("model", "task", "condition", "arm").agg(
            pl.len().alias("runs"),
            pl.col("input_id").n_unique().alias("inputs"),
            pl.col("budget").n_unique().alias("budgets"),
            pl.col("score").null_count().alias("without_score"),
        )
        table = counts.sort("model", "task", "condition", "arm")._repr_html_()
        return f"<p>{escape(repr(self))}</p>{table}"


def strictly_increasing(frame: pl.DataFrame, key: Sequence[str]) -> bool:
    """Say whether each row's key is greater than that of the row before, where null is the least."""
    greater = pl.lit(False)
    for name in reversed(key):
        before, value = pl.col(name).shift(), pl.col(name)
        first = (before < value).fill_null(before.is_null() & value.is_not_null())
        greater = first | (before.eq_missing(value) & greater)
    return bool(frame.select(greater.slice(1).all()).item())


def require_log(function: str, log: object, argument: str = "log") -> None:
    """Raise `InputError` where something else is passed as a log, such as its path."""
    if not isinstance(log, Log):
        raise InputError.argument(
            function, argument, log, f"is a {type(log).__name__} and no Log", "pass kvstats.read_log(...)"
        )


def refuse_nan(name: str, frame: pl.DataFrame) -> None:
    """Raise `InputError` where a number is NaN: it compares above all others, and would count as one."""
    for column in frame.columns:
        if frame.schema[column].is_float() and (count := int(frame[column].is_nan().sum())):
            key = [part for part in (*INPUT_KEY, "arm", "budget", "seed") if part in frame.columns]
            rows = frame.filter(pl.col(column).is_nan()).select(key).head(3).rows()
            raise InputError(
                f"Log: {column} is NaN in {count} of {frame.height} {name}, such as {rows}; "
                "write null for what is undefined"
            )
