"""Checks of recorded gates: whether one threshold explains an arm's calls, and is the stated one."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from kvstats.log.audits.finding import Finding, arm_of, named, several
from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY, RUN_KEY

__all__ = ["calls_of_no_threshold", "mixed_tau", "tau_against_calls"]

GATE = ["suite", "model", "arm"]
"""One gate is one arm of one model in one suite."""


def gated_runs(log: Log) -> pl.DataFrame:
    """Return key, call, recorded threshold and D of the runs that a gate decided on."""
    tau = pl.col("extra").str.json_path_match("$.tau").cast(pl.Float64, strict=False).alias("tau")
    drops = log.inputs.select(*INPUT_KEY, "drop").unique(INPUT_KEY, keep="first", maintain_order=True)
    runs = log.runs.select(*RUN_KEY, "gate_open", tau)
    return runs.join(drops, on=list(INPUT_KEY), how="left", nulls_equal=True, maintain_order="left")


def mixed_tau(log: Log) -> Iterator[Finding]:
    """Find arms that were run at several thresholds."""
    runs = gated_runs(log).drop_nulls("tau")
    values = runs.group_by(GATE).agg(pl.col("tau").unique().sort(), pl.len().alias("rows"))
    for row in values.filter(pl.col("tau").list.len() > 1).sort(GATE).iter_rows(named=True):
        taus = ", ".join(f"{tau:g}" for tau in row["tau"])
        message = f"{several(row['rows'], 'run')} of {arm_of(row)} have several thresholds: {taus}"
        yield Finding("mixed tau", "warning", row["rows"], message)


def tau_against_calls(log: Log) -> Iterator[Finding]:
    """Find runs whose gate is open below their own threshold, or closed above it."""
    runs = gated_runs(log).drop_nulls(["tau", "drop", "gate_open"])
    # At the threshold itself rounding of what was written decides.
    wrong = runs.filter(
        pl.col("drop") != pl.col("tau"), pl.col("gate_open") != (pl.col("drop") > pl.col("tau"))
    )
    if wrong.height:
        message = (
            f"{several(wrong.height, 'run')} of {runs.height:,} with a gate call that their tau does not make"
        )
        yield Finding("tau against its calls", "warning", wrong.height, message, named(wrong, RUN_KEY))


def calls_of_no_threshold(log: Log) -> Iterator[Finding]:
    """Find arms whose gate is closed at a larger D than it is open at: no threshold calls so."""
    runs = gated_runs(log).drop_nulls(["drop", "gate_open"])
    ends = runs.group_by(GATE).agg(
        pl.col("drop").filter(~pl.col("gate_open")).max().alias("closed"),
        pl.col("drop").filter("gate_open").min().alias("open"),
        pl.len().alias("rows"),
    )
    for row in ends.filter(pl.col("closed") > pl.col("open")).sort(GATE).iter_rows(named=True):
        message = (
            f"{arm_of(row)} is closed at D = {row['closed']:.4g} and open at {row['open']:.4g}: "
            "no threshold does both"
        )
        yield Finding("calls of no threshold", "warning", row["rows"], message)
