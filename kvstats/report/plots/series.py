"""Lines with bands along an ordered column, one for each value of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from kvstats.report.plots.intervals import draw_line, draw_undefined, estimates
from kvstats.report.plots.style import GREY, SINGLE, look
from kvstats.report.plots.wording import axis_label, plain_text, row_text

__all__ = ["draw_legend", "draw_series", "hollow_marks", "series_of"]

LETTERS = 52
"""Letters of a legend that fit on a line one column wide."""

KEY = 7
"""Letters that the sample of a line takes the room of."""

LINE = 0.14
"""Height of a line of a legend, in inches."""

Series = tuple[Any, ...]
"""Values of the by-columns that tell lines apart."""


def series_of(frame: pl.DataFrame, names: Sequence[str]) -> list[Series]:
    """Return the lines that a result's frame makes, in the order of its rows.

    Examples
    --------
    >>> series_of(pl.DataFrame({"arm": ["a", "a", "b"], "budget": [0.5, 1.0, 0.5]}), ["arm"])
    [('a',), ('b',)]
    """
    return frame.select(*names).unique(maintain_order=True).rows() if names else [()]


def draw_series(
    axes: Axes, frame: pl.DataFrame, along: str, names: Sequence[str], series: Sequence[Series]
) -> list[Artist]:
    """Draw the rows of a result's frame as lines.

    Parameters
    ----------
    axes : Axes
        Where to.
    frame : polars.DataFrame
        Rows with the columns of every result.
    along : str
        The by-column of numbers that lines go along.
    names : sequence of str
        By-columns that tell lines apart.
    series : sequence of tuple
        All lines of the figure: a line has the look of its place there, in every panel.

    Returns
    -------
    list of Artist
        What a legend shows: the lines, and what hollow marks mean.
    """
    parts = frame.partition_by(list(names), maintain_order=True) if names else [frame]
    lines, handles = [], []
    for part in parts:
        ordered, key = part.sort(along), part.select(*names).row(0) if names else ()
        line = (ordered[along].cast(pl.Float64).to_list(), estimates(ordered), look(series.index(key)))
        label = plain_text(row_text(key))
        draw_line(axes, *line, label)
        lines.append(line)
        _, _, own = line
        if names:
            sample = Line2D([], [], color=own.colour, linestyle=own.dashes, marker=own.marker, label=label)
            handles.append(sample)
    if frame.schema[along].is_integer():
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    for places, rows, own in lines:
        draw_undefined(axes, places, rows, own, along="y", text=False)
    return [*handles, *hollow_marks(frame)]


def hollow_marks(frame: pl.DataFrame) -> list[Artist]:
    """Return what hollow marks mean, one for each status."""
    found = [
        f"{'no estimate' if row.value != row.value else 'no interval'}: {row.status}"
        for row in estimates(frame)
        if not row.has_interval
    ]
    return [
        Line2D([], [], color=GREY, linestyle="none", marker="o", markerfacecolor="white", label=words)
        for words in dict.fromkeys(found)
    ]


def draw_legend(
    figure: Figure, axes: Sequence[Axes], handles: Sequence[Artist], names: Sequence[str], *, own: bool
) -> None:
    """Draw one legend of all panels: above them in a figure of our own, else within the first of them."""
    labels = {str(handle.get_label()): handle for handle in handles}
    if not labels:
        return
    title = plain_text(", ".join(map(axis_label, names)))
    if own:
        letters = LETTERS * figure.get_figwidth() / SINGLE
        columns = max(1, min(len(labels), int(letters // (max(map(len, labels)) + KEY))))
        figure.legend(
            list(labels.values()),
            list(labels),
            title=title or None,
            loc="outside upper left",
            ncols=columns,
            alignment="left",
        )
        width, height = figure.get_size_inches()
        figure.set_size_inches(width, height + LINE * (-(-len(labels) // columns) + bool(title)))
    else:
        axes[0].legend(list(labels.values()), list(labels), title=title or None)
