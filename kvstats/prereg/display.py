"""Texts that every form of a report shares, and the form that a notebook shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from kvstats.inference.result import RESULT_SCHEMA
from kvstats.table_layout import decimals

if TYPE_CHECKING:
    from kvstats.prereg.outcome import ClaimOutcome
    from kvstats.prereg.report import Report

__all__ = [
    "FIGURES",
    "claim_table",
    "departures",
    "estimate_figures",
    "faults",
    "figure_names",
    "headline",
    "row_figures",
    "row_label",
    "several",
    "verdict_counts",
]

FIGURES = ("estimate", "interval", "n", "clusters", "p")
"""What is shown of a row."""


def several(count: int, noun: str) -> str:
    """Return a count with its noun.

    Examples
    --------
    >>> several(1, "run"), several(6840, "run")
    ('1 run', '6,840 runs')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def row_label(row: Mapping[str, Any]) -> str:
    """Return the values of a row's by-columns.

    Examples
    --------
    >>> row_label({"task": "qa", "budget": 0.5, "estimate": 1.0})
    'task=qa, budget=0.5'
    """
    known = (*RESULT_SCHEMA, "p_value", "p_adjusted", "verdict")
    return ", ".join(f"{name}={value}" for name, value in row.items() if name not in known)


def estimate_figures(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return estimate and interval of a row as texts, or the status in place of an undefined interval."""
    places = decimals(row["low"], row["high"])

    def number(value: float | None) -> str:
        return "–" if value is None else f"{value:.{places}f}"

    interval = f"{number(row['low'])} to {number(row['high'])}"
    if row["low"] is None or row["high"] is None:
        interval = "–" if row["status"] == "ok" else row["status"]
    return number(row["estimate"]), interval


def headline(rows: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Return estimate and interval of the only row, or how many rows there are."""
    if len(rows) == 1:
        return estimate_figures(rows[0])
    return (f"{len(rows)} rows", "") if rows else ("–", "–")


def row_figures(row: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    """Return estimate, interval, n, clusters and p-value of a row as texts.

    Digits follow the width of the interval. In place of an interval that is undefined stands the status; the
    p-value is the adjusted one where there is one.

    Examples
    --------
    >>> row_figures({"estimate": 0.41234, "low": 0.3001, "high": 0.52, "n": 1200, "clusters": 40,
    ...              "status": "ok", "p_value": 0.00012, "p_adjusted": None})
    ('0.41', '0.30 to 0.52', '1,200', '40', '0.00012')
    """
    p = row.get("p_value") if row.get("p_adjusted") is None else row["p_adjusted"]
    return (
        *estimate_figures(row),
        f"{row['n']:,}",
        f"{row['clusters']:,}",
        "–" if p is None else f"{p:.2g}",
    )


def figure_names(report: Report) -> list[str]:
    """Return the names of `FIGURES` as the head of a table, the interval with its level."""
    level = f"{100 * report.design['level']:g}% interval"
    return [level if name == "interval" else name for name in FIGURES]


def verdict_counts(claims: Iterable[ClaimOutcome]) -> list[tuple[str, int]]:
    """Return how many claims have which verdict."""
    return sorted(Counter(claim.verdict for claim in claims).items())


def faults(report: Report) -> list[str]:
    """Return what is wrong with a registration, its data and its guards."""
    failed = [guard for guard in report.guards if guard.holds is False]
    return [
        *(f"integrity: {text}" for text in report.integrity),
        *(f"guard {guard.id} fails: {guard.reason}" for guard in failed),
    ]


def departures(report: Report) -> list[str]:
    """Return deviations and amendments, each on a line."""
    kinds = (("deviation", report.deviations), ("amendment", report.amendments))
    return [f"{kind}, {entry['at']}: {entry['text'].strip()}" for kind, entries in kinds for entry in entries]


def claim_table(report: Report) -> str:
    """Return a report as HTML for a notebook: faults and departures first, then a table of claims."""
    head = "".join(f"<th>{escape(name)}</th>" for name in ("verdict", "claim", *figure_names(report)))
    body = "\n".join(line for claim in report.claims for line in claim_lines(claim))
    notes = "".join(f"<p><strong>{escape(text)}</strong></p>\n" for text in faults(report))
    notes += "".join(f"<p>{escape(text)}</p>\n" for text in departures(report))
    table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    return f"<p>{escape(repr(report))}</p>\n{notes}{table}"


def claim_lines(claim: ClaimOutcome) -> Iterable[str]:
    """Yield the table rows of a claim."""

    def line(texts: Sequence[str]) -> str:
        left, right = texts[:2], texts[2:]
        cells = [f'<td style="text-align: left">{text}</td>' for text in left]
        cells += [f'<td style="text-align: right">{text}</td>' for text in right]
        return f"<tr>{''.join(cells)}</tr>"

    name = f"{escape(claim.id)}: {escape(claim.statement)}<br><small>{escape(claim.reason)}</small>"
    verdict = f"<strong>{escape(claim.verdict)}</strong>"
    single = len(claim.rows) == 1
    figures = row_figures(claim.rows[0]) if single else ("",) * len(FIGURES)
    label = row_label(claim.rows[0]) if single else ""
    yield line([verdict, name + (f"<br>{escape(label)}" if label else ""), *map(escape, figures)])
    if not single:
        for row in claim.rows:
            yield line(["", escape(row_label(row)), *map(escape, row_figures(row))])
