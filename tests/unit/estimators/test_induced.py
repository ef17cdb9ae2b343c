import re

import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.log import InputRecord, RunRecord, log_from_records

FULL = [1, 1, 1, 1, 0, 0, 1, 1]
POISSON = [0, 1, 0, 1, 0, 1, 1, 0]
TOPK = [0, 1, 1, 1, 0, 0, 1, 1]
ALONE = [0, 1, 0, 0, 0, 1, 0, 0]


def failures(arm, second=None):
    kept = [(a, s) for f, a, s in zip(FULL, arm, second or arm, strict=True) if f]
    return sum(s - a if second else 1 - a for a, s in kept) / len(kept), len(kept)


@pytest.fixture
def log(make_log):
    return make_log(
        {"full": {1.0: FULL}, "poisson": {0.25: POISSON}, "topk": {0.25: TOPK}, "no_context": {1.0: ALONE}}
    )


def only(result):
    assert result.frame.height == 1
    return result.frame.row(0, named=True)


def test_inputs_that_need_no_context_are_left_out_and_counted(log):
    found = kv.context_dependent(log)
    assert found.counts.rows() == [("s", "m", "qa", 8, 2, 6)]
    assert repr(found).endswith("2 of 8 inputs are answered without their context and left out)")
    assert found.log.runs.height == 6 * 4
    row = only(kv.induced_failure_rate(found.log, arm="poisson"))
    kept = [p for f, p, a in zip(FULL, POISSON, ALONE, strict=True) if f and not a]
    assert (row["estimate"], row["n"]) == (pytest.approx(1 - sum(kept) / len(kept)), len(kept))


def run(input_id, arm, success, model="m", condition=None, seed=0):
    return RunRecord(
        suite="s",
        model=model,
        task="t",
        input_id=input_id,
        arm=arm,
        condition=condition,
        seed=seed,
        score=None if success is None else float(success),
        success=success,
    )


def test_a_question_is_left_out_for_the_model_that_knows_it_under_every_condition():
    records = [
        InputRecord(suite="s", model=m, task="t", input_id=i, condition="aware") for m in "ab" for i in "12"
    ]
    for model in "ab":
        for input_id in "12":
            records += [run(input_id, "full", True, model, condition) for condition in ("aware", "stream")]
            records += [run(input_id, "no_context", False, model)]
    # A second try of model a succeeds on input 1.
    records.append(run("1", "no_context", True, "a", seed=1))
    found = kv.context_dependent(log_from_records(records))
    assert found.counts.select("model", "answered_without_context", "kept").rows() == [
        ("a", 1, 1),
        ("b", 0, 2),
    ]
    left = found.log.runs.filter(model="a")["input_id"].unique().to_list()
    assert (left, found.log.inputs.height) == (["2"], 3)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([run("1", "full", True)], "context_dependent: no_context='no_context' is not an arm"),
        (
            [run("1", "full", True), run("1", "no_context", None)],
            "no_context='no_context' has no success in 1 of 1 runs",
        ),
        (
            [run("1", "full", True), run("2", "full", True), run("1", "no_context", True)],
            "has no run of 1 of 2 inputs, such as (suite=s, model=m, task=t, input_id=2)",
        ),
    ],
)
def test_what_is_not_known_without_context_is_an_error(records, message):
    with pytest.raises(InputError, match=re.escape(message)):
        kv.context_dependent(log_from_records(records))


def test_difference_of_induced_failures(log):
    expected, n = failures(POISSON, TOPK)
    row = only(kv.induced_failure_difference(log, arm="poisson", second_arm="topk"))
    assert (row["estimate"], row["n"]) == (pytest.approx(expected), n)
    turned = only(kv.induced_failure_difference(log, arm="topk", second_arm="poisson"))
    assert turned["estimate"] == pytest.approx(-expected)
    assert turned["se"] == pytest.approx(row["se"])
    rates = [only(kv.induced_failure_rate(log, arm=arm))["estimate"] for arm in ("poisson", "topk")]
    assert row["estimate"] == pytest.approx(rates[0] - rates[1])


def test_draws_are_held_against_the_one_run_of_the_other_arm():
    records = []
    for i in range(6):
        records += [run(str(i), "full", i > 0), run(str(i), "topk", i > 1)]
        records += [run(str(i), "poisson", i > 2, seed=0), run(str(i), "poisson", i > 3, seed=1)]
    log = log_from_records(records)
    row = only(kv.induced_failure_difference(log, arm="poisson", second_arm="topk"))
    assert (row["estimate"], row["n"], row["clusters"]) == (pytest.approx((1 + 2) / 10), 10, 5)
    # The other way round the seeds must agree: only seed 0 of the draws has a twin.
    back = only(kv.induced_failure_difference(log, arm="topk", second_arm="poisson"))
    assert (back["estimate"], back["n"]) == (pytest.approx(-1 / 5), 5)
    part = only(kv.induced_failure_difference(log, arm="poisson", second_arm="topk", where="seed = 1"))
    assert (part["estimate"], part["n"]) == (pytest.approx(2 / 5), 5)


def test_alike_and_empty(make_log):
    same = make_log({"full": {1.0: FULL}, "a": {0.5: POISSON}, "b": {0.5: POISSON}})
    row = only(kv.induced_failure_difference(same, arm="a", second_arm="b"))
    assert (row["estimate"], row["low"], row["status"]) == (0, None, "no discordant pairs")
    none = make_log({"full": {1.0: [0] * 8}, "a": {0.5: POISSON}, "b": {0.5: TOPK}})
    row = only(kv.induced_failure_difference(none, arm="a", second_arm="b"))
    assert (row["estimate"], row["n"], row["status"]) == (None, 0, "no rows")
    one = only(
        kv.induced_failure_difference(
            make_log({"full": {1.0: [1]}, "a": {0.5: [0]}, "b": {0.5: [1]}}), arm="a", second_arm="b"
        )
    )
    assert (one["estimate"], one["low"], one["status"]) == (1, None, "one cluster")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"second_arm": "poisson"}, "second_arm='poisson' is the first arm too"),
        ({"second_arm": "topkk"}, "induced_failure_difference: second_arm='topkk' is not an arm"),
        ({"second_arm": "topk", "arm": "poison"}, "did you mean 'poisson'?"),
        ({"second_arm": "no_context"}, "have no twin of baseline 'no_context'"),
    ],
)
def test_bad_input(log, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        kv.induced_failure_difference(log, **({"arm": "poisson"} | arguments))
