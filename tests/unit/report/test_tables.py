"""Tables: readable without a terminal, wrapped, and never cut off."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from kvstats.log import Log, read_log
from kvstats.prereg import verify
from kvstats.report.tables import print_log, print_report

TOY = Path(__file__).parents[2] / "golden" / "toy"


@pytest.fixture(scope="module")
def report():
    return verify(TOY / "preregistration.yaml")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def printed(function, subject, file=None):
    file = io.StringIO() if file is None else file
    function(subject, file)
    return file.getvalue()


def words(text):
    return " ".join(text.split())


def test_a_piped_table_is_plain_and_narrow(report):
    text = printed(print_report, report)
    assert "\x1b" not in text
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 102
    assert text.endswith("\n")


def test_every_claim_is_there_with_its_figures(report):
    text = printed(print_report, report)
    for claim in report.claims:
        assert claim.id in text
        for row in claim.rows:
            if row["low"] is not None:
                assert f"{row['n']:,}" in text
    line = next(line for line in text.splitlines() if line.startswith("supported") and "gate_helps" in line)
    assert line.split() == ["supported", "gate_helps", "0.75", "0.52", "to", "0.98", "12", "12", "0.00013"]
    assert "task=multi" in text
    assert "no discordant pairs" in text
    assert "one cluster" in text


def test_the_heading_says_what_was_verified(report):
    text = words(printed(print_report, report))
    assert f"registration preregistration.yaml, {report.registration.registered_at}" in text
    assert f"sha256 {report.registration.sha256} (unanchored)" in text
    assert "(before the first record)" in text
    assert "data 96 runs of 24 inputs, 48 replay cells, 0 rejects; 2 files, no hash registered" in text
    assert "stopping rule Twelve inputs of each task." in text
    assert "deviation 2026-11-01T06:30:00Z: The second task was first named other." in text
    assert "guard full_budget_identity holds" in text
    assert text.endswith(repr(report))


def test_a_registration_that_came_after_its_data_is_called_so(report):
    facts = replace(report.registration, registered_at="2026-11-01T00:00:00Z")
    late = replace(report, registration=facts)
    assert late.registered_first is False
    text = words(printed(print_report, late))
    assert "2026-11-01T00:00:00Z (AFTER THE FIRST RECORD)" in text
    assert text.endswith("intact, unanchored; REGISTERED AFTER ITS FIRST RECORD")
    timeless = replace(report, data=replace(report.data, first_record=None))
    assert timeless.registered_first is None
    assert "(the records have no times)" in words(printed(print_report, timeless))


def test_ids_of_claims_are_never_cut_in_two(report):
    claim = replace(report.claims[0], id="a_name_of_a_claim_that_is_longer_than_its_column")
    text = printed(print_report, replace(report, claims=(claim,)))
    assert any("a_name_of_a_claim_that_is_longer_than_its_column" in line for line in text.splitlines())


def test_faults_are_named(report):
    guard = replace(report.guards[-1], holds=False, reason="estimate = 0 holds in 1 of 2 rows")
    broken = replace(report, guards=(guard,), integrity=("logs/a.jsonl has changed",), data=None)
    text = words(printed(print_report, broken))
    assert "integrity logs/a.jsonl has changed" in text
    assert "guard full_budget_identity FAILS: estimate = 0 holds in 1 of 2 rows" in text
    assert "NOT INTACT" in text
    assert "runs of" not in text


@pytest.mark.parametrize("columns", [20, 60, 100, 200])
def test_a_terminal_has_colours_and_cuts_nothing_off(report, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = printed(print_report, report, Terminal())
    assert "\x1b[" in text
    assert "…" not in text
    for figure in ("0.52 to 0.98", "-0.57 to 0.07", "no discordant pairs", "1.8e-30"):
        assert figure in text


def test_long_words_and_large_numbers_are_not_cut_off(report):
    row = {
        **report.claims[0].rows[0],
        "n": 123_456_789_012,
        "estimate": -1e12,
        "low": -1e12 - 1,
        "high": -1e12 + 1,
    }
    claim = replace(report.claims[0], statement="x" * 300 + " [bold]y[/bold] :smile:", rows=(row,))
    text = printed(print_report, replace(report, claims=(claim,)))
    assert "…" not in text
    assert text.count("x") >= 300
    assert "[bold]y[/bold] :smile:" in words(text)
    assert "-1000000000001.0 to -999999999999.0" in text
    assert "123,456,789,012" in text


def test_a_log_is_counted_by_task_and_arm():
    log = read_log(f"{TOY}/logs/*.jsonl")
    text = printed(print_log, log)
    assert words(text).startswith(repr(log))
    rows = [line.split() for line in text.splitlines() if line.startswith("m ")]
    assert rows == [
        ["m", "multi", "aware", "full", "12", "12", "0", "0.917"],
        ["m", "multi", "aware", "snapkv", "36", "12", "0", "0.583"],
        ["m", "single", "aware", "full", "12", "12", "0", "1.000"],
        ["m", "single", "aware", "snapkv", "36", "12", "0", "0.944"],
    ]


def test_runs_without_score_or_condition(make_log):
    log = make_log({"full": {1.0: [1.0, None]}, "evict": {0.5: [None, None]}}, task="a" * 120)
    text = printed(print_log, log)
    rows = [line.split() for line in text.splitlines() if line.startswith("m ")]
    assert rows == [
        ["m", "a" * 120, "–", "evict", "2", "2", "2", "–"],
        ["m", "a" * 120, "–", "full", "2", "2", "1", "1.000"],
    ]


def test_an_empty_log_has_no_table():
    assert words(printed(print_log, Log())) == repr(Log())
