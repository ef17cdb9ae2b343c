"""Areas under the receiver operating characteristic against R's pROC package (auc/auc.R)."""

import json
from pathlib import Path

import numpy as np
import pytest

from kvstats.inference import Design, Sample
from kvstats.inference.cell import infer_cell
from kvstats.inference.contrast import difference_sample
from kvstats.inference.linear import linear_error
from kvstats.statistics import AUC, AUCDifference, PartialAUC, TruePositiveRate, delong, obuchowski

R = json.loads((Path(__file__).parent / "auc" / "auc.json").read_text())
MARKERS = ["s100b", "wfns", "ndka"]
OUTCOME = np.array(R["columns"]["outcome"])
SCORES = np.array([R["columns"][name] for name in MARKERS], dtype=float)
ONES = np.ones(OUTCOME.size)
DELONG = delong(SCORES, OUTCOME)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_the_published_figures():
    assert R["area"][0] == 0.731368563685637
    assert R["covariance"][0][0] == 0.00266868245717244
    assert (R["tests"][0]["z"], R["tests"][0]["p_value"]) == (-2.20898359144091, 0.0271757822291882)


def test_areas_and_covariances():
    close(DELONG.area, R["area"])
    close(DELONG.covariance, R["covariance"])
    assert (DELONG.positives, DELONG.negatives) == (41, 72)
    close([AUC(score, OUTCOME).value(ONES) for score in SCORES], R["area"])


def test_rows_as_clusters_give_the_same():
    close(obuchowski(SCORES, OUTCOME, np.arange(113)).covariance, R["covariance"])


@pytest.mark.parametrize("marker", range(3))
def test_intervals(marker):
    close(DELONG.interval(0.95)[marker], R["interval"][MARKERS[marker]])


@pytest.mark.parametrize("test", R["tests"], ids=lambda test: f"{test['first']} - {test['second']}")
def test_paired_tests(test):
    first, second = MARKERS.index(test["first"]), MARKERS.index(test["second"])
    close(DELONG.test(first, second), [test["z"], test["p_value"]])
    influence = AUCDifference(SCORES[first], SCORES[second], OUTCOME).influence(ONES)
    factors = np.where(OUTCOME == 1, 41 / 40, 72 / 71)
    difference = R["area"][first] - R["area"][second]
    close(difference / np.sqrt(factors @ influence**2), test["z"])


def test_different_patients():
    halves = [slice(0, R["unpaired"]["cut"]), slice(R["unpaired"]["cut"], None)]
    found = [delong(SCORES[0, half], OUTCOME[half]) for half in halves]
    close([one.area[0] for one in found], R["unpaired"]["areas"])
    variance = sum(one.covariance[0, 0] for one in found)
    close((found[0].area[0] - found[1].area[0]) / np.sqrt(variance), R["unpaired"]["d"])


@pytest.mark.parametrize("part", R["partial"], ids=lambda part: f"{part['low']}-{part['high']}")
@pytest.mark.parametrize("marker", range(3))
def test_partial_areas(part, marker):
    score = SCORES[marker]
    for standardised, name in ((True, "standardised"), (False, "plain")):
        partial = PartialAUC(score, OUTCOME, part["low"], part["high"], standardised=standardised)
        close(partial.value(ONES), part[name][marker])


@pytest.mark.parametrize("marker", range(3))
def test_partial_areas_over_true_positive_rates(marker):
    turned = PartialAUC(-SCORES[marker], 1 - OUTCOME, 0.0, 1 - 0.8)
    close(turned.value(ONES), R["sensitive"][MARKERS[marker]])


@pytest.mark.parametrize("point", R["found"], ids=lambda point: str(point["rate"]))
@pytest.mark.parametrize("marker", range(3))
def test_true_positive_rates(point, marker):
    close(TruePositiveRate(SCORES[marker], OUTCOME, point["rate"]).value(ONES), point["sensitivity"][marker])


def test_the_linearised_error_of_independent_rows_is_delongs():
    clusters = tuple((f"{i:03}",) for i in range(113))
    samples = [Sample((), AUC(score, OUTCOME), ONES, np.arange(113), clusters, "auc") for score in SCORES[:2]]
    close(linear_error(samples[0])[0] ** 2, R["covariance"][0][0])
    cell = infer_cell("difference", difference_sample((), *samples), Design())
    assert cell.se == pytest.approx(abs(cell.estimate / R["tests"][0]["z"]), rel=1e-11)
