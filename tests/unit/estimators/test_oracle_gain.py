import re

import numpy as np
import polars as pl
import pytest

from kvstats.errors import InputError
from kvstats.estimators import accuracy, best_accuracy, delta, headroom_recovered
from kvstats.inference import Design
from kvstats.log import log_from_records
from kvstats.policies import gate, input_oracle

FULL = [1, 1, 1, 0, 1, 0, 1, 1]
EVICTED = {0.25: [0, 1, 0, 0, 1, 1, 0, 0], 0.5: [1, 1, 0, 0, 1, 0, 0, 1]}
DROP = [0.01, 0.09, 0.02, 0.09, 0.03, 0.09, 0.09, 0.09]


def only(result):
    assert result.frame.height == 1
    return result.frame.row(0, named=True)


@pytest.fixture
def gated(make_log):
    log = gate(make_log({"full": {1.0: FULL}, "a": EVICTED}, drop=DROP), tau=0.05, base="a")
    return input_oracle(log, base="a")


def test_the_share_is_a_ratio_of_gains(gated):
    gain = possible = 0
    for values in EVICTED.values():
        for whole, evicted, drop in zip(FULL, values, DROP, strict=True):
            gain += (whole if drop < 0.05 else evicted) - evicted
            possible += max(whole, evicted) - evicted
    row = only(headroom_recovered(gated, arm="gate", baseline="a"))
    assert (row["estimate"], row["n"], row["clusters"]) == (pytest.approx(gain / possible), 16, 8)
    # The same as a quotient of differences, whose interval knows their covariance.
    parts = [only(delta(gated, arm=arm, baseline="a"))["estimate"] for arm in ("gate", "input_oracle")]
    assert row["estimate"] == pytest.approx(parts[0] / parts[1])


def test_the_oracle_recovers_all_and_the_base_nothing(gated):
    row = only(headroom_recovered(gated, arm="input_oracle", baseline="a"))
    assert (row["estimate"], row["low"], row["status"]) == (1, None, "zero variance")
    assert only(headroom_recovered(gated, arm="a", baseline="a"))["estimate"] == 0


def test_a_condition_is_on_the_arm_and_not_on_the_oracle(gated):
    opened = only(headroom_recovered(gated, arm="gate", baseline="a", where="NOT gate_open"))
    assert opened["n"] == 6
    assert opened["estimate"] == 1


def test_without_headroom_there_is_no_share(make_log):
    log = make_log({"full": {1.0: [1, 0]}, "a": {0.5: [1, 0]}}, drop=[0.1, 0.0])
    log = input_oracle(gate(log, tau=0.05, base="a"), base="a")
    row = only(headroom_recovered(log, arm="gate", baseline="a"))
    assert (row["estimate"], row["status"]) == (None, "undefined")
    assert only(headroom_recovered(log, arm="gate", baseline="a", where="budget > 1"))["status"] == "no rows"


def test_success_is_an_outcome_too(make_log):
    log = make_log({"full": {1.0: [1, 0.5]}, "a": {0.5: [0.5, 0.4]}}, drop=[0.1, 0.0])
    log = input_oracle(gate(log, tau=0.05, base="a"), base="a", outcome="success")
    row = only(headroom_recovered(log, arm="gate", baseline="a", outcome="success"))
    assert row["estimate"] == 0


def test_an_oracle_must_know_every_row(gated, make_records):
    with pytest.raises(
        InputError, match=re.escape("headroom_recovered: oracle='oracle' is not an arm of the log")
    ):
        headroom_recovered(gated, arm="gate", baseline="a", oracle="oracle")
    records = [
        *make_records({"full": {1.0: [1, 1]}, "a": {0.5: [0, 1]}, "b": {0.25: [0, 1]}}, drop=[0.1, 0.0]),
    ]
    log = input_oracle(log_from_records(records), base="b")
    with pytest.raises(InputError, match="oracle='input_oracle' has no score for 2 rows of 'a', such as"):
        headroom_recovered(log, arm="a", baseline="a")
    oracle = pl.col("arm") == "input_oracle"
    nulled = log.with_runs(log.runs.with_columns(score=pl.when(~oracle).then("score")))
    with pytest.raises(InputError, match="oracle='input_oracle' has no score for 2 rows of 'b', such as"):
        headroom_recovered(nulled, arm="b", baseline="b")


def log_of(make_log, budgets, seed=0, size=60, arm="a"):
    generator = np.random.default_rng(seed)
    scores = {budget: (generator.random(size) < p).astype(float).tolist() for budget, p in budgets.items()}
    return make_log({arm: scores})


def test_the_best_of_clearly_different_budgets_is_its_mean(make_log):
    log = log_of(make_log, {0.25: 0.1, 0.5: 0.9, 0.75: 0.3})
    best = accuracy(log, where="budget = 0.5").frame["estimate"].item()
    row = only(best_accuracy(log))
    assert (row["estimate"], row["n"], row["clusters"]) == (pytest.approx(best), 180, 60)
    sample = best_accuracy(log).samples[0]
    assert sample.statistic.chosen(sample.weights).tolist() == [1] * 5


def test_choosing_and_judging_on_the_same_rows_is_too_kind(make_log):
    equal = dict.fromkeys((0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8), 0.5)
    crossed, greedy = [], []
    for seed in range(25):
        log = log_of(make_log, equal, seed)
        crossed.append(only(best_accuracy(log))["estimate"])
        greedy.append(only(best_accuracy(log, folds=1))["estimate"])
        by_budget = accuracy(log, by="budget").frame["estimate"]
        assert greedy[-1] == pytest.approx(by_budget.max())
    assert np.mean(greedy) > 0.57  # every budget's true rate is 0.5
    assert abs(np.mean(crossed) - 0.5) < 0.03


def test_arms_are_compared_at_their_own_budgets(make_log):
    log = make_log(
        {
            "gate": {0.25: [1, 1, 1, 0] * 5, 0.5: [1, 0, 0, 0] * 5},
            "plain": {0.25: [0] * 20, 0.5: [1, 1, 0, 0] * 5},
        }
    )
    result = best_accuracy(log, by="arm").contrast(arm=("gate", "plain"))
    assert only(result)["estimate"] == pytest.approx(0.25)
    assert only(best_accuracy(log, over="arm", where="budget = 0.5"))["estimate"] == pytest.approx(0.5)


def test_bootstrap_replicates_choose_for_themselves(make_log):
    log = log_of(make_log, {0.25: 0.5, 0.5: 0.5})
    chosen = only(best_accuracy(log, folds=1, design=Design(interval="percentile")))
    fixed = accuracy(log, by="budget", design=Design(interval="percentile")).frame
    assert chosen["low"] >= max(fixed["low"]) - 0.02
    assert chosen["low"] > min(fixed["low"])


def test_one_cluster_cannot_choose_for_itself(make_log):
    row = only(best_accuracy(make_log({"a": {0.25: [1], 0.5: [0]}})))
    assert (row["estimate"], row["status"]) == (None, "undefined")
    assert only(best_accuracy(make_log({"a": {0.5: [1, 1, 0]}})))["estimate"] == pytest.approx(2 / 3)
    assert only(best_accuracy(make_log({"a": {0.5: [1]}}), where="budget > 1"))["status"] == "no rows"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"folds": 0}, "best_accuracy: folds=0 is not a whole number of at least 1"),
        ({"over": "budgets"}, "best_accuracy: over='budgets' is not a column; did you mean 'budget'?"),
        ({"by": "budget"}, "best_accuracy: over='budget' is also named in by"),
        ({"outcome": "f1", "arm": "a"}, "best_accuracy: outcome='f1' is not known"),
        ({}, "best_accuracy: the rows differ in arm (a, b), and pooling them estimates nothing"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(make_log, arguments, message):
    log = make_log({"a": {0.5: [1, 0]}, "b": {0.5: [1, 0]}})
    with pytest.raises(InputError, match=re.escape(message)):
        best_accuracy(log, **arguments)
