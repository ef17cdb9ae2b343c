import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

from kvstats.inference import Design
from kvstats.inference.bootstrap import bootstrap, studentized_bootstrap
from kvstats.inference.bootstrap_interval import DRAWN, BootstrapDistribution, bootstrap_distribution
from kvstats.inference.cell import bootstrap_bounds, infer_cell
from kvstats.inference.design import BOOTSTRAPS
from kvstats.inference.linear import linear_error
from kvstats.inference.p_values import cell_p_value
from kvstats.inference.sample import Sample
from kvstats.statistics import AUC, Mean


def sample_of(statistic, codes=None, kind="mean"):
    codes = np.arange(statistic.n) if codes is None else np.asarray(codes)
    clusters = tuple((f"{number:03}",) for number in range(codes.max() + 1))
    return Sample((), statistic, np.ones(codes.size), codes, clusters, kind)


def clustered(n_clusters=40, size=5, seed=1):
    y = np.random.default_rng(seed).exponential(size=(n_clusters, size)) ** 2
    return y.mean(axis=1), sample_of(Mean(y.ravel()), np.repeat(np.arange(n_clusters), size))


@pytest.mark.parametrize(("method", "name"), [("percentile",) * 2, ("basic",) * 2, ("bca", "BCa")])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_agrees_with_scipys_interval_of_cluster_means(method, name, level):
    means, sample = clustered()
    design = Design(interval=method, n_resamples=19_999, level=level)
    found = infer_cell("f", sample, design)
    reference = stats.bootstrap(
        (means,),
        np.mean,
        method=name,
        n_resamples=19_999,
        confidence_level=level,
        rng=np.random.default_rng(2),
    )
    width = found.high - found.low
    assert (found.low, found.high) == pytest.approx(tuple(reference.confidence_interval), abs=0.06 * width)
    assert found.se == pytest.approx(reference.standard_error, rel=0.03)


def test_bca_is_scipys_on_the_same_replicates():
    means, sample = clustered()
    reference = stats.bootstrap(
        (means,), np.mean, method="BCa", n_resamples=9999, rng=np.random.default_rng(3)
    )
    replicates = np.sort(reference.bootstrap_distribution)
    bias = special.ndtri(np.mean(replicates < means.mean()))
    left_out = (means.sum() - means) / (means.size - 1)
    deviations = left_out.mean() - left_out
    acceleration = np.sum(deviations**3) / (6 * np.sum(deviations**2) ** 1.5)
    own = bootstrap_distribution("f", sample, Design(), "bca")
    assert own.acceleration == pytest.approx(acceleration)
    low, high = BootstrapDistribution(replicates, 1.0, bias, acceleration).interval(0.95)
    gap = np.max(np.diff(replicates[100:-100]))
    assert (low, high) == pytest.approx(tuple(reference.confidence_interval), abs=2 * gap)
    plain_low, _ = BootstrapDistribution(replicates, 1.0).interval(0.95)
    assert low > plain_low + 2 * gap


def test_percentile_basic_and_studentized_by_their_definitions():
    _, sample = clustered(25, 2)
    replicates, errors = studentized_bootstrap("f", sample, 999, 0)
    np.testing.assert_array_equal(replicates, bootstrap("f", sample, 999, 0))
    estimate = sample.statistic.value(sample.weights)
    se, _ = linear_error(sample)
    ordered = np.sort(replicates)
    t = np.sort((replicates - estimate) / errors)
    expected = {
        "percentile": (ordered[24], ordered[974]),
        "basic": (2 * estimate - ordered[974], 2 * estimate - ordered[24]),
        "studentized": (estimate - t[974] * se, estimate - t[24] * se),
    }
    for method, bounds in expected.items():
        cell = infer_cell("f", sample, Design(interval=method, n_resamples=999))
        assert (cell.low, cell.high) == pytest.approx(bounds, rel=1e-12)
        assert cell.df is None
    assert cell.se == pytest.approx(se)


@pytest.mark.parametrize("method", BOOTSTRAPS)
@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_the_p_value_rejects_exactly_what_the_interval_leaves_out(method, level):
    _, sample = clustered(12, 3, seed=4)
    design = Design(interval=method, n_resamples=2999, level=level)
    cell = infer_cell("f", sample, design)
    assert cell.status == "ok"

    def p(null):
        return cell_p_value("f", sample, design, cell, null, "two-sided")

    values = bootstrap_distribution("f", sample, design, method).values
    nulls = np.concatenate([values, (values[1:] + values[:-1]) / 2, [values[0] - 1, values[-1] + 1]])
    for null in nulls[::61]:
        assert (p(null) <= (1 - level) * (1 + 1e-9)) == (not cell.low <= null <= cell.high)
    nudge = 1e-9 * (cell.high - cell.low)
    for bound, outwards in ((cell.low, -nudge), (cell.high, nudge)):
        assert p(bound + outwards) <= (1 - level) * (1 + 1e-9) < p(bound)


def test_p_values_count_ties_whatever_the_rounding():
    distribution = BootstrapDistribution(np.array([-0.1, 5.6e-17, 0.1, 0.2]), 1.0)
    assert distribution.p_greater(0.0) == pytest.approx(3 / 5)
    assert distribution.p_less(0.0) == pytest.approx(4 / 5)


@pytest.mark.parametrize("method", BOOTSTRAPS)
def test_a_bootstrap_p_value_is_never_zero(method):
    _, sample = clustered(30, 2)
    design = Design(interval=method, n_resamples=999)
    cell = infer_cell("f", sample, design)
    found = cell_p_value("f", sample, design, cell, -1e6, "greater")
    assert found == pytest.approx(1 / 1000)
    assert cell_p_value("f", sample, design, cell, -1e6, "less") == 1


def test_a_resample_whose_clusters_are_alike_leaves_no_studentized_interval():
    y = np.zeros(10)
    y[0] = 1.0
    sample = sample_of(Mean(y), kind="rate")
    cell = infer_cell("f", sample, Design(interval="studentized"))
    assert (cell.status, cell.low, cell.high, cell.se) == ("undefined in bootstrap", None, None, None)
    assert cell.estimate == pytest.approx(0.1)


def test_bca_whose_level_falls_beyond_the_resamples():
    distribution = BootstrapDistribution(np.arange(1.0, 100.0), 1.0, bias=-1.0, acceleration=0.0)
    assert distribution.interval(0.95)[0] == -np.inf
    sample = sample_of(Mean(np.r_[np.zeros(60), np.full(3, 40.0)]))
    cell = infer_cell("f", sample, Design(interval="bca", n_resamples=100, level=0.98))
    assert (cell.status, cell.low, cell.high) == ("too few resamples", None, None)


def test_a_level_beyond_the_resamples_is_the_end_of_the_range_only_where_they_reach_it():
    def bounds(first, kind):
        values = np.linspace(first, 0.6, 99)
        return bootstrap_bounds(BootstrapDistribution(values, 1.0, bias=-1.0), kind, 0.95)

    assert bounds(0.0, "rate")[:2] == ("ok", 0.0)
    assert bounds(0.01, "rate")[0] == bounds(0.0, "mean")[0] == "too few resamples"


def test_bca_without_replicates_on_one_side_is_undefined():
    # The largest value of the area: no resample can be above it, though a few clusters have variance.
    random = np.random.default_rng(0)
    label = np.arange(40) % 2
    score = label * 10 + random.normal(size=40)
    score[0] = 10.5
    sample = sample_of(AUC(score, label), kind="auc")
    replicates = bootstrap("f", sample, 2000, 0)
    estimate = sample.statistic.value(sample.weights)
    both = np.nanmean(replicates < estimate), np.nanmean(replicates > estimate)
    cell = infer_cell("f", sample, Design(interval="bca"))
    assert min(both) > 0
    assert cell.status == "ok"
    distribution = bootstrap_distribution("f", sample, Design(interval="bca"), "bca")
    assert distribution.bias == pytest.approx(
        special.ndtri(both[0] + np.nanmean(np.isclose(replicates, estimate)) / 2), abs=1e-9
    )


def test_bounds_are_cut_off_at_the_range_of_what_is_estimated():
    y = np.zeros(60)
    y[:3] = 1
    free = infer_cell("f", sample_of(Mean(y)), Design(interval="basic"))
    rate = infer_cell("f", sample_of(Mean(y), kind="rate"), Design(interval="basic"))
    assert free.low < 0
    assert (rate.low, rate.high) == (0.0, free.high)


def test_a_p_value_inverts_the_very_distribution_behind_the_interval():
    sample, design = clustered()[1], Design(interval="percentile", n_resamples=200)
    first = bootstrap_distribution("x", sample, design, "percentile")
    assert bootstrap_distribution("x", sample, replace(design, level=0.9), "percentile") is first
    for label, other, method in [
        ("y", design, "percentile"),
        ("x", replace(design, seed=1), "percentile"),
        ("x", replace(design, n_resamples=201), "percentile"),
        ("x", design, "basic"),
    ]:
        values = bootstrap_distribution(label, sample, other, method).values
        assert not np.array_equal(values, first.values)
    again = bootstrap_distribution("x", clustered()[1], design, "percentile")
    assert again is not first
    assert np.array_equal(again.values, first.values)


def test_distributions_are_forgotten_with_their_sample():
    _, sample = clustered()
    bootstrap_distribution("x", sample, Design(n_resamples=100), "percentile")
    assert sample in DRAWN
    alive = weakref.ref(sample)
    del sample
    gc.collect()
    assert alive() is None
    assert None not in [key() for key in DRAWN.keyrefs()]
