"""Inputs that every arm was run on."""

from __future__ import annotations

import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.log import InputRecord, ReplayRecord, RunRecord, log_from_records


def runs(arm, ids, budget=0.5, **fields):
    made = {"suite": "s", "model": "m", "task": "qa", "budget": budget, "score": 1.0} | fields
    return [RunRecord(arm=arm, input_id=one, **made) for one in ids]


def counts(matched):
    return matched.counts.select("arm", "budget", "n_paired", "n_unpaired", "n_missing", "examples").rows()


def test_two_methods_that_share_all_but_one_input():
    ids = [f"{n:03}" for n in range(200)]
    log = log_from_records([*runs("full", ids[:-1], 1.0), *runs("pyramidkv", ids[1:])])
    with pytest.raises(
        InputError,
        match=r"match_inputs: 2 of 200 inputs were not run by every arm of their task, at each budget, and "
        r"by the baseline 'full', such as \(suite=s, model=m, task=qa, input_id=000\), \(.*input_id=199\); "
        "record these runs, or pass unpaired='count' to leave the inputs out and have them counted",
    ):
        kv.match_inputs(log)
    matched = kv.match_inputs(log, unpaired="count")
    assert counts(matched) == [("full", 1.0, 198, 1, 1, ["199"]), ("pyramidkv", 0.5, 198, 1, 1, ["000"])]
    assert matched.log.runs["input_id"].n_unique() == 198
    assert kv.paired(matched.log, arm="pyramidkv").height == 198


def test_a_log_whose_inputs_all_match_is_the_same():
    log = log_from_records([*runs("full", "ab", 1.0), *runs("snapkv", "ab"), *runs("snapkv", "ab", 0.25)])
    matched = kv.match_inputs(log)
    assert matched.log.runs.equals(log.runs)
    assert counts(matched) == [
        ("full", 1.0, 2, 0, 0, []),
        ("snapkv", 0.25, 2, 0, 0, []),
        ("snapkv", 0.5, 2, 0, 0, []),
    ]


def test_tokens_beside_a_fraction_make_no_cells_of_their_own():
    some = [
        run
        for number, one in enumerate("ab")
        for run in runs("snapkv", one, budget_tokens=240 + number) + runs("full", one, 1.0)
    ]
    matched = kv.match_inputs(log_from_records(some))
    assert counts(matched) == [("full", 1.0, 2, 0, 0, []), ("snapkv", 0.5, 2, 0, 0, [])]
    other = [*some, *runs("snapkv", "a", None, budget_tokens=64)]
    assert counts(kv.match_inputs(log_from_records(other), unpaired="count"))[1] == (
        *("snapkv", None, 1, 0, 1),
        ["b"],
    )


def test_three_ids_are_named():
    log = log_from_records([*runs("full", "abcdefg", 1.0), *runs("snapkv", "g")])
    assert counts(kv.match_inputs(log, unpaired="count")) == [
        ("full", 1.0, 1, 6, 0, ["a", "b", "c"]),
        ("snapkv", 0.5, 1, 0, 6, ["a", "b", "c"]),
    ]
    with pytest.raises(InputError, match=r"6 of 7 inputs .* such as \(.*=a\), \(.*=b\), \(.*=c\); record"):
        kv.match_inputs(log)


def test_the_same_id_of_another_task_or_condition_is_no_twin():
    log = log_from_records(
        [
            *runs("full", "ab", 1.0),
            *runs("snapkv", "ab"),
            *runs("snapkv", "ab", task="summary"),
            *runs("snapkv", "ab", condition="aware"),
        ]
    )
    matched = kv.match_inputs(log, unpaired="count")
    assert set(matched.log.runs.select("task", "condition").rows()) == {("qa", None)}
    assert matched.counts.filter(n_unpaired=2).select("task", "condition", "arm").rows() == [
        ("qa", "aware", "snapkv"),
        ("summary", None, "snapkv"),
    ]


def test_plain_at_budget_1_stands_for_the_full_cache():
    log = log_from_records([*runs("plain", "ab", 1.0), *runs("plain", "a", 0.5)])
    assert kv.match_inputs(log, unpaired="count").log.runs["input_id"].to_list() == ["a", "a"]


def test_input_records_and_replays_go_with_their_runs():
    key = {"suite": "s", "model": "m", "task": "qa"}
    cell = {"arm": "snapkv", "design": "poisson", "budget": 0.5, "layer": 0, "head": 0, "step": 0}
    cell |= dict.fromkeys(["variance_estimate", "radius", "true_error", "delta"])
    log = log_from_records(
        [
            *runs("full", "ab", 1.0),
            *runs("snapkv", "a"),
            *(InputRecord(**key, input_id=one) for one in "ab"),
            *(ReplayRecord(**key, **cell, input_id=one) for one in "ab"),
        ]
    )
    matched = kv.match_inputs(log, unpaired="count").log
    assert matched.inputs["input_id"].to_list() == matched.replays["input_id"].to_list() == ["a"]


def test_duplicated_runs_and_what_is_unknown():
    twice = log_from_records([*runs("full", "aab", 1.0), *runs("snapkv", "ab")])
    with pytest.raises(
        InputError, match=r"match_inputs: 2 runs share their key with another, such as \(.*=a,"
    ):
        kv.match_inputs(twice, unpaired="count")
    log = log_from_records(runs("snapkv", "ab"))
    with pytest.raises(InputError, match="match_inputs: baseline='full' is not an arm of the log"):
        kv.match_inputs(log)
    with pytest.raises(InputError, match="unpaired='drop' is unknown; pass 'raise' or 'count'"):
        kv.match_inputs(log, unpaired="drop")
