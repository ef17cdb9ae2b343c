"""Reports and logs as tables in a terminal or a file, by rich."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO

import polars as pl
from rich.box import SIMPLE
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from kvstats.log.frames import Log
from kvstats.prereg.display import FIGURES, row_figures, row_label, several
from kvstats.prereg.outcome import ClaimOutcome, Report
from kvstats.report.evidence import evidence_lines, sensitivity_table

__all__ = ["print_log", "print_report"]

PIPED_WIDTH = 100
"""Columns of a table that goes to no terminal."""

CLAIM_WIDTH = 24
"""Least width of the column in which statements wrap."""

GAP = 3
"""Blanks between columns."""

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
    interval = f"{100 * report.design['level']:g}% interval"
    header = ["Verdict", "Claim", *(interval if name == "interval" else name for name in FIGURES)]
    table = Table(*header, box=SIMPLE, pad_edge=False, show_edge=False)
    widths = [len(name) for name in header]
    for index, column in enumerate(table.columns):
        column.no_wrap, column.overflow = index != 1, "fold"
        column.justify = "left" if index < 2 else "right"
    for claim in report.claims:
        for name, texts in claim_lines(claim):
            table.add_row(Text(texts[0], STYLES.get(texts[0], "")), name, *map(Text, texts[1:]))
            cells = [texts[0], "", *texts[1:]]
            widths = [max(width, len(cell)) for width, cell in zip(widths, cells, strict=True)]
        table.add_section()
    console = console_for(file)
    # An id that is cut in two cannot be copied.
    claim_width = max(CLAIM_WIDTH, *(len(claim.id) for claim in report.claims))
    table.columns[1].min_width = claim_width
    console.width = max(console.width, sum(widths) - widths[1] + claim_width + GAP * len(widths))
    for line in heading(report):
        console.print(line)
    console.print(table)
    if (sensitivity := sensitivity_table(report)) is not None:
        console.print(sensitivity)
    console.print(Text(repr(report), "bold" if report.intact else "bold red"))


def console_for(file: IO[str]) -> Console:
    console = Console(file=file, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    return console


def heading(report: Report) -> Iterable[RenderableType]:
    """Yield what stands above the table of claims."""
    registration = report.registration
    yield Text(report.study, "bold")
    order = {
        True: "before the first record",
        False: "AFTER THE FIRST RECORD",
        None: "the records have no times",
    }
    late = report.registered_first is False
    yield Text(
        f"registration  {registration.file}, {registration.registered_at} ({order[report.registered_first]})"
        if report.data is not None
        else f"registration  {registration.file}, {registration.registered_at}",
        "bold red" if late else "",
    )
    yield from anchor_lines(report)
    if report.data is not None:
        counts = report.data
        yield Text(
            f"data          {several(counts.runs, 'run')} of {several(counts.inputs, 'input')}, "
            f"{several(counts.replays, 'replay cell')}, {several(counts.rejects, 'reject')}; "
            f"{several(counts.files, 'file')}, {'as registered' if counts.hashed else 'not hashed'}"
        )
    yield from evidence_lines(report)
    for name, text in (("exclusions", report.exclusions), ("stopping rule", report.stopping_rule)):
        if text is not None:
            yield Text(f"{name:<13} {text.strip()}")
    for deviation in report.deviations:
        yield Text(f"deviation     {deviation['at']}: {deviation['text'].strip()}", "yellow")
    for number, amendment in enumerate(report.amendments, start=1):
        changed = f" (changes {', '.join(amendment['changes'])})" if amendment["changes"] else ""
        yield Text(f"amendment {number:<3} {amendment['at']}: {amendment['text'].strip()}{changed}", "yellow")
    for finding in report.integrity:
        yield Text(f"integrity     {finding}", "bold red")
    for guard in report.guards:
        state = {True: "holds", False: "FAILS", None: "not evaluated"}[guard.holds]
        text = f"guard         {guard.id} {state}" + (f": {guard.reason}" if guard.holds is False else "")
        yield Text(text, "bold red" if guard.holds is False else "")


def anchor_lines(report: Report) -> Iterable[Text]:
    """Yield the hashes of a registration, its seal, and what holds it from outside."""
    registration, seal = report.registration, report.registration.seal
    expected = {anchor.reference for anchor in registration.anchors if anchor.by == "sha256"}

    def state(digest: str) -> str:
        return " (as expected)" if digest in expected else ""

    shown = registration.sha256 + (state(registration.sha256) or f" ({registration.standing})")
    yield Text(f"sha256        {shown}")
    yield Text(f"frozen part   {registration.frozen_sha256}{state(registration.frozen_sha256)}")
    if seal is not None:
        state_of_bytes = "the same bytes" if seal.same_bytes else "other bytes now"
        beside = f", {several(seal.amendments, 'amendment')}" if seal.amendments else ""
        yield Text(f"seal          {seal.file}, {seal.sealed_at} by its own word; {state_of_bytes}{beside}")
    for anchor in registration.anchors:
        first = None if anchor.time is None else report.precedes_records(anchor.time)
        order = {True: ", before the first record", False: ", AFTER THE FIRST RECORD", None: ""}[first]
        style = "bold red" if first is False and anchor.given else ""
        if anchor.by == "timestamp":
            stamp = f"{anchor.covers}, {anchor.time}{order}, {anchor.reference}"
            yield Text(f"time-stamp    of {stamp}", style)
        elif anchor.by == "git":
            named = "named by the caller" if anchor.given else "found in the work tree, no anchor by itself"
            commit = f"{anchor.reference[:12]} of {anchor.time}{order}"
            yield Text(f"git           {commit} has {anchor.covers}; {named}", style)
        elif anchor.amendments:
            yield Text(f"expected      {anchor.reference}: {anchor.covers}")


def claim_lines(claim: ClaimOutcome) -> Iterable[tuple[Text, tuple[str, ...]]]:
    """Yield the lines of a claim: its text, and its verdict with the figures of one row."""
    name = Text.assemble((claim.id, "bold"), f"\n{claim.statement.strip()}\n", (claim.reason, "dim"))
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
    keys = ["model", "task", "condition", "arm"]
    counts = (
        log.runs.group_by(keys)
        .agg(
            pl.len().alias("runs"),
            pl.col("input_id").n_unique().alias("inputs"),
            pl.col("score").null_count().alias("unscored"),
            pl.col("score").mean().alias("mean score"),
        )
        .sort(keys)
    )
    table = Table(*counts.columns, box=SIMPLE, pad_edge=False, show_edge=False)
    for column in table.columns[len(keys) :]:
        column.justify = "right"
    rows = [
        [*(value or "–" for value in row[:4]), *(f"{value:,}" for value in row[4:7]), score_text(row[7])]
        for row in counts.rows()
    ]
    for row in rows:
        table.add_row(*map(Text, row))
    console = console_for(file)
    widths = [max(map(len, cells)) for cells in zip(counts.columns, *rows, strict=True)]
    console.width = max(console.width, sum(widths) + GAP * len(widths))
    console.print(Text(repr(log)))
    if rows:
        console.print(table)


def score_text(score: float | None) -> str:
    return "–" if score is None else f"{score:.3f}"
