"""What a report says in a terminal of its evidence: files, order, audit, and what verdicts depend on."""

from __future__ import annotations

from collections.abc import Iterator

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from kvstats.prereg.display import row_figures
from kvstats.prereg.order import Order
from kvstats.prereg.outcome import Report
from kvstats.prereg.variant import Variant

__all__ = ["evidence_lines", "sensitivity_table"]

WORDS = {
    "exploratory": "claims that rest on them are exploratory",
    "exclude": "their inputs are left out",
    "allow": "allowed by the registration",
}
"""What becomes of records from before the registration."""

STYLES = {"error": "bold red", "warning": "yellow", "note": ""}
"""How findings of an audit are shown."""


def evidence_lines(report: Report) -> Iterator[Text]:
    """Yield the files with hashes and times, the order of records and events, and the audit's findings."""
    for file in report.files:
        state = {None: "", True: ", as registered", False: ", NOT AS REGISTERED"}[file.as_registered]
        times = "no times" if file.first is None else f"{file.first} to {file.last}"
        records = file.runs + file.inputs + file.replays
        yield Text(f"file          {file.name}: {records:,} records, {times}")
        yield Text(
            f"              sha256 {file.sha256}{state}", "bold red" if file.as_registered is False else ""
        )
    if report.order is not None:
        yield from order_lines(report.order)
    for name, step in ((step["policy"], step) for step in report.policies):
        if step["error"] is not None:
            yield Text(f"policy        {name} adds no arm: {step['error']}", "bold red")
    for finding in report.audit:
        such = f", such as {finding.examples[0]}" if finding.examples else ""
        yield Text(
            f"audit         {finding.severity}: {finding.message}{such}", STYLES.get(finding.severity, "")
        )


def order_lines(order: Order) -> Iterator[Text]:
    """Yield what lies on the wrong side of the registration, and of what was written later."""
    first = order.events[0]
    if first.before:
        what = WORDS[order.before_registration]
        yield Text(
            f"order         {first.before:,} records are from before the registration, "
            f"{order.first_before} to {order.last_before}: {what}",
            "bold red",
        )
    if first.unknown:
        what = WORDS[order.without_time]
        yield Text(f"order         {first.unknown:,} records have no time: {what}", "yellow")
    if order.inputs_left_out:
        yield Text(f"order         {order.inputs_left_out:,} inputs are left out for it", "yellow")
    for event in order.events[1:]:
        yield Text(
            f"order         {event.what} of {event.at}: {event.before:,} records before it, "
            f"{event.after:,} after, {event.unknown:,} without a time"
        )


def sensitivity_table(report: Report) -> Table | None:
    """Return a table of what verdicts would be under other choices; None where that was not asked for."""
    if not any(claim.sensitivity for claim in report.claims):
        return None
    table = Table(
        "Claim",
        "Choice",
        "Verdict",
        "estimate",
        "interval",
        "note",
        box=SIMPLE,
        pad_edge=False,
        show_edge=False,
    )
    table.columns[0].no_wrap = table.columns[1].no_wrap = table.columns[2].no_wrap = True
    for claim in report.claims:
        for variant in claim.sensitivity:
            changed = variant.verdict != claim.verdict
            estimate, interval = figures(variant)
            table.add_row(
                Text(claim.id),
                Text(variant.name),
                Text(variant.verdict, "yellow" if changed else ""),
                Text(estimate),
                Text(interval),
                Text(variant.note or ("" if variant.rows else variant.reason)),
            )
        table.add_section()
    return table


def figures(variant: Variant) -> tuple[str, str]:
    """Return estimate and interval of the only row, or how many rows there are."""
    if len(variant.rows) == 1:
        row = {**variant.rows[0], "n": 0}
        estimate, interval, *_ = row_figures(row)
        return estimate, interval
    return ("" if not variant.rows else f"{len(variant.rows)} rows", "")
