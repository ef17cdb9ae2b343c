import re

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from kvstats.errors import InputError
from kvstats.log import log_from_records
from kvstats.policies import gate
from kvstats.tables import paired

SCORES = {"full": {1.0: [1, 1, 0]}, "snapkv": {0.25: [0, 0, 1], 0.5: [1, 0, 0]}}


def arm_of(log, name):
    return log.runs.filter(pl.col("arm") == name)


def test_a_closed_gate_takes_the_full_cache_and_an_open_one_the_base(make_log):
    log = make_log(SCORES, drop=[0.05, 0.10, 0.07], signals={"margin": [0.1, 0.2, 0.3]})
    found = arm_of(gate(log, tau=0.07, base="snapkv"), "gate")
    assert found.select("input_id", "budget", "gate_open", "score", "success", "n_kept").rows() == [
        ("i000", 0.25, False, 1.0, True, 100),
        ("i000", 0.5, False, 1.0, True, 100),
        ("i001", 0.25, True, 0.0, False, 25),
        ("i001", 0.5, True, 0.0, False, 50),
        ("i002", 0.25, True, 1.0, True, 25),
        ("i002", 0.5, True, 0.0, False, 50),
    ]
    assert found["margin"].to_list() == [0.1, 0.1, 0.2, 0.2, 0.3, 0.3]


def test_other_runs_stay_and_know_no_gate(make_log):
    log = make_log(SCORES, drop=[0.05, 0.10, 0.07])
    gated = gate(log, tau=0.07, base="snapkv")
    assert gated.runs.filter(pl.col("arm") != "gate").equals(log.runs)
    assert gated.runs.filter(pl.col("arm") != "gate")["gate_open"].null_count() == log.runs.height
    assert gated.inputs.equals(log.inputs)


@pytest.mark.parametrize(("tau", "source"), [(float("-inf"), "base"), (0.0, "base"), (1.0, "full")])
def test_extreme_thresholds_are_one_of_the_arms(make_log, tau, source):
    log = make_log(SCORES, drop=[0.05, 0.10, 0.07])
    found = arm_of(gate(log, tau=tau, base="snapkv"), "gate")
    base = arm_of(log, "snapkv")
    outcome = ["score", "success", "n_kept", "n_prompt"]
    assert found.select("budget", "seed").equals(base.select("budget", "seed"))
    if source == "base":
        assert_frame_equal(found.select(outcome), base.select(outcome))
    else:
        assert found["score"].to_list() == [1, 1, 1, 1, 0, 0]
        assert set(found["n_kept"]) == {100}


def test_token_budgets_and_seeds_are_the_bases(make_records):
    records = [
        *make_records({"full": {1.0: [1, 0]}}, drop=[0.05, 0.1]),
        *make_records({"random": {0.5: [0, 1]}}, budget=None, budget_tokens=64, seed=0),
        *make_records({"random": {0.5: [0, 0]}}, budget=None, budget_tokens=64, seed=1),
    ]
    found = arm_of(gate(log_from_records(records), tau=0.07, base="random", name="g"), "g")
    assert found.select("input_id", "budget", "budget_tokens", "seed", "score").rows() == [
        ("i000", None, 64, 0, 1.0),
        ("i000", None, 64, 1, 1.0),
        ("i001", None, 64, 0, 1.0),
        ("i001", None, 64, 1, 0.0),
    ]


def test_plain_at_budget_one_stands_for_the_full_cache(make_log):
    log = make_log({"plain": {1.0: [1, 1], 0.5: [0, 0]}}, drop=[0.05, 0.10])
    gated = gate(log, tau=0.07, base="plain", name="page")
    assert arm_of(gated, "page").select("budget", "score", "gate_open").rows() == [
        (0.5, 1.0, False),
        (1.0, 1.0, False),
        (0.5, 0.0, True),
        (1.0, 1.0, True),
    ]
    assert paired(gated, arm="page", baseline="plain")["difference"].to_list() == [1, 0, 0, 0]


def test_gates_can_be_added_to_gated_logs_and_gated_again(make_log):
    log = make_log(SCORES, drop=[0.05, 0.10, 0.07])
    once = gate(log, tau=0.07, base="snapkv", name="first")
    twice = gate(once, tau=0.09, base="first", name="second")
    assert arm_of(twice, "first").equals(arm_of(once, "first"))
    assert arm_of(twice, "second")["gate_open"].to_list() == [False, False, True, True, False, False]
    direct = gate(log, tau=0.09, base="snapkv", name="second")
    assert arm_of(twice, "second").equals(arm_of(direct, "second"))


def test_conditions_are_inputs_of_their_own(make_records):
    records = [
        *make_records(SCORES, drop=[0.05, 0.10, 0.07], condition="aware"),
        *make_records(SCORES, drop=[0.10, 0.05, 0.10], condition="stream"),
    ]
    found = arm_of(gate(log_from_records(records), tau=0.07, base="snapkv"), "gate")
    opened = found.group_by("condition", maintain_order=True).agg("gate_open").rows()
    assert opened == [
        ("aware", [False, False, True, True, True, True]),
        ("stream", [True, True, False, False, True, True]),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tau": float("nan")}, "gate: tau=nan is not a number; pass the threshold of the signal"),
        ({"tau": "0.07"}, "gate: tau='0.07' is not a number"),
        ({"base": "snapk"}, "gate: base='snapk' is not an arm of the log; did you mean 'snapkv'?"),
        ({"full": "fulll"}, "gate: full='fulll' is not an arm of the log; did you mean 'full'?"),
        ({"name": "snapkv"}, "gate: name='snapkv' is taken or empty; choose another than full, snapkv"),
        ({"name": "full"}, "gate: name='full' is taken or empty"),
        ({"name": ""}, "gate: name='' is taken or empty"),
        (
            {"signal": "dropp"},
            "gate: signal='dropp' is not a numeric column of the inputs; did you mean 'drop'?",
        ),
        ({"signal": "task"}, "gate: signal='task' is not a numeric column of the inputs"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(make_log, arguments, message):
    log = make_log(SCORES, drop=[0.05, 0.10, 0.07])
    with pytest.raises(InputError, match=re.escape(message)):
        gate(log, **({"tau": 0.07, "base": "snapkv"} | arguments))


def test_the_name_full_stays_reserved_where_plain_stands_for_it(make_log):
    log = make_log({"plain": {1.0: [1], 0.5: [0]}}, drop=[0.05])
    with pytest.raises(InputError, match="gate: name='full' is taken or empty"):
        gate(log, tau=0.07, base="plain", name="full")


@pytest.mark.parametrize("drop", [[0.05, None, None], None])
def test_inputs_without_a_signal_are_counted(make_log, drop):
    log = make_log(SCORES, drop=drop)
    count, first = (2, "i001") if drop else (3, "i000")
    message = (
        f"gate: signal='drop' is null for {count} inputs, such as "
        f"(suite=s, model=m, task=qa, input_id={first})"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        gate(log, tau=0.07, base="snapkv")


def test_a_closed_gate_needs_a_full_cache_run(make_records):
    records = make_records(SCORES, drop=[0.05, 0.10, 0.06])
    log = log_from_records([r for r in records if (getattr(r, "arm", ""), r.input_id) != ("full", "i002")])
    message = (
        "gate: full='full' has no run for 2 rows that switch to it, of 1 inputs such as (suite=s, model=m"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        gate(log, tau=0.07, base="snapkv")
    assert arm_of(gate(log, tau=0.055, base="snapkv"), "gate").height == 6


def test_duplicated_rows_are_refused(make_records):
    records = make_records(SCORES, drop=[0.05, 0.10, 0.06])
    for arm, count in (("full", 2), ("snapkv", 2)):
        extra = next(r for r in records if getattr(r, "arm", "") == arm)
        with pytest.raises(InputError, match=re.escape(f"gate: {count} rows of arm '{arm}' share their key")):
            gate(log_from_records([*records, extra]), tau=0.07, base="snapkv")
    with pytest.raises(InputError, match="gate: 2 input records share their key"):
        gate(log_from_records([*records, records[0]]), tau=0.07, base="snapkv")
