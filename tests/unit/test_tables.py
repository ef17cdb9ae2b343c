import re

import msgspec
import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.log import InputRecord, log_from_records
from kvstats.tables import arm_rows, paired, runs_with_inputs


def test_runs_with_inputs_keeps_runs_and_matches_null_conditions(make_records):
    scores = {"full": {1.0: [1, 0]}}
    log = log_from_records(
        [
            *make_records(scores, drop=[0.1, 0.2]),
            *make_records(scores, drop=[0.3, 0.4], condition="aware"),
            *make_records(scores, task="vt"),
        ]
    )
    rows = runs_with_inputs(log)
    assert rows.select(log.runs.columns).equals(log.runs)
    found = rows.select("task", "condition", "input_id", "drop").rows()
    assert found == [
        ("qa", None, "i000", 0.1),
        ("qa", "aware", "i000", 0.3),
        ("qa", None, "i001", 0.2),
        ("qa", "aware", "i001", 0.4),
        ("vt", None, "i000", None),
        ("vt", None, "i001", None),
    ]


def test_a_signal_of_input_and_run_gets_a_prefix(make_records):
    key = {"suite": "s", "model": "m", "task": "qa", "input_id": "i000"}
    log = log_from_records(
        [
            *make_records({"full": {1.0: [1]}}, signals={"margin": [0.5]}),
            InputRecord(**key, signals={"margin": 0.25, "entropy": 2.0}),
        ]
    )
    rows = runs_with_inputs(log)
    assert rows.select("margin", "input_margin", "entropy").rows() == [(0.5, 0.25, 2.0)]
    assert "input_entropy" not in rows.columns


def test_two_records_of_one_input_are_refused(make_records):
    scores = {"full": {1.0: [1, 0]}}
    log = log_from_records([*make_records(scores, drop=[0.1, 0.2]), *make_records({}, drop=[])])
    assert runs_with_inputs(log).height == 2
    twice = log_from_records(
        [*make_records(scores, drop=[0.1, 0.2]), *make_records(scores, drop=[0.1, 0.2])[:1]]
    )
    message = (
        "runs_with_inputs: 2 input records share their key with another, such as "
        "(suite=s, model=m, task=qa, input_id=i000); remove the duplicates from the log"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        runs_with_inputs(twice)


def test_plain_at_budget_one_stands_for_full_only_where_no_arm_is_named_so(make_log):
    plain = {1.0: [1, 1], 0.5: [0, 1]}
    stand_in = arm_rows(make_log({"plain": plain}).runs, "full", "f")
    assert stand_in.select("arm", "budget", "score").rows() == [("full", 1.0, 1.0), ("full", 1.0, 1.0)]
    named = arm_rows(make_log({"plain": plain, "full": {1.0: [0, 0]}}).runs, "full", "f")
    assert named["score"].to_list() == [0, 0]


@pytest.mark.parametrize(
    ("scores", "arm", "message"),
    [
        (
            {"snapkv": {0.5: [1]}},
            "snapvk",
            "f: arm='snapvk' is not an arm of the log; did you mean 'snapkv'?",
        ),
        ({"snapkv": {0.5: [1]}}, "full", "nor has it an arm 'plain' with rows at budget 1 to stand for it"),
        ({"plain": {0.5: [1]}}, "full", "record the full cache too, or known: plain"),
    ],
)
def test_unknown_arms_are_refused(make_log, scores, arm, message):
    with pytest.raises(InputError, match=re.escape(message)):
        arm_rows(make_log(scores).runs, arm, "f")


def test_pairs_with_the_full_cache_at_every_budget(make_log):
    log = make_log(
        {"full": {1.0: [1, 1, 0.5]}, "snapkv": {0.25: [0, 1, 1], 0.5: [1, 0.5, 0.5]}},
        signals={"margin": [0.1, 0.2, 0.3]},
        drop=[0.01, 0.02, 0.03],
    )
    pairs = paired(log, arm="snapkv")
    found = pairs.select(
        "input_id", "budget", "score", "baseline_score", "difference", "harm", "help", "failure"
    )
    assert found.rows() == [
        ("i000", 0.25, 0, 1, -1, True, False, True),
        ("i000", 0.5, 1, 1, 0, False, False, False),
        ("i001", 0.25, 1, 1, 0, False, False, False),
        ("i001", 0.5, 0.5, 1, -0.5, True, False, True),
        ("i002", 0.25, 1, 0.5, 0.5, False, True, False),
        ("i002", 0.5, 0.5, 0.5, 0, False, False, True),
    ]
    assert pairs["induced_failure"].to_list() == [True, False, False, True, None, None]
    assert pairs["baseline_success"].to_list() == [True, True, True, True, False, False]
    assert set(pairs["baseline_budget"]) == {1.0}
    assert set(pairs["baseline_n_kept"]) == {100}
    assert pairs["baseline_margin"].to_list() == pairs["margin"].to_list()
    assert pairs["drop"].to_list() == [0.01, 0.01, 0.02, 0.02, 0.03, 0.03]
    assert {"baseline_kept_fraction", "baseline_prediction"} <= set(pairs.columns)


def test_pairs_with_another_arm_at_the_same_budget(make_log):
    log = make_log({"a": {0.25: [0, 1], 0.5: [1, 1]}, "b": {0.25: [1, 1], 0.5: [0, 0], 0.75: [0, 0]}})
    pairs = paired(log, arm="a", baseline="b")
    assert pairs.select("budget", "score", "baseline_score", "baseline_budget").rows() == [
        (0.25, 0, 1, 0.25),
        (0.5, 1, 0, 0.5),
        (0.25, 1, 1, 0.25),
        (0.5, 1, 0, 0.5),
    ]


def test_budgets_in_tokens_and_null_conditions_pair(make_records):
    def arm(name, scores, tokens):
        return make_records({name: {0.5: scores}}, budget=None, budget_tokens=tokens)

    records = [
        record
        for name, scores, tokens in (
            ("a", [0, 1], 64),
            ("a", [1, 1], 128),
            ("b", [1, 1], 64),
            ("b", [0, 0], 128),
        )
        for record in arm(name, scores, tokens)
    ]
    pairs = paired(log_from_records(records), arm="a", baseline="b")
    assert pairs.select("budget_tokens", "difference").rows() == [(64, -1), (128, 1), (64, 0), (128, 1)]


def test_seeds_pair_only_where_the_baseline_has_several(make_records):
    def draws(name, *by_seed):
        return [
            r for seed, scores in enumerate(by_seed) for r in make_records({name: {0.5: scores}}, seed=seed)
        ]

    one = log_from_records([*draws("random", [0, 1], [1, 1]), *draws("topk", [1, 1])])
    assert paired(one, arm="random", baseline="topk")["difference"].to_list() == [-1, 0, 0, 0]
    several = log_from_records([*draws("random", [0, 1], [1, 1]), *draws("other", [1, 0], [0, 0])])
    assert paired(several, arm="random", baseline="other")["difference"].to_list() == [-1, 1, 1, 1]


def test_scores_that_differ_by_rounding_are_equal(make_log):
    log = make_log({"full": {1.0: [0.1 + 0.2, 1.0]}, "a": {0.5: [0.3, 1.0 - 1e-6]}})
    pairs = paired(log, arm="a")
    assert pairs.select("harm", "help").rows() == [(False, False), (True, False)]
    assert pairs["difference"][0] == 0


def test_where_is_applied_to_the_pairs(make_log):
    log = make_log({"full": {1.0: [1, 0]}, "a": {0.25: [0, 0], 0.5: [1, 0]}})
    assert paired(log, arm="a", where="budget < 0.5 AND baseline_success").height == 1
    with pytest.raises(InputError, match="paired: where='bugdet = 1' names the unknown column 'bugdet'"):
        paired(log, arm="a", where="bugdet = 1")


def test_runs_without_a_twin_are_refused_unless_left_out_on_purpose(make_records):
    log = log_from_records(
        [
            *make_records({"full": {1.0: [1, 1]}, "a": {0.5: [0, 1]}}),
            *make_records({"a": {0.5: [1, 1, 1, 0]}}, task="vt"),
        ]
    )
    message = (
        "paired: 4 of 6 rows of arm 'a' have no twin of baseline 'full', such as "
        "(suite=s, model=m, task=vt, input_id=i000, arm=a, budget=0.5, seed=0), "
        "(suite=s, model=m, task=vt, input_id=i001, arm=a, budget=0.5, seed=0), "
        "(suite=s, model=m, task=vt, input_id=i002, arm=a, budget=0.5, seed=0); record the twins"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        paired(log, arm="a")
    assert paired(log, arm="a", where="task = 'qa'").height == 2
    assert paired(log, arm="a", where="baseline_score IS NOT NULL").height == 2


@pytest.mark.parametrize("where", ["harm", "baseline_score > 0.5", "baseline_success"])
def test_a_condition_on_the_twin_does_not_hide_that_there_is_none(make_records, where):
    records = make_records({"full": {1.0: [1, 1]}, "a": {0.5: [0, 1]}})
    log = log_from_records([*records, *make_records({"a": {0.5: [1]}}, task="vt")])
    with pytest.raises(InputError, match=r"1 of [0-9] rows of arm 'a' have no twin"):
        paired(log, arm="a", where=where)


@pytest.mark.parametrize(
    ("scores", "column", "explicit"),
    [
        ({"full": {1.0: [1, 1, 1]}, "a": {0.5: [0, None, None]}}, "score", "score IS NOT NULL"),
        (
            {"full": {1.0: [1, None, None]}, "a": {0.5: [0, 1, 1]}},
            "baseline_score",
            "baseline_score IS NOT NULL",
        ),
    ],
)
def test_null_scores_are_refused_unless_left_out_on_purpose(make_log, scores, column, explicit):
    log = make_log(scores)
    message = (
        f"paired: {column} is null in 2 of 3 rows, such as (suite=s, model=m, task=qa, input_id=i001, arm=a, "
        "budget=0.5, seed=0), (suite=s, model=m, task=qa, input_id=i002, arm=a, budget=0.5, seed=0); nothing "
        f'leaves a denominator silently: exclude them with where="{column} IS NOT NULL" if that is meant'
    )
    with pytest.raises(InputError, match=re.escape(message)):
        paired(log, arm="a")
    with pytest.raises(InputError, match=re.escape(f"paired: {column} is null in 2 of 2 rows")):
        paired(log, arm="a", where="NOT harm")
    assert paired(log, arm="a", where=explicit).height == 1


def test_duplicated_rows_are_refused(make_records):
    records = make_records({"full": {1.0: [1, 1]}, "a": {0.5: [0, 1]}})
    arm = [r for r in records if r.arm == "a"]
    full = [r for r in records if r.arm == "full"]
    with pytest.raises(InputError, match=re.escape("paired: 2 runs share their key with another, such as (")):
        paired(log_from_records([*records, arm[0]]), arm="a")
    other_seeds = [msgspec.structs.replace(record, seed=1) for record in full]
    with pytest.raises(InputError, match=re.escape("paired: 4 rows of baseline 'full' share their key")):
        paired(log_from_records([*records, *other_seeds]), arm="a")


def test_a_signal_named_like_a_computed_column_is_refused(make_log):
    log = make_log({"full": {1.0: [1]}, "a": {0.5: [0]}}, signals={"harm": [0.5]})
    with pytest.raises(InputError, match="paired: log='harm' is a signal with the name of a column to be"):
        paired(log, arm="a")


def test_unknown_arms_name_their_argument(make_log):
    log = make_log({"full": {1.0: [1]}, "snapkv": {0.5: [0]}})
    with pytest.raises(
        InputError, match="paired: arm='snapk' is not an arm of the log; did you mean 'snapkv'"
    ):
        paired(log, arm="snapk")
    with pytest.raises(
        InputError, match="paired: baseline='ful' is not an arm of the log; did you mean 'full'"
    ):
        paired(log, arm="snapkv", baseline="ful")


@pytest.mark.parametrize(
    ("function", "argument", "call"),
    [
        ("accuracy", "log", lambda: kv.accuracy("runs.jsonl")),
        ("paired", "log", lambda: kv.paired("runs.jsonl", arm="snapkv")),
        ("mean_drop", "log", lambda: kv.mean_drop("runs.jsonl")),
        ("certificate_coverage", "log", lambda: kv.certificate_coverage("runs.jsonl")),
        ("gate", "log", lambda: kv.gate("runs.jsonl", base="snapkv", tau=0.07)),
        ("random_gate", "log", lambda: kv.random_gate("runs.jsonl", base="snapkv", share=0.5)),
        ("match_inputs", "log", lambda: kv.match_inputs("runs.jsonl")),
        ("compare_logs", "new", lambda: kv.compare_logs("runs.jsonl", "runs.jsonl")),
    ],
)
def test_a_path_is_no_log(function, argument, call):
    with pytest.raises(
        InputError, match=rf"^{function}: {argument}='runs.jsonl' is a str and no Log; pass kvstats"
    ):
        call()
