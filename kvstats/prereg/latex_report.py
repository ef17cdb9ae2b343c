"""A report as a LaTeX table, for a paper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvstats.prereg.display import FIGURES, figure_names, row_figures, row_label
from kvstats.table_layout import latex_tabular

if TYPE_CHECKING:
    from kvstats.prereg.outcome import ClaimOutcome
    from kvstats.prereg.report import Report

__all__ = ["latex_report"]


def latex_report(report: Report) -> str:
    """Return the claims as a LaTeX table; what the report says of itself is a comment above it."""
    rows = [row for claim in report.claims for row in claim_rows(claim)]
    right = [False, False, *[True] * len(FIGURES)]
    return latex_tabular(repr(report), ["claim", "verdict", *figure_names(report)], rows, right)


def claim_rows(claim: ClaimOutcome) -> Iterator[list[str]]:
    """Yield a claim as rows of texts: one, or one for itself and one for each row of its result."""
    if len(claim.rows) == 1:
        label = row_label(claim.rows[0])
        yield [f"{claim.id} ({label})" if label else claim.id, claim.verdict, *row_figures(claim.rows[0])]
        return
    yield [claim.id, claim.verdict, *[""] * len(FIGURES)]
    for row in claim.rows:
        yield [row_label(row), str(row.get("verdict", "")), *row_figures(row)]
