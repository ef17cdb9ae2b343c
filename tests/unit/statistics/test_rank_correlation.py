import re

import numpy as np
import pytest
from scipy import stats

from kvstats.errors import InputError
from kvstats.statistics import RankCorrelation


def brute_force(x, y, weights):
    def ranks(column):
        return np.array([np.sum(weights * ((column < value) + 0.5 * (column == value))) for value in column])

    covariance = np.cov(ranks(x), ranks(y), aweights=weights)
    return covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])


@pytest.mark.parametrize("levels", [3, 1000])
def test_pearsons_correlation_of_weighted_mid_ranks(levels):
    random = np.random.default_rng(levels)
    x = random.integers(0, levels, 40).astype(float)
    y = x + random.integers(0, levels, 40)
    weights = random.uniform(0.1, 3, 40)
    rho = RankCorrelation(x, y)
    assert rho.value(weights) == pytest.approx(brute_force(x, y, weights), abs=1e-13)
    assert rho.value(np.ones(40)) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-13)


def test_influence_agrees_with_the_jackknife():
    random = np.random.default_rng(8)
    n = 300
    x = random.normal(size=n)
    rho = RankCorrelation(x, x + random.normal(size=n))
    ones = np.ones(n)
    left_out = np.array([rho.value(ones - np.eye(n)[i]) for i in range(n)])
    jackknife = (n - 1) / n * np.sum((left_out - left_out.mean()) ** 2)
    assert np.sum(rho.influence(ones) ** 2) == pytest.approx(jackknife, rel=0.02)


def test_monotone_columns_have_coefficient_one_without_influence():
    x = np.array([0.1, 5.0, 7.0, 900.0])
    assert RankCorrelation(x, np.log(x)).value(np.ones(4)) == 1.0
    assert RankCorrelation(x, -x).value(np.ones(4)) == -1.0
    np.testing.assert_allclose(RankCorrelation(x, x).influence(np.ones(4)), 0, atol=1e-15)


@pytest.mark.parametrize("weights", [[1, 1, 0], [0, 1, 0], [0, 0, 0]])
def test_undefined_without_spread_among_the_rows_that_count(weights):
    rho = RankCorrelation([1.0, 1.0, 2.0], [1.0, 2.0, 3.0])
    assert np.isnan(rho.value(weights))
    assert np.isnan(rho.influence(weights)).all()
    assert np.isnan(RankCorrelation([], []).value([]))


def test_columns_that_are_none_are_refused():
    with pytest.raises(InputError, match=re.escape("does not fit an x of 2 rows")):
        RankCorrelation([1.0, 2.0], [1.0])
    with pytest.raises(InputError, match=re.escape("RankCorrelation: y=nan is not finite, at row 1")):
        RankCorrelation([1.0, 2.0], [1.0, np.nan])
