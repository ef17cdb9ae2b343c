"""Checks of what was kept, and of what recorded gates did."""

from __future__ import annotations

import msgspec
import pytest

from kvstats.log import InputRecord, RunRecord, log_from_records
from kvstats.log.audit import audit_log

KEY = {"suite": "s", "model": "m", "task": "qa"}
QUIET = ("no study record", "partial cells", "one cluster", "clusters of one", "missing twin")


def findings(records):
    found = audit_log(log_from_records(records)).findings
    return {item.check: item for item in found if item.check not in QUIET}


def kept(budget, counts, prompt=100, **fields):
    return [
        RunRecord(
            **KEY,
            input_id=str(number),
            arm="evict",
            budget=budget,
            n_prompt=prompt,
            n_kept=count,
            **{"score": 0.0} | fields,
        )
        for number, count in enumerate(counts)
    ]


def gated(calls, **fields):
    """Runs of a gated arm by (D, whether the gate was open, tau)."""
    records = []
    for number, (drop, is_open, tau) in enumerate(calls):
        key = KEY | fields | {"input_id": str(number)}
        extra = {} if tau is None else {"tau": tau}
        records += [
            InputRecord(**key, drop=drop),
            RunRecord(**key, arm="gated", budget=0.5, score=1.0, gate_open=is_open, extra=extra),
        ]
    return records


def test_more_kept_than_there_was():
    found = findings(kept(0.5, [101, 100, 50]))
    assert (found["kept above prompt"].severity, found["kept above prompt"].count) == ("warning", 1)
    assert found["kept above prompt"].examples == (
        "suite=s, model=m, task=qa, input_id=0, arm=evict, budget=0.5, seed=0",
    )
    assert "kept above prompt" not in findings(kept(1.0, [100]))


@pytest.mark.parametrize(
    ("arm", "fields", "told"),
    [
        ("full", {"budget": 0.5}, True),
        ("full", {"budget": 1.0, "kept_fraction": 0.5}, True),
        ("full", {"budget": 1.0, "n_prompt": 100, "n_kept": 99}, True),
        ("full", {"budget": 1.0, "kept_fraction": 0.99999994, "n_prompt": 100, "n_kept": 100}, False),
        ("full", {}, False),
        ("plain", {"budget": 1.0, "kept_fraction": 0.5}, True),
        ("plain", {"budget": 0.5, "kept_fraction": 0.5}, False),
    ],
)
def test_a_full_cache_of_which_a_part_was_kept(arm, fields, told):
    rows = [RunRecord(**KEY, input_id=name, arm=arm, score=1.0, **fields) for name in "ab"]
    found = findings(rows)
    assert list(found) == (["full cache not whole"] if told else [])
    if told:
        finding = found["full cache not whole"]
        assert (finding.severity, finding.count) == ("error", 2)
        assert finding.message == "2 runs of the full cache kept a part of it only"


@pytest.mark.parametrize(
    ("budget", "counts", "told"),
    [
        (0.25, [75, 75], True),  # The fraction removed.
        (0.25, [25, 25], False),
        (0.25, [28, 28], False),  # 0.02 and one token are within rounding and protected positions.
        (0.25, [29, 28], True),
        (0.25, [22, 22], False),
        (0.25, [21, 22], True),
        (0.5, [40, 60], False),  # A sampled cache has a random size; its mean counts.
        (0.5, [60, 60], True),
    ],
)
def test_a_cell_that_keeps_another_fraction_than_its_budget(budget, counts, told):
    found = findings(kept(budget, counts))
    assert ("kept unlike budget" in found) == told
    if told:
        item = found["kept unlike budget"]
        assert (item.severity, item.count) == ("warning", 2)
        mean = sum(counts) / 200
        assert item.examples == (
            f"suite=s, model=m, task=qa, arm=evict, budget={budget}: {mean:.3f} kept on average",
        )


def test_suites_that_keep_too_much_and_too_little_do_not_make_up_for_each_other():
    little, much = kept(0.5, [40, 40]), kept(0.5, [60, 60])
    moved = [msgspec.structs.replace(run, suite="other") for run in much]
    assert findings([*little, *moved])["kept unlike budget"].count == 4
    same = [msgspec.structs.replace(run, input_id=f"other {run.input_id}") for run in much]
    assert "kept unlike budget" not in findings([*little, *same])


def test_what_is_known_of_what_was_kept_decides():
    assert "kept unlike budget" in findings(kept(0.25, [25], kept_fraction=0.75))
    assert "kept unlike budget" not in findings(kept(0.25, [75], kept_fraction=0.25))
    assert "kept unlike budget" not in findings(kept(0.25, [100], gate_open=False))
    assert "kept unlike budget" not in findings(kept(0.25, [None]))
    assert "kept unlike budget" not in findings(kept(None, [75], budget_tokens=25))
    # Counts summed over layers and heads have no fraction, and are a finding of their own.
    assert set(findings(kept(0.25, [9000]))) == {"kept above prompt"}


def test_an_arm_that_was_run_at_two_thresholds():
    """One cell was run at 0.04 and reported at 0.07."""
    found = findings(
        gated([(0.03, False, 0.07), (0.05, False, 0.07), (0.05, True, 0.04), (0.09, True, 0.04)])
    )
    assert set(found) == {"mixed tau"}
    assert (found["mixed tau"].severity, found["mixed tau"].count) == ("warning", 4)
    assert found["mixed tau"].message == "4 runs of arm gated of model m have several thresholds: 0.04, 0.07"


def test_each_model_has_a_threshold_of_its_own():
    records = [*gated([(0.03, False, 0.07)]), *gated([(0.05, True, 0.04)], model="n")]
    assert findings(records) == {}
    assert findings(gated([(0.03, False, 0.07), (0.08, True, None)])) == {}


def test_calls_that_their_own_threshold_does_not_make():
    calls = [(0.05, True, 0.07), (0.09, True, 0.07), (0.04, False, 0.07), (0.07, True, 0.07)]
    found = findings(gated(calls))
    assert set(found) == {"tau against its calls"}
    assert (found["tau against its calls"].severity, found["tau against its calls"].count) == ("warning", 1)
    assert "input_id=0" in found["tau against its calls"].examples[0]
    closed = findings(gated([(0.08, False, 0.07), (0.09, False, 0.07)]))
    assert closed["tau against its calls"].count == 2


def test_calls_that_no_threshold_makes():
    found = findings(gated([(0.05, True, None), (0.06, False, None), (0.09, True, None)]))
    assert set(found) == {"calls of no threshold"}
    assert found["calls of no threshold"].message == (
        "arm gated of model m is closed at D = 0.06 and open at 0.05: no threshold does both"
    )
    assert findings(gated([(0.05, False, None), (0.06, True, None), (0.09, True, None)])) == {}
    assert findings(gated([(0.05, False, None), (0.05, True, None)])) == {}
    assert findings(gated([(None, False, None), (0.05, True, None)])) == {}
