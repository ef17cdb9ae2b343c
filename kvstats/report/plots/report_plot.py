"""The claims of a report as a figure: their estimates, and what the rules compare these with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from kvstats.errors import InputError
from kvstats.inference.result import RESULT_SCHEMA
from kvstats.prereg.display import row_label
from kvstats.prereg.outcome import ClaimOutcome
from kvstats.prereg.report import Report
from kvstats.prereg.thresholds import Threshold, thresholds
from kvstats.report.plots.captioned import CaptionedFigure
from kvstats.report.plots.forest import draw_forest, forest_height, forest_places
from kvstats.report.plots.style import DOUBLE, GREY, LOOKS, SINGLE, panels
from kvstats.report.plots.wording import estimate_label, plain_text, span, undefined_text

__all__ = ["report_plot"]

RULES = {"supported": ("#000000", "-"), "killed": ("#D55E00", "--")}
"""Colour and dashes of what a rule compares with."""

ONE_COLUMN = 4
"""Claims that are drawn below each other; more of them stand in two columns."""

TITLE = 0.2
"""Height of the name of a claim, in inches."""

EMPTY = 0.5
"""Height of a claim for which nothing was computed, in inches."""

ROW = "row"
"""Column of what tells the rows of a claim apart."""


def report_plot(report: Report, ax: Axes | Sequence[Axes] | None = None) -> CaptionedFigure:
    """Plot the claims of a report; see `kvstats.prereg.Report.plot`."""
    if not report.claims:
        raise InputError("Report.plot: the report has no claims; ask `verify` for some")
    frames = [claim_frame(claim) for claim in report.claims]
    columns = 2 if ax is None and len(frames) > ONE_COLUMN else 1
    needed = [TITLE + (forest_height(frame, names_of(frame)) if frame.height else EMPTY) for frame in frames]
    heights = [max(needed[i : i + columns]) for i in range(0, len(needed), columns)]
    with panels(
        ax,
        rows=len(heights),
        columns=columns,
        width=SINGLE if columns == 1 else DOUBLE,
        height=sum(heights),
        height_ratios=heights,
        function="Report.plot",
    ) as (figure, drawn):
        axes = drawn[: len(frames)]
        for panel in drawn[len(frames) :]:
            panel.remove()
        for claim, frame, panel in zip(report.claims, frames, axes, strict=True):
            panel.set_title(plain_text(f"{claim.id}: {claim.verdict}", 46), fontsize="medium")
            if frame.height:
                draw_claim(panel, claim, frame)
            else:
                panel.set_axis_off()
                panel.text(0, 0.5, plain_text(claim.reason, 56), transform=panel.transAxes, color=GREY)
    caption = (
        f"{report!r}. Points are estimates, lines {100 * report.design['level']:g}% intervals. "
        "Vertical lines are what the rules compare with: solid what supports a claim, dashed what kills it. "
        f"{size_of(frames)} {undefined_text(frames)}"
    )
    return CaptionedFigure(figure, axes, caption.strip())


def claim_frame(claim: ClaimOutcome) -> pl.DataFrame:
    """Return the rows of a claim: what tells them apart as text, and the columns of every result."""
    rows: list[dict[str, Any]] = [
        {ROW: row_label(row), **{name: row[name] for name in RESULT_SCHEMA}} for row in claim.rows
    ]
    return pl.DataFrame(rows, schema={ROW: pl.String(), **RESULT_SCHEMA}, orient="row")


def names_of(frame: pl.DataFrame) -> list[str]:
    """Return the column that names rows, where there are several."""
    return [ROW] if frame.height > 1 else []


def draw_claim(axes: Axes, claim: ClaimOutcome, frame: pl.DataFrame) -> None:
    """Draw the rows of a claim, and the values that its rules compare them with."""
    for role, text in (("supported", claim.supported), ("killed", claim.killed)):
        for threshold in thresholds(text, claim.rows) if text is not None else ():
            draw_threshold(axes, threshold, forest_places(frame, names_of(frame)), *RULES[role])
    draw_forest(axes, frame, names_of(frame), LOOKS[0])
    axes.set_ylabel("")
    difference = ", difference" if claim.contrast else ""
    axes.set_xlabel(plain_text(estimate_label(claim.estimator, []) + difference, 40))


def draw_threshold(
    axes: Axes, threshold: Threshold, places: Sequence[float], colour: str, dashes: str
) -> None:
    """Draw a threshold as one line, or as a piece of one beside each row where rows have different ones."""
    look: dict[str, Any] = {"color": colour, "linestyle": dashes, "linewidth": 0.9, "zorder": 1}
    if threshold.constant is not None:
        axes.axvline(threshold.constant, **look)
        return
    for place, value in zip(places, threshold.values, strict=True):
        if value is not None and math.isfinite(value):
            axes.plot([value, value], [place - 0.4, place + 0.4], **look)


def size_of(frames: Sequence[pl.DataFrame]) -> str:
    """Return in words of how many rows and clusters the estimates are."""
    rows = pl.concat([frame.select("n", "clusters") for frame in frames])
    if not rows.height:
        return ""
    return f"n = {span(rows['n'])} rows in {span(rows['clusters'])} clusters for each estimate."
