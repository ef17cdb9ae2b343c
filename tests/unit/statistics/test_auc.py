import re

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from kvstats.errors import InputError
from kvstats.statistics import AUC


def brute_force(score, label, weights):
    top = bottom = 0.0
    for i in np.flatnonzero(label):
        for j in np.flatnonzero(label == 0):
            pair = weights[i] * weights[j]
            top += pair * (score[j] < score[i]) + pair / 2 * (score[j] == score[i])
            bottom += pair
    return top / bottom


@pytest.mark.parametrize("levels", [3, 1000])
def test_the_sum_over_pairs(levels):
    random = np.random.default_rng(levels)
    score, label = random.integers(0, levels, 60).astype(float), random.integers(0, 2, 60)
    weights = random.uniform(0.1, 3, 60)
    value = AUC(score, label).value(weights)
    assert value == pytest.approx(brute_force(score, label, weights), abs=1e-14)
    assert value == pytest.approx(roc_auc_score(label, score, sample_weight=weights), abs=1e-14)


def test_influence_holds_the_components_of_delong():
    random = np.random.default_rng(5)
    score, label = random.integers(0, 9, 40).astype(float), np.arange(40) % 3 == 0
    weights = np.ones(40)
    auc = AUC(score, label)
    influence = auc.influence(weights)
    for i in range(40):
        other = score[label != label[i]]
        wins = (other < score[i]) if label[i] else (other > score[i])
        component = np.mean(wins + 0.5 * (other == score[i]))
        assert influence[i] == pytest.approx((component - auc.value(weights)) / np.sum(label == label[i]))


def test_perfect_separation_and_all_ties():
    assert AUC([0.0, 1.0, 2.0], [0, 1, 1]).value([1, 1, 1]) == 1.0
    assert AUC([0.0, 1.0, 2.0], [1, 0, 0]).value([1, 1, 1]) == 0.0
    assert AUC([7.0, 7.0, 7.0], [0, 1, 1]).value([1, 1, 1]) == 0.5
    np.testing.assert_allclose(AUC([0.0, 1.0, 2.0], [0, 1, 1]).influence([1, 1, 1]), 0, atol=1e-15)


@pytest.mark.parametrize("weights", [[1, 1, 0], [0, 0, 1], [0, 0, 0]])
def test_undefined_with_one_class(weights):
    auc = AUC([1.0, 2.0, 3.0], [0, 0, 1])
    assert np.isnan(auc.value(weights))
    assert np.isnan(auc.influence(weights)).all()


@pytest.mark.parametrize(
    ("score", "label", "message"),
    [
        ([1.0, 2.0], [0, 2], "AUC: label=2.0 is no class; pass True or False"),
        ([1.0, 2.0], [0], "AUC: label='array of shape (1,)' does not fit a score of 2 rows"),
        ([1.0, np.inf], [0, 1], "AUC: score=inf is not finite, at row 1"),
        ([1.0, 2.0], [0, np.nan], "AUC: label=nan is not finite, at row 1"),
    ],
)
def test_columns_that_are_none_are_refused(score, label, message):
    with pytest.raises(InputError, match=re.escape(message)):
        AUC(score, label)
