"""A claim on a report's page: what was claimed, what was found, and a plot of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kvstats.inference.result import RESULT_SCHEMA
from kvstats.prereg.display import estimate_figures, row_figures, several
from kvstats.prereg.forest_plot import ROWS_A_PLOT, forest_plot, plot_axis
from kvstats.prereg.markup import markup
from kvstats.prereg.page_elements import badge, definition_list, flat, table
from kvstats.prereg.thresholds import thresholds

if TYPE_CHECKING:
    from kvstats.prereg.outcome import ClaimOutcome
    from kvstats.prereg.report import Report

__all__ = ["claim_section", "rows_table"]

P_COLUMNS = ("p_value", "p_adjusted")

OWN_VERDICT = "verdict"
"""Verdict of a row by itself."""

SAMPLES = {"supported": "Solid line", "killed": "Dashed line"}
"""How the thresholds of rules are drawn."""

MARKS = "Filled dot: the row is supported; cross: killed; open dot: neither"

Row = Mapping[str, Any]


def claim_section(claim: ClaimOutcome, report: Report) -> Iterator[str]:
    """Yield a claim with its rules, its rows and its plots."""
    yield f'<section id="claim-{markup(claim.id)}" aria-labelledby="name-{markup(claim.id)}">'
    yield '<div class="head">'
    yield f'<h3 id="name-{markup(claim.id)}"><code>{markup(claim.id)}</code> {badge(claim.verdict)}</h3>'
    yield f'<p class="statement">{markup(claim.statement.strip())}</p>'
    yield f"<p>{markup(claim.reason)}</p>"
    amended = [entry["at"] for entry in report.amendments if claim.id in entry["changes"]]
    yield f"{definition_list(facts(claim, amended))}\n</div>"
    if claim.rows:
        yield rows_table(f"Estimates with {100 * report.design['level']:g}% intervals", claim.rows)
        yield from plots(claim)
    yield from sensitivity(claim)
    yield "</section>"


def facts(claim: ClaimOutcome, amended: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what was asked, and the rules that were to decide."""
    if amended:
        yield "as amended", ", ".join(amended)
    yield "estimator", f"{claim.estimator}({flat(claim.arguments)})"
    if claim.where is not None:
        yield "where", claim.where
    if claim.by:
        yield "by", ", ".join(claim.by)
    for column, (first, second) in claim.contrast.items():
        yield "contrast", f"{column}: {first} minus {second}"
    yield "supported if", claim.supported.strip()
    if claim.killed is not None:
        yield "killed if", claim.killed.strip()
    yield "rows needed", claim.quantifier
    if claim.null is not None or claim.alternative != "two-sided":
        null = "of the estimator" if claim.null is None else f"{claim.null:g}"
        yield "test", f"null value {null}, {claim.alternative}"
    if claim.in_family:
        yield "family", "its p-value is adjusted"
    yield "rule that fired", claim.fired or "none"
    if (found := claim.evidence) is not None:
        first = f", the first at {found.first}" if found.first else ""
        yield (
            "evidence",
            f"{several(found.records, 'record')}: {found.before:,} from before {found.registered_at}{first}; "
            f"{found.unknown:,} without a time that tells",
        )


def rows_table(caption: str, rows: Sequence[Row]) -> str:
    """Return the rows of a result as a table: by-columns, figures, p-values where there are any, status."""
    known = (*RESULT_SCHEMA, *P_COLUMNS, OWN_VERDICT)
    own = [name for name in rows[0] if name not in known]
    verdicts = [OWN_VERDICT] * (len(rows) > 1 and OWN_VERDICT in rows[0])
    tests = [name for name in P_COLUMNS if any(row.get(name) is not None for row in rows)]
    header = [
        *own,
        *("estimate", "interval", "n", "clusters"),
        *(name.replace("_", " ") for name in tests),
        *("status", *verdicts),
    ]
    body = (
        [
            *("–" if row[name] is None else str(row[name]) for name in own),
            *row_figures(row)[:4],
            *("–" if row[name] is None else f"{row[name]:.2g}" for name in tests),
            *(row[name] for name in ("status", *verdicts)),
        ]
        for row in rows
    )
    right = range(len(own), len(header) - 1 - len(verdicts))
    return table(header, ([markup(text) for text in texts] for texts in body), right, caption)


def plots(claim: ClaimOutcome) -> Iterator[str]:
    """Yield the plots of a claim, each with a caption that explains its lines."""
    texts = {"supported": claim.supported, "killed": claim.killed}
    rules = {role: thresholds(text, claim.rows) for role, text in texts.items() if text is not None}
    axis = plot_axis(claim.rows, rules)
    if axis is None:
        yield '<p class="quiet">No row has an estimate to be plotted.</p>'
        return
    lines = [f"{SAMPLES[role]}: {role} if {texts[role]}" for role, found in rules.items() if found]
    legend = ". ".join([*lines, MARKS])
    for start in range(0, len(claim.rows), ROWS_A_PLOT):
        part = claim.rows[start : start + ROWS_A_PLOT]
        last = start + len(part)
        title = f"Estimates and intervals of claim {claim.id}"
        if len(part) < len(claim.rows):
            title += f", rows {start + 1} to {last} of {len(claim.rows)}"
        drawing = forest_plot(f"plot-{claim.id}-{start}", title, part, rules, axis, start)
        yield f"<figure>\n{drawing}\n<figcaption>{markup(f'{title}. {legend}.')}</figcaption>\n</figure>"


def sensitivity(claim: ClaimOutcome) -> Iterator[str]:
    """Yield how a claim would be decided under other choices."""
    if claim.sensitivity:
        yield table(
            ["Choice", "Verdict", "Why", "Estimates"],
            (
                [
                    markup(variant.name),
                    badge(variant.verdict),
                    markup(variant.reason) + (f"<br>{markup(variant.note)}" if variant.note else ""),
                    "<br>".join(map(markup, map(variant_row, variant.rows))),
                ]
                for variant in claim.sensitivity
            ),
            caption="Under other choices than the registered ones",
        )


def variant_row(row: Row) -> str:
    """Return a row of a claim under another choice, on one line."""
    estimate, interval = estimate_figures(row)
    return (f"{row['row']}: " if row["row"] else "") + f"{estimate}, {interval}"
