"""Results as text and as HTML, with as many digits as the interval supports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import polars as pl

__all__ = ["html_table", "text_table"]

COLUMNS = ("estimate", "low", "high", "se", "df", "n", "clusters", "status")


def decimals(low: float | None, high: float | None) -> int:
    """Return how many decimals to show of an estimate and its interval.

    They show two significant digits of the interval's width, and no bound as zero that is not: three without
    an interval.

    Examples
    --------
    >>> decimals(0.154, 0.220), decimals(10.0, 45.0), decimals(0.0011, 0.172), decimals(None, None)
    (3, 0, 3, 3)
    """
    if low is None or high is None or not 0 < high - low < math.inf:
        return 3
    places = max(0, 1 - math.floor(math.log10(high - low)))
    nearest = min((abs(bound) for bound in (low, high) if bound), default=1.0)
    # A bound nearer to zero than a millionth of the width is zero for all that the interval can tell.
    if nearest >= 1e-6 * (high - low):
        while float(f"{nearest:.{places}f}") == 0:
            places += 1
    return places


def shown(row: dict[str, Any]) -> list[str]:
    """Return the texts of one row, by-columns first."""
    places = decimals(row["low"], row["high"])
    texts = []
    for name, value in row.items():
        if value is None:
            texts.append("–")
        elif name in ("estimate", "low", "high"):
            texts.append(f"{value:.{places}f}")
        elif name == "se":
            texts.append(f"{value:.{places + 1}f}")
        elif name == "df":
            texts.append(f"{value:.0f}" if value == round(value) else f"{value:.1f}")
        elif isinstance(value, float):
            texts.append(f"{value:g}")
        else:
            texts.append(str(value))
    return texts


def cells(frame: pl.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of a result's frame as texts."""
    return frame.columns, [shown(row) for row in frame.iter_rows(named=True)]


def text_table(title: str, frame: pl.DataFrame) -> str:
    """Return a title and an aligned table: text to the left, numbers to the right."""
    header, rows = cells(frame)
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    right = [name in COLUMNS[:-1] or frame.schema[name].is_numeric() for name in header]

    def line(texts: Sequence[str]) -> str:
        aligned = (
            text.rjust(width) if numeric else text.ljust(width)
            for text, width, numeric in zip(texts, widths, right, strict=True)
        )
        return "  ".join(aligned).rstrip()

    return "\n".join([title, line(header), *map(line, rows)])


def html_table(title: str, frame: pl.DataFrame) -> str:
    """Return an HTML table with a caption."""
    header, rows = cells(frame)
    right = [name in COLUMNS[:-1] or frame.schema[name].is_numeric() for name in header]

    def row(tag: str, texts: Sequence[str]) -> str:
        inner = "".join(
            f'<{tag} style="text-align: {"right" if numeric else "left"}">{escape(text)}</{tag}>'
            for text, numeric in zip(texts, right, strict=True)
        )
        return f"<tr>{inner}</tr>"

    body = "\n".join(row("td", texts) for texts in rows)
    return (
        f'<table>\n<caption style="text-align: left">{escape(title)}</caption>\n'
        f"<thead>{row('th', header)}</thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    )
