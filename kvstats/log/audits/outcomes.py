"""Checks of scores: runs without one, full caches that differ, arms that do not."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from kvstats.log.audits.finding import Finding, evicted, full_runs, named, several
from kvstats.log.records import INPUT_KEY, RUN_KEY

__all__ = ["budget_one_unlike_full", "identical_arms", "without_score"]

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


def budget_one_unlike_full(runs: pl.DataFrame) -> Iterator[Finding]:
    """Find runs of which nothing was evicted that score otherwise than the full cache."""
    key = list(INPUT_KEY)
    full = full_runs(runs)
    twins = runs.filter(full).select(*key, twin_score="score").unique(key, keep="first", maintain_order=True)
    joined = runs.filter(~full).join(twins, on=key, nulls_equal=True, maintain_order="left")
    differing = joined.filter(
        (pl.col("budget") == 1.0) & ((pl.col("score") - pl.col("twin_score")).abs() > TIE)
    )
    for arm in differing["arm"].unique().sort():
        rows = differing.filter(pl.col("arm") == arm)
        verb = "scores" if rows.height == 1 else "score"
        message = (
            f"{several(rows.height, 'run')} of arm {arm} at budget 1 {verb} otherwise than the full cache"
        )
        yield Finding("budget 1 differs from full", "warning", rows.height, message, named(rows, INPUT_KEY))


def identical_arms(runs: pl.DataFrame) -> Iterator[Finding]:
    """Find pairs of arms that give the same on every row that both have."""
    below = evicted(runs)
    if below["arm"].n_unique() < 2:
        return
    place = pl.struct(name for name in RUN_KEY if name != "arm").rank("dense").alias("place")
    given = pl.struct("score", "prediction").rank("dense").alias("given")
    rows = below.select("arm", place, given)
    pairs = rows.join(rows, on="place", suffix="_other").filter(pl.col("arm") < pl.col("arm_other"))
    compared = pairs.group_by("arm", "arm_other").agg(
        pl.len().alias("rows"), (pl.col("given") == pl.col("given_other")).all().alias("same")
    )
    same = compared.filter("same", pl.col("rows") >= LEAST).sort("arm", "arm_other")
    for arm, other, count, _ in same.iter_rows():
        message = f"arms {arm} and {other} give the same on all {count:,} rows that both have below budget 1"
        yield Finding("identical arms", "warning", count, message)
