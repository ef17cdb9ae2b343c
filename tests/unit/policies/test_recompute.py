import re

import numpy as np
import polars as pl
import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.estimators import accuracy, delta, induced_failure_rate
from kvstats.log import RunRecord, log_from_records

FULL = [1, 1, 0, 1, 1, 0, 1, 1]
BASE = [0, 1, 0, 0, 1, 1, 0, 0]
HALF = [1, 1, 0, 0, 1, 1, 0, 1]
CERTIFICATE = [8, 1, 2, 7, 3, 4, 6, 5]
TIED = [3, 1, 1, 3, 1, 1, 2, 2]


@pytest.fixture
def log(make_log):
    return make_log(
        {"full": {1.0: FULL}, "poisson": {0.25: BASE, 0.5: HALF}},
        signals={"certificate": CERTIFICATE, "tied": TIED, "logprob": [-x for x in CERTIFICATE]},
    )


def outcomes(log, arm, budget=0.25, column="score"):
    return log.runs.filter(arm=arm, budget=budget).sort("input_id")[column].to_list()


@pytest.mark.parametrize(
    ("share", "rerun"),
    [(0.0, []), (0.25, [0, 3]), (0.5, [0, 3, 6, 7]), (1.0, range(8))],
)
@pytest.mark.parametrize(("signal", "higher"), [("certificate", "positive"), ("logprob", "negative")])
@pytest.mark.parametrize("margin", ["expected", "whole"])
def test_the_top_share_takes_the_full_cache(log, share, rerun, signal, higher, margin):
    again = kv.recompute(log, base="poisson", signal=signal, share=share, higher=higher, margin=margin)
    for budget, own in ((0.25, BASE), (0.5, HALF)):
        expected = [FULL[i] if i in rerun else own[i] for i in range(8)]
        assert outcomes(again, "recompute", budget) == expected
        assert outcomes(again, "recompute", budget, "success") == [score == 1 for score in expected]
    assert outcomes(again, "recompute", column="rerun") == [float(i in rerun) for i in range(8)]
    kept = [100 if i in rerun else 25 for i in range(8)]
    assert outcomes(again, "recompute", column="n_kept") == kept
    assert again.runs.filter(arm="poisson")["rerun"].null_count() == 16


def test_ties_at_the_limit_are_re_run_in_part(log):
    # Two runs have 3, two have 2: of the share 3 of 8, one of the latter two in expectation.
    again = kv.recompute(log, base="poisson", signal="tied", share=3 / 8)
    assert outcomes(again, "recompute", column="rerun") == [1, 0, 0, 1, 0, 0, 0.5, 0.5]
    assert outcomes(again, "recompute") == [1, 1, 0, 1, 1, 1, 0.5, 0.5]
    assert outcomes(again, "recompute", column="success") == [True, True, False, True, True, True, None, None]
    assert outcomes(again, "recompute", column="kept_fraction")[6:] == [0.625, 0.625]
    assert outcomes(again, "recompute", column="n_kept")[6:] == [None, None]
    assert outcomes(again, "recompute", column="n_prompt") == [100] * 8
    assert outcomes(again, "recompute", column="certificate")[6:] == [None, None]
    with pytest.raises(InputError, match="success is null in 2 of 8 rows"):
        induced_failure_rate(again, arm="recompute", where="budget = 0.25")


def test_whole_runs_only_follow_the_order_of_keys(log):
    again = kv.recompute(log, base="poisson", signal="tied", share=3 / 8, margin="whole")
    assert outcomes(again, "recompute", column="rerun") == [1, 0, 0, 1, 0, 0, 1, 0]
    less = kv.recompute(log, base="poisson", signal="tied", share=0.49, margin="whole")
    assert outcomes(less, "recompute", column="rerun") == outcomes(again, "recompute", column="rerun")
    assert (
        induced_failure_rate(again, arm="recompute", where="budget = 0.25").frame["estimate"].item() == 1 / 6
    )


def test_a_share_of_a_run_is_expected_too(log):
    again = kv.recompute(log, base="poisson", signal="certificate", share=0.3)
    assert outcomes(again, "recompute", column="rerun") == pytest.approx([1, 0, 0, 1, 0, 0, 0.4, 0])


def test_budgets_models_and_seeds_are_ranked_apart_unless_told(log):
    # At budget 0.5 the same certificates: half of all runs is half of each budget's, and ties are split.
    pooled = kv.recompute(log, base="poisson", signal="certificate", share=1 / 16, within=None)
    assert outcomes(pooled, "recompute", column="rerun") == [0.5, 0, 0, 0, 0, 0, 0, 0]
    apart = kv.recompute(log, base="poisson", signal="certificate", share=1 / 8)
    assert outcomes(apart, "recompute", column="rerun") == [1, 0, 0, 0, 0, 0, 0, 0]
    by_tie = kv.recompute(log, base="poisson", signal="certificate", share=0.5, within=["budget", "tied"])
    assert outcomes(by_tie, "recompute", column="rerun") == [1, 0, 0, 0, 1, 1, 1, 0]
    same = kv.recompute(log, base="poisson", signal="certificate", share=0.5, within="budget")
    assert outcomes(same, "recompute") == outcomes(
        kv.recompute(log, base="poisson", signal="certificate", share=0.5), "recompute"
    )


def test_seeds_are_ranked_apart_by_default(make_records):
    records = make_records({"full": {1.0: FULL}})
    for seed, lift in ((0, 0), (1, 10)):
        certificate = [value + lift for value in CERTIFICATE]
        records += make_records({"poisson": {0.25: BASE}}, signals={"certificate": certificate}, seed=seed)
    again = kv.recompute(log_from_records(records), base="poisson", signal="certificate", share=0.25)
    for seed in (0, 1):
        rows = again.runs.filter(arm="recompute", seed=seed).sort("input_id")
        assert rows["rerun"].to_list() == [1, 0, 0, 1, 0, 0, 0, 0]


def test_numbers_of_numpy_are_numbers(log):
    again = kv.recompute(log, base="poisson", signal="certificate", share=np.float32(0.25))
    assert outcomes(again, "recompute", column="rerun") == [1, 0, 0, 1, 0, 0, 0, 0]
    raised = kv.escalate(log, base="poisson", to_budget=0.5, signal="certificate", tau=np.int64(7))
    assert outcomes(raised, "escalate", column="rerun") == [1, 0, 0, 1, 0, 0, 0, 0]


def test_a_run_without_a_budget_has_no_larger_one(log):
    runs = log.runs.with_columns(
        budget=pl.when((pl.col("arm") == "poisson") & (pl.col("input_id") == "i003"))
        .then(None)
        .otherwise("budget"),
        budget_tokens=pl.when(pl.col("budget") == 0.25).then(64).otherwise(128),
    )
    odd = log.with_runs(runs)
    message = (
        "{}: base='poisson' has no budget in 2 of 16 rows, such as (suite=s, model=m, task=qa, input_id=i003"
    )
    with pytest.raises(InputError, match=re.escape(message.format("escalate"))):
        kv.escalate(odd, base="poisson", to_budget=0.5, signal="certificate", share=0.5)
    with pytest.raises(InputError, match=re.escape(message.format("random_gate"))):
        kv.random_gate(odd, base="poisson", to_budget=0.5, share=0.5)


def test_the_signal_may_be_of_the_input(make_log):
    log = make_log({"full": {1.0: FULL}, "poisson": {0.25: BASE}}, drop=[0.1 * i for i in range(8)])
    again = kv.recompute(log, base="poisson", signal="drop", share=0.25, higher="negative")
    assert outcomes(again, "recompute", column="rerun") == [1, 1, 0, 0, 0, 0, 0, 0]
    assert set(again.runs.columns) == {*log.runs.columns, "rerun"}


def test_a_policy_on_a_policy(log):
    once = kv.recompute(log, base="poisson", signal="certificate", share=0.25, name="once")
    twice = kv.recompute(once, base="once", signal="logprob", share=0.125, higher="positive", name="twice")
    assert outcomes(twice, "twice", column="rerun") == [0, 1, 0, 0, 0, 0, 0, 0]
    assert outcomes(twice, "twice") == [1, 1, 0, 1, 1, 1, 0, 0]


def test_random_is_the_exact_expectation(log):
    gated = kv.random_gate(log, base="poisson", share=0.25)
    assert outcomes(gated, "random") == [0.25 * f + 0.75 * b for f, b in zip(FULL, BASE, strict=True)]
    assert outcomes(gated, "random", column="kept_fraction") == [0.25 + 0.75 * 0.25] * 8
    assert outcomes(gated, "random", column="success") == [
        bool(f) if f == b else None for f, b in zip(FULL, BASE, strict=True)
    ]
    assert outcomes(gated, "random", column="logprob") == [None] * 8
    found = accuracy(gated, arm="random", where="budget = 0.25").frame["estimate"].item()
    assert found == pytest.approx(0.25 * sum(FULL) / 8 + 0.75 * sum(BASE) / 8, abs=1e-15)
    for share, expected in ((0.0, BASE), (1.0, FULL)):
        assert outcomes(kv.random_gate(log, base="poisson", share=share), "random") == expected


def test_the_gain_over_random_is_a_paired_difference(log):
    both = kv.random_gate(
        kv.recompute(log, base="poisson", signal="certificate", share=0.25), base="poisson", share=0.25
    )
    found = delta(both, arm="recompute", baseline="random", by="budget").frame
    part = [1, 0, 0, 1, 0, 0, 0, 0]
    for row, base in zip(found.iter_rows(named=True), (BASE, HALF), strict=True):
        gains = [(a - 0.25) * (f - b) for a, f, b in zip(part, FULL, base, strict=True)]
        assert row["estimate"] == pytest.approx(sum(gains) / 8, abs=1e-15)
        assert row["low"] < row["estimate"] < row["high"]


def test_escalation_takes_the_larger_budget(log):
    raised = kv.escalate(log, base="poisson", to_budget=0.5, signal="certificate", share=0.5)
    assert outcomes(raised, "escalate") == [HALF[i] if i in (0, 3, 6, 7) else BASE[i] for i in range(8)]
    assert outcomes(raised, "escalate", column="n_kept") == [
        50 if i in (0, 3, 6, 7) else 25 for i in range(8)
    ]
    assert raised.runs.filter(arm="escalate")["budget"].unique().to_list() == [0.25]
    for higher, signal, tau in (("positive", "certificate", 7), ("negative", "logprob", -7)):
        flagged = kv.escalate(log, base="poisson", to_budget=0.5, signal=signal, tau=tau, higher=higher)
        assert outcomes(flagged, "escalate", column="rerun") == [1, 0, 0, 1, 0, 0, 0, 0]


def test_escalation_keeps_to_the_seed():
    log = log_from_records(
        [
            RunRecord(
                suite="s",
                model="m",
                task="t",
                input_id=str(i),
                arm="poisson",
                budget=budget,
                seed=seed,
                score=seed + budget,
                signals={"certificate": 1.0},
            )
            for i in range(2)
            for budget in (0.25, 0.5)
            for seed in (0, 1)
        ]
    )
    raised = kv.escalate(log, base="poisson", to_budget=0.5, signal="certificate", share=1.0)
    assert raised.runs.filter(arm="escalate").sort("seed")["score"].to_list() == [0.5, 0.5, 1.5, 1.5]
    random = kv.random_gate(log, base="poisson", share=0.5, to_budget=0.5)
    assert random.runs.filter(arm="random").sort("seed")["score"].to_list() == [0.375] * 2 + [1.375] * 2


def test_another_arm_may_answer(log):
    raised = kv.escalate(log, base="poisson", to_budget=0.5, signal="certificate", share=1.0, name="half")
    random = kv.random_gate(log, base="poisson", share=0.25, to_budget=0.5)
    assert outcomes(random, "random") == [0.25 * h + 0.75 * b for h, b in zip(HALF, BASE, strict=True)]
    with pytest.raises(InputError, match="recompute: full='half' has no run for 2 rows"):
        kv.recompute(raised, base="poisson", signal="certificate", share=0.25, full="half")


AGAIN = {"base": "poisson", "signal": "certificate", "share": 0.2}
RANDOM = {"base": "poisson", "share": 0.1}
RAISED = {"base": "poisson", "signal": "certificate", "to_budget": 0.5}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"share": 1.2}, "recompute: share=1.2 is not in [0, 1]"),
        ({"share": True}, "recompute: share=True is not in [0, 1]"),
        ({"base": "posson"}, "recompute: base='posson' is not an arm of the log; did you mean 'poisson'?"),
        ({"signal": "certificat"}, "did you mean 'certificate'?"),
        ({"signal": "task"}, "recompute: signal='task' is not a numeric column"),
        ({"higher": "up"}, "recompute: higher='up' is not known"),
        ({"margin": "all"}, "recompute: margin='all' is not known"),
        ({"within": ["tsk"]}, "recompute: within='tsk' is not a column"),
        ({"within": "references"}, "recompute: within='references' is a column of lists"),
        (
            {"within": ["task", "task"]},
            "recompute: within=['task', 'task'] is not a list of different columns",
        ),
        ({"within": []}, "recompute: within=[] is not a list of different columns"),
        ({"name": "full"}, "recompute: name='full' is taken"),
        ({"full": "ful"}, "recompute: full='ful' is not an arm"),
    ],
)
def test_bad_input_of_recomputation(log, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        kv.recompute(log, **(AGAIN | arguments))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"share": -0.1}, "random_gate: share=-0.1 is not in [0, 1]"),
        (
            {"to_budget": 0.7},
            "random_gate: to_budget=0.7 is no budget of arm 'poisson'; it has 0.25, 0.5",
        ),
        ({"to_budget": "half"}, "random_gate: to_budget='half' is not a number; it has 0.25, 0.5"),
    ],
)
def test_bad_input_of_random_gating(log, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        kv.random_gate(log, **(RANDOM | arguments))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"to_budget": 0.25, "share": 0.1},
            "escalate: to_budget=0.25 is the smallest budget of arm 'poisson'",
        ),
        ({}, "escalate: share=None and tau=None: one limit is needed"),
        ({"share": 0.1, "tau": 1.0}, "escalate: share=0.1 and tau=1.0: one limit is needed"),
        ({"tau": float("nan")}, "escalate: tau=nan is not a number"),
        ({"tau": 1.0, "higher": "up"}, "escalate: higher='up' is not known"),
    ],
)
def test_bad_input_of_escalation(log, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        kv.escalate(log, **(RAISED | arguments))


def test_what_cannot_be_ranked_or_re_run_is_an_error(make_log):
    log = make_log({"full": {1.0: [1, 1]}, "p": {0.25: [0, 1]}}, signals={"certificate": [None, 1.0]})
    with pytest.raises(InputError, match="recompute: signal='certificate' is null for 1 of 2 rows"):
        kv.recompute(log, base="p", signal="certificate", share=0.5)
    log = make_log({"full": {1.0: [1, 1]}, "p": {0.25: [0, 1]}}, signals={"certificate": [2.0, 1.0]})
    less = log.with_runs(log.runs.filter(~((log.runs["arm"] == "full") & (log.runs["input_id"] == "i000"))))
    with pytest.raises(InputError, match="recompute: full='full' has no run for 1 rows"):
        kv.recompute(less, base="p", signal="certificate", share=0.5)
    # A run that is never re-run needs no other.
    assert kv.recompute(less, base="p", signal="certificate", share=0.0).runs.height == 5
    with pytest.raises(InputError, match="random_gate: full='full' has no run for 1 rows"):
        kv.random_gate(less, base="p", share=0.5)
