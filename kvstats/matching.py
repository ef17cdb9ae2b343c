"""Inputs that every arm was run on, so that all arms are held against their twins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from kvstats.errors import InputError
from kvstats.log.frames import Log, require_log
from kvstats.log.records import INPUT_KEY, RUN_KEY
from kvstats.tables import FULL, arm_rows, examples, refuse_duplicates

__all__ = ["MatchedInputs", "match_inputs"]

TASK = [name for name in INPUT_KEY if name != "input_id"]
CELL = [name for name in RUN_KEY if name != "input_id"]

SHOWN = 3
"""How many inputs are named."""


@dataclass(frozen=True)
class MatchedInputs:
    """The inputs that stay, and what was left out.

    Attributes
    ----------
    log : Log
        Runs, input records and replays of the inputs that stay.
    counts : polars.DataFrame
        One row a cell (``suite, model, task, condition, arm, budget, budget_tokens, seed``; budgets in tokens
        only where there is no fraction):
        ``n_paired`` inputs stay, ``n_unpaired`` of the cell are left out, ``n_missing`` of its task the cell
        was not run on; ``examples`` are up to three ids of those missing or, without such, left out.
    """

    log: Log
    counts: pl.DataFrame


def match_inputs(
    log: Log, *, baseline: str = FULL, unpaired: Literal["raise", "count"] = "raise"
) -> MatchedInputs:
    """Keep the inputs that the baseline and every arm of their task was run on, at each budget and seed.

    Parameters
    ----------
    log : Log
        The log. Arms that were meant for some inputs only are left out before, see `part_of`.
    baseline : str, default "full"
        The arm that all others are held against, which each task with runs must have. Where no arm is named
        ``full``, the rows of arm ``plain`` at budget 1 stand for it.
    unpaired : {"raise", "count"}, default "raise"
        What to do with inputs that lack one of these runs: raise, or leave them out and count them.

    Returns
    -------
    MatchedInputs

    Raises
    ------
    InputError
        When runs share their key, the baseline is not known, or inputs are unpaired and may not be.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> key = dict(suite="s", model="m", task="qa", score=1.0)
    >>> log = log_from_records([
    ...     *(RunRecord(**key, input_id=i, arm="full", budget=1.0) for i in ("a", "b", "c")),
    ...     *(RunRecord(**key, input_id=i, arm="snapkv", budget=0.5) for i in ("b", "c", "d")),
    ... ])
    >>> matched = match_inputs(log, unpaired="count")
    >>> matched.log.runs["input_id"].unique(maintain_order=True).to_list()
    ['b', 'c']
    >>> matched.counts.select("arm", "n_paired", "n_unpaired", "n_missing", "examples").rows()
    [('full', 2, 1, 1, ['d']), ('snapkv', 2, 1, 1, ['a'])]
    """
    if unpaired not in ("raise", "count"):
        raise InputError.argument(
            "match_inputs", "unpaired", unpaired, "is unknown", "pass 'raise' or 'count'"
        )
    require_log("match_inputs", log)
    refuse_duplicates("match_inputs", log.runs, RUN_KEY, "runs")
    whole = arm_rows(log.runs, baseline, "match_inputs", "baseline")
    inputs = log.runs.select(INPUT_KEY).unique(maintain_order=True)
    # Beside a fraction the number of tokens differs from prompt to prompt, and is no cell of its own.
    tokens = pl.when(pl.col("budget").is_null()).then("budget_tokens").alias("budget_tokens")
    runs = log.runs.select(RUN_KEY).with_columns(tokens).unique(maintain_order=True)
    # A cell is expected to have every input of its task, and every task with runs to have the baseline.
    cells = runs.select(CELL).unique(maintain_order=True)
    expected = cells.join(inputs, on=TASK, nulls_equal=True)
    expected = expected.join(runs.with_columns(present=True), on=RUN_KEY, how="left", nulls_equal=True)
    lacking = [expected.filter(pl.col("present").is_null()).select(INPUT_KEY)]
    lacking.append(inputs.join(whole, on=INPUT_KEY, how="anti", nulls_equal=True))
    left_out = pl.concat(lacking).unique()
    if left_out.height and unpaired == "raise":
        shown = examples(left_out.sort(INPUT_KEY), INPUT_KEY)
        raise InputError(
            f"match_inputs: {left_out.height} of {inputs.height} inputs were not run by every arm of their "
            f"task, at each budget, and by the baseline {baseline!r}, such as {shown}; record these runs, or "
            "pass unpaired='count' to leave the inputs out and have them counted"
        )
    kept = {
        name: getattr(log, name).join(
            left_out, on=INPUT_KEY, how="anti", nulls_equal=True, maintain_order="left"
        )
        for name in ("runs", "inputs", "replays")
    }
    return MatchedInputs(replace(log, **kept), counted(expected, left_out))


def counted(expected: pl.DataFrame, left_out: pl.DataFrame) -> pl.DataFrame:
    """Count the inputs of each cell."""
    rows = expected.join(left_out.with_columns(out=True), on=INPUT_KEY, how="left", nulls_equal=True)
    has, out = pl.col("present").is_not_null(), pl.col("out").is_not_null()
    named = pl.col("input_id")
    missing = named.filter(~has).sort().head(SHOWN)
    return (
        rows.group_by(CELL)
        .agg(
            (has & ~out).sum().cast(pl.Int64).alias("n_paired"),
            (has & out).sum().cast(pl.Int64).alias("n_unpaired"),
            (~has).sum().cast(pl.Int64).alias("n_missing"),
            pl.when((~has).any())
            .then(missing.implode())
            .otherwise(named.filter(out).sort().head(SHOWN).implode())
            .alias("examples"),
        )
        .sort(CELL)
    )
