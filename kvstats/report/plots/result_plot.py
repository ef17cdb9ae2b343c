"""Any result as a figure: a forest of intervals, lines with bands, or bars of shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, get_args

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvstats.errors import InputError, nearest_name
from kvstats.inference.result import Result
from kvstats.report.plots.captioned import CaptionedFigure
from kvstats.report.plots.forest import draw_forest, forest_height
from kvstats.report.plots.intervals import draw_reference
from kvstats.report.plots.series import draw_legend, draw_series, series_of
from kvstats.report.plots.style import LOOKS, panels
from kvstats.report.plots.wording import (
    axis_label,
    estimate_label,
    interval_text,
    plain_text,
    row_text,
    size_text,
    undefined_text,
    unit_of,
)

__all__ = ["PlotKind", "result_plot"]

PlotKind = Literal["forest", "lines", "bars"]

LEAST_PLACES = 3
"""Places along an axis that make a line."""

MOST_ROWS = 150
"""Rows of a forest that fit on a page."""

HEIGHT, LESS_HEIGHT = 2.2, 1.6
"""Height of a panel of lines, and of each of several, in inches."""

LABEL_WIDTH, LESS_WIDTH = 32, 20
"""Letters on one line of the name of an axis that estimates are read on, and beside one of several panels."""

QUANTITY = "quantity"
"""By-column of results that hold several quantities."""

SHARES = ("rate", "discordant", "share")
"""Kinds of estimates that bars may stand for."""

MARKS = {
    "forest": "Points are estimates, lines",
    "lines": "Lines join estimates, bands",
    "bars": "Bars are estimates, lines",
}


@dataclass(frozen=True)
class Panel:
    """The rows of a result that share an axis."""

    frame: pl.DataFrame
    label: str
    names: list[str]


def result_plot(
    result: Result,
    ax: Axes | Sequence[Axes] | None = None,
    *,
    kind: PlotKind | None = None,
    along: str | None = None,
    reference: float | Literal["null"] | None = "null",
) -> CaptionedFigure:
    """Plot a result; see `kvstats.inference.Result.plot`."""
    function = "Result.plot"
    if not result.frame.height:
        raise InputError(f"{function}: the result has no rows; select some")
    if kind is not None and kind not in get_args(PlotKind):
        raise InputError.argument(
            function, "kind", kind, "is not known", nearest_name(str(kind), get_args(PlotKind))
        )
    column = along_column(result, kind, along)
    drawn: PlotKind = kind or ("lines" if column is not None else default_kind(result))
    value = reference_value(result, reference)
    if drawn == "bars":
        refuse_bars(result)
    if drawn != "lines" and result.frame.height > MOST_ROWS:
        raise InputError(
            f"{function}: {result.frame.height} rows are too many to read; "
            "take fewer, as by Result.part or Result.head"
        )
    parts = panels_of(result, drawn)
    lines_height = HEIGHT if len(parts) == 1 else LESS_HEIGHT
    heights = [lines_height if drawn == "lines" else forest_height(part.frame, part.names) for part in parts]
    height = sum(heights)
    with panels(ax, rows=len(parts), height=height, height_ratios=heights, function=function) as (
        figure,
        axes,
    ):
        if column is not None:
            draw_lines(result, parts, column, figure, axes, ax)
        for part, panel in zip(parts, axes, strict=True):
            if column is None:
                draw_forest(panel, part.frame, part.names, LOOKS[0], bars=drawn == "bars")
                panel.set_xlabel(plain_text(part.label, LABEL_WIDTH))
            if value is not None:
                draw_reference(panel, value, along="x" if column is None else "y")
    return CaptionedFigure(figure, axes, caption_of(result, drawn, value))


def panels_of(result: Result, kind: PlotKind) -> list[Panel]:
    """Return the rows for each panel.

    Quantities of several units share no axis: of lines each quantity has its own, of a forest each unit.
    """
    quantities = quantity_units(result)
    names = names_of(result)
    if len(set(quantities.values())) < 2:
        label = estimate_label(result.estimator, [sample.kind for sample in result.samples])
        return [Panel(result.frame, label, names)]
    groups: dict[str, list[str]] = {}
    for quantity, unit in quantities.items():
        groups.setdefault(quantity if kind == "lines" else unit, []).append(quantity)
    panels = []
    for unit, members in groups.items():
        rows = result.frame.filter(pl.col(QUANTITY).is_in(members))
        alone = len(members) == 1
        kinds = [sample.kind for sample in result.part(quantity=members[0]).samples]
        label = estimate_label(members[0], kinds) if alone else unit or "value"
        panels.append(Panel(rows, label, [name for name in names if not (alone and name == QUANTITY)]))
    return panels


def quantity_units(result: Result) -> dict[str, str]:
    """Return the unit of each quantity of a result that holds several."""
    if QUANTITY not in result.by:
        return {}
    kinds: dict[str, list[str]] = {}
    for quantity, sample in zip(result.frame[QUANTITY], result.samples, strict=True):
        kinds.setdefault(str(quantity), []).append(sample.kind)
    return {quantity: unit_of(found) for quantity, found in kinds.items()}


def draw_lines(
    result: Result,
    parts: Sequence[Panel],
    along: str,
    figure: Figure,
    axes: Sequence[Axes],
    given: object,
) -> None:
    """Draw each panel as lines, with one legend for all."""
    names = [name for name in parts[0].names if name != along]
    series, handles = series_of(result.frame, names), []
    for part, panel in zip(parts, axes, strict=True):
        handles += draw_series(panel, part.frame, along, names, series)
        panel.set_ylabel(plain_text(part.label, LABEL_WIDTH if len(parts) == 1 else LESS_WIDTH))
    axes[-1].set_xlabel(plain_text(axis_label(along)))
    draw_legend(figure, axes, handles, names, own=given is None)


def names_of(result: Result) -> list[str]:
    """Return the by-columns that tell the rows of a result apart."""
    return [name for name in result.by if result.frame[name].n_unique() > 1]


def along_column(result: Result, kind: PlotKind | None, along: str | None) -> str | None:
    """Return the ordered column that lines go along: the one asked for, or the one of the most values."""
    function = "Result.plot"
    numeric = [name for name in result.by if result.frame.schema[name].is_numeric()]
    if along is not None:
        if along not in numeric or kind in ("forest", "bars"):
            raise InputError.argument(
                function,
                "along",
                along,
                "is no by-column of numbers" if along not in numeric else f"is not for kind={kind!r}",
                nearest_name(str(along), numeric) if along not in numeric else "use kind='lines'",
            )
        if result.frame[along].null_count():
            raise InputError.argument(
                function, "along", along, "is null in some rows", "leave them out, as by Result.part"
            )
        return along
    if kind in ("forest", "bars"):
        return None
    least = 1 if kind == "lines" else LEAST_PLACES
    counts = {name: result.frame[name].n_unique() for name in numeric if not result.frame[name].null_count()}
    best = max(counts, key=lambda name: counts[name], default=None)
    if best is not None and counts[best] >= least:
        names = panels_of(result, "lines")[0].names
        others = [name for name in names if name != best]
        if kind == "lines" or len(series_of(result.frame, others)) <= len(LOOKS):
            return best
    if kind == "lines":
        raise InputError.argument(
            function, "kind", kind, "needs a by-column of numbers without null", "use kind='forest'"
        )
    return None


def default_kind(result: Result) -> PlotKind:
    """Return bars where every row is a share of a whole by its very definition, else a forest."""
    return "bars" if {sample.kind for sample in result.samples} == {"discordant"} else "forest"


def refuse_bars(result: Result) -> None:
    """Raise `InputError` where a bar from 0 would stand for something that is no share."""
    kinds = {sample.kind for sample in result.samples} - set(SHARES)
    if kinds:
        raise InputError.argument(
            "Result.plot",
            "kind",
            "bars",
            f"is for shares, and {result.estimator} is no share ({', '.join(sorted(kinds))})",
            "use kind='forest'",
        )


def reference_value(result: Result, reference: object) -> float | None:
    """Return where the reference line is, None without one."""
    if reference == "null":
        return result.null
    if reference is None:
        return None
    if isinstance(reference, bool) or not isinstance(reference, Real) or not math.isfinite(reference):
        raise InputError.argument(
            "Result.plot", "reference", reference, "is not a finite number", "pass one, 'null' or None"
        )
    return float(reference)


def caption_of(result: Result, kind: PlotKind, reference: float | None) -> str:
    """Return what is drawn, in words."""
    frame = result.frame
    split = [name for name in result.by if frame[name].n_unique() > 1]
    same: dict[str, Any] = {name: frame[name][0] for name in result.by if name not in split}
    by = f" by {', '.join(split)}" if split else ""
    where = "".join(f", {name} {row_text([value])}" for name, value in same.items() if value is not None)
    line = f" Dotted: {reference:.4g}." if reference is not None else ""
    text = (
        f"{result.estimator}{by}{where}. {MARKS[kind]} {interval_text(result)}.{line} {size_text(result)}. "
        f"{undefined_text([frame])}"
    )
    return text.strip()
