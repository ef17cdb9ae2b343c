"""The prefill signal of inputs, and of their runs."""

from __future__ import annotations

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.log.frames import Log, require_log
from kvstats.log.records import INPUT_KEY
from kvstats.selection import select
from kvstats.tables import examples, unique_inputs

__all__ = ["SIGNAL", "check_input_signal", "signal_inputs", "with_signal"]

SIGNAL = "__signal__"


def check_input_signal(function: str, log: Log, signal: str) -> None:
    """Raise `InputError` where a signal is no numeric column of the inputs."""
    require_log(function, log)
    numeric = [c for c in log.inputs.columns if log.inputs.schema[c].is_numeric()]
    if signal not in numeric:
        raise InputError.argument(
            function, "signal", signal, "is not a numeric column of the inputs", nearest_name(signal, numeric)
        )


def with_signal(
    function: str, log: Log, rows: pl.DataFrame, signal: str, *, failed: bool = False
) -> pl.DataFrame:
    """Return runs with the signal of their input in the column `SIGNAL`, null in none.

    With `failed` it may be null in runs that ended in an error.

    Raises
    ------
    InputError
        When the signal is no numeric column of the inputs, or is null for an input of the rows.
    """
    check_input_signal(function, log, signal)
    inputs = unique_inputs(log, function).select(*INPUT_KEY, pl.col(signal).cast(pl.Float64).alias(SIGNAL))
    marked = rows.join(inputs, on=list(INPUT_KEY), how="left", nulls_equal=True, maintain_order="left")
    asked = marked.filter(pl.col("error").is_null()) if failed else marked
    refuse_missing(function, asked, signal, SIGNAL, "or leave these out")
    return marked


def signal_inputs(function: str, log: Log, signal: str, where: str | None = None) -> pl.DataFrame:
    """Return the input records that a condition selects, with a signal that is null in none.

    Raises
    ------
    InputError
        When the signal is no numeric column, or is null for a selected input, or no input is left.
    """
    check_input_signal(function, log, signal)
    rows = select(unique_inputs(log, function), where, function)
    refuse_missing(function, rows, signal, signal, f'or leave these out with where="{signal} IS NOT NULL"')
    if not rows.height:
        raise InputError.argument(function, "where", where, "leaves no input", "select some")
    return rows


def refuse_missing(function: str, rows: pl.DataFrame, signal: str, column: str, otherwise: str) -> None:
    """Raise `InputError` where a signal is null."""
    missing = rows.filter(pl.col(column).is_null())
    if missing.height:
        raise InputError.argument(
            function,
            "signal",
            signal,
            f"is null for {missing.select(INPUT_KEY).n_unique()} inputs, such as "
            f"{examples(missing, INPUT_KEY)}",
            f"record it for every input, {otherwise}",
        )
