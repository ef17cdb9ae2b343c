"""The audit of a log, each finding on a log that has it and on one that has not."""

from __future__ import annotations

import msgspec
import pytest

from kvstats.log import log_from_records
from kvstats.log.audit import audit_log

ONES, MIXED = [1.0] * 12, [1.0, 0.0] * 6
CLEAN = {"full": {1.0: ONES}, "evict": {1.0: ONES, 0.5: MIXED}, "other": {0.5: [0.0, *MIXED[1:]]}}
SPREAD = {"margin": [float(number) for number in range(12)]}


def findings(log):
    return [(finding.check, finding.severity, finding.count) for finding in audit_log(log)]


def test_a_clean_log_and_an_empty_one_have_none(make_log):
    assert findings(make_log(CLEAN, drop=SPREAD["margin"], signals=SPREAD)) == []
    assert findings(log_from_records([])) == []


def test_duplicates(make_records):
    records = make_records(CLEAN, drop=SPREAD["margin"], cells=[(0.1, 0.1)])
    (finding, *others) = audit_log(log_from_records([*records, records[0], records[-1], records[20]]))
    assert (finding.check, finding.severity, finding.count) == ("duplicates", "error", 2)
    assert finding.message == "2 runs share their key with another"
    assert finding.examples == ("suite=s, model=m, task=qa, input_id=i008, arm=full, budget=1.0, seed=0",)
    assert [other.message for other in others[:2]] == [
        "2 input records share their key with another",
        "2 replay cells share their key with another",
    ]


def test_runs_without_score(make_log):
    log = make_log({"full": {1.0: [1.0, 1.0]}, "evict": {0.5: [None, 1.0]}})
    assert findings(log) == [("no score", "warning", 1)]
    assert audit_log(log)[0].message == "1 run of 4 without a score"


def test_missing_twins(make_records):
    records = make_records(CLEAN)
    log = log_from_records(records[1:])
    (finding,) = audit_log(log)
    assert (finding.check, finding.count) == ("missing twin", 3)
    assert finding.message == "3 runs of inputs that the full cache was not run on"


def test_a_twin_without_a_score_is_a_twin(make_log):
    assert findings(make_log({"full": {1.0: [None]}, "evict": {0.5: [1.0]}})) == [("no score", "warning", 1)]


def test_budget_1_that_differs(make_log):
    log = make_log(CLEAN | {"evict": {1.0: [0.0, 0.0, *ONES[2:]], 0.5: MIXED}})
    (finding,) = audit_log(log)
    assert (finding.check, finding.count) == ("budget 1 differs from full", 2)
    assert finding.message == "2 runs of arm evict at budget 1 score otherwise than the full cache"
    assert finding.examples[0] == "suite=s, model=m, task=qa, input_id=i000"


def test_plain_at_budget_1_stands_for_the_full_cache(make_log):
    log = make_log({"plain": {1.0: ONES, 0.5: MIXED}, "evict": {1.0: [0.0, *ONES[1:]], 0.25: MIXED}})
    assert findings(log) == [("budget 1 differs from full", "warning", 1)]


def test_more_kept_than_there_was(make_log):
    log = make_log({"full": {1.0: [1.0]}, "evict": {0.5: [0.0]}}, n_kept=101)
    assert findings(log) == [("kept above prompt", "warning", 2)]


def test_identical_arms(make_records):
    scores = CLEAN | {"copy": {0.5: MIXED, 0.25: MIXED}}
    (finding,) = audit_log(log_from_records(make_records(scores)))
    assert finding.check == "identical arms"
    assert finding.message == "arms copy and evict give the same on all 12 rows that both have below budget 1"
    told_apart = [msgspec.structs.replace(record, prediction=record.arm) for record in make_records(scores)]
    assert audit_log(log_from_records(told_apart)) == ()


def test_few_rows_are_no_identical_arms(make_log):
    assert findings(make_log({"full": {1.0: [1.0] * 9}, "a": {0.5: [1.0] * 9}, "b": {0.5: [1.0] * 9}})) == []


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
    found = audit_log(make_log(scores, signals={"margin": values}))
    assert [finding.message for finding in found] == ([] if message is None else [message])
    assert all(finding.severity == "note" for finding in found)


def test_a_drop_that_is_constant(make_log):
    found = audit_log(make_log({"full": {1.0: ONES}}, drop=[0.1] * 12))
    assert [finding.message for finding in found] == ["drop is constant in 12 input records"]
