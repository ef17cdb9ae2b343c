import re

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from kvstats.errors import InputError
from kvstats.estimators import auc, auc_difference
from kvstats.inference import Design
from kvstats.log import log_from_records
from kvstats.statistics import AUC, delong

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


STRATA_FULL = [1] * 12
STRATA_ARM = [0, 1, 0, 1, 1, 0, 1, 1, 0, 0, 1, 0]


@pytest.fixture
def tasks(make_records):
    """Three tasks: a signal on three scales, and the last task without a failure."""
    records = []
    for task, scale, scores in (("a", 1, STRATA_ARM), ("b", 100, STRATA_ARM[::-1]), ("c", 10, [1] * 12)):
        margin = [scale * (i % 5) for i in range(12)]
        records += make_records(
            {"full": {1.0: STRATA_FULL}, "x": {0.5: scores}}, signals={"margin": margin}, task=task
        )
    return log_from_records(records)


def test_within_strata_scales_never_mix(tasks):
    pooled = only(auc(tasks, signal="margin", arm="x"))
    result = auc(tasks, signal="margin", arm="x", within="task")
    row = only(result)
    margin = np.arange(12) % 5
    areas, pairs = [], []
    for scores in (STRATA_ARM, STRATA_ARM[::-1]):
        failure = np.array(scores) < 1
        areas.append(roc_auc_score(failure, margin))
        pairs.append(failure.sum() * (~failure).sum())
    assert row["estimate"] == pytest.approx(np.average(areas, weights=pairs), abs=1e-14)
    assert row["estimate"] != pytest.approx(pooled["estimate"], abs=0.01)
    assert (row["n"], row["clusters"], row["status"]) == (36, 36, "ok")
    sample = result.samples[0]
    assert (sample.statistic.n_strata, sample.statistic.one_class_strata(sample.weights)) == (3, 1)
    assert auc(tasks, signal="margin", arm="x", within=["task", "model", "budget"]).frame.equals(result.frame)


def test_by_the_same_columns_shows_which_strata_have_one_class(tasks):
    frame = auc(tasks, signal="margin", arm="x", by="task").frame
    assert frame["status"].to_list() == ["ok", "ok", "one class"]
    assert frame["estimate"].to_list()[2] is None


def test_within_strata_of_one_class_each(tasks):
    row = only(auc(tasks, signal="margin", arm="x", within="task", where="task = 'c'"))
    assert (row["estimate"], row["status"]) == (None, "one class")


def test_null_is_a_stratum_like_any_other(tasks):
    split = auc(tasks, signal="margin", arm="x", within=["task", "condition"])
    assert split.frame.equals(auc(tasks, signal="margin", arm="x", within="task").frame)


@pytest.mark.parametrize(
    ("within", "message"),
    [
        ("tasks", "auc: within='tasks' is not a column; did you mean 'task'?"),
        ([], "auc: within=[] is not a list of different columns; name each once, or pass None"),
        ("head_agreement_per_layer", "auc: within='head_agreement_per_layer' is a column of lists; name a"),
        (["task", "task"], "auc: within=['task', 'task'] is not a list of different columns"),
    ],
)
def test_strata_that_cannot_be_used_are_refused(tasks, within, message):
    with pytest.raises(InputError, match=re.escape(message)):
        auc(tasks, signal="margin", arm="x", within=within)


RANDOM = np.random.default_rng(9)
LONG_ARM = RANDOM.integers(0, 2, 50)
ONE = (RANDOM.normal(size=50) - LONG_ARM).round(1).tolist()
TWO = (RANDOM.normal(size=50) + LONG_ARM / 2).round(1).tolist()


@pytest.fixture
def two_signals(make_log):
    return make_log(
        {"full": {1.0: [1] * 50}, "x": {0.5: LONG_ARM.tolist()}, "y": {0.5: LONG_ARM[::-1].tolist()}},
        signals={"one": ONE, "two": TWO},
    )


def test_difference_on_the_same_rows(two_signals):
    failure = LONG_ARM < 1
    row = only(auc_difference(two_signals, first="one", second="two", arm="x"))
    expected = roc_auc_score(failure, ONE) - roc_auc_score(failure, TWO)
    assert row["estimate"] == pytest.approx(expected, abs=1e-14)
    assert (row["n"], row["clusters"]) == (50, 50)
    contrast = np.array([1, -1])
    variance = contrast @ delong([ONE, TWO], failure).covariance @ contrast
    assert row["se"] == pytest.approx(variance**0.5, rel=1e-12)


def test_difference_with_signals_that_point_two_ways(two_signals):
    failure = LONG_ARM < 1
    row = only(auc_difference(two_signals, first="one", second="two", second_higher="negative", arm="x"))
    expected = roc_auc_score(failure, ONE) - 1 + roc_auc_score(failure, TWO)
    assert row["estimate"] == pytest.approx(expected, abs=1e-14)
    both = only(auc_difference(two_signals, first="one", second="two", higher="negative", arm="x"))
    same = only(auc_difference(two_signals, first="one", second="two", arm="x"))
    assert both["estimate"] == pytest.approx(-same["estimate"], abs=1e-14)
    assert both["se"] == pytest.approx(same["se"], rel=1e-12)


def test_own_rows_that_are_all_the_rows_give_the_same(two_signals):
    same = only(auc_difference(two_signals, first="one", second="two", arm="x"))
    own = only(auc_difference(two_signals, first="one", second="two", arm="x", rows="own"))
    assert own["n"] == 100
    for column in ("estimate", "low", "high", "se", "df", "clusters"):
        assert own[column] == pytest.approx(same[column], rel=1e-12)


def test_overlapping_rows(make_log):
    one = [None if i < 10 else value for i, value in enumerate(ONE)]
    two = [None if i >= 40 else value for i, value in enumerate(TWO)]
    log = make_log({"full": {1.0: [1] * 50}, "x": {0.5: LONG_ARM.tolist()}}, signals={"one": one, "two": two})
    with pytest.raises(InputError, match=r"auc_difference: one is null in 10 of 50 rows"):
        auc_difference(log, first="one", second="two", arm="x")
    row = only(auc_difference(log, first="one", second="two", arm="x", rows="own"))
    failure = LONG_ARM < 1
    areas = [AUC(ONE[10:], failure[10:]), AUC(TWO[:40], failure[:40])]
    ones = np.ones(40)
    assert row["estimate"] == pytest.approx(areas[0].value(ones) - areas[1].value(ones), abs=1e-14)
    assert (row["n"], row["clusters"]) == (80, 50)
    totals = np.zeros(50)
    for rows, area, sign in ((slice(10, 50), areas[0], 1), (slice(0, 40), areas[1], -1)):
        influence = area.influence(ones)
        for label in (True, False):
            own = failure[rows] == label
            totals[rows] += sign * np.where(own, influence, 0) * np.sqrt(own.sum() / (own.sum() - 1))
    assert row["se"] == pytest.approx(np.sqrt(np.sum(totals**2)), rel=1e-12)
    shared = "one IS NOT NULL AND two IS NOT NULL"
    assert only(auc_difference(log, first="one", second="two", arm="x", where=shared))["n"] == 30


def test_difference_between_arms(two_signals):
    row = only(auc_difference(two_signals, first="one", second="two", arm="x", second_arm="y"))
    expected = roc_auc_score(LONG_ARM < 1, ONE) - roc_auc_score(LONG_ARM[::-1] < 1, TWO)
    assert row["estimate"] == pytest.approx(expected, abs=1e-14)
    assert (row["n"], row["clusters"]) == (100, 50)
    swapped = only(auc_difference(two_signals, first="two", second="one", arm="y", second_arm="x"))
    assert swapped["estimate"] == pytest.approx(-row["estimate"], abs=1e-14)
    assert swapped["se"] == pytest.approx(row["se"], rel=1e-12)


def test_signals_that_rank_alike(two_signals):
    result = auc_difference(two_signals, first="one", second="one", arm="x")
    row = only(result)
    assert (row["estimate"], row["low"], row["status"]) == (0, None, "no discordant pairs")
    assert result.p_value()["p_value"].item() == 1
    own = auc_difference(two_signals, first="one", second="one", arm="x", rows="own")
    assert (only(own)["estimate"], only(own)["status"]) == (0, "zero variance")
    assert own.p_value()["p_value"].item() == 1


@pytest.mark.parametrize("rows", ["same", "own"])
def test_differences_within_strata_and_by_columns(tasks, rows):
    arguments = {"first": "margin", "second": "score", "arm": "x", "rows": rows}
    row = only(auc_difference(tasks, **arguments, within="task"))
    sides = [only(auc(tasks, signal=name, arm="x", within="task")) for name in ("margin", "score")]
    assert row["estimate"] == pytest.approx(sides[0]["estimate"] - sides[1]["estimate"], abs=1e-14)
    frame = auc_difference(tasks, **arguments, by="task").frame
    assert frame["status"].to_list() == ["ok", "ok", "undefined"]
    assert frame["task"].to_list() == ["a", "b", "c"]


@pytest.mark.parametrize("rows", ["same", "own"])
def test_one_cluster_has_no_interval(two_signals, rows):
    design = Design(cluster="model")
    row = only(auc_difference(two_signals, first="one", second="two", arm="x", rows=rows, design=design))
    assert row["estimate"] is not None
    assert (row["low"], row["se"], row["clusters"], row["status"]) == (None, None, 1, "one cluster")


@pytest.mark.parametrize("interval", ["percentile", "bca", "jackknife"])
def test_other_intervals(two_signals, interval):
    design = Design(interval=interval, n_resamples=300)
    linear = only(auc_difference(two_signals, first="one", second="two", arm="x"))
    for within in (None, "budget"):
        row = only(
            auc_difference(two_signals, first="one", second="two", arm="x", within=within, design=design)
        )
        assert row["se"] == pytest.approx(linear["se"], rel=0.2)
        assert row["low"] < row["estimate"] < row["high"]


def test_a_side_without_rows(make_log):
    log = make_log(
        {"full": {1.0: [1] * 4}, "x": {0.5: [0, 1, 0, 1]}},
        signals={"one": [1, 2, 3, 4], "two": [None] * 4},
    )
    row = only(auc_difference(log, first="one", second="two", arm="x", rows="own"))
    assert (row["estimate"], row["status"]) == (None, "no rows")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"first": "on"},
            "auc_difference: first='on' is not a numeric column of the pairs; did you mean 'one'?",
        ),
        (
            {"second": "to"},
            "auc_difference: second='to' is not a numeric column of the pairs; did you mean 'two'",
        ),
        ({"rows": "both"}, "auc_difference: rows='both' is not known; known: own, same"),
        (
            {"second_higher": "up"},
            "auc_difference: second_higher='up' is not known; known: negative, positive",
        ),
        ({"higher": "up"}, "auc_difference: higher='up' is not known"),
        ({"second_arm": "z"}, "auc_difference: arm='z' is not an arm of the log"),
        ({"within": "tusk"}, "auc_difference: within='tusk' is not a column; did you mean 'task'?"),
    ],
)
def test_arguments_of_a_difference_that_cannot_be_used_are_refused(two_signals, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        auc_difference(two_signals, **({"first": "one", "second": "two", "arm": "x"} | arguments))
