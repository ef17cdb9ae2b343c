"""Selecting rows by an SQL condition."""

from __future__ import annotations

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.expressions import check_expression

__all__ = ["select", "truth"]

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
