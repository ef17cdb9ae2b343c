"""What a report says in a terminal of its evidence: files, order, audit, and what verdicts depend on."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from kvstats.prereg.display import headline
from kvstats.prereg.order import Order
from kvstats.prereg.report import Report

__all__ = ["Line", "evidence_lines", "sensitivity_lines"]

Line = tuple[str, Text]
"""A name, and what is said under it."""

WORDS = {
    "exploratory": "claims that rest on them are exploratory",
    "exclude": "their inputs are left out",
    "allow": "allowed by the registration",
}
"""What becomes of records from before the registration."""

STYLES = {"error": "bold red", "warning": "yellow", "note": ""}
"""How findings of an audit are shown."""


def evidence_lines(report: Report) -> Iterator[Line]:
    """Yield the files with hashes and times, the order of records and events, and the audit's findings."""
    for file in report.files:
        state = {None: "", True: ", as registered", False: ", NOT AS REGISTERED"}[file.as_registered]
        times = "no times" if file.first is None else f"{file.first} to {file.last}"
        records = file.runs + file.inputs + file.replays
        yield "file", Text(f"{file.name}: {records:,} records, {times}")
        yield "", Text(f"sha256 {file.sha256}{state}", "bold red" if file.as_registered is False else "")
    if report.order is not None:
        yield from order_lines(report.order)
    for step in report.policies:
        if step["error"] is not None:
            yield "policy", Text(f"{step['policy']} adds no arm: {step['error']}", "bold red")
    for finding in report.audit:
        such = f", such as {finding.examples[0]}" if finding.examples else ""
        style = STYLES.get(finding.severity, "")
        yield "audit", Text(f"{finding.severity}: {finding.message}{such}", style)


def order_lines(order: Order) -> Iterator[Line]:
    """Yield what lies on the wrong side of the registration, and of what was written later."""
    first = order.events[0]
    if first.before:
        span = f"{order.first_before} to {order.last_before}"
        what = f"from before the registration, {span}: {WORDS[order.before_registration]}"
        yield "order", Text(f"{first.before:,} records are {what}", "bold red")
    if first.unknown:
        yield "order", Text(f"{first.unknown:,} records have no time: {WORDS[order.without_time]}", "yellow")
    if order.inputs_left_out:
        yield "order", Text(f"{order.inputs_left_out:,} inputs are left out for it", "yellow")
    for event in order.events[1:]:
        counts = (
            f"{event.before:,} records before it, {event.after:,} after, {event.unknown:,} without a time"
        )
        yield "order", Text(f"{event.what} of {event.at}: {counts}")


def sensitivity_lines(report: Report) -> Iterator[Text]:
    """Yield under how many other choices each claim keeps its verdict, and those under which it does not.

    Each choice with its estimates is in the report's JSON and on its page.
    """
    asked = [claim for claim in report.claims if claim.sensitivity]
    if asked:
        yield Text("Under other choices than the registered ones")
    for claim in asked:
        changed = [variant for variant in claim.sensitivity if variant.verdict != claim.verdict]
        kept, known = len(claim.sensitivity) - len(changed), len(claim.sensitivity)
        yield Text.assemble((claim.id, "bold"), f": {claim.verdict} under {kept} of {known}")
        for variant in changed:
            texts = (
                ", ".join(text for text in headline(variant.rows) if text)
                if variant.rows
                else variant.reason,
                variant.note or "",
            )
            said = "; ".join(text for text in texts if text)
            yield Text.assemble(f"  {variant.name}: ", (variant.verdict, "yellow"), f", {said}")
