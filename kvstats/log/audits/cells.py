"""Checks of what should be there: every input under every setting."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from kvstats.errors import InputError
from kvstats.log.audits.finding import SHOWN, Finding, several
from kvstats.log.records import RUN_KEY

__all__ = ["absent_cells", "check_grid", "partial_cells"]

PLACE = ["suite", "model", "task"]
SETTING = ["condition", "arm", "budget", "budget_tokens", "seed"]
"""What an input is run under; the budget in tokens counts where there is no fraction."""


def check_grid(grid: pl.DataFrame) -> pl.DataFrame:
    """Refuse a grid with columns that are no part of a run's key, or with an input's id."""
    known = [name for name in RUN_KEY if name != "input_id"]
    if not isinstance(grid, pl.DataFrame) or not grid.columns or grid.is_empty():
        remedy = "pass a polars.DataFrame with a row for each expected cell"
        raise InputError.argument("audit", "grid", grid, "is no table of cells", remedy)
    for name in grid.columns:
        if name not in known:
            raise InputError.argument(
                "audit", "grid", name, "is no column of cells", f"name some of {', '.join(known)}"
            )
    return grid.unique(maintain_order=True)


def partial_cells(runs: pl.DataFrame, grid: pl.DataFrame | None) -> Iterator[Finding]:
    """Find runs that are missing: inputs of a model and task without a setting that others of it have.

    A setting is a condition, arm, budget and seed. With a grid the expected settings are its rows, each for
    every input of the suites, models, tasks and conditions that it names, or for every one.
    """
    whole = with_settings(runs)
    if grid is None:
        cells = whole.select(*PLACE, *SETTING).unique()
        expected = whole.select(*PLACE, "input_id").unique().join(cells, on=PLACE)
        key = [*PLACE, "input_id", *SETTING]
    else:
        cells, expected, key = expected_by(grid, whole)
    absent = expected.join(whole, on=key, how="anti", nulls_equal=True)
    by = [name for name in key if name != "input_id"]
    by = by if grid is None else grid.columns
    # A cell of a given grid that admits no input is missing too, and no input can be named.
    barren = cells.join(expected, on=by, how="anti", nulls_equal=True) if grid is not None else cells.clear()
    missing = absent.height + barren.height
    if not missing:
        return
    sizes = expected.group_by(by).agg(pl.len().alias("inputs"))
    holes = absent.group_by(by).agg(pl.len().alias("missing"))
    told = (
        holes.join(sizes, on=by, nulls_equal=True)
        .sort("missing", *by, descending=[True] + [False] * len(by))
        .select(*by, "missing", "inputs")
    )
    examples = [cell_text(row, by) for row in told.head(SHOWN).iter_rows(named=True)]
    examples = [*(cell_text(row, by) for row in barren.head(SHOWN).iter_rows(named=True)), *examples][:SHOWN]
    cells_short = told.height + barren.height
    message = (
        f"{several(missing, 'run')} of {expected.height + barren.height:,} expected are missing, "
        f"in {several(cells_short, 'cell')}"
    )
    yield Finding("partial cells", "warning", missing, message, tuple(examples))


def expected_by(grid: pl.DataFrame, whole: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """Return a grid, the runs that it expects of the inputs there are, and what tells them apart."""
    inputs = [*PLACE, "input_id", "condition"]
    shared = [name for name in grid.columns if name in inputs]
    cells = grid.cast({name: whole.schema[name] for name in grid.columns})
    known = whole.select(inputs).unique()
    expected = known.join(cells, on=shared, nulls_equal=True) if shared else known.join(cells, how="cross")
    return cells, expected, [*inputs, *(name for name in grid.columns if name not in inputs)]


def absent_cells(runs: pl.DataFrame) -> Iterator[Finding]:
    """Find tasks that lack a whole setting which another task of the same suite and model has."""
    whole = with_settings(runs)
    study = ["suite", "model"]
    settings = whole.select(*study, *SETTING).unique()
    expected = whole.select(PLACE).unique().join(settings, on=study)
    absent = expected.join(whole, on=[*PLACE, *SETTING], how="anti", nulls_equal=True)
    if absent.height:
        key = [*PLACE, *SETTING]
        rows = absent.sort(key).head(SHOWN).iter_rows(named=True)
        examples = tuple(cell_text(row, key) for row in rows)
        message = f"{several(absent.height, 'cell')} that another task of the same model has"
        yield Finding("other cells than other tasks", "note", absent.height, message, examples)


def with_settings(runs: pl.DataFrame) -> pl.DataFrame:
    """Return keys of runs; the budget in tokens only where there is no fraction."""
    tokens = pl.when(pl.col("budget").is_null()).then("budget_tokens").alias("budget_tokens")
    return runs.select(*PLACE, "input_id", "condition", "arm", "budget", tokens, "seed")


def cell_text(row: dict[str, object], by: list[str]) -> str:
    key = ", ".join(f"{name}={row[name]}" for name in by if row[name] is not None)
    if row.get("missing") is None:
        return key
    return f"{key}: {row['missing']:,} of {row['inputs']:,} inputs missing"
