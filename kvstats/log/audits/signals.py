"""Checks of signals: constant ones, and those that stand at one end."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from kvstats.log.audits.finding import Finding

__all__ = ["idle_signals"]

SATURATED = 0.95
"""A signal is saturated where so large a share of its values is its smallest or its largest one."""

LEAST = 10
"""So many values are needed to call a signal constant or saturated."""


def idle_signals(
    noun: str, frame: pl.DataFrame, signals: tuple[str, ...], within: list[str]
) -> Iterator[Finding]:
    """Find signals of which all or nearly all values are one."""
    for signal in signals:
        rows = frame.filter(pl.col(signal).is_not_null()).select(*within, pl.col(signal).alias("value"))
        ends = rows.group_by(within or pl.lit("").alias("all")).agg(
            pl.len().alias("rows"),
            (pl.col("value") == pl.col("value").min()).mean().alias("lowest"),
            (pl.col("value") == pl.col("value").max()).mean().alias("highest"),
        )
        for row in ends.filter(pl.col("rows") >= LEAST).sort(pl.first()).iter_rows(named=True):
            share = max(row["lowest"], row["highest"])
            if share < SATURATED:
                continue
            where = f" of arm {row['arm']}" if within else ""
            check = "constant signal" if share == 1.0 else "saturated signal"
            end = "smallest" if row["lowest"] >= row["highest"] else "largest"
            message = f"{signal} is constant in {row['rows']:,} {noun}{where}"
            if share < 1.0:
                message = f"{signal} is at its {end} value in {share:.1%} of {row['rows']:,} {noun}{where}"
            yield Finding(check, "note", round(share * row["rows"]), message)
