"""What a report says in a terminal above its claims: what was verified, and what is wrong with it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rich.text import Text

from kvstats.prereg.display import several
from kvstats.prereg.report import Report
from kvstats.report.evidence import Line, evidence_lines

__all__ = ["heading"]

LABEL_WIDTH = 13
"""Columns of the names on the left."""

FIRST = {
    True: " (before the first record)",
    False: " (AFTER THE FIRST RECORD)",
    None: " (the records have no times)",
}
"""How a time lies to the first record's."""


def heading(report: Report, width: int) -> Iterator[Text]:
    """Yield names and texts in two columns; what wraps stays in its column, and no word is cut in two."""
    indent = " " * (LABEL_WIDTH + 1)
    for label, text in lines(report):
        wrapped = textwrap.fill(
            text.plain, width - len(indent), break_long_words=False, break_on_hyphens=False
        )
        yield Text(f"{label:<{LABEL_WIDTH}} " + wrapped.replace("\n", f"\n{indent}"), text.style)


def lines(report: Report) -> Iterator[Line]:
    """Yield registration, anchors, data, evidence, departures, faults and guards."""
    registration, data = report.registration, report.data
    order = "" if data is None else FIRST[report.registered_first]
    late = report.registered_first is False
    yield (
        "registration",
        Text(f"{registration.file}, {registration.registered_at}{order}", "bold red" if late else ""),
    )
    yield from anchor_lines(report)
    if data is not None:
        counts = (
            several(data.runs, "run") + f" of {several(data.inputs, 'input')}",
            several(data.replays, "replay cell"),
            several(data.rejects, "reject"),
        )
        hashes = "hashes as registered" if data.hashed else "no hash registered"
        yield "data", Text(f"{', '.join(counts)}; {several(data.files, 'file')}, {hashes}")
    yield from evidence_lines(report)
    for label, text in (("exclusions", report.exclusions), ("stopping rule", report.stopping_rule)):
        if text is not None:
            yield label, Text(text.strip())
    for deviation in report.deviations:
        yield "deviation", Text(f"{deviation['at']}: {deviation['text'].strip()}", "yellow")
    for number, amendment in enumerate(report.amendments, start=1):
        changed = f" (changes {', '.join(amendment['changes'])})" if amendment["changes"] else ""
        yield (
            f"amendment {number}",
            Text(f"{amendment['at']}: {amendment['text'].strip()}{changed}", "yellow"),
        )
    for finding in report.integrity:
        yield "integrity", Text(finding, "bold red")
    for guard in report.guards:
        state = {True: "holds", False: "FAILS", None: "not evaluated"}[guard.holds]
        fails = guard.holds is False
        yield (
            "guard",
            Text(f"{guard.id} {state}" + (f": {guard.reason}" if fails else ""), "bold red" if fails else ""),
        )


def anchor_lines(report: Report) -> Iterator[Line]:
    """Yield the hashes of a registration, its seal, and what holds it from outside."""
    registration, seal = report.registration, report.registration.seal
    expected = {anchor.reference for anchor in registration.anchors if anchor.by == "sha256"}

    def state(digest: str) -> str:
        return " (as expected)" if digest in expected else ""

    shown = registration.sha256 + (state(registration.sha256) or f" ({registration.standing})")
    yield "sha256", Text(shown)
    yield "frozen part", Text(f"{registration.frozen_sha256}{state(registration.frozen_sha256)}")
    if seal is not None:
        same = "the same bytes" if seal.same_bytes else "other bytes now"
        beside = f", {several(seal.amendments, 'amendment')}" if seal.amendments else ""
        yield "seal", Text(f"{seal.file}, {seal.sealed_at} by its own word; {same}{beside}")
    for anchor in registration.anchors:
        first = None if anchor.time is None else report.precedes_records(anchor.time)
        order = "" if first is None else FIRST[first]
        style = "bold red" if first is False and anchor.given else ""
        if anchor.by == "timestamp":
            yield "time-stamp", Text(f"of {anchor.covers}, {anchor.time}{order}, {anchor.reference}", style)
        elif anchor.by == "git":
            named = "named by the caller" if anchor.given else "found in the work tree, no anchor by itself"
            commit = f"commit {anchor.reference[:12]} of {anchor.time}{order}"
            yield "git", Text(f"{commit} has {anchor.covers}; {named}", style)
        elif anchor.amendments:
            yield "expected", Text(f"{anchor.reference}: {anchor.covers}")
