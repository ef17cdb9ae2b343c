"""Checks of scores: runs without one, full caches that differ, arms that do not."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from kvstats.log.audits.finding import Finding, arm_of, evicted, full_runs, named, several
from kvstats.log.records import INPUT_KEY, RUN_KEY

__all__ = ["identical_arms", "unlike_full", "without_effect", "without_score"]

TIE = 1e-9
"""Scores that differ by no more are equal."""

LEAST = 10
"""So many rows are needed to call arms identical."""


def without_score(runs: pl.DataFrame) -> Iterator[Finding]:
    """Find runs that failed or were not scored."""
    missing = runs.filter(pl.col("score").is_null())
    if missing.height:
        failed = missing.height - missing["error"].null_count()
        message = (
            f"{several(missing.height, 'run')} of {runs.height:,} without a score, {failed:,} with an error"
        )
        yield Finding("no score", "warning", missing.height, message, named(missing, RUN_KEY))


def unlike_full(runs: pl.DataFrame) -> Iterator[Finding]:
    """Find runs of which nothing was evicted that score otherwise than the full cache."""
    joined = with_twins(runs).filter((pl.col("score") - pl.col("twin_score")).abs() > TIE)
    for check, what, whole in (
        ("budget 1 differs from full", "at budget 1", pl.col("budget") == 1.0),
        ("closed gate differs from full", "behind a closed gate", ~pl.col("gate_open")),
    ):
        differing = joined.filter(whole)
        for arm in differing["arm"].unique().sort():
            rows = differing.filter(pl.col("arm") == arm)
            verb = "scores" if rows.height == 1 else "score"
            message = (
                f"{several(rows.height, 'run')} of arm {arm} {what} {verb} otherwise than the full cache"
            )
            yield Finding(check, "warning", rows.height, message, named(rows, INPUT_KEY))
        # A run at budget 1 behind a closed gate is told once.
        joined = joined.filter(~whole.fill_null(value=False))


def without_effect(runs: pl.DataFrame) -> Iterator[Finding]:
    """Find arms that answer as the full cache does wherever something was evicted, not to the same text."""
    below = evicted(with_twins(runs)).filter(pl.col("gate_open").fill_null(value=True))
    told = below.drop_nulls(["prediction", "twin_prediction"])
    arms = told.group_by("model", "arm").agg(
        pl.len().alias("rows"),
        pl.col("prediction").n_unique().alias("answers"),
        (pl.col("prediction") == pl.col("twin_prediction")).all().alias("same"),
    )
    same = arms.filter("same", pl.col("rows") >= LEAST, pl.col("answers") > 1).sort("model", "arm")
    for row in same.iter_rows(named=True):
        message = f"{arm_of(row)} answers as the full cache does in all {row['rows']:,} runs below budget 1"
        yield Finding("no effect", "warning", row["rows"], message)


def with_twins(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the runs of other arms than the full cache, each with score and prediction of its twin."""
    key = list(INPUT_KEY)
    full = full_runs(runs)
    twins = runs.filter(full).unique(key, keep="first", maintain_order=True)
    twins = twins.select(*key, twin_score="score", twin_prediction="prediction")
    return runs.filter(~full).join(twins, on=key, nulls_equal=True, maintain_order="left")


def identical_arms(runs: pl.DataFrame) -> Iterator[Finding]:
    """Find pairs of arms that give a model the same on all rows that both have, and not one outcome only."""
    below = evicted(runs)
    if below["arm"].n_unique() < 2:
        return
    place = pl.struct(name for name in RUN_KEY if name != "arm").rank("dense").alias("place")
    given = pl.struct("score", "prediction").rank("dense").alias("given")
    rows = below.select("suite", "model", "arm", place, given)
    other = rows.select("place", arm_other="arm", given_other="given")
    pairs = rows.join(other, on="place").filter(pl.col("arm") < pl.col("arm_other"))
    arms = ["suite", "model", "arm", "arm_other"]
    compared = pairs.group_by(arms).agg(
        pl.len().alias("rows"),
        pl.col("given").n_unique().alias("outcomes"),
        (pl.col("given") == pl.col("given_other")).all().alias("same"),
    )
    same = compared.filter("same", pl.col("rows") >= LEAST, pl.col("outcomes") > 1).sort(arms)
    several_models = below["model"].n_unique() > 1
    for row in same.iter_rows(named=True):
        of_model = f" of model {row['model']}" if several_models else ""
        message = (
            f"arms {row['arm']} and {row['arm_other']}{of_model} give the same on all {row['rows']:,} rows "
            "that both have below budget 1"
        )
        yield Finding("identical arms", "warning", row["rows"], message)
