"""Reports and logs as tables in a terminal or a file, by rich."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

import polars as pl
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY
from kvstats.prereg.display import FIGURES, figure_names, row_figures, row_label
from kvstats.prereg.outcome import ClaimOutcome
from kvstats.prereg.report import Report
from kvstats.report.evidence import sensitivity_lines
from kvstats.report.heading import heading

__all__ = ["print_log", "print_report", "summary_content"]

PIPED_WIDTH = 100
"""Columns of a table that goes to no terminal."""

CLAIM_WIDTH = 24
"""Least width of the column in which statements wrap."""

GAP = 3
"""Blanks between columns."""

CELL = ("model", "task", "condition", "arm")
"""What a log is counted by."""

STYLES = {
    "supported": "green",
    "killed": "red",
    "not met": "yellow",
    "inconclusive": "yellow",
    "undefined": "magenta",
    "invalid": "bold red",
    "exploratory": "magenta",
}


def print_report(report: Report, file: IO[str]) -> None:
    """Print a report: what was verified, what is wrong with it, and a table of claims.

    Parameters
    ----------
    report : Report
        The report.
    file : text file
        Where to. Without a terminal the table is 100 columns wide and has no colours. Statements wrap; where
        figures need more room than there is, lines get longer, and nothing is cut off.
    """
    header = ["Verdict", "Claim", *figure_names(report)]
    table = Table(*header, box=SIMPLE, pad_edge=False, show_edge=False)
    widths = [len(name) for name in header]
    for index, column in enumerate(table.columns):
        column.no_wrap, column.overflow = index != 1, "fold"
        column.justify = "left" if index < 2 else "right"
    amended = {name for amendment in report.amendments for name in amendment["changes"]}
    for claim in report.claims:
        for name, texts in claim_lines(claim, claim.id in amended):
            table.add_row(Text(texts[0], STYLES.get(texts[0], "")), name, *map(Text, texts[1:]))
            cells = [texts[0], "", *texts[1:]]
            widths = [max(width, len(cell)) for width, cell in zip(widths, cells, strict=True)]
        table.add_section()
    console = console_for(file)
    # An id that is cut in two cannot be copied.
    claim_width = max(CLAIM_WIDTH, *(len(claim.id) for claim in report.claims))
    table.columns[1].min_width = claim_width
    console.width = max(console.width, sum(widths) - widths[1] + claim_width + GAP * len(widths))
    console.print(Text(report.study, "bold"))
    for line in heading(report, console.width):
        console.print(line, soft_wrap=True)
    console.print(table)
    for line in sensitivity_lines(report):
        console.print(line)
    console.print(Text(repr(report), "bold" if report.intact else "bold red"))


def console_for(file: IO[str]) -> Console:
    console = Console(file=file, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    return console


def claim_lines(claim: ClaimOutcome, amended: bool) -> Iterable[tuple[Text, tuple[str, ...]]]:
    """Yield the lines of a claim: its text, and its verdict with the figures of one row."""
    mark = ("\nas amended", "yellow") if amended else ""
    name = Text.assemble((claim.id, "bold"), mark, f"\n{claim.statement.strip()}\n", (claim.reason, "dim"))
    blank = ("",) * len(FIGURES)
    single = len(claim.rows) == 1
    if single and row_label(claim.rows[0]):
        name.append(f"\n{row_label(claim.rows[0])}")
    yield name, (claim.verdict, *(row_figures(claim.rows[0]) if single else blank))
    if not single:
        for row in claim.rows:
            yield Text(row_label(row)), (row["verdict"], *row_figures(row))


def print_log(log: Log, file: IO[str]) -> None:
    """Print a log: its description, and the number and mean score of its runs by task and arm.

    Parameters
    ----------
    log : Log
        The log.
    file : text file
        Where to.
    """
    counts = cell_counts(log)
    header = [name.replace("_", " ") for name in counts.columns]
    table = Table(*header, box=SIMPLE, pad_edge=False, show_edge=False)
    for column in table.columns[len(CELL) :]:
        column.justify = "right"
    rows = [
        [*(value or "–" for value in row[:4]), *(f"{value:,}" for value in row[4:7]), score_text(row[7])]
        for row in counts.rows()
    ]
    for row in rows:
        table.add_row(*map(Text, row))
    console = console_for(file)
    widths = [max(map(len, cells)) for cells in zip(header, *rows, strict=True)]
    console.width = max(console.width, sum(widths) + GAP * len(widths))
    console.print(Text(repr(log)))
    if rows:
        console.print(table)


def summary_content(log: Log) -> dict[str, Any]:
    """Return the same for JSON.

    Returns
    -------
    dict
        ``files``, each with name, format, and numbers of records and rejects; the numbers of ``runs``,
        ``inputs``, ``input_records``, ``replays`` and ``rejects``; and ``cells``, each with model, task,
        condition, arm, numbers of runs, inputs and runs without a score, and the mean score.
    """
    return {
        "files": log.files.to_dicts(),
        "runs": log.runs.height,
        "inputs": log.runs.select(INPUT_KEY).n_unique(),
        "input_records": log.inputs.height,
        "replays": log.replays.height,
        "rejects": log.rejects.height,
        "cells": cell_counts(log).to_dicts(),
    }


def cell_counts(log: Log) -> pl.DataFrame:
    """Count runs by model, task, condition and arm."""
    counts = log.runs.group_by(CELL).agg(
        pl.len().alias("runs"),
        pl.col("input_id").n_unique().alias("inputs"),
        pl.col("score").null_count().alias("unscored"),
        pl.col("score").mean().alias("mean_score"),
    )
    return counts.sort(CELL)


def score_text(score: float | None) -> str:
    return "–" if score is None else f"{score:.3f}"
