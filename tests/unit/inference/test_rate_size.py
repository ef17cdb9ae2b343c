import numpy as np
import pytest

from kvstats.inference.linear import linear_error
from kvstats.inference.rate_size import component_variance, kish_size, rate_size
from kvstats.inference.sample import Sample
from kvstats.statistics import Mean

RANDOM = np.random.default_rng(0)


def sample_of(y, codes, weights=None, strata=None):
    names = tuple((f"{i:03}",) for i in range(int(np.max(codes)) + 1))
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    return Sample((), Mean(y), weights, np.asarray(codes), names, "rate", strata)


def test_kish_size_counts_equal_weights():
    assert kish_size(np.full(7, 0.3)) == 7
    assert kish_size(np.array([2.0, 0.0, 2.0])) == 2
    assert kish_size(np.array([3.0, 1.0])) == pytest.approx(16 / 10)
    assert kish_size(np.array([1e300, 1e-300])) == 1


def test_clusters_of_equal_size_change_nothing():
    codes, y = np.repeat(np.arange(12), 4), RANDOM.integers(0, 2, 48)
    for strata in (None, tuple((str(i < 5),) for i in range(12))):
        sample = sample_of(y, codes, np.full(48, 0.7), strata)
        se, df = linear_error(sample)
        size = rate_size(sample, se, df)
        assert (size.rows, size.clusters, size.df) == pytest.approx((48, 12, df), rel=1e-14)
        assert size.se == pytest.approx(se, rel=1e-12)


def test_components_of_variance_by_the_textbook():
    sizes = np.array([1, 2, 3, 5, 9])
    codes, y = np.repeat(np.arange(5), sizes), RANDOM.integers(0, 2, 20).astype(float)
    means = np.array([y[codes == c].mean() for c in range(5)])
    between = np.sum(sizes * (means - y.mean()) ** 2) / 4
    within = np.sum((y - means[codes]) ** 2) / 15
    sigma = (between - within) / ((20 - np.sum(sizes**2) / 20) / 4)
    variance = sigma * np.sum(sizes**2) / 400 + within / 20
    assert component_variance(sample_of(y, codes)) == pytest.approx(variance, rel=1e-12)


def test_independent_rows_of_unequal_weight_have_kishs_size():
    y, weights = RANDOM.integers(0, 2, 30), RANDOM.lognormal(0, 1, 30)
    p, kish = np.average(y, weights=weights), kish_size(weights)
    found = component_variance(sample_of(y, np.arange(30), weights))
    assert found == pytest.approx(p * (1 - p) / (kish - 1), rel=1e-12)


def test_the_scale_of_weights_changes_nothing():
    y, codes, weights = RANDOM.integers(0, 2, 30), np.arange(30) % 7, RANDOM.lognormal(0, 1, 30)
    one, other = (component_variance(sample_of(y, codes, weights * scale)) for scale in (1e-200, 1e200))
    assert one == pytest.approx(other, rel=1e-12)


def test_strata_add_their_variances_and_one_of_one_cluster_adds_none():
    sizes = np.array([1, 4, 2, 3, 5, 2, 2])
    codes, y = np.repeat(np.arange(7), sizes), RANDOM.integers(0, 2, 19).astype(float)
    strata = tuple((name,) for name in "aaabbbc")
    expected = 0.0
    for members in ((0, 1, 2), (3, 4, 5)):
        rows = np.isin(codes, members)
        part = sample_of(y[rows], np.unique(codes[rows], return_inverse=True)[1])
        expected += component_variance(part) * (rows.sum() / 19) ** 2
    assert component_variance(sample_of(y, codes, strata=strata)) == pytest.approx(expected, rel=1e-12)


def test_a_variance_that_rests_on_few_large_clusters_is_known_no_better():
    codes = np.repeat(np.arange(20), [200] + [2] * 19)
    size = rate_size(sample_of(codes == 3, codes), 0.01, 19.0)
    assert size.clusters == pytest.approx(238**2 / (200**2 + 19 * 4))
    assert size.df == pytest.approx(size.clusters - 1)
    assert size.se > 0.01
