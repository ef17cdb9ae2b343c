import itertools

import numpy as np
import pytest
from scipy import stats

from kvstats.inference import bootstrap as module
from kvstats.inference.bootstrap import bootstrap, percentile_interval
from kvstats.inference.sample import Sample
from kvstats.statistics import AUC, Mean


def sample_of(statistic, codes):
    codes = np.asarray(codes)
    clusters = tuple((str(number),) for number in range(codes.max() + 1))
    return Sample((), statistic, np.ones(codes.size), codes, clusters, "mean")


def test_replicates_follow_the_full_enumeration_of_cluster_draws():
    y, codes = np.array([1.0, 2.0, 4.0, 8.0]), np.array([0, 0, 1, 2])
    exact = [
        np.mean(np.concatenate([y[codes == c] for c in drawn]))
        for drawn in itertools.product(range(3), repeat=3)
    ]
    found = bootstrap("a", sample_of(Mean(y), codes), 20_000, 0)
    values, counts = np.unique(np.round(exact, 9), return_counts=True)
    observed = [np.sum(np.isclose(found, value)) for value in values]
    assert sum(observed) == 20_000
    assert stats.chisquare(observed, counts / 27 * 20_000).pvalue > 0.001


def test_agrees_with_scipys_percentile_interval():
    y = np.random.default_rng(1).exponential(size=60)
    found = percentile_interval(bootstrap("a", sample_of(Mean(y), np.arange(60)), 9999, 0), 0.95)
    reference = stats.bootstrap((y,), np.mean, method="percentile", rng=np.random.default_rng(2))
    assert found == pytest.approx(tuple(reference.confidence_interval), abs=0.02)


def test_the_label_and_the_seed_fix_the_draws():
    sample = sample_of(Mean(np.random.default_rng(3).normal(size=20)), np.arange(20))
    first = bootstrap("a", sample, 100, 0)
    np.testing.assert_array_equal(first, bootstrap("a", sample, 100, 0))
    assert not np.array_equal(first, bootstrap("b", sample, 100, 0))
    assert not np.array_equal(first, bootstrap("a", sample, 100, 1))


def test_draws_in_blocks_make_as_many_replicates(monkeypatch):
    sample = sample_of(Mean(np.random.default_rng(4).normal(size=20)), np.arange(20))
    whole = bootstrap("a", sample, 1000, 0)
    monkeypatch.setattr(module, "CELLS", 70)
    blocks = bootstrap("a", sample, 1000, 0)
    assert blocks.shape == (1000,)
    assert blocks.std() == pytest.approx(whole.std(), rel=0.1)


def test_undefined_replicates_are_nan():
    auc = AUC(np.arange(10.0), np.arange(10) == 0)
    found = bootstrap("a", sample_of(auc, np.arange(10)), 2000, 0)
    assert np.mean(np.isnan(found)) == pytest.approx(0.9**10, abs=0.05)
