"""The reproduction check: field by field against the definition, and the rule of its verdict."""

from __future__ import annotations

import json
import math
import random

import msgspec
import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.log import InputRecord, RunRecord, log_from_records
from kvstats.log.compared_logs import FIELD_SCHEMA, OFFENDER_SCHEMA, worst
from kvstats.log.comparison import compare_logs

KEY = {"suite": "s", "model": "m", "task": "t", "input_id": "1"}


def input_log(**fields):
    return log_from_records([InputRecord(**KEY, **fields)])


def run_log(**fields):
    return log_from_records([RunRecord(**({**KEY, "arm": "full", "budget": 1.0} | fields))])


def verdicts(new, reference, **options):
    return dict(compare_logs(new, reference, **options).frame.select("field", "verdict").rows())


def test_a_log_reproduces_itself(make_log):
    log = make_log(
        {"full": {1.0: [1.0, 0.0]}, "evict": {0.5: [1.0, None]}}, drop=[0.1, 0.2], signals={"m": [1.0, 2.0]}
    )
    found = kv.compare_logs(log, log, tau=0.15)
    assert (found.verdict, found.inputs, found.runs) == ("reproduced", 2, 4)
    assert found.frame.schema == FIELD_SCHEMA
    assert found.frame.select("field", "compared", "reproduced").rows() == [
        *(("drop", 2, 2), ("gate", 2, 2), ("prompt length of the run", 4, 4), ("kept tokens", 4, 4)),
        *(("score", 3, 3), ("outcome", 3, 3), ("m", 4, 4)),
    ]
    assert found.offenders.schema == OFFENDER_SCHEMA
    assert found.offenders.is_empty()
    assert found.only_new.is_empty()
    assert found.only_reference.is_empty()


@pytest.mark.parametrize(
    ("logged", "found", "verdict"),
    [
        (0.0, 1e-5, "reproduced"),
        (0.0, 2e-5, "drifted"),
        (0.0, 0.006, "different"),
        (0.0, 0.004, "drifted"),
        (100.0, 100.009, "reproduced"),
        (100.0, 100.02, "drifted"),
        (-100.0, -105.1, "different"),
        (-100.0, 100.0, "different"),
        (-math.inf, -math.inf, "reproduced"),
        (-math.inf, -5.0, "different"),
        (-5.0, -math.inf, "different"),
        (None, 1.0, "different"),
        (1.0, None, "different"),
    ],
)
def test_numbers_are_compared_relative_to_the_reference_or_a_tenth(logged, found, verdict):
    pair = [run_log(score=1.0, signals={"logprob": value}) for value in (found, logged)]
    assert verdicts(*pair) == {"score": "reproduced", "logprob": verdict}
    json.loads(compare_logs(*pair).to_json())


@pytest.mark.parametrize(
    ("fields", "other", "field"),
    [
        ({"n_prompt": 100}, {"n_prompt": 101}, "prompt length of the run"),
        ({"n_kept": 50}, {"n_kept": 51}, "kept tokens"),
        ({"prediction": "a"}, {"prediction": "b"}, "prediction"),
        ({"gate_open": True}, {"gate_open": False}, "gate of the run"),
        ({"success": True}, {"success": False}, "outcome"),
        ({"success": True}, {"success": None}, "outcome"),
        ({"n_kept": 50}, {"n_kept": None}, "kept tokens"),
    ],
)
def test_counts_texts_and_decisions_are_the_same_or_different(fields, other, field):
    found = compare_logs(run_log(score=1.0, **other), run_log(score=1.0, **fields))
    assert dict(found.frame.select("field", "verdict").rows()) == {"score": "reproduced", field: "different"}
    assert found.verdict == "different"
    (before,), (after,) = fields.values(), other.values()
    assert found.offenders.select("reference", "new").rows() == [(repr(before), repr(after))]
    assert found.frame.filter(field=field).select("share", "max", "mean").rows() == [(1.0, None, None)]


def test_the_worst_field_decides():
    assert (
        compare_logs(input_log(drop=0.08, context_tokens=9), input_log(drop=0.081, context_tokens=9)).verdict
        == "drifted"
    )
    assert (
        compare_logs(input_log(drop=0.08, context_tokens=8), input_log(drop=0.081, context_tokens=9)).verdict
        == "different"
    )
    assert worst(["drifted", "different", "reproduced"]) == "different"


def test_drift_is_counted_with_largest_mean_and_share():
    reference = [InputRecord(**(KEY | {"input_id": str(n)}), drop=0.5) for n in range(4)]
    moved = [0.0, 0.00001, 0.01, 0.3]
    new = [
        msgspec.structs.replace(record, drop=0.5 + step)
        for record, step in zip(reference, moved, strict=True)
    ]
    found = compare_logs(log_from_records(new), log_from_records(reference))
    (row,) = found.frame.rows(named=True)
    assert (row["compared"], row["reproduced"], row["drifted"], row["different"]) == (4, 2, 1, 1)
    assert (row["share"], row["verdict"]) == (0.5, "different")
    assert row["max"] == pytest.approx(0.3)
    assert row["mean"] == pytest.approx(sum(moved) / 4)
    assert row["distance"] == pytest.approx(0.6)
    assert found.offenders.select("where", "reference", "new", "verdict").rows() == [
        ("input_id=3", "0.5", "0.8", "different"),
        ("input_id=2", "0.5", "0.51", "drifted"),
    ]


def test_of_many_offenders_the_furthest_are_kept():
    reference = [InputRecord(**(KEY | {"input_id": f"{n:02}"}), drop=0.5) for n in range(12)]
    new = [msgspec.structs.replace(record, drop=0.51 + n / 100) for n, record in enumerate(reference)]
    found = compare_logs(log_from_records(new), log_from_records(reference))
    assert found.frame["different"].item() + found.frame["drifted"].item() == 12
    assert found.offenders["where"].to_list() == [f"input_id={n:02}" for n in range(11, 3, -1)]


def test_the_gate_is_compared_at_its_threshold_where_one_is_given():
    new, reference = input_log(drop=0.0801), input_log(drop=0.08)
    assert verdicts(new, reference) == {"drop": "drifted"}
    assert verdicts(new, reference, tau=0.07)["gate"] == "reproduced"
    assert verdicts(new, reference, tau=0.08005)["gate"] == "different"
    # Not below the threshold is open.
    assert verdicts(new, reference, tau=0.08)["gate"] == "reproduced"
    assert verdicts(input_log(drop=None), reference, tau=0.08) == {"drop": "different", "gate": "different"}


def test_of_lists_the_pair_furthest_apart_counts():
    def layers(*values):
        return input_log(head_agreement_per_layer=list(values))

    found = compare_logs(layers(0.3, 0.21, 0.101), layers(0.3, 0.2, 0.1))
    (row,) = found.frame.rows(named=True)
    assert (row["verdict"], row["distance"], row["max"]) == (
        "drifted",
        pytest.approx(0.05),
        pytest.approx(0.01),
    )
    assert found.offenders.select("reference", "new").rows() == [("0.2", "0.21")]
    short = compare_logs(layers(0.3), layers(0.3, 0.2))
    assert short.offenders.select("reference", "new", "distance").rows() == [("2 numbers", "1 number", 1.0)]
    assert compare_logs(layers(), layers()).verdict == "reproduced"
    assert compare_logs(input_log(), layers(0.3)).verdict == "different"

    def heads(*rows):
        return run_log(certificate_per_head=[list(row) for row in rows])

    assert compare_logs(heads((1.0, 2.0), (3.0, 4.0)), heads((1.0, 2.0), (3.0, 4.0))).verdict == "reproduced"
    nested = compare_logs(heads((1.0, 2.0), (3.2, 4.0)), heads((1.0, 2.0), (3.0, 4.0)))
    assert nested.offenders.select("reference", "new", "verdict").rows() == [("3", "3.2", "different")]
    moved = compare_logs(heads((1.0, 2.0), (3.0,)), heads((1.0,), (2.0, 3.0)))
    assert moved.offenders.select("distance", "verdict").rows() == [(1.0, "different")]
    other = compare_logs(heads((1.0, 2.0)), heads((1.0,), (2.0,)))
    assert other.offenders.select("reference", "new").rows() == [
        ("2 numbers in 2 lists", "2 numbers in 1 list")
    ]
    for bare in (heads(), heads(()), heads((), (1.0,))):
        assert compare_logs(bare, bare).verdict == "reproduced"


def test_what_the_reference_records_nowhere_is_passed_over():
    new = run_log(score=1.0, n_kept=5, prediction="a", signals={"added": 1.0})
    assert verdicts(new, run_log(score=1.0)) == {"score": "reproduced"}
    # A signal that the reference knows, and has no value of here, is another one.
    assert verdicts(new, run_log(score=1.0, signals={"added": None}))["added"] == "different"
    assert verdicts(run_log(score=1.0), run_log(score=1.0, signals={"lost": 1.0}))["lost"] == "different"
    # Predictions are compared where both have one.
    assert verdicts(run_log(score=1.0), new) == {
        "score": "reproduced",
        "kept tokens": "different",
        "added": "different",
    }


def test_of_runs_that_failed_the_error_is_compared_alone():
    whole = [RunRecord(**KEY, arm=arm, budget=1.0, score=1.0, n_kept=9) for arm in ("a", "b")]
    reference = log_from_records([*whole, InputRecord(**KEY, drop=0.1)])
    failed = [RunRecord(**KEY, arm=arm, budget=1.0, error="MemoryError") for arm in ("a", "b")]
    assert verdicts(log_from_records([*failed, InputRecord(**KEY)]), reference) == {"error": "different"}
    half = log_from_records([failed[0], whole[1], InputRecord(**KEY, drop=0.2)])
    found = compare_logs(half, reference)
    assert found.frame.select("field", "compared", "different").rows() == [
        *(("drop", 1, 1), ("error", 1, 1), ("kept tokens", 1, 0), ("score", 1, 0)),
    ]
    assert compare_logs(half, half).verdict == "reproduced"


def test_rows_of_one_log_only_are_counted_and_do_not_decide():
    runs = [
        RunRecord(**(KEY | {"input_id": name}), arm=arm, budget=1.0, score=1.0)
        for name in "12"
        for arm in "ab"
    ]
    bare = InputRecord(**(KEY | {"input_id": "9"}), drop=0.1)
    found = compare_logs(log_from_records(runs[:3]), log_from_records([*runs[1:], bare]))
    assert (found.verdict, found.runs, found.inputs) == ("reproduced", 2, 0)
    assert found.only_new.select("input_id", "arm").rows() == [("1", "a")]
    assert found.only_reference.select("input_id", "arm").rows() == [("2", "b"), ("9", None)]
    assert found.title == (
        "reproduced: 0 input records and 2 runs in both logs; 1 in the new one only, such as input_id=1, "
        "arm=a, budget=1.0, seed=0; 2 in the reference one only, such as input_id=2, arm=b, budget=1.0, "
        "seed=0"
    )
    content = json.loads(found.to_json())
    assert (content["only_new"], content["only_reference"], content["verdict"]) == (1, 2, "reproduced")


def test_rows_are_matched_by_their_whole_key():
    one = run_log(score=1.0, seed=1, condition="aware", budget=None, budget_tokens=64)
    assert compare_logs(one, one).runs == 1
    for other in ({"seed": 2}, {"condition": None}, {"budget_tokens": 65}, {"model": "n"}, {"arm": "b"}):
        changed = run_log(
            **({"score": 1.0, "seed": 1, "condition": "aware", "budget": None, "budget_tokens": 64} | other)
        )
        with pytest.raises(
            InputError, match="have no run and no input record in common; read both with the same"
        ):
            compare_logs(changed, one)


def test_what_cannot_be_compared_is_refused():
    one = run_log(score=1.0)
    twice = log_from_records([RunRecord(**KEY, arm="full", budget=1.0, score=1.0)] * 2)
    with pytest.raises(
        InputError, match="2 runs of the new log share their key with another, such as input_id=1"
    ):
        compare_logs(twice, one)
    with pytest.raises(InputError, match="2 runs of the reference log share their key"):
        compare_logs(one, twice)
    for tau in (math.nan, math.inf, "0.07"):
        with pytest.raises(InputError, match=r"tau=.* is no finite number; pass a threshold such as 0\.07"):
            compare_logs(one, one, tau=tau)
    with pytest.raises(InputError, match="the reference records nothing of the rows that both logs have"):
        compare_logs(one, run_log())


def test_it_shows_as_text_and_html():
    found = compare_logs(run_log(prediction="<b>", score=1.0), run_log(prediction="a", score=1.0))
    lines = repr(found).splitlines()
    assert lines[0] == "different: 0 input records and 1 run in both logs"
    assert lines[1].split() == list(FIELD_SCHEMA)
    assert lines[2].split() == ["prediction", "1", "0", "0", "1", "1", "–", "–", "1", "different"]
    assert lines[-1] == "different: input_id=1, arm=full, budget=1.0, seed=0: prediction was 'a', is '<b>'"
    page = found._repr_html_()
    assert "&#x27;&lt;b&gt;&#x27;" in page
    assert "<b>" not in page
    assert page.count("<table>") == 2
    assert compare_logs(run_log(score=1.0), run_log(score=1.0))._repr_html_().count("<table>") == 1


def test_counts_are_those_of_a_plain_loop():
    """Every number of the table against its definition, on random logs with gaps."""
    generator = random.Random(0)

    def value():
        return None if generator.random() < 0.2 else round(generator.uniform(-1, 1), 3)

    records = [
        RunRecord(**(KEY | {"input_id": str(n)}), arm="a", budget=0.5, score=1.0, signals={"x": value()})
        for n in range(200)
    ]
    steps = [generator.choice([0.0, 1e-6, 1e-3, 1.0]) for _ in records]
    moved = [
        msgspec.structs.replace(
            record, signals={"x": value() if record.signals["x"] is None else record.signals["x"] + step}
        )
        for record, step in zip(records, steps, strict=True)
    ]
    pairs = [(new.signals["x"], old.signals["x"]) for new, old in zip(moved, records, strict=True)]
    pairs = [pair for pair in pairs if pair != (None, None)]
    distances = [1.0 if None in pair else abs(pair[0] - pair[1]) / max(abs(pair[1]), 0.1) for pair in pairs]
    shuffled = generator.sample(moved, len(moved))
    row = (
        compare_logs(log_from_records(shuffled), log_from_records(records))
        .frame.filter(field="x")
        .row(0, named=True)
    )
    assert row["compared"] == len(pairs)
    assert row["reproduced"] == sum(d <= 1e-4 for d in distances)
    assert row["drifted"] == sum(1e-4 < d <= 0.05 for d in distances)
    assert row["different"] == sum(d > 0.05 for d in distances)
    assert row["distance"] == pytest.approx(max(distances))
    both = [abs(new - old) for new, old in pairs if new is not None and old is not None]
    assert row["mean"] == pytest.approx(sum(both) / len(both))
