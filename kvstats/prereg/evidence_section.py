"""What a report's page says of the registration and of the evidence, before any claim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvstats.prereg.claim_section import rows_table
from kvstats.prereg.display import several
from kvstats.prereg.markup import markup
from kvstats.prereg.page_elements import definition_list, flat, table

if TYPE_CHECKING:
    from kvstats.prereg.report import Report

__all__ = ["evidence_section"]

ORDER = {
    True: "the registration is dated before the first record",
    False: "THE REGISTRATION IS DATED AFTER THE FIRST RECORD",
    None: "not known: the records have no times, or were not read",
}

UNANCHORED = "nothing from outside shows that the registration was not changed afterwards"

ANCHORS = {"sha256": "hash", "git": "commit", "timestamp": "time-stamp"}


def evidence_section(report: Report) -> Iterator[str]:
    """Yield registration, faults, deviations, files, order of evidence, findings and guards."""
    yield "<h2>Registration and evidence</h2>"
    yield definition_list([*registration_facts(report), *plan_facts(report)])
    yield from anchors(report)
    if report.integrity:
        yield "<h2>Integrity</h2>"
        yield from (f'<p class="state fault">{markup(finding)}</p>' for finding in report.integrity)
    yield from departures(report)
    yield from files(report)
    yield from order(report)
    yield from findings(report)
    yield from guards(report)


def registration_facts(report: Report) -> Iterator[tuple[str, str]]:
    registration, data = report.registration, report.data
    yield "registration", registration.file
    yield "registered at", registration.registered_at
    yield "SHA-256", registration.sha256
    yield "frozen part", registration.frozen_sha256
    yield "anchor", registration.standing + ("" if registration.anchored else f": {UNANCHORED}")
    if registration.seal is not None:
        seal = registration.seal
        state = "the same bytes" if seal.same_bytes else "other bytes now"
        yield "seal", f"{seal.file}, {seal.sealed_at} by its own word, kvstats {seal.kvstats}; {state}"
    yield "order", ORDER[report.registered_first]
    if data is None:
        yield "data", "not opened"
        return
    counts = [
        (data.runs, "run"),
        (data.inputs, "input"),
        (data.replays, "replay cell"),
        (data.rejects, "reject"),
    ]
    state = "hashes as registered" if data.hashed else "no hash registered"
    yield "data", f"{several(data.files, 'file')}, {state}: {', '.join(several(*count) for count in counts)}"


def plan_facts(report: Report) -> Iterator[tuple[str, str]]:
    for name, text in (("exclusions", report.exclusions), ("stopping rule", report.stopping_rule)):
        if text is not None:
            yield name, text.strip()
    yield "design", flat(report.design)
    for step in report.policies:
        yield "policy", f"{step['policy']}: {flat(step['arguments'])}"
    if report.family is not None:
        yield "family", flat(report.family)


def anchors(report: Report) -> Iterator[str]:
    """Yield what holds the registration from outside, as a table."""
    found = report.registration.anchors
    if found:
        yield table(
            ["Anchor", "Covers", "Time", "Reference", "Known from"],
            (
                [
                    ANCHORS[anchor.by],
                    markup(anchor.covers),
                    markup(anchor.time or "–"),
                    f"<code>{markup(anchor.reference)}</code>",
                    "the caller" if anchor.given else "the work tree, no anchor by itself",
                ]
                for anchor in found
            ),
        )


def departures(report: Report) -> Iterator[str]:
    """Yield what was added after the registration."""
    if report.deviations:
        yield "<h2>Deviations</h2>"
        yield definition_list([(entry["at"], entry["text"].strip()) for entry in report.deviations])
    if report.amendments:
        yield "<h2>Amendments</h2>"
        yield table(
            ["At", "What changes, and why", "Fields", "SHA-256"],
            (
                [
                    markup(entry["at"]),
                    markup(entry["text"].strip()),
                    "<br>".join(
                        f"<code>{markup(name)}</code>: {markup(flat(fields))}"
                        for name, fields in entry["changes"].items()
                    )
                    or "–",
                    f"<code>{markup(entry['sha256'])}</code>",
                ]
                for entry in report.amendments
            ),
        )


def files(report: Report) -> Iterator[str]:
    """Yield the files of data as a table."""
    if not report.files:
        return
    states = {True: "as registered", False: "NOT AS REGISTERED", None: "not registered"}
    yield "<h2>Files</h2>"
    yield table(
        ["File", "Runs", "Inputs", "Replays", "First record", "Last record", "SHA-256"],
        (
            [
                f"<code>{markup(file.name)}</code>",
                *(f"{count:,}" for count in (file.runs, file.inputs, file.replays)),
                markup(file.first or file.begun or "–"),
                markup(file.last or "–"),
                f"{states[file.as_registered]}<br><code>{markup(file.sha256)}</code>",
            ]
            for file in report.files
        ),
        right=(1, 2, 3),
    )


def order(report: Report) -> Iterator[str]:
    """Yield how many records lie before and after each moment of the study."""
    if report.order is None:
        return
    yield "<h2>Order of evidence</h2>"
    yield table(
        ["Moment", "At", "Records before", "Records after", "Without a time"],
        (
            [
                markup(event.what),
                markup(event.at),
                *(f"{n:,}" for n in (event.before, event.after, event.unknown)),
            ]
            for event in report.order.events
        ),
        right=(2, 3, 4),
    )
    if report.order.inputs_left_out:
        left_out = several(report.order.inputs_left_out, "input")
        yield f"<p>{left_out} with records from before the registration are left out, as registered.</p>"


def findings(report: Report) -> Iterator[str]:
    """Yield what an audit of the records found."""
    if report.audit:
        yield "<h2>Audit of the records</h2>"
        yield '<p class="quiet">Findings change no verdict, but for a key of several contents.</p>'
        yield table(
            ["Severity", "Check", "Count", "Finding", "Such as"],
            (
                [
                    markup(finding.severity),
                    f"<code>{markup(finding.check)}</code>",
                    f"{finding.count:,}",
                    markup(finding.message),
                    "<br>".join(map(markup, finding.examples)),
                ]
                for finding in report.audit
            ),
            right=(2,),
        )


def guards(report: Report) -> Iterator[str]:
    """Yield the guards as a table, and the rows of those that fail."""
    if not report.guards:
        return
    states = {True: "holds", False: "<strong>FAILS</strong>", None: "not evaluated"}
    yield "<h2>Guards</h2>"
    yield table(
        ["Guard", "State", "Statement", "Why"],
        (
            [
                f"<code>{markup(guard.id)}</code>",
                states[guard.holds],
                markup(guard.statement.strip()),
                markup(guard.reason),
            ]
            for guard in report.guards
        ),
    )
    for guard in report.guards:
        if guard.holds is False and guard.rows:
            yield rows_table(f"Rows of guard {guard.id}", guard.rows)
