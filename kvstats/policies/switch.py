"""Switching: for each row of an arm, its own outcome or that of another run of the same input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from kvstats.errors import InputError
from kvstats.log.frames import Log, require_log
from kvstats.log.records import INPUT_KEY, RUN_KEY
from kvstats.policies.registry import POLICY_COLUMNS
from kvstats.tables import FULL, examples, refuse_duplicates

__all__ = ["add_arm", "check_new_arm", "switched"]


def check_new_arm(function: str, log: Log, name: str) -> None:
    """Raise `InputError` where an arm cannot be added under a name."""
    require_log(function, log)
    taken = [*log.runs["arm"].unique(), FULL]
    if not isinstance(name, str) or not name or name in taken:
        raise InputError.argument(
            function,
            "name",
            name,
            "is taken or empty",
            f"choose another than {', '.join(sorted(set(taken)))}",
        )


def switched(
    function: str,
    rows: pl.DataFrame,
    others: pl.DataFrame,
    *,
    taken: pl.Expr,
    argument: str = "full",
    other_name: str = FULL,
    on: Sequence[str] = INPUT_KEY,
) -> pl.DataFrame:
    """Take the outcome of another run where a condition holds, and the row's own elsewhere.

    Under greedy decoding this is exact: a system that had switched would have made the same tokens.

    Parameters
    ----------
    function : str
        Name of the policy, for messages.
    rows : polars.DataFrame
        The rows of the base arm, with any columns of `POLICY_COLUMNS` that the policy sets.
    others : polars.DataFrame
        The runs to switch to, of which each row of `rows` has at most one that agrees in `on`.
    taken : polars.Expr
        Boolean over `rows`, without nulls: whether to switch.
    argument, other_name : str
        Argument and name of the arm of `others`, for messages.
    on : sequence of str
        Columns in which a row and its other run agree.

    Returns
    -------
    polars.DataFrame
        One row for each row of `rows`. Where switched, the columns of the key (arm, budgets, seed) and those
        of `POLICY_COLUMNS` are the row's, all others are those of the other run.

    Raises
    ------
    InputError
        When a row to be switched has no other run, or `others` has two for one.
    """
    refuse_duplicates(function, rows, RUN_KEY, f"rows of arm {', '.join(map(repr, rows['arm'].unique()))}")
    refuse_duplicates(function, others, on, f"rows of arm {other_name!r}")
    marks = [name for name in POLICY_COLUMNS if name in rows.columns]
    moving = rows.filter(taken).select(*RUN_KEY, *marks)
    without = moving.join(others, on=list(on), how="anti", nulls_equal=True)
    if without.height:
        raise InputError.argument(
            function,
            argument,
            other_name,
            f"has no run for {without.height} rows that switch to it, of "
            f"{without.select(INPUT_KEY).n_unique()} inputs such as {examples(without, INPUT_KEY)}",
            "record it for every input",
        )
    own = [name for name in (*RUN_KEY, *marks) if name not in on]
    moved = moving.join(others.drop(own, strict=False), on=list(on), how="left", nulls_equal=True)
    columns = [name for name in rows.columns if name in moved.columns]
    return pl.concat([rows.filter(~taken), moved.select(columns)], how="diagonal")


def add_arm(log: Log, rows: pl.DataFrame, name: str) -> Log:
    """Return the log with rows added under the name of a new arm."""
    runs = log.runs
    new = [column for column in POLICY_COLUMNS if column in rows.columns and column not in runs.columns]
    runs = runs.with_columns(pl.lit(None, dtype=POLICY_COLUMNS[column]).alias(column) for column in new)
    missing = [column for column in runs.columns if column not in rows.columns]
    added = rows.with_columns(
        pl.lit(name).alias("arm"),
        *(pl.lit(None, dtype=runs.schema[column]).alias(column) for column in missing),
    )
    every = pl.concat([runs, added.select(runs.columns)])
    return replace(log, runs=every, virtual_arms=(*log.virtual_arms, name))
