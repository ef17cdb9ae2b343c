import re

import pytest
from scipy import stats

from kvstats.errors import InputError
from kvstats.estimators import accuracy, harm_rate, induced_failure_rate, recovery_rate
from kvstats.inference import Design
from kvstats.log import log_from_records

FULL = [1, 1, 1, 1, 0.5, 0, 0, 1]
QUARTER = [0, 1, 0.5, 1, 1, 0, 0, 1]
HALF = [1, 1, 1, 1, 0.5, 0.25, 0, 1]


@pytest.fixture
def log(make_log):
    return make_log({"full": {1.0: FULL}, "a": {0.25: QUARTER, 0.5: HALF, 1.0: FULL}})


def only(result):
    assert result.frame.height == 1
    return result.frame.row(0, named=True)


def test_accuracy_is_the_mean_score_or_the_share_of_successes(log):
    by_budget = accuracy(log, arm="a", by="budget").frame
    assert by_budget["estimate"].to_list() == pytest.approx([4.5 / 8, 5.75 / 8, 5.5 / 8])
    assert only(accuracy(log, arm="a"))["estimate"] == pytest.approx(15.75 / 24)
    successes = only(accuracy(log, arm="a", outcome="success", where="budget = 0.25"))
    assert successes["estimate"] == 0.5
    assert successes["n"] == 8


def test_accuracy_of_whole_scores_has_a_korn_graubard_interval_and_of_others_a_linear_one(log):
    share = only(accuracy(log, arm="a", outcome="success", where="budget = 0.25"))
    assert (share["low"], share["high"]) == pytest.approx(
        (stats.beta.ppf(0.025, 3.5, 4.5), stats.beta.ppf(0.975, 4.5, 3.5))  # effective size 7
    )
    scores = only(accuracy(log, arm="a", where="budget = 0.25"))
    reference = stats.ttest_1samp(QUARTER, 0).confidence_interval()
    assert (scores["low"], scores["high"]) == pytest.approx(tuple(reference))


def test_accuracy_without_a_failure_is_no_certainty(make_log):
    row = only(accuracy(make_log({"a": {0.5: [1] * 20}})))
    exact = stats.binomtest(20, 20).proportion_ci(method="exact")
    assert (row["estimate"], row["low"], row["high"]) == pytest.approx((1, exact.low, 1))


def test_accuracy_of_full_where_plain_stands_for_it(make_log):
    log = make_log({"plain": {1.0: [1, 1, 0, 1], 0.5: [0, 0, 0, 1]}})
    assert only(accuracy(log, arm="full"))["estimate"] == 0.75
    assert only(accuracy(log, arm="plain"))["estimate"] == 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"outcome": "scores"}, "accuracy: outcome='scores' is not known; did you mean 'score'?"),
        (
            {},
            "accuracy: score is null in 2 of 4 rows, such as (suite=s, model=m, task=qa, input_id=i001, "
            "arm=a, budget=0.5, seed=0)",
        ),
        ({"outcome": "success"}, "accuracy: success is null in 2 of 4 rows"),
    ],
)
def test_accuracy_refuses_unknown_and_null_outcomes(make_log, arguments, message):
    log = make_log({"a": {0.5: [1, None, None, 0]}})
    with pytest.raises(InputError, match=re.escape(message)):
        accuracy(log, **arguments)
    assert only(accuracy(log, where="score IS NOT NULL"))["n"] == 2


def test_harm_rate_is_the_share_below_the_twin(log):
    assert harm_rate(log, arm="a", by="budget").frame["estimate"].to_list() == [2 / 8, 0, 0]
    assert only(harm_rate(log, arm="a", where="budget < 1"))["estimate"] == 2 / 16
    assert only(harm_rate(log, arm="full", baseline="full"))["estimate"] == 0


def test_harm_rate_without_harm_has_an_upper_bound(log):
    row = only(harm_rate(log, arm="a", where="budget = 0.5"))
    assert (row["low"], row["se"], row["status"]) == (0, None, "ok")
    assert row["high"] == pytest.approx(stats.binomtest(0, 8).proportion_ci(method="exact").high)


def test_harm_against_another_arm(make_log):
    log = make_log({"a": {0.5: [0, 1, 1]}, "b": {0.5: [1, 1, 0]}})
    assert only(harm_rate(log, arm="a", baseline="b"))["estimate"] == 1 / 3


def test_induced_failures_are_counted_among_successes_of_the_twin(log):
    row = only(induced_failure_rate(log, arm="a", where="budget = 0.25"))
    assert (row["estimate"], row["n"]) == (2 / 5, 5)
    assert only(induced_failure_rate(log, arm="a", where="budget = 0.25 AND score < 0.1"))["n"] == 1


def test_no_success_of_the_twin_leaves_no_population(make_log):
    row = only(induced_failure_rate(make_log({"full": {1.0: [0, 0]}, "a": {0.5: [1, 0]}}), arm="a"))
    assert (row["estimate"], row["n"], row["status"]) == (None, 0, "no rows")


@pytest.mark.parametrize(("column", "arm"), [("success", "a"), ("baseline_success", "full")])
def test_unknown_successes_are_refused(make_records, column, arm):
    records = [
        *make_records({"full": {1.0: [1, 1]}}, **({"success": None} if arm == "full" else {})),
        *make_records({"a": {0.5: [1, 0]}}, **({"success": None} if arm == "a" else {})),
    ]
    with pytest.raises(InputError, match=f"induced_failure_rate: {column} is null in 2 of 2 rows"):
        induced_failure_rate(log_from_records(records), arm="a")


def test_recovery_rate_is_over_inputs_and_budgets_below_one(log):
    row = only(recovery_rate(log, arm="a"))
    assert (row["estimate"], row["n"], row["clusters"]) == (2 / 8, 8, 8)
    assert only(recovery_rate(log, arm="a", where="budget = 0.5"))["estimate"] == 1 / 8
    assert recovery_rate(log, arm="a", by="budget").frame.select("budget", "estimate", "n").rows() == [
        (0.25, 1 / 8, 8),
        (0.5, 1 / 8, 8),
    ]


def test_gains_at_budget_one_are_no_recovery_and_token_budgets_are_below_it(make_records):
    noise = make_records({"full": {1.0: [0, 0]}, "a": {1.0: [1, 1], 0.5: [0, 1]}})
    assert only(recovery_rate(log_from_records(noise), arm="a"))["estimate"] == 0.5
    tokens = [
        *make_records({"full": {1.0: [0, 0]}}),
        *make_records({"a": {0.5: [0, 1]}}, budget=None, budget_tokens=64),
    ]
    assert only(recovery_rate(log_from_records(tokens), arm="a"))["estimate"] == 0.5


def test_the_published_wilson_interval_of_a_recovery_rate(make_log):
    log = make_log({"full": {1.0: [0] * 100}, "a": {0.5: [1] * 6 + [0] * 94, 0.25: [0] * 100}})
    row = only(recovery_rate(log, arm="a", design=Design(interval="wilson")))
    assert (row["estimate"], row["n"]) == (0.06, 100)
    assert (round(row["low"], 4), round(row["high"], 4)) == (0.0278, 0.1248)


def test_recovery_carries_clusters_and_weights_of_inputs_and_refuses_those_of_runs(make_log):
    log = make_log(
        {"full": {1.0: [0, 0, 0]}, "a": {0.5: [1, 0, 0], 0.25: [0, 0, 1]}}, signals={"w": [1.0, 2.0, 5.0]}
    )
    row = only(recovery_rate(log, arm="a", design=Design(weight="w", cluster=["n_prompt", "input_id"])))
    assert (row["estimate"], row["clusters"]) == (6 / 8, 3)
    message = (
        "recovery_rate: design='n_kept' differs between runs of one input, and the estimate is over inputs"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        recovery_rate(log, arm="a", design=Design(weight="n_kept"))


def test_recovery_rate_takes_strata_that_an_input_has_one_value_of(log, make_log):
    one = only(recovery_rate(log, arm="a", design=Design(strata="condition")))
    assert (one["estimate"], one["df"]) == (pytest.approx(only(recovery_rate(log, arm="a"))["estimate"]), 7)
    message = "recovery_rate: design='budget' differs between runs of one input"
    with pytest.raises(InputError, match=re.escape(message)):
        recovery_rate(log, arm="a", design=Design(strata="budget"))
