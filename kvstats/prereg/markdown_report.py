"""A report as Markdown, for a README or a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvstats.prereg.display import FIGURES, departures, faults, figure_names, row_figures, row_label
from kvstats.prereg.markup import markup

if TYPE_CHECKING:
    from kvstats.prereg.outcome import ClaimOutcome
    from kvstats.prereg.report import Report

__all__ = ["markdown_report"]


def markdown_report(report: Report) -> str:
    """Return a report as Markdown: what it says of itself, what is wrong, and a table of claims."""
    wrong, added = faults(report), departures(report)
    lines = [cell(repr(report)), "", f"SHA-256 of the registration: `{report.registration.sha256}`", ""]
    lines += [f"- **{cell(fault)}**" for fault in wrong] + [""] * bool(wrong)
    lines += [f"- {cell(entry)}" for entry in added] + [""] * bool(added)
    lines += [row(["verdict", "claim", *figure_names(report)]), row(["---", "---", *["---:"] * len(FIGURES)])]
    lines += [line for claim in report.claims for line in claim_lines(claim)]
    return "\n".join(lines) + "\n"


def claim_lines(claim: ClaimOutcome) -> Iterator[str]:
    """Yield a claim as rows of the table."""
    single = len(claim.rows) == 1
    label = f" ({cell(row_label(claim.rows[0]))})" if single and row_label(claim.rows[0]) else ""
    figures = row_figures(claim.rows[0]) if single else ("",) * len(FIGURES)
    yield row([f"**{claim.verdict}**", f"`{claim.id}`: {cell(claim.statement)}{label}", *map(cell, figures)])
    if not single:
        for found in claim.rows:
            yield row(["", cell(row_label(found)), *map(cell, row_figures(found))])


def row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def cell(text: str) -> str:
    r"""Return a text on one line, in which nothing is Markdown or HTML.

    Examples
    --------
    >>> cell("a | *b*")
    'a \\| \\*b\\*'
    """
    escaped = re.sub(r"([\\`*_\[\]|~#!])", r"\\\1", " ".join(text.split()))
    return markup(escaped)
