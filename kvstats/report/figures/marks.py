"""Rows of results as marks of a figure: lines with bands, points and bars with intervals."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvstats.report.plots.intervals import (
    Direction,
    draw_interval,
    draw_line,
    draw_points,
    draw_undefined,
    estimates,
)
from kvstats.report.plots.series import draw_legend, hollow_marks
from kvstats.report.plots.style import BLACK, GREY, Look
from kvstats.report.plots.wording import plain_text

__all__ = [
    "LETTER_WIDTH",
    "MANY_BARS",
    "NAME_WIDTH",
    "bars",
    "filling",
    "group_ticks",
    "interval_span",
    "key",
    "legend",
    "line",
    "points",
]

NAME_WIDTH = 20
"""Letters of a task's name on one line."""

MANY_BARS = 24
"""Bars above which a new figure is two columns wide."""

LETTER_WIDTH = 0.062
"""Width of a letter of a tick's name, in inches."""

HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "oooo")
"""Fillings that tell bars apart in grey."""


def filling(index: int) -> str:
    """Return the filling of a bar by its number; an eighth one has another than the first of its colour.

    Examples
    --------
    >>> filling(0), filling(1), filling(7)
    ('', '////', '////')
    """
    return HATCHES[(index + index // len(HATCHES)) % len(HATCHES)]


def line(
    axes: Axes, frame: pl.DataFrame, column: str, look: Look, label: str, *, markers: bool = True
) -> None:
    """Draw rows along a column of numbers as a line with a band; what is undefined is marked at the edge.

    Without markers only what no band reaches is marked: for curves read at many places, none of which was
    run.
    """
    ordered = frame.sort(column)
    places, rows = ordered[column].cast(pl.Float64).to_list(), estimates(ordered)
    draw_line(axes, places, rows, look, plain_text(label), markers=markers)
    draw_undefined(axes, places, rows, look, along="y", text=False)


def points(
    axes: Axes,
    places: Sequence[float],
    frame: pl.DataFrame,
    look: Look,
    label: str | None = None,
    *,
    along: Direction,
) -> None:
    """Draw rows as marks with intervals at places of the other axis; what is undefined says why."""
    rows = estimates(frame)
    draw_points(axes, places, rows, look, along=along)
    draw_undefined(axes, places, rows, look, along=along)
    if label is not None:
        key(axes, look, label)


def legend(
    figure: Figure, axes: Sequence[Axes], *frames: pl.DataFrame, own: bool, names: Sequence[str] = ()
) -> None:
    """Draw one legend of some panels: above them in a figure of our own, where it hides nothing.

    Parameters
    ----------
    figure, axes
        The figure and its panels.
    *frames : polars.DataFrame
        What is drawn, for what hollow marks mean.
    own : bool
        Whether the figure was made for the panels.
    names : sequence of str
        Columns that the entries are values of.
    """
    drawn = [handle for panel in axes for handle in panel.get_legend_handles_labels()[0]]
    draw_legend(
        figure, axes, [*drawn, *(mark for frame in frames for mark in hollow_marks(frame))], names, own=own
    )


def key(axes: Axes, look: Look, label: str) -> None:
    """Add a mark to the legend that is drawn nowhere else."""
    axes.plot([], [], marker=look.marker, color=look.colour, linestyle="none", label=plain_text(label))


def bars(
    axes: Axes,
    places: Sequence[float],
    frame: pl.DataFrame,
    look: Look,
    label: str,
    *,
    width: float,
    hatch: str = "",
) -> None:
    """Draw shares as bars from 0 upwards with intervals; without one a bar ends in a hollow mark."""
    rows = estimates(frame)
    drawn = [(place, row) for place, row in zip(places, rows, strict=True) if row.value == row.value]
    axes.bar(
        [place for place, _ in drawn],
        [row.value for _, row in drawn],
        width=width,
        color=look.colour,
        edgecolor="white",
        hatch=hatch,
        linewidth=0.5,
        label=plain_text(label),
    )
    for place, row in drawn:
        if row.has_interval:
            draw_interval(axes, place, row, BLACK, "y")
        else:
            draw_points(axes, [place], [row], Look(BLACK, look.marker, "-"), along="y")
    draw_undefined(axes, places, rows, look, along="y", text=False)


def group_ticks(axes: Axes, labels: Sequence[str], width: float) -> None:
    """Name groups of bars below axes of a width in inches; upright where the names are long."""
    broken = [plain_text(label, NAME_WIDTH) for label in labels]
    longest = max(len(part) for label in broken for part in label.split("\n"))
    upright = (longest + 1) * len(labels) * LETTER_WIDTH > 0.8 * width
    axes.set_xticks(range(len(labels)), broken, rotation=90 if upright else 0)


def interval_span(axes: Axes, low: float | None, high: float | None, *, along: Direction) -> None:
    """Shade the interval of something that is drawn as a line across the panel."""
    if low is None or high is None:
        return
    span = axes.axvspan if along == "x" else axes.axhspan
    span(low, high, color=GREY, alpha=0.15, linewidth=0, zorder=0.4)
