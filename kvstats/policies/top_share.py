"""Which runs a signal marks, by its rank or by a threshold, and what re-running them in part gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY
from kvstats.policies.registry import POLICY_COLUMNS
from kvstats.policies.switch import switched
from kvstats.selection import within_columns
from kvstats.tables import FULL, arm_rows, examples, runs_with_inputs

__all__ = [
    "DEPLOYMENT",
    "RERUN",
    "check_choice",
    "check_share",
    "check_tau",
    "mixed",
    "over_threshold",
    "signal_rows",
    "top_share",
    "twin_columns",
]

DEPLOYMENT = ("suite", "model", "condition", "budget", "budget_tokens", "seed")
"""Columns in which the runs of one serving system agree: among these it ranks its inputs."""

RERUN = "rerun"
"""Part of a run that is run again, in [0, 1]."""

ROUNDING = 1e-9
"""Parts that differ from 0 or 1 by no more are whole."""

DIRECTIONS = ("positive", "negative")
"""Which end of a signal is marked: the high one, or the low."""

RANK = "__rank__"


def check_share(function: str, share: object) -> float:
    """Return a share in [0, 1], or raise `InputError`."""
    if isinstance(share, bool) or not isinstance(share, Real) or not 0 <= float(share) <= 1:
        raise InputError.argument(function, "share", share, "is not in [0, 1]", "pass a share such as 0.25")
    return float(share)


def check_tau(function: str, tau: object) -> float:
    """Return a threshold of a signal, or raise `InputError`."""
    if isinstance(tau, bool) or not isinstance(tau, Real) or math.isnan(tau):
        raise InputError.argument(function, "tau", tau, "is not a number", "pass the threshold of the signal")
    return float(tau)


def check_choice(function: str, argument: str, value: str, known: Sequence[str]) -> str:
    """Return a value that is among the known ones, or raise `InputError`."""
    if value not in known:
        raise InputError.argument(
            function, argument, value, "is not known", nearest_name(str(value), list(known))
        )
    return value


def signal_rows(function: str, log: Log, base: str, signal: str) -> pl.DataFrame:
    """Return the rows of an arm with the columns of their inputs, or raise `InputError` without a signal."""
    rows = arm_rows(runs_with_inputs(log, function), base, function, "base")
    numeric = [name for name in rows.columns if rows.schema[name].is_numeric()]
    if signal not in numeric:
        raise InputError.argument(
            function,
            "signal",
            signal,
            "is not a numeric column of runs or inputs",
            nearest_name(str(signal), numeric),
        )
    missing = rows.filter(pl.col(signal).is_null() & pl.col("error").is_null())
    if missing.height:
        raise InputError.argument(
            function,
            "signal",
            signal,
            f"is null for {missing.height} of {rows.height} rows of arm {base!r}, such as "
            f"{examples(missing, INPUT_KEY)}, which cannot be ranked",
            "record it for every run, or use a log without these",
        )
    return rows


def top_share(
    function: str,
    rows: pl.DataFrame,
    signal: str,
    share: float,
    *,
    within: str | Sequence[str] | None,
    higher: str,
    margin: str,
) -> pl.DataFrame:
    """Mark the share of the rows that have the highest signal.

    Parameters
    ----------
    function : str
        Name of the policy, for messages.
    rows : polars.DataFrame
        The rows of the base arm.
    signal : str
        Numeric column, null only in rows that ended in an error: those are neither counted nor marked.
    share : float
        The share, in [0, 1].
    within : str or sequence of str, or None
        Columns: the share is taken of each group of rows that agree in them.
    higher : {"positive", "negative"}
        Whether the highest or the lowest signals are marked.
    margin : {"expected", "whole"}
        What happens at the limit; see `kvstats.policies.recompute`.

    Returns
    -------
    polars.DataFrame
        The rows with the column ``rerun``, the part of each that is marked.
    """
    check_choice(function, "higher", higher, DIRECTIONS)
    check_choice(function, "margin", margin, ("expected", "whole"))
    groups = within_columns(function, within, rows)
    ranked = rows.with_columns(
        (-pl.col(signal).cast(pl.Float64) if higher == "positive" else pl.col(signal)).alias(RANK)
    )
    # Constants make one group of all rows.
    keys = [pl.col(name) for name in groups] or [pl.lit(0)]
    room = share * pl.col(RANK).count().over(keys)
    if margin == "expected":
        above = pl.col(RANK).rank("min").over(keys) - 1
        level = pl.len().over([*keys, pl.col(RANK)])
        part = ((room - above) / level).clip(0.0, 1.0)
        part = pl.when(part < ROUNDING).then(0.0).when(part > 1 - ROUNDING).then(1.0).otherwise(part)
    else:
        # A log keeps its rows in the order of their keys, which settles ties.
        part = (pl.col(RANK).rank("ordinal").over(keys) <= room + ROUNDING).cast(pl.Float64)
    return ranked.with_columns(part.fill_null(0.0).alias(RERUN)).drop(RANK)


def over_threshold(
    function: str, rows: pl.DataFrame, signal: str, tau: object, *, higher: str
) -> pl.DataFrame:
    """Mark the rows whose signal is at or above a threshold, or with ``negative`` at or below it."""
    threshold = check_tau(function, tau)
    check_choice(function, "higher", higher, DIRECTIONS)
    marked = pl.col(signal) >= threshold if higher == "positive" else pl.col(signal) <= threshold
    return rows.with_columns(marked.fill_null(value=False).cast(pl.Float64).alias(RERUN))


def twin_columns(others: pl.DataFrame, arm: str) -> list[str]:
    """Return the columns in which a row and the run that replaces it agree; see `kvstats.paired`."""
    on = list(INPUT_KEY)
    if arm != FULL:
        on += ["budget", "budget_tokens"]
        if others.select(on).is_duplicated().any():
            on.append("seed")
    return on


def mixed(
    function: str, rows: pl.DataFrame, others: pl.DataFrame, *, argument: str, other_name: str, on: list[str]
) -> pl.DataFrame:
    """Take the outcome of another run where a row is re-run, and the expected one where it is in part.

    Parameters
    ----------
    function : str
        Name of the policy, for messages.
    rows : polars.DataFrame
        The rows of the base arm, with the column ``rerun``.
    others : polars.DataFrame
        The runs that replace them, at most one for each in the columns `on`.
    argument, other_name : str
        Argument and name of the arm of `others`, for messages.
    on : list of str
        Columns in which a row and its other run agree.

    Returns
    -------
    polars.DataFrame
        One row for each row of `rows`. Where ``rerun`` is 0 it is the row's own, where it is 1 that of the
        other run. In between, score and kept fraction are the expected ones, ``success`` and ``n_prompt``
        are kept where both runs agree, and everything else that was observed of one run is null.
    """
    chosen = switched(
        function,
        rows,
        others,
        taken=pl.col(RERUN) > 0,
        argument=argument,
        other_name=other_name,
        on=on,
    )
    partly = pl.col(RERUN).is_between(0.0, 1.0, closed="none")
    own = [name for name in ("seed", "budget", "budget_tokens", *INPUT_KEY) if name in rows.columns]
    before = rows.filter(partly).with_columns(kept())
    after = chosen.filter(partly).with_columns(kept())
    names = ("score", "kept_fraction", "success", "n_prompt")
    joined = before.join(
        after.select(*own, *(pl.col(name).alias(f"other_{name}") for name in names)),
        on=own,
        how="left",
        nulls_equal=True,
    )
    expected = {
        name: (1 - pl.col(RERUN)) * pl.col(name) + pl.col(RERUN) * pl.col(f"other_{name}")
        for name in ("score", "kept_fraction")
    }
    shared = {
        name: pl.when(pl.col(name) == pl.col(f"other_{name}")).then(pl.col(name))
        for name in ("success", "n_prompt")
    }
    marks = [name for name in POLICY_COLUMNS if name in rows.columns]
    averaged = joined.with_columns(**expected, **shared).select(*own, *marks, *names)
    return pl.concat([chosen.filter(~partly), averaged], how="diagonal")


def kept() -> pl.Expr:
    """Return the kept fraction as measured, or else from the token counts."""
    return pl.coalesce("kept_fraction", pl.col("n_kept") / pl.col("n_prompt")).alias("kept_fraction")
