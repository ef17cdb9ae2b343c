"""Tables as text, HTML, Markdown and LaTeX, with as many digits as the intervals support."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape
from typing import Any

import polars as pl

__all__ = [
    "aligned_text",
    "decimals",
    "html_cells",
    "html_table",
    "latex_table",
    "latex_tabular",
    "markdown_table",
    "text_table",
]

LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "–": "--",
} | {sign: f"\\{sign}" for sign in "&%$#_{}"}
"""How LaTeX writes what it would take for a command."""


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


def places_of(row: dict[str, Any]) -> dict[str, int]:
    """Return how many decimals the columns of a row have that belong to an interval.

    Those are ``estimate``, ``low``, ``high`` and ``se``, and every x with ``x_low`` and ``x_high``.

    Examples
    --------
    >>> places_of({"task": "qa", "rate": 0.18688, "rate_low": 0.154, "rate_high": 0.22, "n": 3200})
    {'rate': 3, 'rate_low': 3, 'rate_high': 3}
    """
    places: dict[str, int] = {}
    for name in row:
        low, high = ("low", "high") if name == "estimate" else (f"{name}_low", f"{name}_high")
        if low in row and high in row:
            places |= dict.fromkeys((name, low, high), decimals(row[low], row[high]))
    if "estimate" in places and "se" in row:
        places["se"] = places["estimate"] + 1
    return places


def shown(row: dict[str, Any]) -> list[str]:
    """Return the texts of one row."""
    places = places_of(row)
    texts = []
    for name, value in row.items():
        if value is None:
            texts.append("–")
        elif name in places:
            texts.append(f"{value:.{places[name]}f}")
        elif name == "df":
            texts.append(f"{value:.0f}" if value == round(value) else f"{value:.1f}")
        elif isinstance(value, float):
            texts.append(f"{value:g}")
        else:
            # A line break within a cell would part its row.
            texts.append(" ".join(str(value).splitlines()))
    return texts


def cells(frame: pl.DataFrame) -> tuple[list[str], list[list[str]], list[bool]]:
    """Return header and rows of a table as texts, and which columns are numbers."""
    rows = [shown(row) for row in frame.iter_rows(named=True)]
    return frame.columns, rows, [kind.is_numeric() for kind in frame.dtypes]


def text_table(title: str, frame: pl.DataFrame) -> str:
    """Return a title and an aligned table: text to the left, numbers to the right."""
    return aligned_text(title, *cells(frame))


def html_table(title: str, frame: pl.DataFrame) -> str:
    """Return an HTML table with a caption."""
    return html_cells(title, *cells(frame))


def aligned_text(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]
) -> str:
    """Return a title and an aligned table.

    Parameters
    ----------
    title : str
        What stands above it.
    header : sequence of str
        Names of the columns.
    rows : sequence of sequence of str
        The cells.
    right : sequence of bool
        Which columns are flushed right.

    Examples
    --------
    >>> print(aligned_text("fruit", ["name", "count"], [["apple", "3"], ["fig", "12"]], [False, True]))
    fruit
    name   count
    apple      3
    fig       12
    """
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]

    def line(texts: Sequence[str]) -> str:
        aligned = (
            text.rjust(width) if flush else text.ljust(width)
            for text, width, flush in zip(texts, widths, right, strict=True)
        )
        return "  ".join(aligned).rstrip()

    return "\n".join([title, line(header), *map(line, rows)])


def html_cells(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]
) -> str:
    """Return the same as an HTML table with a caption."""

    def row(tag: str, texts: Sequence[str]) -> str:
        inner = "".join(
            f'<{tag} style="text-align: {"right" if flush else "left"}">{escape(text)}</{tag}>'
            for text, flush in zip(texts, right, strict=True)
        )
        return f"<tr>{inner}</tr>"

    body = "\n".join(row("td", texts) for texts in rows)
    return (
        f'<table>\n<caption style="text-align: left">{escape(title)}</caption>\n'
        f"<thead>{row('th', header)}</thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    )


def markdown_table(title: str, frame: pl.DataFrame) -> str:
    """Return a title and a Markdown table."""
    header, rows, right = cells(frame)
    rule = ["---:" if numeric else "---" for numeric in right]
    lines = [list(map(markdown_text, header)), rule, *(list(map(markdown_text, row)) for row in rows)]
    return "\n".join([markdown_text(title), "", *(f"| {' | '.join(line)} |" for line in lines), ""])


def latex_table(title: str, frame: pl.DataFrame) -> str:
    """Return a title as a comment and a LaTeX table with the rules of the package booktabs."""
    return latex_tabular(title, *cells(frame))


def latex_tabular(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]
) -> str:
    """Return texts as a LaTeX table: header, rows, and which columns are numbers."""
    columns = "".join("r" if numeric else "l" for numeric in right)
    lines = [
        f"% {' '.join(title.split())}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        latex_line(header),
        r"\midrule",
        *(latex_line(row, right) for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        "",
    ]
    return "\n".join(lines)


def markdown_text(text: str) -> str:
    r"""Return a text on one line, in which nothing is Markdown or HTML.

    Examples
    --------
    >>> markdown_text("harm_rate | <b> $x$")
    'harm\\_rate \\| &lt;b&gt; \\$x\\$'
    """
    return escape(re.sub(r"([\\`*_\[\]|~#$])", r"\\\1", " ".join(text.split())), quote=False)


def latex_line(texts: Sequence[str], numeric: Sequence[bool] = ()) -> str:
    r"""Return a row of a LaTeX table, in which nothing is a command; signs of numbers are minuses.

    Examples
    --------
    >>> latex_line(["r_1 & 2", "-0.10"], [False, True])
    'r\\_1 \\& 2 & $-$0.10 \\\\'
    """
    cells = ["".join(LATEX.get(sign, sign) for sign in " ".join(text.split())) for text in texts]
    signed = [
        re.sub(r"-(?=\d)", "$-$", cell) if is_number else cell
        for cell, is_number in zip(cells, numeric or [False] * len(cells), strict=True)
    ]
    return " & ".join(signed) + r" \\"
