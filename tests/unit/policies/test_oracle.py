import re

import polars as pl
import pytest

from kvstats.errors import InputError
from kvstats.estimators import accuracy, delta
from kvstats.log import log_from_records
from kvstats.policies import input_oracle, task_oracle

FULL = [1.0, 0.0, 0.5, 0.3]
EVICTED = {0.25: [0.0, 1.0, 0.5, 0.1 + 0.2], 0.5: [1.0, 0.0, 0.25, 0.3]}


def arm_of(log, name):
    return log.runs.filter(pl.col("arm") == name)


@pytest.fixture
def two_tasks(make_records):
    return log_from_records(
        [
            *make_records({"full": {1.0: FULL}, "snapkv": EVICTED}, task="keys"),
            *make_records({"full": {1.0: FULL}, "snapkv": EVICTED}, task="qa"),
        ]
    )


def test_the_label_closes_the_gate(two_tasks):
    log = task_oracle(two_tasks, base="snapkv", protect_tasks=["keys"])
    found = arm_of(log, "task_oracle")
    by_task = {task: part for (task,), part in found.partition_by("task", as_dict=True).items()}
    assert by_task["keys"].filter(pl.col("budget") == 0.25)["score"].to_list() == FULL
    assert by_task["qa"].filter(pl.col("budget") == 0.25)["score"].to_list() == EVICTED[0.25]
    assert by_task["keys"]["gate_open"].to_list() == [False] * 8
    assert by_task["qa"]["gate_open"].to_list() == [True] * 8
    assert set(by_task["keys"]["n_kept"]) == {100}


def test_both_lists_say_the_same(two_tasks):
    first = task_oracle(two_tasks, base="snapkv", protect_tasks=["keys"])
    second = task_oracle(two_tasks, base="snapkv", evict_tasks=["qa"])
    assert first.runs.equals(second.runs)
    none = arm_of(task_oracle(two_tasks, base="snapkv", protect_tasks=[]), "task_oracle")
    assert none["score"].to_list() == arm_of(two_tasks, "snapkv")["score"].to_list()


def test_the_input_oracle_takes_the_better_run_and_keeps_ties_compressed(two_tasks):
    found = arm_of(input_oracle(two_tasks, base="snapkv"), "input_oracle").filter(pl.col("task") == "qa")
    at = {budget: part for (budget,), part in found.partition_by("budget", as_dict=True).items()}
    assert at[0.25]["score"].to_list() == [1.0, 1.0, 0.5, 0.1 + 0.2]
    assert at[0.25]["gate_open"].to_list() == [False, True, True, True]
    assert at[0.5]["score"].to_list() == [1.0, 0.0, 0.5, 0.3]
    assert at[0.5]["gate_open"].to_list() == [True, True, False, True]
    assert at[0.5]["n_kept"].to_list() == [50, 50, 100, 50]


def test_no_gate_beats_the_input_oracle(two_tasks):
    log = input_oracle(task_oracle(two_tasks, base="snapkv", protect_tasks=["keys"]), base="snapkv")
    gap = delta(log, arm="task_oracle", baseline="input_oracle").frame["estimate"].item()
    assert gap < 0
    by_arm = dict(accuracy(log, by="arm").frame.select("arm", "estimate").iter_rows())
    assert by_arm["input_oracle"] - by_arm["task_oracle"] == pytest.approx(-gap)


def test_outcomes_may_be_successes(make_records):
    log = log_from_records(make_records({"full": {1.0: [1.0, 0.9]}, "a": {0.5: [0.5, 0.2]}}))
    found = arm_of(input_oracle(log, base="a", outcome="success"), "input_oracle")
    assert found["score"].to_list() == [1.0, 0.2]  # neither run of the second input succeeded


def test_plain_at_budget_one_stands_for_the_full_cache(make_log):
    log = make_log({"plain": {1.0: [1, 0], 0.5: [0, 1]}})
    found = arm_of(input_oracle(log, base="plain"), "input_oracle")
    assert found.sort("input_id", "budget")["score"].to_list() == [1, 1, 1, 0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda log: task_oracle(log, base="snapkv"),
            "task_oracle: protect_tasks=None stands beside evict_tasks",
        ),
        (
            lambda log: task_oracle(log, base="snapkv", protect_tasks=["qa"], evict_tasks=["keys"]),
            "task_oracle: protect_tasks=['qa'] stands beside evict_tasks=['keys']; pass exactly one of them",
        ),
        (
            lambda log: task_oracle(log, base="snapkv", protect_tasks=["key"]),
            "task_oracle: protect_tasks='key' is not a task of the base arm; did you mean 'keys'?",
        ),
        (
            lambda log: task_oracle(log, base="snapkv", evict_tasks="qa"),
            "task_oracle: evict_tasks='qa' is no list of tasks; pass one such as ['qa']",
        ),
        (
            lambda log: task_oracle(log, base="snapk", evict_tasks=["qa"]),
            "task_oracle: base='snapk' is not an arm of the log; did you mean 'snapkv'?",
        ),
        (
            lambda log: task_oracle(log, base="snapkv", evict_tasks=["qa"], name="full"),
            "task_oracle: name='full' is taken or empty",
        ),
        (
            lambda log: input_oracle(log, base="snapkv", outcome="scores"),
            "input_oracle: outcome='scores' is not known; did you mean 'score'?",
        ),
        (lambda log: input_oracle(log, base="snapkv", name=""), "input_oracle: name='' is taken or empty"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(two_tasks, make, message):
    with pytest.raises(InputError, match=re.escape(message)):
        make(two_tasks)


def test_what_an_oracle_cannot_know_is_refused(make_records):
    records = make_records({"full": {1.0: [1, None]}, "a": {0.5: [0, 1]}})
    with pytest.raises(InputError, match="input_oracle: score is null in 1 of 2 rows"):
        input_oracle(log_from_records(records), base="a")
    records = make_records({"full": {1.0: [1, 1]}, "a": {0.5: [0, 1]}})
    without = [r for r in records if (r.arm, r.input_id) != ("full", "i001")]
    with pytest.raises(InputError, match="input_oracle: full='full' has no run for 1 rows that switch to it"):
        input_oracle(log_from_records(without), base="a")
    twice = [*records, records[0]]
    with pytest.raises(InputError, match="input_oracle: 2 rows of arm 'full' share their key"):
        input_oracle(log_from_records(twice), base="a")
