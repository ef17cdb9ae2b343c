import dataclasses
import itertools

import numpy as np
import pytest
from scipy import stats

from kvstats.inference import bootstrap as module
from kvstats.inference.bootstrap import bootstrap, counts_of, drawn_clusters
from kvstats.inference.contrast import difference_sample
from kvstats.inference.sample import Sample
from kvstats.statistics import AUC, Mean, Ratio


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


def test_strata_are_resampled_by_themselves():
    strata = tuple(("a" if number % 3 else "b",) for number in range(9))
    sample = sample_of(Mean(np.arange(9.0)), np.arange(9))
    stratified = dataclasses.replace(sample, strata=strata)
    counts = counts_of(np.concatenate(list(drawn_clusters("a", stratified, 4000, 0))))
    in_b = counts[:, ::3]
    assert (in_b.sum(axis=1) == 3).all()
    assert (counts.sum(axis=1) == 9).all()
    # A multinomial count of 3 draws from 3 clusters has the variance 3 * 1/3 * 2/3.
    np.testing.assert_allclose(in_b.var(axis=0), 2 / 3, rtol=0.1)
    constant = dataclasses.replace(sample_of(Mean(np.arange(9) % 3 == 0), np.arange(9)), strata=strata)
    np.testing.assert_allclose(bootstrap("a", constant, 100, 0), 1 / 3)


@pytest.mark.parametrize("n_clusters", [1, 2, 65_536, 65_537])
def test_every_cluster_can_be_drawn(n_clusters):
    sample = sample_of(Mean(np.arange(float(n_clusters))), np.arange(n_clusters))
    counts = counts_of(np.concatenate(list(drawn_clusters("a", sample, 20, 0))))
    assert (counts.sum(axis=1) == n_clusters).all()
    assert counts[:, [0, -1]].sum() > 0
    assert np.mean(counts == 0) == pytest.approx((1 - 1 / n_clusters) ** n_clusters, abs=0.15)


@pytest.mark.parametrize("strata", [None, (("a",),) * 4 + (("b",),) * 5])
def test_sums_over_drawn_clusters_are_values_under_counts(strata):
    random = np.random.default_rng(5)
    codes = np.r_[np.arange(9), random.integers(0, 9, 31)]
    weights = random.uniform(0.5, 2, 40)
    clusters = tuple((str(number),) for number in range(9))
    ratio = Ratio(random.normal(size=40), random.uniform(1, 2, 40))
    side = Sample((), ratio, weights, codes, clusters, "mean", strata)
    other = dataclasses.replace(side, statistic=Mean(random.normal(size=40)))
    for sample in (side, other, difference_sample((), side, other)):
        counts = counts_of(np.concatenate(list(drawn_clusters("a", sample, 200, 0))))
        expected = sample.statistic.cluster_values(counts, sample.codes, sample.weights)
        np.testing.assert_allclose(bootstrap("a", sample, 200, 0), expected, rtol=1e-12)


def test_a_resample_without_any_denominator_is_undefined():
    sample = sample_of(Ratio([1.0, 0.0], [1.0, 0.0]), np.arange(2))
    found = bootstrap("a", sample, 1000, 0)
    assert np.mean(np.isnan(found)) == pytest.approx(0.25, abs=0.05)
    assert set(found[~np.isnan(found)]) == {1.0}
