import re

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from kvstats.errors import InputError
from kvstats.estimators import auc
from kvstats.log import log_from_records

FULL = [1, 1, 1, 1, 0, 0, 1, 1]
ARM = [0, 1, 0, 1, 0, 1, 1, 0]
MARGIN = [0.1, 0.9, 0.6, 0.5, 0.2, 0.8, 0.3, 0.3]


@pytest.fixture
def log(make_log):
    return make_log(
        {"full": {1.0: FULL}, "a": {0.5: ARM}}, drop=[0.01 * i for i in range(8)], signals={"margin": MARGIN}
    )


def only(result):
    assert result.frame.height == 1
    return result.frame.row(0, named=True)


def test_own_failure(log):
    row = only(auc(log, signal="margin", arm="a"))
    assert row["estimate"] == pytest.approx(roc_auc_score(np.array(ARM) < 1, MARGIN))
    assert row["n"] == 8


def test_induced_failure_is_among_successes_of_the_twin(log):
    chosen = np.array(FULL) == 1
    row = only(auc(log, signal="margin", outcome="induced_failure", arm="a", higher="negative"))
    expected = 1 - roc_auc_score(np.array(ARM)[chosen] < 1, np.array(MARGIN)[chosen])
    assert (row["estimate"], row["n"]) == (pytest.approx(expected), 6)


@pytest.mark.parametrize(
    ("signal", "outcome", "values", "labels"),
    [
        ("drop", "harm", range(8), [True, False, True, False, False, False, False, True]),
        ("drop", "help", range(8), [False] * 5 + [True] + [False] * 2),
        ("baseline_score", "success", FULL, np.array(ARM) == 1),
        ("score", "baseline_success", ARM, np.array(FULL) == 1),
    ],
)
def test_any_number_against_any_boolean(log, signal, outcome, values, labels):
    row = only(auc(log, signal=signal, outcome=outcome, arm="a"))
    assert row["estimate"] == pytest.approx(roc_auc_score(labels, list(values)))


def test_the_null_hypothesis_is_one_half(make_log):
    log = make_log(
        {"full": {1.0: [1] * 30}, "a": {0.5: [i % 2 for i in range(30)]}},
        signals={"margin": [i % 7 for i in range(30)]},
    )
    result = auc(log, signal="margin", arm="a")
    assert result.null == 0.5
    row = only(result)
    p = result.p_value()["p_value"].item()
    assert (p < 0.05) == (not row["low"] <= 0.5 <= row["high"])
    assert p == pytest.approx(result.p_value(null=0.5)["p_value"].item())


def test_one_class_and_perfect_separation(make_log):
    same = make_log({"full": {1.0: [1] * 4}, "a": {0.5: [1] * 4}}, signals={"margin": [1, 2, 3, 4]})
    assert only(auc(same, signal="margin", arm="a"))["status"] == "one class"
    apart = make_log({"full": {1.0: [1] * 4}, "a": {0.5: [0, 0, 1, 1]}}, signals={"margin": [4, 3, 2, 1]})
    row = only(auc(apart, signal="margin", arm="a"))
    assert (row["estimate"], row["low"], row["se"], row["status"]) == (1, None, None, "zero variance")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"signal": "marginn"}, "auc: signal='marginn' is not a numeric column of the pairs; did you mean"),
        ({"signal": "task"}, "auc: signal='task' is not a numeric column of the pairs"),
        ({"outcome": "induced"}, "auc: outcome='induced' is not a Boolean column of the pairs"),
        ({"outcome": "score"}, "auc: outcome='score' is not a Boolean column of the pairs"),
        ({"higher": "negativ"}, "auc: higher='negativ' is not known; did you mean 'negative'?"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(log, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        auc(log, **({"signal": "margin", "arm": "a"} | arguments))


def test_null_signals_are_counted_within_the_population(make_log):
    log = make_log(
        {"full": {1.0: [1, 1, 0, 1]}, "a": {0.5: [0, 1, 0, 1]}}, signals={"margin": [0.3, 0.2, None, 0.1]}
    )
    with pytest.raises(InputError, match=r"auc: margin is null in 1 of 4 rows, such as .*input_id=i002"):
        auc(log, signal="margin", arm="a")
    assert only(auc(log, signal="margin", outcome="induced_failure", arm="a"))["n"] == 3
    assert only(auc(log, signal="margin", arm="a", where="margin IS NOT NULL"))["n"] == 3


@pytest.mark.parametrize("outcome", ["failure", "induced_failure"])
def test_null_outcomes_are_counted(make_records, outcome):
    records = [
        *make_records({"full": {1.0: [1, 1]}}, signals={"margin": [0.1, 0.2]}),
        *make_records({"a": {0.5: [0, 1]}}, signals={"margin": [0.1, 0.2]}, success=None),
    ]
    with pytest.raises(InputError, match=r"auc: (failure|success) is null in 2 of 2 rows"):
        auc(log_from_records(records), signal="margin", outcome=outcome, arm="a")
