"""A report as a page of its own: one file that loads nothing, runs nothing, and prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kvstats.prereg.claim_section import claim_section
from kvstats.prereg.display import headline, verdict_counts
from kvstats.prereg.evidence_section import evidence_section
from kvstats.prereg.markup import markup
from kvstats.prereg.page_elements import badge, table
from kvstats.prereg.page_style import STYLE

if TYPE_CHECKING:
    from kvstats.prereg.outcome import ClaimOutcome
    from kvstats.prereg.report import Report

__all__ = ["html_report"]

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""What the page may load: nothing but the style that it carries."""


def html_report(report: Report) -> str:
    """Return a report as HTML.

    Parameters
    ----------
    report : Report
        The report.

    Returns
    -------
    str
        The same text for the same report. Everything that comes from the registration or the logs is
        escaped.
    """
    parts = [
        *opening(report),
        *evidence_section(report),
        *overview(report.claims),
        "<h2>Claims</h2>",
        *(line for claim in report.claims for line in claim_section(claim, report)),
        *closing(report),
    ]
    return "\n".join(parts) + "\n"


def opening(report: Report) -> Iterator[str]:
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{markup(POLICY)}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{markup(report.study)}: claims and verdicts</title>"
    yield f"<style>\n{STYLE}</style>\n</head>\n<body>\n<header>"
    yield f"<h1>{markup(report.study)}</h1>"
    if report.description:
        yield f'<p class="note">{markup(report.description.strip())}</p>'
    late = report.registered_first is False or report.anchored_first is False
    fault = "" if report.intact and not late else " fault"
    yield f'<p class="state{fault}">{markup(repr(report))}</p>'
    yield "</header>\n<main>"


def overview(claims: Sequence[ClaimOutcome]) -> Iterator[str]:
    """Yield how many claims have which verdict, and a table of all."""
    yield "<h2>Verdicts</h2>"
    yield f"<p>{' '.join(f'{badge(verdict)} × {count}' for verdict, count in verdict_counts(claims))}</p>"
    yield table(
        ["Verdict", "Claim", "Estimate", "Interval"],
        (
            [
                badge(claim.verdict),
                f'<a href="#claim-{markup(claim.id)}"><code>{markup(claim.id)}</code></a><br>'
                f"{markup(claim.statement.strip())}",
                *map(markup, headline(claim.rows)),
            ]
            for claim in claims
        ),
        right=(2, 3),
    )


def closing(report: Report) -> Iterator[str]:
    registration = report.registration
    command = f"kvstats verify {registration.file} --expect-sha256 {registration.sha256}"
    yield "</main>\n<footer>"
    yield f"<p>To check it, run in the folder of the registration: <code>{markup(command)}</code></p>"
    yield "</footer>\n</body>\n</html>"
