"""What a report says in a terminal of its evidence."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from kvstats.log.audit import Finding
from kvstats.prereg import verify
from kvstats.prereg.order import Event
from kvstats.report.evidence import sensitivity_table
from kvstats.report.tables import print_report

TOY = Path(__file__).parents[2] / "golden" / "toy" / "preregistration.yaml"


@pytest.fixture(scope="module")
def report():
    return verify(TOY, sensitivity=True, git=False)


def printed(report):
    file = io.StringIO()
    print_report(report, file)
    return " ".join(file.getvalue().split())


def test_each_file_has_its_hash_and_its_times(report):
    text = printed(report)
    for file in report.files:
        records = file.runs + file.inputs + file.replays
        assert f"file {file.name}: {records:,} records, " in text
        assert f"sha256 {file.sha256}" in text
    changed = replace(report.files[0], as_registered=False, first=None)
    assert f"records, no times sha256 {changed.sha256}, NOT AS REGISTERED" in printed(
        replace(report, files=(changed,))
    )
    assert f"sha256 {changed.sha256}, as registered" in printed(
        replace(report, files=(replace(changed, as_registered=True),))
    )


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("exploratory", "claims that rest on them are exploratory"),
        ("exclude", "their inputs are left out"),
        ("allow", "allowed by the registration"),
    ],
)
def test_early_records_are_named(report, rule, words):
    order = replace(
        report.order,
        events=(Event("registration", "2026-11-02T00:00:00Z", 1200, 5, 7), *report.order.events[1:]),
        first_before="2026-11-01T00:00:00Z",
        last_before="2026-11-01T01:00:00Z",
        before_registration=rule,
        without_time=rule,
        inputs_left_out=3,
    )
    text = printed(replace(report, order=order))
    assert (
        "order 1,200 records are from before the registration, 2026-11-01T00:00:00Z to 2026-11-01T01:00:00Z: "
        f"{words}" in text
    )
    assert f"order 7 records have no time: {words}" in text
    assert "order 3 inputs are left out for it" in text
    assert "order deviation 1 of 2026-11-01T06:30:00Z: " in text
    assert "from before the registration" not in printed(report)


def test_findings_of_the_audit_are_named(report):
    finding = Finding("duplicates", "error", 2, "2 runs share their key with another", ("task=qa",))
    assert "audit error: 2 runs share their key with another, such as task=qa" in printed(
        replace(report, audit=(finding,))
    )


def test_a_policy_without_its_arm_is_named(report):
    step = {"policy": "gate", "arguments": {}, "error": "policy 'gate': no D"}
    assert "policy gate adds no arm: policy 'gate': no D" in printed(replace(report, policies=(step,)))


def test_sensitivity_is_a_table_of_its_own(report):
    text = printed(report)
    assert "gate_helps interval: percentile supported" in text
    assert "gate_helps cluster: task undefined" in text
    assert "harms_hardly_anyone interval: jackknife" in text
    plain = verify(TOY, git=False)
    assert sensitivity_table(plain) is None
    assert "interval: percentile" not in printed(plain)


def test_rows_have_verdicts_of_their_own(report):
    text = printed(report)
    claim = report.claim("harms_hardly_anyone")
    for row in claim.rows:
        assert f"{row['verdict']} task={row['task']}" in text
