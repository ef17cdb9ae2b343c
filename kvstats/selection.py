"""Selecting rows and inputs by an SQL condition, and naming the columns that group rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.expressions import check_expression
from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY

__all__ = ["part_of", "select", "truth", "within_columns"]

KEPT = "__kept__"


def select(frame: pl.DataFrame, where: str | None, function: str) -> pl.DataFrame:
    """Keep the rows for which an SQL expression is true.

    Parameters
    ----------
    frame : polars.DataFrame
        The rows.
    where : str or None
        An SQL expression over the columns, such as ``budget < 1 AND task = 'qa'``; None keeps all rows. It
        is only an expression: no statement, and no other table. Where it is null, as comparisons with null
        are, the row is left out.
    function : str
        Name of the calling function, for messages.

    Returns
    -------
    polars.DataFrame

    Raises
    ------
    InputError
        When it is no expression, names an unknown column, or is neither true nor false.

    Examples
    --------
    >>> frame = pl.DataFrame({"budget": [0.5, 1.0], "task": ["qa", "qa"]})
    >>> select(frame, "budget < 1 AND task = 'qa'", "accuracy").height
    1
    >>> select(frame, "budge < 1", "auc")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    kvstats.errors.InputError: auc: where='budge < 1' names the unknown column 'budge'; did you mean ...
    """
    return frame if where is None else frame.filter(truth(frame, where, function))


def truth(frame: pl.DataFrame, where: str, function: str) -> pl.Series:
    """Return for each row whether an SQL expression is true; null where it is null."""
    if not isinstance(where, str):
        raise InputError.argument(
            function, "where", where, "is not text", "pass an SQL expression such as 'budget < 1'"
        )
    condition = check_expression(function, "where", where)
    for name in condition.meta.root_names():
        if name not in frame.columns:
            raise InputError.argument(
                function,
                "where",
                where,
                f"names the unknown column {name!r}",
                f"text is quoted so: '{name}'"
                if f'"{name}"' in where
                else f"{nearest_name(name, frame.columns)}; text is quoted so: '{name}'",
            )
    try:
        found = frame.with_columns(condition.alias(KEPT))[KEPT]
    except pl.exceptions.PolarsError as error:
        raise InputError.argument(
            function,
            "where",
            where,
            f"cannot be computed ({first_line(error)})",
            "compare numbers with numbers and text with 'text'",
        ) from error
    if found.dtype != pl.Boolean:
        raise InputError.argument(
            function,
            "where",
            where,
            f"is not true or false but {found.dtype}",
            "write a comparison",
        )
    return found


def first_line(error: Exception) -> str:
    """Return the first line of an error's message."""
    return str(error).partition("\n")[0]


def within_columns(function: str, within: str | Sequence[str] | None, rows: pl.DataFrame) -> tuple[str, ...]:
    """Return the columns that make groups of rows as a tuple, or raise `InputError` where one cannot."""
    names = () if within is None else (within,) if isinstance(within, str) else tuple(within)
    for name in names:
        if name not in rows.columns:
            raise InputError.argument(
                function, "within", name, "is not a column", nearest_name(str(name), rows.columns)
            )
        if rows.schema[name].is_nested():
            raise InputError.argument(
                function, "within", name, "is a column of lists", "name a column of plain values"
            )
    if within is not None and (not names or len(set(names)) < len(names)):
        raise InputError.argument(
            function, "within", within, "is not a list of different columns", "name each once, or pass None"
        )
    return names


def part_of(log: Log, where: str) -> Log:
    """Return the part of a log whose inputs satisfy a condition: runs, input records and replays alike.

    Parameters
    ----------
    log : Log
        The log.
    where : str
        SQL expression over the key of inputs: suite, model, task, input_id and condition. Runs, input records
        and replays for which it is not true are left out.

    Returns
    -------
    Log

    Raises
    ------
    InputError
        When it is no expression, or names another column: rows of one table only are left out by the `where`
        of an estimator.

    Examples
    --------
    >>> from kvstats.log import InputRecord, RunRecord, log_from_records
    >>> log = log_from_records([
    ...     record
    ...     for condition in ("aware", "stream")
    ...     for key in [dict(suite="s", model="m", task="qa", input_id="1", condition=condition)]
    ...     for record in (InputRecord(**key), RunRecord(**key, arm="full", score=1.0))
    ... ])
    >>> part_of(log, "condition = 'aware'").runs.height
    1
    """

    def kept(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(truth(frame.select(INPUT_KEY), where, "part_of"))

    part = log.with_runs(kept(log.runs)).with_inputs(kept(log.inputs))
    return replace(part, replays=kept(log.replays))
