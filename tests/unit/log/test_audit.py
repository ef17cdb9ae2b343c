"""The audit of a log as a whole: order, counts, displays, and the checks of outcomes and signals."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import msgspec
import polars as pl
import pytest

from kvstats.log import RunRecord, log_from_records
from kvstats.log.audit import AUDIT_SCHEMA, audit_log
from kvstats.log.audits.finding import BIAS, SEVERITIES

ONES, MIXED = [1.0] * 12, [1.0, 0.0] * 6
CLEAN = {"full": {1.0: ONES}, "evict": {1.0: ONES, 0.5: MIXED}, "other": {0.5: [0.0, *MIXED[1:]]}}
SPREAD = {"margin": [float(number) for number in range(12)]}
KEY = {"suite": "s", "model": "m", "task": "qa"}


def findings(log, **options):
    """All but the note that a log made by hand has no study record."""
    return [item for item in audit_log(log, **options).findings if item.check != "no study record"]


def told(log, **options):
    return [(item.check, item.severity, item.count) for item in findings(log, **options)]


def test_a_clean_log_and_an_empty_one_have_none(make_log):
    assert told(make_log(CLEAN, drop=SPREAD["margin"], signals=SPREAD)) == []
    empty = audit_log(log_from_records([]))
    assert (empty.findings, empty.worst) == ((), None)
    assert repr(empty) == "audit, nothing found; 0 runs: 0 scored, 0 with an error, 0 not scored"


def test_runs_without_a_study_record(make_records, study):
    records = make_records(CLEAN)
    (finding,) = audit_log(log_from_records(records)).findings
    assert (finding.check, finding.severity, finding.count) == ("no study record", "note", 48)
    assert finding.examples == ("suite=s, model=m",)
    of_it = msgspec.structs.replace(study, suite="s", model="m")
    assert audit_log(log_from_records([of_it, *records])).findings == ()
    other = msgspec.structs.replace(study, suite="s", model="other")
    assert len(audit_log(log_from_records([other, *records])).findings) == 1


def test_the_worst_comes_first(make_records):
    time = datetime(2026, 11, 2, tzinfo=UTC)
    records = make_records(CLEAN | {"copy": {0.5: MIXED}}, drop=[0.1] * 12, recorded_at=time)
    # Records are held against the registration after all else.
    found = audit_log(log_from_records(records), registered=time + timedelta(days=1))
    severities = [finding.severity for finding in found.findings]
    assert severities == sorted(severities, key=SEVERITIES.index)
    assert set(severities) == set(SEVERITIES)
    assert found.worst == "error"


def test_the_log_has_it_as_a_method_and_it_shows_as_a_table(make_log):
    log = make_log({"full": {1.0: ONES}, "<evict>": {1.0: MIXED}})
    found = log.audit()
    assert found.frame.schema == AUDIT_SCHEMA
    assert found.frame.select("check", "severity", "count").rows() == [
        ("budget 1 differs from full", "warning", 6),
        ("no study record", "note", 24),
    ]
    assert found.frame["bias"].to_list() == [BIAS["budget 1 differs from full"], BIAS["no study record"]]
    assert found.frame["examples"].list.len().to_list() == [3, 1]
    lines = repr(found).splitlines()
    assert lines[0] == "audit, 1 warning, 1 note; 24 runs: 24 scored, 0 with an error, 0 not scored"
    assert lines[2].split()[:3] == ["warning", "budget", "1"]
    page = found._repr_html_()
    assert "&lt;evict&gt;" in page
    assert "<evict>" not in page
    assert BIAS["no study record"] in page
    assert json.loads(found.to_json())["findings"] == found.frame.to_dicts()


def test_what_failed_and_what_was_not_scored_is_counted():
    """Runs of an error, or without a score, left a denominator silently elsewhere."""
    rows = [("1", 1.0, None), ("2", None, "CUDA out of memory"), ("3", None, None), ("4", 0.0, "late")]
    log = log_from_records(
        [
            RunRecord(**KEY, input_id=name, arm="full", budget=1.0, score=score, error=error)
            for name, score, error in rows
        ]
    )
    found = audit_log(log)
    assert (found.n_total, found.n_scored, found.n_error) == (4, 2, 1)
    assert found.title.endswith("4 runs: 2 scored, 1 with an error, 1 not scored")
    (finding,) = findings(log)
    assert (finding.check, finding.severity, finding.count) == ("no score", "warning", 2)
    assert finding.message == "2 runs of 4 without a score, 1 with an error"
    assert [text.split(", ")[3] for text in finding.examples] == ["input_id=2", "input_id=3"]
    content = json.loads(found.to_json())
    assert (content["n_total"], content["n_scored"], content["n_error"]) == (4, 2, 1)


def test_lines_that_could_not_be_read():
    row = {"file": "a.jsonl", "line": 7, "error": "is not JSON", "text": "{"}
    log = log_from_records([], rejects=pl.DataFrame([row], schema_overrides={"line": pl.Int64}))
    (finding,) = findings(log)
    assert (finding.check, finding.severity, finding.count) == ("unreadable lines", "error", 1)
    assert finding.examples == ("file=a.jsonl, line=7, error=is not JSON",)


def test_budget_1_that_differs(make_log):
    log = make_log(CLEAN | {"evict": {1.0: [0.0, 0.0, *ONES[2:]], 0.5: MIXED}})
    (finding,) = findings(log)
    assert (finding.check, finding.severity, finding.count) == ("budget 1 differs from full", "warning", 2)
    assert finding.message == "2 runs of arm evict at budget 1 score otherwise than the full cache"
    assert finding.examples[0] == "suite=s, model=m, task=qa, input_id=i000"


def test_a_closed_gate_that_differs(make_records):
    scores = {"full": {1.0: ONES}, "gated": {1.0: ONES, 0.5: MIXED}, "other": {0.5: [0.0] * 12}}
    calls = [None if record.arm != "gated" else record.score == 1.0 for record in make_records(scores)]

    def gated(calls):
        runs = zip(make_records(scores), calls, strict=True)
        return findings(
            log_from_records([msgspec.structs.replace(run, gate_open=call) for run, call in runs])
        )

    assert [item.check for item in gated(calls)] == ["closed gate differs from full"]
    (finding,) = gated(calls)
    assert (finding.severity, finding.count) == ("warning", 6)
    assert finding.message == "6 runs of arm gated behind a closed gate score otherwise than the full cache"
    # Of the arm that evicted nothing as it says, nothing is told.
    assert gated([None if call is None else True for call in calls]) == []


def test_rounding_is_no_difference_from_the_full_cache(make_log):
    assert told(make_log({"full": {1.0: [0.1 + 0.2]}, "evict": {1.0: [0.3]}})) == [("one cluster", "note", 1)]


def test_plain_at_budget_1_stands_for_the_full_cache(make_log):
    log = make_log({"plain": {1.0: ONES, 0.5: MIXED}, "evict": {1.0: [0.0, *ONES[1:]], 0.25: MIXED}})
    assert told(log) == [("budget 1 differs from full", "warning", 1)]


def test_arms_that_are_the_same_on_every_evicting_row(make_records):
    """One arm silently was the other, on 600 of 600 rows."""
    many = [1.0, 0.0, 0.0] * 200
    scores = {"full": {1.0: [1.0] * 600}, "seed": {1.0: [1.0] * 600, 0.5: many}, "uniform": {0.5: many}}
    (finding,) = findings(log_from_records(make_records(scores)))
    assert (finding.check, finding.severity, finding.count) == ("identical arms", "warning", 600)
    assert (
        finding.message == "arms seed and uniform give the same on all 600 rows that both have below budget 1"
    )
    scores["uniform"] = {0.5: [0.0, *many[1:]]}
    assert findings(log_from_records(make_records(scores))) == []


def test_predictions_tell_arms_apart_and_rows_of_one_arm_only_do_not(make_records):
    scores = CLEAN | {"copy": {0.5: MIXED, 0.25: MIXED}}
    (finding,) = findings(log_from_records(make_records(scores)))
    assert finding.message == "arms copy and evict give the same on all 12 rows that both have below budget 1"
    told_apart = [msgspec.structs.replace(record, prediction=record.arm) for record in make_records(scores)]
    assert findings(log_from_records(told_apart)) == []


def test_arms_that_are_one_on_one_model_are_found_beside_another_model(make_records):
    scores = {"full": {1.0: ONES}, "a": {0.5: MIXED}, "b": {0.5: MIXED}}
    other = {"full": {1.0: ONES}, "a": {0.5: MIXED}, "b": {0.5: [0.0, *MIXED[1:]]}}
    moved = [msgspec.structs.replace(record, model="other") for record in make_records(other)]
    (finding,) = findings(log_from_records([*make_records(scores), *moved]))
    assert (
        finding.message
        == "arms a and b of model m give the same on all 12 rows that both have below budget 1"
    )


def test_few_rows_or_one_outcome_are_no_identical_arms(make_log):
    def scores(size, first=0.0):
        same = {0.5: [first] + [1.0] * (size - 1)}
        return {"full": {1.0: [1.0] * size}, "a": same, "b": same}

    assert findings(make_log(scores(9))) == []
    assert [finding.check for finding in findings(make_log(scores(10)))] == ["identical arms"]
    # Where all is right, or all wrong, arms agree whatever they are.
    assert findings(make_log(scores(40, first=1.0))) == []


def test_an_arm_that_answers_as_the_full_cache_does_may_not_have_evicted(make_records):
    records = make_records({"full": {1.0: ONES}, "evict": {1.0: ONES, 0.5: ONES}, "other": {0.5: MIXED}})

    def answered(texts, **changes):
        made = [
            msgspec.structs.replace(
                one, prediction=f"{texts(one)} {one.arm if one.arm == 'other' else ''}", **changes
            )
            for one in records
        ]
        return told(log_from_records(made))

    assert answered(lambda one: one.input_id) == [("no effect", "warning", 12)]
    assert answered(lambda one: "yes") == []
    assert answered(lambda one: one.input_id if one.budget == 1.0 else "other") == []
    # Behind a closed gate it is as it should be.
    assert answered(lambda one: one.input_id, gate_open=False) == [
        ("closed gate differs from full", "warning", 6)
    ]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0] * 20, "margin is constant in 20 runs below budget 1 of arm evict"),
        (
            [0.0] * 19 + [1.0],
            "margin is at its smallest value in 95.0% of 20 runs below budget 1 of arm evict",
        ),
        (
            [0.0] + [1.0] * 19,
            "margin is at its largest value in 95.0% of 20 runs below budget 1 of arm evict",
        ),
        ([0.0] * 18 + [1.0, 2.0], None),
        ([None] * 11 + [1.0] * 9, None),
        ([None] * 10 + [1.0] * 10, "margin is constant in 10 runs below budget 1 of arm evict"),
    ],
)
def test_idle_signals(make_log, values, message):
    scores = {"full": {1.0: [1.0] * 20}, "evict": {1.0: [1.0] * 20, 0.5: [1.0, 0.0] * 10}}
    found = findings(make_log(scores, signals={"margin": values}))
    assert [finding.message for finding in found] == ([] if message is None else [message])
    assert all(finding.severity == "note" for finding in found)


def test_a_drop_that_is_constant(make_log):
    found = findings(make_log({"full": {1.0: ONES}}, drop=[0.1] * 12))
    assert [(item.check, item.message) for item in found] == [
        ("constant signal", "drop is constant in 12 input records")
    ]
