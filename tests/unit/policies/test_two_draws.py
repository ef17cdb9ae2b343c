import re

import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.estimators import auc
from kvstats.log import RunRecord, log_from_records
from kvstats.policies.token_overlap import token_f1

SIGNALS = ["partner_success", "draw_score_gap", "draw_disagreement", "draw_f1_gap"]


def run(number, seed, score, prediction, **fields):
    defaults = {"arm": "poisson", "budget": 0.5, "success": None if score is None else score >= 1}
    return RunRecord(
        suite="s",
        model="m",
        task="t",
        input_id=str(number),
        seed=seed,
        score=score,
        prediction=prediction,
        **(defaults | fields),
    )


def drawn(*records):
    log = kv.two_draws(log_from_records(records), base="poisson")
    return log.runs.filter(arm="two_draws").sort("input_id", "seed")


def test_each_run_hears_of_the_others():
    rows = drawn(
        run(1, 0, 1.0, "The code is 12."),
        run(1, 1, 0.5, "the code is 13"),
        run(1, 2, 0.0, "no code"),
        run(2, 0, 1.0, "A b"),
        run(2, 1, 1.0, "a, b!"),
    )
    assert rows["partner_success"].to_list() == [0, 0.5, 0.5, 1, 1]
    assert rows["draw_score_gap"].to_list() == [0.75, 0.5, 0.75, 0, 0]
    assert rows["draw_disagreement"].to_list() == [1, 1, 1, 0, 0]
    near, far = 1 - 6 / 8, 1 - 2 / 6
    expected = [(near + far) / 2, (near + far) / 2, far, 0, 0]
    assert rows["draw_f1_gap"].to_list() == pytest.approx(expected)
    assert rows["score"].to_list() == [1, 0.5, 0, 1, 1]


def test_budgets_and_inputs_are_kept_apart():
    rows = drawn(
        run(1, 0, 1.0, "a"), run(1, 1, 0.0, "b"), run(1, 0, 0.0, "c", budget=0.25), run(2, 0, 0.0, "a")
    )
    known = rows.filter(rows["partner_success"].is_not_null())
    assert known.select("input_id", "budget").rows() == [("1", 0.5), ("1", 0.5)]
    assert rows.height == 4


def test_what_is_not_known_of_a_side_is_null():
    rows = drawn(run(1, 0, 1.0, None), run(1, 1, 0.0, "a"), run(2, 0, None, "a"), run(2, 1, 1.0, "a"))
    assert rows["draw_f1_gap"].to_list() == [None, None, 0, 0]
    assert rows["draw_disagreement"].to_list() == [None, None, 0, 0]
    assert rows["draw_score_gap"].to_list() == [1, 1, None, None]
    assert rows["partner_success"].to_list() == [0, 1, 1, None]
    three = drawn(run(1, 0, 1.0, "a"), run(1, 1, None, "a"), run(1, 2, 1.0, "a"))
    assert three["partner_success"].to_list() == [None, 1, None]


def test_the_signals_serve_estimators_and_policies():
    records = []
    for i in range(30):
        outcomes = (float(i % 3 > 0), float(i % 5 > 0))
        records += [run(i, seed, score, f"answer {score}") for seed, score in enumerate(outcomes)]
        records.append(run(i, 0, 1.0, "answer 1.0", arm="full", budget=1.0))
    log = kv.two_draws(log_from_records(records), base="poisson")
    assert set(SIGNALS) <= set(log.run_signals)
    assert log.runs.filter(arm="poisson")["draw_disagreement"].null_count() == 60
    # Both draws of an input share the disagreement, and one of them is right.
    row = auc(log, signal="draw_disagreement", arm="two_draws").frame.row(0, named=True)
    failed = [i % 3 == 0 for i in range(30)] + [i % 5 == 0 for i in range(30)]
    differ = [(i % 3 == 0) != (i % 5 == 0) for i in range(30)] * 2
    pairs = [
        (d, e)
        for d, f in zip(differ, failed, strict=True)
        if f
        for e, g in zip(differ, failed, strict=True)
        if not g
    ]
    assert row["estimate"] == pytest.approx(sum((d > e) + (d == e) / 2 for d, e in pairs) / len(pairs))
    gated = kv.retrieve(log, base="two_draws", signal="draw_disagreement", tau=0.5)
    assert gated.runs.filter(arm="retrieve")["score"].sum() == 60 - 2 * sum(i % 15 == 0 for i in range(30))
    share = sum(differ) / 60
    again = kv.recompute(log, base="two_draws", signal="draw_disagreement", share=share)
    assert again.runs.filter(arm="recompute")["rerun"].sum() == pytest.approx(60 * share)


def test_a_second_arm_can_be_drawn_too():
    log = log_from_records([run(1, s, 1.0, "a", arm=arm) for arm in ("poisson", "other") for s in (0, 1)])
    once = kv.two_draws(log, base="poisson")
    both = kv.two_draws(once, base="other", name="others")
    assert both.runs.filter(arm="others")["draw_f1_gap"].to_list() == [0, 0]
    assert both.runs.filter(arm="two_draws")["draw_f1_gap"].to_list() == [0, 0]
    with pytest.raises(
        InputError, match="two_draws: log='partner_success' is a signal of arm 'two_draws' already"
    ):
        kv.two_draws(both, base="two_draws", name="again")


@pytest.mark.parametrize(
    ("records", "arguments", "message"),
    [
        ([run(1, 0, 1.0, "a")], {}, "two_draws: base='poisson' has one seed for each input and budget"),
        ([run(1, 0, 1.0, "a")], {"base": "poison"}, "did you mean 'poisson'?"),
        ([run(1, 0, 1.0, "a")], {"name": "poisson"}, "two_draws: name='poisson' is taken"),
        ([run(1, 0, 1.0, "a")] * 2, {}, "2 runs share their key"),
    ],
)
def test_bad_input(records, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        kv.two_draws(log_from_records(records), **({"base": "poisson"} | arguments))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("a a b", "a b b", 2 * 2 / 6),
        ("", "", 1.0),
        ("!", "a", 0.0),
        ("Straße", "STRASSE", 1.0),
        ("x", "y", 0.0),
        ("1 2 3", "3, 2; 1", 1.0),
    ],
)
def test_token_f1(first, second, expected):
    assert token_f1(first, second) == pytest.approx(expected)
    assert token_f1(second, first) == token_f1(first, second)
