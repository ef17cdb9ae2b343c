"""Rows of estimates below each other, each with its interval, or as bars."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import AutoLocator, MaxNLocator

from kvstats.report.plots.intervals import draw_bars, draw_points, draw_undefined, estimates
from kvstats.report.plots.style import Look
from kvstats.report.plots.wording import plain_text, row_text

__all__ = ["draw_forest", "forest_height", "forest_places"]

LABEL_WIDTH = 24
"""Letters of a row's name on one line."""

LINE, FRAME = 0.15, 0.62
"""Heights of a line of text, and of what surrounds the rows, in inches."""

TICKS = 6
"""Ticks that do not touch, whatever their digits."""

MARGIN = 0.3
"""Space beyond the names of the outer rows, in lines."""

LETTER, LEAST_LETTERS = 0.06, 10
"""Height of a letter of the name of the columns, in inches, and the fewest on a line."""

GAP = 0.5
"""Space between groups of rows, in rows."""


def draw_forest(
    axes: Axes, frame: pl.DataFrame, names: Sequence[str], look: Look, *, bars: bool = False
) -> None:
    """Draw the rows of a result's frame from top to bottom.

    Parameters
    ----------
    axes : Axes
        Where to.
    frame : polars.DataFrame
        Rows with the columns of every result.
    names : sequence of str
        By-columns that name the rows; a gap separates the values of the first of several.
    look : Look
        Colour and marker.
    bars : bool, default False
        Whether estimates are drawn as bars from 0.
    """
    rows, labels = estimates(frame), labels_of(frame, names)
    places = forest_places(frame, names)
    if bars:
        draw_bars(axes, places, rows, look)
    else:
        draw_points(axes, places, rows, look, along="x")
        axes.margins(x=0.08)
    axes.set_yticks(places, labels=labels)
    axes.set_ylim(*forest_ends(frame, names))
    axes.tick_params(axis="y", length=0)
    if isinstance(axes.xaxis.get_major_locator(), AutoLocator):
        axes.xaxis.set_major_locator(MaxNLocator(TICKS, steps=[1, 2, 2.5, 5, 10]))
    title = ", ".join(name.replace("_", " ") for name in names)
    axes.set_ylabel(plain_text(title, max(LEAST_LETTERS, int(LINE * (max(places) - min(places)) / LETTER))))
    draw_undefined(axes, places, rows, look, along="x")


def forest_height(frame: pl.DataFrame, names: Sequence[str]) -> float:
    """Return the height that rows need, in inches."""
    bottom, top = forest_ends(frame, names)
    return FRAME + LINE * (top - bottom)


def forest_ends(frame: pl.DataFrame, names: Sequence[str]) -> tuple[float, float]:
    """Return the lower and the upper end of the rows, in lines, with room for the names of the outer ones."""
    places, labels = forest_places(frame, names), labels_of(frame, names)
    return places[-1] - lines(labels[-1]) / 2 - MARGIN, places[0] + lines(labels[0]) / 2 + MARGIN


def lines(label: str) -> int:
    return label.count("\n") + 1


def labels_of(frame: pl.DataFrame, names: Sequence[str]) -> list[str]:
    """Return the names of rows, broken into lines where they are long."""
    if not names:
        return [""] * frame.height
    return [plain_text(row_text(values), LABEL_WIDTH) for values in frame.select(*names).iter_rows()]


def forest_places(frame: pl.DataFrame, names: Sequence[str]) -> list[float]:
    """Return the place of each row: downwards from 0, with room for the lines of its name."""
    labels = labels_of(frame, names)
    groups = frame[names[0]].to_list() if len(names) > 1 else [None] * frame.height
    places, place = [], 0.0
    for i, (group, label) in enumerate(zip(groups, labels, strict=True)):
        half = lines(label) / 2
        if i:
            place -= half + (GAP if group != groups[i - 1] else 0.0)
        places.append(place)
        place -= half
    return places
