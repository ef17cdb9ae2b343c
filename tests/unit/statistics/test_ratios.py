import re

import numpy as np
import pytest

from kvstats.errors import InputError
from kvstats.statistics import Mean, Ratio


def test_mean_is_numpys_weighted_average():
    random = np.random.default_rng(0)
    y, w = random.normal(size=50), random.uniform(size=50)
    assert Mean(y).value(w) == pytest.approx(np.average(y, weights=w))


def test_ratio_is_the_quotient_of_weighted_sums():
    top, bottom, w = np.array([1.0, 4.0, 2.0]), np.array([2.0, 0.0, 5.0]), np.array([1.0, 0.5, 3.0])
    expected = (1 * 1 + 0.5 * 4 + 3 * 2) / (1 * 2 + 0.5 * 0 + 3 * 5)
    assert Ratio(top, bottom).value(w) == pytest.approx(expected)
    np.testing.assert_allclose(Ratio(top, bottom).influence(w), (top - expected * bottom) / 17)


def test_a_share_of_ones_is_exactly_one_under_any_weights():
    w = np.random.default_rng(1).uniform(size=1000)
    assert Mean(np.ones(1000)).value(w) == 1.0
    assert Mean(np.zeros(1000)).value(w) == 0.0


def test_undefined_without_weight():
    assert np.isnan(Mean([1.0, 2.0]).value([0, 0]))
    assert np.isnan(Mean([]).value([]))
    assert np.isnan(Ratio([1.0, 2.0], [0.0, 0.0]).value([1, 1]))
    assert np.isnan(Mean([1.0, 2.0]).influence([0, 0])).all()


def test_columns_of_different_length_are_refused():
    message = "Ratio: denominator='array of shape (1,)' does not fit a numerator of 2 rows; pass columns"
    with pytest.raises(InputError, match=re.escape(message)):
        Ratio([1.0, 2.0], [1.0])


def test_nan_is_refused_under_the_name_of_the_statistic():
    with pytest.raises(InputError, match=re.escape("Mean: y=nan is not finite, at row 0")):
        Mean([np.nan])


@pytest.mark.parametrize("offset", [1e6, 1e9, 1e12])
def test_the_influence_of_values_far_from_zero_keeps_its_digits(offset):
    random = np.random.default_rng(0)
    y, weights = (random.random(1000) < 0.3).astype(float), random.random(1000)
    expected = Mean(y).influence(weights)
    found = Mean(y + offset).influence(weights)
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    assert abs(weights @ found) < 1e-12
