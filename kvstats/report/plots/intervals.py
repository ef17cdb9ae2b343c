"""Estimates drawn with their intervals, and what is undefined drawn as such."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.transforms import Transform, blended_transform_factory

from kvstats.report.plots.style import GREY, Look

__all__ = [
    "Direction",
    "Estimate",
    "draw_bars",
    "draw_interval",
    "draw_line",
    "draw_points",
    "draw_reference",
    "draw_undefined",
    "estimates",
]

Direction = Literal["x", "y"]
"""The axis that estimates are read on."""

BAND = 0.18
"""Opacity of a band."""

BEHIND = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
"""What is behind a text, so that lines do not cross it."""

EDGE = 0.02
"""Where on the axes, as a share of them, marks of undefined estimates stand."""


class Estimate(NamedTuple):
    """A row of a result; NaN where something is undefined or infinite."""

    value: float
    low: float
    high: float
    status: str

    @property
    def has_interval(self) -> bool:
        """Whether both bounds are known."""
        return not math.isnan(self.low) and not math.isnan(self.high)


def estimates(frame: pl.DataFrame) -> list[Estimate]:
    """Return the rows of a result's frame; an infinite estimate has no place on an axis, and is undefined.

    Examples
    --------
    >>> frame = pl.DataFrame({"estimate": [0.5, None], "low": [0.4, None], "high": [0.6, None],
    ...                       "status": ["ok", "no rows"]})
    >>> [row.has_interval for row in estimates(frame)]
    [True, False]
    """

    def number(value: float | None) -> float:
        return math.nan if value is None else float(value)

    rows = []
    for value, low, high, status in frame.select("estimate", "low", "high", "status").iter_rows():
        if value is not None and not math.isfinite(value):
            rows.append(Estimate(math.nan, math.nan, math.nan, "infinite"))
        else:
            rows.append(Estimate(number(value), number(low), number(high), status))
    return rows


def draw_points(
    axes: Axes, places: Sequence[float], rows: Sequence[Estimate], look: Look, *, along: Direction
) -> None:
    """Draw estimates as marks with their intervals as lines; hollow where there is no interval.

    Parameters
    ----------
    axes : Axes
        Where to.
    places : sequence of float
        Place of each estimate on the other axis.
    rows : sequence of Estimate
        The estimates; undefined ones are left to `draw_undefined`.
    look : Look
        Colour and marker.
    along : {"x", "y"}
        The axis that estimates are read on.
    """
    for place, row in zip(places, rows, strict=True):
        if math.isnan(row.value):
            continue
        if row.has_interval:
            draw_interval(axes, place, row, look.colour, along)
        face = look.colour if row.has_interval else "white"
        axes.plot(
            *oriented(row.value, place, along),
            marker=look.marker,
            color=look.colour,
            markerfacecolor=face,
            linestyle="none",
            zorder=3,
        )


def draw_interval(axes: Axes, place: float, row: Estimate, colour: str, along: Direction) -> None:
    """Draw an interval as a line; one without an end reaches the edge of the axes, with an arrow there."""
    low, high = (bound if math.isfinite(bound) else row.value for bound in (row.low, row.high))
    (axes.hlines if along == "x" else axes.vlines)(place, low, high, colors=colour, linewidth=1.1, zorder=2)
    transform = edge_transform(axes, along)
    for bound, edge in ((row.low, 0.0), (row.high, 1.0)):
        if math.isinf(bound):
            axes.annotate(
                "",
                xy=oriented(edge, place, along),
                xycoords=transform,
                xytext=oriented(row.value, place, along),
                textcoords="data",
                arrowprops={
                    "arrowstyle": "->",
                    "color": colour,
                    "linewidth": 1.1,
                    "shrinkA": 0,
                    "shrinkB": 0,
                },
            )


def draw_line(
    axes: Axes,
    places: Sequence[float],
    rows: Sequence[Estimate],
    look: Look,
    label: str | None = None,
    *,
    markers: bool = True,
) -> None:
    """Draw estimates as a line with the band of their intervals; both are broken where one is undefined.

    Parameters
    ----------
    axes : Axes
        Where to; estimates are read on its y axis.
    places : sequence of float
        Place of each estimate on the x axis, ascending.
    rows : sequence of Estimate
        The estimates; undefined ones are left to `draw_undefined`.
    look : Look
        Colour, marker and dashes.
    label : str, optional
        Name of the line in a legend.
    markers : bool, default True
        Whether all estimates have marks, or only those that no band reaches.
    """
    x = np.asarray(places, dtype=np.float64)
    values = np.array([row.value for row in rows])
    bounds = np.array([[row.low, row.high] for row in rows]).reshape(-1, 2)
    banded = np.isfinite(bounds).all(axis=1)
    low, high = np.where(banded, bounds.T, np.nan)
    axes.fill_between(x, low, high, where=banded.tolist(), color=look.colour, alpha=BAND, linewidth=0)
    for edge in (low, high):
        axes.plot(x, edge, color=look.colour, linewidth=0.4, alpha=0.6)
    axes.plot(
        x,
        values,
        color=look.colour,
        linestyle=look.dashes,
        marker=look.marker if markers else "",
        label=label,
        zorder=3,
    )
    beside = np.r_[False, banded[:-1]] | np.r_[banded[1:], False]
    for place, row, in_band in zip(places, rows, banded & beside, strict=True):
        if math.isnan(row.value) or in_band:
            continue
        # A band of one point has no width, and one to infinity no edge.
        draw_points(axes, [place], [row], look, along="y")


def draw_bars(axes: Axes, places: Sequence[float], rows: Sequence[Estimate], look: Look) -> None:
    """Draw shares as bars from 0, each with its interval, and without one with a hollow mark at its end."""
    for place, row in zip(places, rows, strict=True):
        if math.isnan(row.value):
            continue
        axes.barh(place, row.value, height=0.62, color=look.colour, alpha=0.35, edgecolor=look.colour)
        if row.has_interval:
            draw_interval(axes, place, row, "black", "x")
        else:
            draw_points(axes, [place], [row], look, along="x")
    axes.set_xlim(left=0)


def draw_undefined(
    axes: Axes,
    places: Sequence[float],
    rows: Sequence[Estimate],
    look: Look,
    *,
    along: Direction,
    text: bool = True,
) -> None:
    """Mark estimates that are undefined at the edge of the axes, and say why; also why an interval is.

    Parameters
    ----------
    axes : Axes
        Where to, when everything else is drawn.
    places, rows, look, along
        As for `draw_points`.
    text : bool, default True
        Whether to write the status beside each mark; else the legend has to.
    """
    ends = axes.get_xlim() if along == "x" else axes.get_ylim()
    middle = sum(ends) / 2
    for place, row in zip(places, rows, strict=True):
        if not math.isnan(row.value):
            if text and not row.has_interval:
                write_status(axes, place, row, along, beyond=row.value > middle)
            continue
        spot, transform = oriented(EDGE, place, along), edge_transform(axes, along)
        axes.plot(
            *spot,
            marker=look.marker,
            color=look.colour,
            markerfacecolor="white",
            linestyle="none",
            transform=transform,
            clip_on=False,
            zorder=3,
        )
        if text:
            axes.annotate(
                row.status,
                xy=spot,
                xycoords=transform,
                xytext=(5, 0) if along == "x" else (0, 5),
                textcoords="offset points",
                color=GREY,
                fontsize=rcParams["ytick.labelsize"],
                bbox=BEHIND,
                ha="left" if along == "x" else "center",
                va="center" if along == "x" else "bottom",
                rotation=0 if along == "x" else 90,
            )


def write_status(axes: Axes, place: float, row: Estimate, along: Direction, *, beyond: bool) -> None:
    """Write beside a mark why it has no interval: towards the middle of the axes, where there is room."""
    sign = -1 if beyond else 1
    axes.annotate(
        row.status,
        xy=oriented(row.value, place, along),
        xytext=(5 * sign, 0) if along == "x" else (0, 5 * sign),
        textcoords="offset points",
        color=GREY,
        fontsize=rcParams["ytick.labelsize"],
        bbox=BEHIND,
        ha=("right" if beyond else "left") if along == "x" else "center",
        va="center" if along == "x" else ("top" if beyond else "bottom"),
        rotation=0 if along == "x" else 90,
    )


def draw_reference(axes: Axes, value: float, *, along: Direction) -> None:
    """Draw a thin line at a value that estimates are held against."""
    line = axes.axvline if along == "x" else axes.axhline
    line(value, color=GREY, linewidth=0.8, linestyle=(0, (1, 1.5)), zorder=1)


def oriented(value: float, place: float, along: Direction) -> tuple[float, float]:
    return (value, place) if along == "x" else (place, value)


def edge_transform(axes: Axes, along: Direction) -> Transform:
    """Return coordinates in which values are shares of the axes, and places are data."""
    first, second = (axes.transAxes, axes.transData) if along == "x" else (axes.transData, axes.transAxes)
    return blended_transform_factory(first, second)
