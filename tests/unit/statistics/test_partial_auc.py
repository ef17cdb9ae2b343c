import re

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from kvstats.errors import InputError
from kvstats.statistics import AUC, PartialAUC

RANDOM = np.random.default_rng(4)
N = 80
SCORE = RANDOM.integers(0, 12, N).astype(float)
LABEL = RANDOM.integers(0, 2, N)
WEIGHTS = RANDOM.uniform(0.1, 3, N)


def curve(score, label, weights):
    """Points of the curve, one for each threshold."""
    thresholds = [np.inf, *np.unique(score)[::-1]]
    rates = [
        [weights[(score >= t) & (label == c)].sum() / weights[label == c].sum() for t in thresholds]
        for c in (0, 1)
    ]
    return np.array(rates)


def trapezoids(score, label, weights, low, high):
    """Area under the points between two rates, after cutting their polygon there."""
    false_alarms, found = curve(score, label, weights)
    total = 0.0
    for x0, x1, y0, y1 in zip(false_alarms, false_alarms[1:], found, found[1:], strict=False):
        a, b = max(x0, low), min(x1, high)
        if b > a:
            at_a, at_b = (y0 + (y1 - y0) * (x - x0) / (x1 - x0) for x in (a, b))
            total += (b - a) * (at_a + at_b) / 2
    return total


@pytest.mark.parametrize("score", [SCORE, RANDOM.normal(size=N)], ids=["ties", "no ties"])
@pytest.mark.parametrize(("low", "high"), [(0, 0.1), (0, 1), (0.07, 0.33), (0.5, 1)])
def test_the_area_under_the_polygon(score, low, high):
    plain = PartialAUC(score, LABEL, low, high, standardised=False).value(WEIGHTS)
    assert plain == pytest.approx(trapezoids(score, LABEL, WEIGHTS, low, high), abs=1e-14)
    least, most = (high**2 - low**2) / 2, high - low
    expected = (1 + (plain - least) / (most - least)) / 2
    assert PartialAUC(score, LABEL, low, high).value(WEIGHTS) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("high", [0.05, 0.2, 1.0])
def test_scikit_learn_without_weights(high):
    # Its weighted curve drops collinear points, its unweighted partial area is the same.
    value = PartialAUC(SCORE, LABEL, 0.0, high).value(np.ones(N))
    assert value == pytest.approx(roc_auc_score(LABEL, SCORE, max_fpr=high), abs=1e-14)


def test_the_whole_range_is_the_area():
    whole, area = PartialAUC(SCORE, LABEL, 0.0, 1.0), AUC(SCORE, LABEL)
    assert whole.value(WEIGHTS) == pytest.approx(area.value(WEIGHTS), abs=1e-14)
    np.testing.assert_allclose(whole.influence(WEIGHTS), area.influence(WEIGHTS), rtol=0, atol=1e-15)


@pytest.mark.parametrize("score", [SCORE, RANDOM.normal(size=N)], ids=["ties", "no ties"])
@pytest.mark.parametrize(("low", "high"), [(0, 0.1), (0.07, 0.33), (0.5, 1)])
def test_the_influence_is_the_derivative(score, low, high):
    partial = PartialAUC(score, LABEL, low, high)
    step = 1e-6
    numerical = [
        (partial.value(WEIGHTS + step * unit) - partial.value(WEIGHTS - step * unit)) / (2 * step)
        for unit in np.eye(N)
    ]
    np.testing.assert_allclose(partial.influence(WEIGHTS), numerical, rtol=1e-5, atol=1e-9)


def test_where_a_bound_falls_on_a_step_the_derivative_is_the_mean_of_both_sides():
    score, label = np.arange(20.0), np.arange(20) % 2
    partial, ones, step = PartialAUC(score, label, 0.0, 0.3), np.ones(20), 1e-7
    sides = [
        [(partial.value(ones + s * unit) - partial.value(ones)) / s for unit in np.eye(20)]
        for s in (step, -step)
    ]
    assert np.abs(np.subtract(*sides)).max() > 1e-3
    np.testing.assert_allclose(partial.influence(ones), np.mean(sides, axis=0), rtol=1e-4, atol=1e-8)


def test_perfect_useless_and_reversed():
    label, ones = np.repeat([0, 1], 10), np.ones(20)
    up = np.arange(20.0)
    assert PartialAUC(up, label, 0.0, 0.2).value(ones) == pytest.approx(1, abs=1e-15)
    assert PartialAUC(np.zeros(20), label, 0.0, 0.2).value(ones) == pytest.approx(0.5, abs=1e-15)
    assert PartialAUC(-up, label, 0.0, 0.2).value(ones) == pytest.approx(0.5 - 0.02 / 0.36, abs=1e-15)
    assert PartialAUC(-up, label, 0.9, 1.0).value(ones) == pytest.approx(-9, abs=1e-12)


@pytest.mark.parametrize("label", [[0, 0, 0], [1, 1, 1]])
def test_undefined_with_one_class(label):
    partial = PartialAUC([1.0, 2.0, 3.0], label, 0.0, 0.5)
    assert np.isnan(partial.value([1, 1, 1]))
    assert np.isnan(partial.influence([1, 1, 1])).all()
    assert np.isnan(PartialAUC([], [], 0.0, 0.5).value([]))


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (0.2, 0.2, "PartialAUC: high=0.2 is not above low=0.2; pass a range such as 0.0 to 0.1"),
        (0.0, 1.5, "PartialAUC: high=1.5 is not in (0, 1]; pass a share such as 0.1"),
        (-0.1, 0.5, "PartialAUC: low=-0.1 is not in [0, 1]"),
        (0.0, np.nan, "PartialAUC: high=nan is not in (0, 1]"),
    ],
)
def test_ranges_that_are_none_are_refused(low, high, message):
    with pytest.raises(InputError, match=re.escape(message)):
        PartialAUC([1.0, 2.0], [0, 1], low, high)
