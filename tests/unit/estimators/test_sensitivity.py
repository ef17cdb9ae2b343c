import re

import pytest

from kvstats.errors import InputError
from kvstats.estimators import induced_failure_rate, prevalence, sensitivity
from kvstats.inference import Design
from kvstats.log import InputRecord, RunRecord, log_from_records
from kvstats.policies import Threshold, z_threshold

FULL = [1, 1, 1, 0, 1, 0]
SCORES = {"full": {1.0: FULL}, "a": {0.0625: [0, 1, 0, 1, 0, 0], 0.5: [0, 0, 1, 0, 1, 0], 1.0: FULL}}
DROP = [0.05, 0.02, 0.09, 0.01, 0.03, 0.02]


def only(result):
    return result.frame.row(0, named=True)


def test_destroyed_at_the_smallest_budget_among_the_answered(make_log):
    row = only(sensitivity(make_log(SCORES), arm="a"))
    assert (row["estimate"], row["n"], row["clusters"]) == (0.75, 4, 4)


def test_it_is_the_rate_of_induced_failures_there(make_log):
    log = make_log(SCORES)
    expected = only(induced_failure_rate(log, arm="a", where="budget = 0.0625"))
    assert only(sensitivity(log, arm="a")) == expected
    at_half = only(induced_failure_rate(log, arm="a", where="budget = 0.5"))
    assert only(sensitivity(log, arm="a", where="budget > 0.1")) == at_half


def test_budget_one_is_never_the_smallest(make_log):
    log = make_log({"full": {1.0: [1, 1]}, "a": {1.0: [0, 0]}})
    assert only(sensitivity(log, arm="a"))["status"] == "no rows"


def test_each_part_has_its_own_smallest_budget(make_records):
    records = [
        *make_records({"full": {1.0: [1, 1]}, "a": {0.25: [0, 1], 0.5: [1, 1]}}, task="qa"),
        *make_records({"full": {1.0: [1, 1]}, "a": {0.5: [0, 0]}}, task="vt"),
    ]
    log = log_from_records(records)
    assert sensitivity(log, arm="a", by="task").frame["estimate"].to_list() == [0.5, 1.0]
    assert sensitivity(log, arm="a", by=["task", "budget"]).frame["estimate"].to_list() == [0.5, 0.0, 1.0]
    message = (
        "sensitivity: 2 inputs have no run at the smallest budget of their part, such as (suite=s, model=m, "
        "task=vt, input_id=i000)"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        sensitivity(log, arm="a")
    assert only(sensitivity(log, arm="a", where="budget = 0.5"))["estimate"] == 0.5


def test_budgets_in_tokens(make_records):
    records = [
        *make_records({"full": {1.0: [1, 1]}}),
        *make_records({"a": {0.1: [0, 0]}}, budget=None, budget_tokens=64),
        *make_records({"a": {0.2: [1, 1]}}, budget=None, budget_tokens=128),
    ]
    assert only(sensitivity(log_from_records(records), arm="a"))["estimate"] == 1
    records += make_records({"a": {0.5: [1, 1]}})
    with pytest.raises(InputError, match="sensitivity: 4 of 6 budgets are in tokens and the others are"):
        sensitivity(log_from_records(records), arm="a")


def test_without_answers_there_is_nothing_to_destroy(make_log):
    log = make_log({"full": {1.0: [0, 0]}, "a": {0.5: [0, 1]}}, drop=[0.1, 0.2])
    assert only(sensitivity(log, arm="a"))["status"] == "no rows"
    assert only(prevalence(log, arm="a", tau=0.15))["estimate"] == 0


def test_unknown_successes_are_refused(make_records):
    records = make_records({"full": {1.0: [1, 1]}, "a": {0.5: [0, 1]}}, success=None)
    with pytest.raises(InputError, match="sensitivity: success is null in 2 of 2 rows"):
        sensitivity(log_from_records(records), arm="a")


def test_one_input_has_no_interval_and_none_no_rows(make_log):
    log = make_log({"full": {1.0: [1]}, "a": {0.5: [0]}})
    assert only(sensitivity(log, arm="a"))["status"] == "one cluster"
    assert only(sensitivity(log, arm="a", where="task = 'x'"))["status"] == "no rows"


@pytest.mark.parametrize("tau", [0.0, 0.02, 0.05, 0.06, 1.0])
def test_prevalence_by_definition(make_log, tau):
    log = make_log(SCORES, drop=DROP)
    lost = [full and not score for full, score in zip(FULL, SCORES["a"][0.0625], strict=True)]
    expected = sum(bool(hit) and drop < tau for hit, drop in zip(lost, DROP, strict=True)) / 6
    row = only(prevalence(log, arm="a", tau=tau, design=Design(interval="wilson")))
    assert (row["estimate"], row["n"]) == (pytest.approx(expected), 6)
    assert only(prevalence(log, arm="a", tau=Threshold(tau)))["estimate"] == row["estimate"]


def test_prevalence_takes_thresholds_as_the_gate_does(make_log):
    log = make_log(SCORES, drop=DROP)
    with pytest.raises(InputError, match=r"prevalence: tau=.* is a threshold of another signal than 'drop'"):
        prevalence(log, arm="a", tau=Threshold.given(0.1, signal="entropy"))
    with pytest.raises(InputError, match="prevalence: signal='dro' is not a numeric column"):
        prevalence(log, arm="a", tau=0.05, signal="dro")
    with pytest.raises(InputError, match="prevalence: signal='drop' is null for 6 inputs"):
        prevalence(make_log(SCORES), arm="a", tau=0.05)
    other = InputRecord(suite="s", model="n", task="qa", input_id="1", drop=0.05)
    runs = [
        RunRecord(suite="s", model="n", task="qa", input_id="1", arm=arm, budget=b, score=1.0, success=True)
        for arm, b in (("full", 1.0), ("a", 0.0625))
    ]
    both = log_from_records([other, *runs])
    with pytest.raises(InputError, match="was calibrated on other inputs than those of model=n"):
        prevalence(both, arm="a", tau=z_threshold(log))
