import math

import numpy as np
import pytest
from scipy import stats

from kvstats.errors import InputError
from kvstats.planning import auc_difference_power, auc_power
from kvstats.planning.auc_variance import auc_covariance, auc_variance, bivariate_normal
from kvstats.planning.truth import separation


@pytest.mark.parametrize("correlation", [-0.9, -0.3, 0.0, 0.5, 0.99])
@pytest.mark.parametrize(
    ("h", "k"), [(0.0, 0.0), (0.0, -1.2), (1.3, 0.4), (-0.7, 2.0), (-1.0, -2.0), (1e-9, 0.0)]
)
def test_bivariate_normal_against_scipy(h, k, correlation):
    expected = stats.multivariate_normal(cov=[[1, correlation], [correlation, 1]]).cdf([h, k])
    assert abs(bivariate_normal(h, k, correlation) - expected) < 1e-6
    assert bivariate_normal(h, k, correlation) == pytest.approx(
        bivariate_normal(k, h, correlation), abs=1e-14
    )


def areas_of(score, n_positives):
    """Mann-Whitney areas of scores of shape [replications, rows], positives first."""
    ranks = stats.rankdata(score, axis=1)[:, :n_positives].sum(axis=1)
    return (ranks / n_positives - (n_positives + 1) / 2) / (score.shape[1] - n_positives)


def test_variance_and_covariance_of_normal_scores_by_simulation():
    random = np.random.default_rng(1)
    positives, negatives, correlation = 15, 40, 0.6
    shared = random.standard_normal((40_000, positives + negatives))
    areas = []
    for area in (0.8, 0.65):
        own = random.standard_normal(shared.shape)
        score = math.sqrt(correlation) * shared + math.sqrt(1 - correlation) * own
        score[:, :positives] += separation(area)
        areas.append(areas_of(score, positives))
    observed = np.cov(areas)
    for number, area in enumerate((0.8, 0.65)):
        assert auc_variance(area, positives, negatives) == pytest.approx(observed[number, number], rel=0.03)
    covariance = auc_covariance(0.8, 0.65, positives, negatives, correlation)
    assert covariance == pytest.approx(observed[0, 1], rel=0.03)


def test_variance_of_exponential_scores_by_simulation():
    random = np.random.default_rng(2)
    area, positives, negatives = 0.75, 15, 40
    score = random.exponential(size=(40_000, positives + negatives))
    score[:, :positives] *= area / (1 - area)  # P(a E1 > E2) = a / (1 + a)
    observed = areas_of(score, positives).var()
    assert auc_variance(area, positives, negatives, "exponential") == pytest.approx(observed, rel=0.03)


def test_without_discrimination_all_forms_agree():
    classical = (20 + 30 + 1) / (12 * 20 * 30)
    for shape in ("binormal", "exponential"):
        assert auc_variance(0.5, 20, 30, shape) == pytest.approx(classical, rel=1e-12)
    assert auc_covariance(0.5, 0.5, 20, 30, 1 - 1e-12) == pytest.approx(classical, rel=1e-5)


@pytest.mark.parametrize("function", [auc_power, auc_difference_power])
def test_solutions_agree_with_each_other(function):
    figures = {"prevalence": 0.15, "rows_per_input": 3, "intraclass_correlation": 0.2}
    if function is auc_difference_power:
        figures |= {"other_auc": 0.6, "score_correlation": 0.4}
    plan = function(auc=0.72, power=0.8, **figures)
    assert plan.power >= 0.8
    assert function(auc=0.72, inputs=plan.inputs - 1, **figures).power < 0.8
    least = function(inputs=plan.inputs, power=0.8, **figures)
    assert least.auc < 0.72
    assert least.power == pytest.approx(0.8, abs=1e-9)
    low = function(inputs=plan.inputs, power=0.8, alternative="less", **figures)
    assert low.auc < figures.get("other_auc", 0.5)
    assert low.power == pytest.approx(0.8, abs=1e-9)
    assert plan.design_effect == 1.4
    assert "<- solved for" in repr(plan)


def test_the_more_alike_two_signals_the_fewer_inputs():
    sizes = [
        auc_difference_power(auc=0.8, other_auc=0.75, score_correlation=r, prevalence=0.2, power=0.8).inputs
        for r in (0.0, 0.5, 0.9)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 3 * sizes[2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": 10}, r"auc_power: arguments=\[\] is not the one figure"),
        ({"auc": 0.5}, "auc=0.5 is the area to tell it from"),
        ({"auc": 1.0}, "auc=1.0 is not between 0 and 1"),
        ({"alternative": "less"}, "auc=0.7 is not on the side of alternative 'less' of 0.5"),
        ({"alternative": "up"}, "alternative='up' is not known"),
        ({"prevalence": 0.0}, "prevalence=0.0 is not between 0 and 1"),
        ({"null": 1.0}, "null=1.0 is not between 0 and 1"),
        ({"shape": "normal"}, "shape='normal' is not known; did you mean 'binormal'"),
        (
            {"auc": None, "inputs": 2, "prevalence": 0.01},
            "inputs=2 is too few: even a perfect signal has less",
        ),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(InputError, match=message):
        auc_power(**{"auc": 0.7, "power": 0.8, "prevalence": 0.1, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"auc": 0.6}, "auc_difference_power: auc=0.6 is the area to tell it from"),
        ({"score_correlation": 1.0}, "score_correlation=1.0 is not between -1 and 1"),
        ({"other_auc": 0.0}, "other_auc=0.0 is not between 0 and 1"),
    ],
)
def test_bad_input_of_the_difference(change, message):
    given = {"auc": 0.7, "other_auc": 0.6, "power": 0.8, "prevalence": 0.1, "score_correlation": 0.5}
    with pytest.raises(InputError, match=message):
        auc_difference_power(**given | change)
