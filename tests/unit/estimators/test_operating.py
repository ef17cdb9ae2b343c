import re

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from kvstats.errors import InputError
from kvstats.estimators import operating_point, partial_auc
from kvstats.inference import Design
from kvstats.statistics import OperatingThreshold, TruePositiveRate

RANDOM = np.random.default_rng(21)
ARM = RANDOM.integers(0, 2, 60)
MARGIN = (RANDOM.normal(size=60) - ARM).round(1).tolist()
FAILURE = ARM < 1
ONES = np.ones(60)


@pytest.fixture
def log(make_log):
    return make_log({"full": {1.0: [1] * 60}, "x": {0.5: ARM.tolist()}}, signals={"margin": MARGIN})


@pytest.fixture
def one_class(make_log):
    return make_log({"full": {1.0: [1] * 3}, "x": {0.5: [1, 1, 1]}}, signals={"margin": [1.0, 2.0, 3.0]})


def only(result):
    assert result.frame.height == 1
    return result.frame.row(0, named=True)


def test_the_standardised_partial_area(log):
    result = partial_auc(log, signal="margin", arm="x", high=0.2)
    row = only(result)
    assert row["estimate"] == pytest.approx(roc_auc_score(FAILURE, MARGIN, max_fpr=0.2), abs=1e-14)
    assert row["low"] < row["estimate"] < row["high"] <= 1
    assert (row["n"], row["status"], result.null) == (60, "ok", 0.5)
    turned = only(partial_auc(log, signal="margin", arm="x", higher="negative", high=0.2))
    assert turned["estimate"] == pytest.approx(
        roc_auc_score(FAILURE, -np.array(MARGIN), max_fpr=0.2), abs=1e-14
    )


def test_the_true_positive_rate(log):
    row = only(operating_point(log, signal="margin", arm="x", false_alarm_rate=0.2))
    expected = TruePositiveRate(MARGIN, FAILURE, 0.2)
    assert row["estimate"] == expected.value(ONES)
    assert row["se"] == pytest.approx((60 / 59 * np.sum(expected.influence(ONES) ** 2)) ** 0.5, rel=1e-12)
    turned = only(operating_point(log, signal="margin", arm="x", false_alarm_rate=0.2, higher="negative"))
    assert turned["estimate"] == TruePositiveRate(-np.array(MARGIN), FAILURE, 0.2).value(ONES)


@pytest.mark.parametrize(("higher", "flagged"), [("positive", "high"), ("negative", "low")])
def test_the_threshold(log, higher, flagged):
    row = only(
        operating_point(
            log, signal="margin", arm="x", false_alarm_rate=0.2, report="threshold", higher=higher
        )
    )
    assert row["estimate"] == OperatingThreshold(MARGIN, FAILURE, 0.2, flagged=flagged).value(ONES)
    assert row["estimate"] in MARGIN
    beyond = np.array(MARGIN) >= row["estimate"] if flagged == "high" else np.array(MARGIN) <= row["estimate"]
    assert np.mean(beyond[~FAILURE]) <= 0.2
    assert row["low"] < row["estimate"] < row["high"]


def test_bootstrap_intervals(log):
    design = Design(interval="percentile", n_resamples=200)
    for report in ("true_positive_rate", "threshold"):
        row = only(
            operating_point(log, signal="margin", arm="x", false_alarm_rate=0.2, report=report, design=design)
        )
        assert row["low"] <= row["estimate"] <= row["high"]
        assert row["status"] == "ok"


def test_one_class_is_undefined(one_class):
    assert only(partial_auc(one_class, signal="margin", arm="x"))["status"] == "one class"
    assert only(partial_auc(one_class, signal="margin", arm="x", low=0.5, high=1.0))["status"] == "undefined"
    row = only(operating_point(one_class, signal="margin", arm="x", false_alarm_rate=0.5))
    assert (row["estimate"], row["status"]) == (None, "one class")
    row = only(operating_point(one_class, signal="margin", arm="x", false_alarm_rate=0.1, report="threshold"))
    assert (row["estimate"], row["status"]) == (None, "undefined")


@pytest.mark.parametrize(
    ("estimator", "arguments", "message"),
    [
        (
            partial_auc,
            {"signal": "margn"},
            "partial_auc: signal='margn' is not a numeric column of the pairs",
        ),
        (partial_auc, {"high": 0.0}, "PartialAUC: high=0.0 is not in (0, 1]"),
        (partial_auc, {"low": 0.5, "high": 0.2}, "PartialAUC: high=0.2 is not above low=0.5"),
        (partial_auc, {"higher": "up"}, "partial_auc: higher='up' is not known"),
        (operating_point, {"false_alarm_rate": 1.0}, "TruePositiveRate: false_alarm_rate=1.0 is not between"),
        (operating_point, {"report": "tpr"}, "operating_point: report='tpr' is not known"),
        (operating_point, {"outcome": "score"}, "operating_point: outcome='score' is not a Boolean column"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(log, estimator, arguments, message):
    needed = {"signal": "margin", "arm": "x"}
    if estimator is operating_point:
        needed["false_alarm_rate"] = 0.2
    with pytest.raises(InputError, match=re.escape(message)):
        estimator(log, **(needed | arguments))


def test_null_signals_are_counted(make_log):
    log = make_log({"full": {1.0: [1, 1]}, "x": {0.5: [0, 1]}}, signals={"margin": [None, 1.0]})
    for call in (
        lambda: partial_auc(log, signal="margin", arm="x"),
        lambda: operating_point(log, signal="margin", arm="x", false_alarm_rate=0.2),
    ):
        with pytest.raises(InputError, match="margin is null in 1 of 2 rows"):
            call()
