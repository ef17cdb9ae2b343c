"""What a report says in a terminal of its evidence."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from kvstats.log.audit import Finding
from kvstats.prereg import verify
from kvstats.prereg.order import Event
from kvstats.report.evidence import sensitivity_lines
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


def test_sensitivity_names_what_changes_a_verdict_and_counts_the_rest(report):
    claim = report.claim("gate_helps")
    same = [variant for variant in claim.sensitivity if variant.verdict == claim.verdict]
    lines = [line.plain for line in sensitivity_lines(report)]
    assert lines[0] == "Under other choices than the registered ones"
    assert f"gate_helps: supported under {len(same)} of {len(claim.sensitivity)}" in lines
    assert 0 < len(same) < len(claim.sensitivity)
    assert (
        "  cluster: task: undefined, 0.750, one cluster; few clusters (1): not an interval to be trusted"
        in lines
    )
    assert len(lines) == 1 + sum(
        1 + sum(variant.verdict != claim.verdict for variant in claim.sensitivity) for claim in report.claims
    )
    assert "cluster: task: undefined" in printed(report)
    plain = verify(TOY, git=False)
    assert list(sensitivity_lines(plain)) == []
    assert "Under other choices" not in printed(plain)


def test_a_claim_whose_rules_were_amended_is_called_so(report):
    change = {
        "at": "2026-11-02T00:00:00Z",
        "text": "Too strict.",
        "changes": {"gate_helps": {}},
        "sha256": "0",
    }
    text = printed(replace(report, amendments=(change,)))
    assert "amendment 1 2026-11-02T00:00:00Z: Too strict. (changes gate_helps)" in text
    assert text.count("as amended") == 1
    assert "as amended" not in printed(report)
    amended = replace(report, amendments=(change,))
    assert amended.to_html().count("<dt>as amended</dt>") == 1
    assert "as amended" not in report.to_html()
    assert "<p>amendment, 2026-11-02T00:00:00Z: Too strict.</p>" in amended._repr_html_()


def test_rows_have_verdicts_of_their_own(report):
    text = printed(report)
    claim = report.claim("harms_hardly_anyone")
    for row in claim.rows:
        assert f"{row['verdict']} task={row['task']}" in text
