"""Tables of text cells, aligned and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["aligned_text", "html_cells"]


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
