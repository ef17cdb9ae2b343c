"""The pieces that a report's page is made of."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from kvstats.prereg.markup import markup

__all__ = ["badge", "definition_list", "flat", "table"]

SYMBOLS = {
    "supported": "✓",
    "killed": "✗",
    "inconclusive": "~",
    "not met": "–",
    "undefined": "?",
    "invalid": "!",
    "exploratory": "○",
}


def badge(verdict: str) -> str:
    """Return a verdict with its symbol.

    Examples
    --------
    >>> badge("not met")
    '<span class="verdict not-met"><span aria-hidden="true">– </span>not met</span>'
    """
    name = markup(verdict.replace(" ", "-"))
    symbol = SYMBOLS.get(verdict, "·")
    return f'<span class="verdict {name}"><span aria-hidden="true">{symbol} </span>{markup(verdict)}</span>'


def definition_list(pairs: Iterable[tuple[str, str]]) -> str:
    """Return names and texts as a list."""
    body = "\n".join(f'<dt>{markup(name)}</dt><dd class="note">{markup(text)}</dd>' for name, text in pairs)
    return f"<dl>\n{body}\n</dl>"


def flat(values: Mapping[str, Any]) -> str:
    """Return names and values on one line.

    Examples
    --------
    >>> flat({"arm": "evict", "cluster": ("suite", "task"), "tau": None})
    'arm=evict, cluster=(suite, task), tau=none'
    """

    def text(value: Any) -> str:
        if isinstance(value, Mapping):
            return f"{{{flat(value)}}}"
        if isinstance(value, list | tuple):
            return f"({', '.join(map(text, value))})"
        return "none" if value is None else str(value)

    return ", ".join(f"{name}={text(value)}" for name, value in values.items())


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], right: Container[int] = (), caption: str = ""
) -> str:
    """Return a table.

    Parameters
    ----------
    header : sequence of str
        Names of the columns, as text.
    rows : iterable of sequences of str
        Cells, as markup.
    right : container of int
        Indices of the columns of numbers.
    caption : str
        What the table shows, as text.
    """
    kinds = [' class="number"' if index in right else "" for index in range(len(header))]

    def line(opening: str, closing: str, cells: Sequence[str]) -> str:
        inner = "".join(
            f"<{opening}{kind}>{cell}</{closing}>" for cell, kind in zip(cells, kinds, strict=True)
        )
        return f"<tr>{inner}</tr>"

    head = line('th scope="col"', "th", [markup(name) for name in header])
    body = "\n".join(line("td", "td", row) for row in rows)
    title = f"<caption>{markup(caption)}</caption>\n" if caption else ""
    return (
        f'<div class="scroll"><table>\n{title}<thead>{head}</thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )
