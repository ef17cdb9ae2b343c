"""Estimates with their intervals and the thresholds of rules, as one drawing that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvstats.prereg.display import row_figures, row_label
from kvstats.prereg.markup import markup
from kvstats.prereg.thresholds import Threshold

__all__ = ["ROWS_A_PLOT", "Axis", "forest_plot", "plot_axis"]

ROWS_A_PLOT = 30
"""Rows of a drawing, so that one fits on a printed page."""

WIDTH, LEFT, RIGHT = 760, 240, 580
"""Width of a drawing, and the ends of its axis, in pixels."""

TOP, ROW, BOTTOM = 24, 22, 30
"""Heights above the first row, of a row, and below the last, in pixels."""

LABEL_LETTERS = 38
"""Letters of a label for which there is room."""

TICKS = 5
"""Ticks of an axis, about."""

INK, QUIET, FAINT = "#1a1a1a", "#555", "#d0d0d0"

LINES = {
    "supported": '#0072b2" stroke-width="2',
    "killed": '#d55e00" stroke-width="2" stroke-dasharray="5 3',
}
"""Strokes of the thresholds of rules: told apart by their dashes too, not by colour alone."""

Rules = Mapping[str, Sequence[Threshold]]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Axis:
    """The horizontal axis: from where to where, and its ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]
    places: int

    def x(self, value: float) -> str:
        """Return the place of a value in pixels."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return f"{LEFT + share * (RIGHT - LEFT):.1f}"


def plot_axis(rows: Sequence[Row], rules: Rules) -> Axis | None:
    """Return an axis with room for all estimates, intervals and thresholds; None without any estimate.

    Examples
    --------
    >>> plot_axis([{"estimate": 0.3, "low": 0.12, "high": 0.49}], {}).ticks
    (0.1, 0.2, 0.3, 0.4, 0.5)
    """
    shown = [row[name] for row in rows for name in ("estimate", "low", "high")]
    if not any(is_finite(row["estimate"]) for row in rows):
        return None
    marks = [value for found in rules.values() for threshold in found for value in threshold.values]
    values = [float(value) for value in (*shown, *marks) if is_finite(value)]
    low, high = min(values), max(values)
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        margin = 0.1 * abs(low) or 0.1
        low, high = low - margin, high + margin
    step = tick_step((high - low) / TICKS)
    first, last = math.floor(low / step), math.ceil(high / step)
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    ticks = tuple(float(f"{index * step:.{places}f}") for index in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks, places)


def is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def tick_step(least: float) -> float:
    """Return the smallest of 1, 2, 5, 10, ... times a power of ten that is no less."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10, 20) if factor * power >= least * (1 - 1e-9))


def forest_plot(name: str, title: str, rows: Sequence[Row], rules: Rules, axis: Axis, first: int = 0) -> str:
    """Return a drawing of estimates as SVG.

    Parameters
    ----------
    name : str
        Identifier of the drawing on its page.
    title : str
        What it shows, for those who cannot see it.
    rows : sequence of mappings
        Rows of a result.
    rules : mapping of str to sequence of Threshold
        For ``supported`` and ``killed``, the thresholds of that rule.
    axis : Axis
        The axis.
    first : int
        Index of the first row among those of the thresholds.

    Returns
    -------
    str
        An ``svg`` element. A dot or cross is an estimate, a bar its interval, and an arrow an end beyond
        the axis. What is undefined is written in words.
    """
    height = TOP + ROW * len(rows) + BOTTOM
    body = [
        *axis_lines(axis, height),
        *threshold_lines(rules, axis, height, range(first, first + len(rows))),
        *(line for index, row in enumerate(rows) for line in row_marks(row, axis, TOP + ROW * index)),
    ]
    content = "\n".join(body)
    description = "; ".join(spoken(row) for row in rows)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="{markup(name)}-title '
        f'{markup(name)}-desc" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'font-family="system-ui, sans-serif" font-size="12">\n'
        f'<title id="{markup(name)}-title">{markup(title)}</title>\n'
        f'<desc id="{markup(name)}-desc">{markup(description)}</desc>\n{content}\n</svg>'
    )


def spoken(row: Row) -> str:
    """Return a row in words."""
    estimate, interval, *_ = row_figures(row)
    label = row_label(row)
    return (f"{label}: " if label else "") + f"estimate {estimate}, interval {interval}"


def axis_lines(axis: Axis, height: int) -> Iterator[str]:
    bottom = height - BOTTOM
    for tick in axis.ticks:
        x = axis.x(tick)
        yield f'<line x1="{x}" x2="{x}" y1="{TOP}" y2="{bottom}" stroke="{FAINT}"/>'
        yield (
            f'<text x="{x}" y="{bottom + 16}" text-anchor="middle" fill="{QUIET}">'
            f"{minus(f'{tick:.{axis.places}f}')}</text>"
        )
    yield f'<line x1="{LEFT}" x2="{RIGHT}" y1="{bottom}" y2="{bottom}" stroke="{QUIET}"/>'


def threshold_lines(rules: Rules, axis: Axis, height: int, shown: range) -> Iterator[str]:
    """Yield a line for each threshold that all rows share, and a mark in each row for the others."""
    named: set[float] = set()

    def line(role: str, value: float, top: int, bottom: int) -> str:
        x = axis.x(value)
        return f'<line x1="{x}" x2="{x}" y1="{top}" y2="{bottom}" stroke="{LINES[role]}"/>'

    for role, found in rules.items():
        for value in sorted({t.constant for t in found if t.constant is not None}):
            yield line(role, value, TOP - 4, height - BOTTOM)
            if value not in named:
                place = f'x="{axis.x(value)}" y="{TOP - 9}" text-anchor="middle"'
                yield f'<text {place} fill="{INK}">{minus(f"{value:g}")}</text>'
            named.add(value)
        for threshold in found:
            for position, index in enumerate(shown):
                mark = threshold.values[index]
                if threshold.constant is None and mark is not None:
                    top = TOP + ROW * position
                    yield line(role, mark, top + 1, top + ROW - 1)


def row_marks(row: Row, axis: Axis, top: int) -> Iterator[str]:
    """Yield label, interval, estimate and figures of a row."""
    middle, base = top + ROW / 2, top + ROW / 2 + 4
    label = row_label(row)
    cut = label if len(label) <= LABEL_LETTERS else f"{label[: LABEL_LETTERS - 1]}…"
    yield f'<text x="0" y="{base:.0f}" fill="{INK}">{markup(cut)}</text>'
    estimate, interval, *_ = row_figures(row)
    if row["estimate"] is None:
        yield (
            f'<text x="{LEFT + 6}" y="{base:.0f}" fill="{QUIET}" font-style="italic">'
            f"undefined: {markup(row['status'])}</text>"
        )
        return
    if row["low"] is not None and row["high"] is not None:
        yield from whisker(row["low"], row["high"], axis, middle)
    if is_finite(row["estimate"]):
        yield dot(axis.x(row["estimate"]), middle, row.get("verdict"))
    yield f'<text x="{RIGHT + 12}" y="{base:.0f}" fill="{INK}">{markup(f"{estimate}, {interval}")}</text>'


def dot(x: str, middle: float, verdict: str | None) -> str:
    """Return the mark of an estimate: filled where its row is supported, a cross where it is killed."""
    if verdict == "killed":
        left, right = float(x) - 4, float(x) + 4
        top, bottom = middle - 4, middle + 4
        path = (
            f"M{left:.1f} {top:.0f} L{right:.1f} {bottom:.0f} M{left:.1f} {bottom:.0f} L{right:.1f} {top:.0f}"
        )
        return f'<path d="{path}" stroke="{INK}" stroke-width="2.5"/>'
    fill = INK if verdict == "supported" else "#fff"
    return f'<circle cx="{x}" cy="{middle:.0f}" r="4" fill="{fill}" stroke="{INK}" stroke-width="1.5"/>'


def whisker(low: float, high: float, axis: Axis, middle: float) -> Iterator[str]:
    """Yield an interval as a bar with ends, or with an arrow where it goes beyond the axis."""
    y = f"{middle:.0f}"
    yield (
        f'<line x1="{axis.x(low)}" x2="{axis.x(high)}" y1="{y}" y2="{y}" stroke="{INK}" stroke-width="2"/>'
    )
    for value, outwards in ((low, -1), (high, 1)):
        x = axis.x(value)
        if axis.low <= value <= axis.high:
            yield (
                f'<line x1="{x}" x2="{x}" y1="{middle - 5:.0f}" y2="{middle + 5:.0f}" stroke="{INK}" '
                'stroke-width="2"/>'
            )
        else:
            tip, back = float(x) + 6 * outwards, float(x)
            yield (
                f'<path d="M{back:.1f} {middle - 5:.0f} L{tip:.1f} {y} L{back:.1f} {middle + 5:.0f} Z" '
                f'fill="{INK}"/>'
            )


def minus(text: str) -> str:
    """Return a number with a true minus sign, and without one before zero."""
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−", 1)
