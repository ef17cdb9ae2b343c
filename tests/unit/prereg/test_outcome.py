"""The report: JSON, frame, HTML, and what it says of itself."""

from __future__ import annotations

import json
import math

import polars as pl
import pytest

from kvstats.errors import InputError
from kvstats.prereg import verify

CLAIMS = """\
study: toy <b>
registered_at: 2026-10-31T13:00:00+01:00
data: {runs: [logs/*.jsonl]}
exclusions: None.
claims:
  - {id: harm, statement: "Eviction <i>harms</i>.", estimator: delta, arguments: {arm: evict}, by: task,
     where: budget = 0.5, supported: high < 0, killed: low > 0}
  - {id: cover, statement: Certificates cover., estimator: certificate_coverage, by: layer,
     supported: low > 0.5}
  - {id: none, statement: Nothing is known., estimator: delta, arguments: {arm: evict}, by: task,
     where: budget = 7, supported: low > 0}
"""


@pytest.fixture
def report(toy, register):
    return verify(register(base=CLAIMS))


def test_json_is_strict_sorted_and_complete(report):
    text = report.to_json().decode()

    def refuse(name):
        raise AssertionError(name)

    content = json.loads(text, parse_constant=refuse)
    assert text == json.dumps(content, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    assert content["format"] == 1
    assert content["exit_code"] == 0
    assert content["registration"] == {
        "file": "plan.yaml",
        "sha256": report.registration.sha256,
        "registered_at": "2026-10-31T12:00:00Z",
        "frozen_sha256": report.registration.frozen_sha256,
        "anchored": False,
        "standing": "unanchored",
        "anchors": [],
        "seal": None,
    }
    assert content["registered_first"] is True
    assert content["data"] == {
        "files": 1,
        "runs": 80,
        "inputs": 20,
        "replays": 10,
        "rejects": 0,
        "hashed": False,
        "first_record": "2026-11-01T00:00:00Z",
    }
    assert content["design"]["cluster"] == ["suite", "task", "input_id"]
    claim = content["claims"][0]
    assert (claim["id"], claim["by"], claim["quantifier"]) == ("harm", ["task"], "all")
    assert set(claim["rows"][0]) == {
        *("task", "estimate", "low", "high", "se", "df", "n", "clusters", "status", "p_value", "p_adjusted"),
        "verdict",
    }
    assert claim["rows"][0]["estimate"] == report.claims[0].rows[0]["estimate"]
    assert content["claims"][1]["rows"][0]["p_value"] is None


def test_numbers_that_json_lacks_become_text(write_log, make_records, register):
    ones = [1.0] * 4
    scores = {"full": {1.0: ones}, "evict": {0.5: [0.0, 1.0, 0.0, 1.0]}}
    path = write_log(make_records(scores, signals={"logprob": [-1.0, -1.0, 0.5, 0.5]}))
    path.write_bytes(path.read_bytes().replace(b'"logprob":-1.0', b'"logprob":-Infinity'))
    registration = register(("    where: budget = 0.5\n", "    by: logprob\n"))
    content = json.loads(verify(registration).to_json())
    assert [row["logprob"] for row in content["claims"][0]["rows"]] == ["-inf", 0.5]
    assert not math.isfinite(verify(registration).claims[0].rows[0]["logprob"])


def test_save_json(report, tmp_path):
    report.save_json(tmp_path / "report.json")
    assert (tmp_path / "report.json").read_bytes() == report.to_json()


def test_to_frame_has_a_row_for_each_row_of_each_claim(report):
    frame = report.to_frame()
    assert frame.columns == [
        *("claim", "verdict", "reason", "row", "estimate", "low", "high", "se", "df", "n", "clusters"),
        *("status", "p_value", "p_adjusted"),
    ]
    assert frame["claim"].to_list() == ["harm", "harm", "cover", "none"]
    assert frame["row"].to_list() == ["task=code", "task=qa", "layer=0", None]
    assert frame["verdict"].to_list() == ["inconclusive", "inconclusive", "supported", "undefined"]
    assert frame["estimate"].to_list() == pytest.approx([-0.1, -0.4, 1.0, None])
    assert frame.schema["p_adjusted"] == pl.Float64


def test_a_report_describes_itself(report, toy, register):
    assert repr(report) == (
        "Report: toy <b>; 3 claims: 1 inconclusive, 1 supported, 1 undefined; intact, unanchored"
    )
    anchored = verify(register(), expect_sha256=verify(register()).registration.sha256)
    assert repr(anchored) == "Report: toy; 1 claim: 1 supported; intact, anchored"


def test_html_shows_every_row_and_escapes_text(report):
    html = report._repr_html_()
    assert "<i>harms" not in html
    assert "Eviction &lt;i&gt;harms&lt;/i&gt;." in html
    assert "toy &lt;b&gt;" in html
    assert html.count("<tr>") == 1 + 1 + 2 + 1 + 1
    for text in ("task=code", "task=qa", "layer=0", "inconclusive", "undefined"):
        assert text in html
    assert html.count("<td") == html.count("</td>") == 7 * 5


def test_html_names_faults(toy, register):
    guard = """\
guards:
  - {id: broken, statement: a, estimator: delta, arguments: {arm: evict}, holds: estimate > 0}
claims:
"""
    html = verify(register(("claims:\n", guard)))._repr_html_()
    assert "<strong>guard broken fails: estimate &gt; 0 holds in 0 of 1 rows; estimate" in html
    html = verify(register(), expect_sha256="0" * 64)._repr_html_()
    assert "<strong>integrity: the registration has SHA-256" in html
    assert "NOT INTACT" in html


def test_a_claim_is_found_by_its_id(report):
    assert report.claim("cover") is report.claims[1]
    with pytest.raises(InputError, match="id='covr' is no claim of the report; did you mean 'cover'"):
        report.claim("covr")
