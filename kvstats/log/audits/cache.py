"""Checks of what was kept: against the prompt, and against the budget."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from kvstats.log.audits.finding import SHOWN, Finding, evicted, full_runs, named, several
from kvstats.log.cells import NEAR
from kvstats.log.records import RUN_KEY

__all__ = ["full_not_whole", "kept_above_prompt", "kept_unlike_budget"]

TOLERANCE = 0.02
"""How far the mean kept fraction of a cell may lie from its budget, beside one token of its prompts.

Counts are rounded to tokens, sinks and recent positions are protected, and a sampled cache has a random size:
on average over a cell these come to less than a fiftieth. A budget that is the fraction removed, or one of
another length, is further off, but for a half, which is as much removed as kept.
"""

ROUNDING = 1e-9

CELL = ["suite", "model", "task", "condition", "arm", "budget"]


def full_not_whole(runs: pl.DataFrame) -> Iterator[Finding]:
    """Find runs of the full cache whose budget is below 1, or that kept less than there was."""
    rows = runs.filter(
        full_runs(runs),
        (pl.col("budget") < 1.0)
        | (pl.col("kept_fraction") < 1.0 - NEAR)
        | (pl.col("n_kept") < pl.col("n_prompt")),
    )
    if rows.height:
        message = f"{several(rows.height, 'run')} of the full cache kept a part of it only"
        yield Finding("full cache not whole", "error", rows.height, message, named(rows, RUN_KEY))


def kept_above_prompt(runs: pl.DataFrame) -> Iterator[Finding]:
    """Find runs that kept more tokens than there were."""
    rows = runs.filter(pl.col("n_kept") > pl.col("n_prompt"))
    if rows.height:
        message = f"{several(rows.height, 'run')} kept more tokens than the prompt has"
        yield Finding("kept above prompt", "warning", rows.height, message, named(rows, RUN_KEY))


def kept_unlike_budget(runs: pl.DataFrame) -> Iterator[Finding]:
    """Find cells whose runs keep on average another fraction than their budget.

    Runs that kept more than there was are another finding, and those that a gate decides on keep what it
    says.
    """
    kept = pl.coalesce("kept_fraction", pl.col("n_kept") / pl.col("n_prompt"))
    rows = evicted(runs).with_columns(kept=kept).filter(pl.col("gate_open").is_null(), pl.col("kept") <= 1.0)
    cells = (
        rows.drop_nulls(["kept", "budget"])
        .group_by(CELL)
        .agg(
            pl.col("kept").mean(),
            (1 / pl.col("n_prompt")).mean().fill_null(0.0).alias("token"),
            pl.len().alias("runs"),
        )
    )
    unlike = cells.filter(
        (pl.col("kept") - pl.col("budget")).abs() > TOLERANCE + pl.col("token") + ROUNDING
    ).sort(CELL)
    if unlike.height:
        examples = tuple(
            ", ".join(f"{name}={row[name]}" for name in CELL if row[name] is not None)
            + f": {row['kept']:.3f} kept on average"
            for row in unlike.head(SHOWN).iter_rows(named=True)
        )
        count = int(unlike["runs"].sum())
        message = (
            f"{several(unlike.height, 'cell')} with {several(count, 'run')} that keep more than "
            f"{TOLERANCE:g} above or below the budget on average"
        )
        yield Finding("kept unlike budget", "warning", count, message, examples)
