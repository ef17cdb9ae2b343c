"""Populations: which rows an estimator is about, and how they are split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.inference.design import Design
from kvstats.inference.result import RESULT_SCHEMA, Result, infer
from kvstats.inference.sample import BoolArray, Kind, Sample, samples_by
from kvstats.log.frames import Log
from kvstats.selection import select
from kvstats.statistics.ratios import Mean
from kvstats.statistics.statistic import FloatArray, Statistic
from kvstats.tables import arm_rows, require_values, runs_with_inputs

__all__ = [
    "By",
    "by_columns",
    "check_outcome",
    "drawn_rows",
    "estimate",
    "mean_or_rate",
    "narrowed",
    "numbers",
    "numeric_columns",
    "outcome_difference",
    "refuse_pooling",
    "runs_of",
    "with_kept_fraction",
]

By = str | Sequence[str] | None
"""Columns to estimate within: a name, several names, or None for one estimate."""


def by_columns(function: str, by: By, frame: pl.DataFrame) -> tuple[str, ...]:
    """Return the by-columns as a tuple, or raise `InputError` where one cannot be used."""
    names = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    for name in names:
        if name not in frame.columns:
            raise InputError.argument(
                function, "by", name, "is not a column", nearest_name(str(name), frame.columns)
            )
        if name in RESULT_SCHEMA:
            raise InputError.argument(
                function, "by", name, "is the name of a column of every result", "rename the signal"
            )
    if len(set(names)) < len(names):
        raise InputError.argument(function, "by", by, "names a column twice", "name each once")
    return names


def estimate(
    function: str,
    log: Log,
    frame: pl.DataFrame,
    by: By,
    design: Design,
    build: Callable[[pl.DataFrame], tuple[Statistic, Kind]],
    null: float | None = None,
) -> Result:
    """Split the population by columns, prepare the statistic on each part, and judge it.

    Within strata the clusters of the whole log count, whatever was selected from it.
    """
    names = by_columns(function, by, frame)
    return infer(
        function,
        samples_by(function, frame, names, design, build, drawn_rows(log, design)),
        design,
        {name: frame.schema[name] for name in names},
        null,
    )


def drawn_rows(log: Log, design: Design) -> pl.DataFrame | None:
    """Return cluster and strata columns of the runs, inputs and replays of a log, None without strata."""
    if not design.stratum:
        return None
    columns = list(dict.fromkeys([*design.cluster, *design.stratum]))
    runs = runs_with_inputs(log)
    known = [table for table in (runs, log.inputs, log.replays) if set(columns) <= set(table.columns)]
    return pl.concat([table.select(columns) for table in known], how="vertical_relaxed") if known else runs


def runs_of(function: str, log: Log, arm: str | None, where: str | None, by: By) -> pl.DataFrame:
    """Return the runs of one arm, or of all where `by` or `where` keeps arms apart."""
    rows = runs_with_inputs(log, function)
    if arm is not None:
        rows = arm_rows(rows, arm, function)
    rows = select(rows, where, function)
    refuse_pooling(function, rows, by, "arm")
    return rows


def refuse_pooling(function: str, rows: pl.DataFrame, by: By, column: str) -> None:
    """Raise `InputError` where an estimate would pool rows that differ in a column."""
    values = rows[column].unique().sort().to_list()
    if len(values) > 1 and column not in by_columns(function, by, rows):
        shown = ", ".join(map(str, values[:6])) + (", ..." if len(values) > 6 else "")
        raise InputError(
            f"{function}: the rows differ in {column} ({shown}), and pooling them estimates nothing; "
            f"pass by={column!r}, or select one"
        )


def check_outcome(function: str, frame: pl.DataFrame, outcome: str) -> None:
    """Raise `InputError` where the outcome is not known or not complete."""
    known = ("score", "success")
    if outcome not in known:
        raise InputError.argument(
            function, "outcome", outcome, "is not known", nearest_name(str(outcome), known)
        )
    require_values(function, frame, outcome)


def outcome_difference(function: str, pairs: pl.DataFrame, outcome: str) -> pl.DataFrame:
    """Return pairs whose ``difference`` is that of an outcome, or raise `InputError` where one is unknown."""
    check_outcome(function, pairs, outcome)
    if outcome == "score":
        return pairs
    require_values(function, pairs, "baseline_success")
    difference = pl.col("success").cast(pl.Float64) - pl.col("baseline_success").cast(pl.Float64)
    return pairs.with_columns(difference=difference)


def with_kept_fraction(function: str, rows: pl.DataFrame, prefix: str = "") -> pl.DataFrame:
    """Return runs with the fraction that they kept, as measured or from the counts.

    The prefix is that of the columns, such as ``baseline_`` for what the twins of pairs kept.
    """
    column = f"{prefix}kept_fraction"
    counted = pl.col(f"{prefix}n_kept") / pl.col("n_prompt")
    rows = rows.with_columns(pl.coalesce(column, counted).alias(column))
    require_values(function, rows, column)
    return rows


def numeric_columns(frame: pl.DataFrame) -> list[str]:
    """Return the names of the columns that hold numbers."""
    return [name for name in frame.columns if frame.schema[name].is_numeric()]


def numbers(frame: pl.DataFrame, column: str) -> FloatArray:
    """Return a column as floating-point numbers."""
    return frame[column].cast(pl.Float64).to_numpy()


def mean_or_rate(column: str) -> Callable[[pl.DataFrame], tuple[Statistic, Kind]]:
    """Return what makes the mean of a column: a rate where all its values are 0 or 1.

    For scores in [0, 1] this is sound even where a part happens to hold zeros or ones only: the mean is at
    most the share of scores above 0, and at least the share of scores equal to 1.
    """

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        values = numbers(part, column)
        return Mean(values), "rate" if bool(((values == 0) | (values == 1)).all()) else "mean"

    return build


def narrowed(everything: Sample, rows: BoolArray, statistic: Statistic, kind: Kind) -> Sample:
    """Return a statistic on some rows of a sample, with their weights and clusters."""
    return replace(
        everything,
        statistic=statistic,
        weights=everything.weights[rows],
        codes=everything.codes[rows],
        kind=kind,
    )
