import numpy as np
import pytest
from scipy import stats

from kvstats.inference import Design
from kvstats.inference.bootstrap import bootstrap
from kvstats.inference.cell import infer_cell
from kvstats.inference.p_values import cell_p_value
from kvstats.inference.sample import Sample
from kvstats.statistics import AUC, Mean


def sample_of(statistic, kind, codes=None):
    codes = np.arange(statistic.n) if codes is None else np.asarray(codes)
    clusters = tuple((str(number),) for number in range(int(codes.max(initial=-1)) + 1))
    return Sample((), statistic, np.ones(statistic.n), codes, clusters, kind)


def p_of(sample, null, alternative="two-sided", **design):
    design = Design(**design)
    return cell_p_value("f", sample, design, infer_cell("f", sample, design), null, alternative)


def clustered_rate(rate, seed=0, clusters=20, size=4):
    random = np.random.default_rng(seed)
    chance = random.beta(2 * rate, 2 * (1 - rate), clusters)
    y = (random.uniform(size=(clusters, size)) < chance[:, None]).astype(float)
    return sample_of(Mean(y.ravel()), "rate", np.repeat(np.arange(clusters), size))


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("null", [-0.4, 0.1, 2.0])
def test_linear_is_students_test(alternative, null):
    y = np.random.default_rng(0).normal(size=15)
    expected = stats.ttest_1samp(y, null, alternative=alternative).pvalue
    assert p_of(sample_of(Mean(y), "mean"), null, alternative) == pytest.approx(expected)


@pytest.mark.parametrize("interval", ["korn_graubard", "wilson", "linear"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("null", [0.02, 0.15, 0.5, 0.8])
def test_the_p_value_is_the_level_at_which_the_interval_reaches_the_null_value(interval, seed, null):
    sample = clustered_rate(0.3, seed)
    p = p_of(sample, null, interval=interval)
    assert 0 < p < 1
    cell = infer_cell("f", sample, Design(interval=interval, level=1 - p))
    assert (cell.low if cell.estimate > null else cell.high) == pytest.approx(null, abs=1e-6)


@pytest.mark.parametrize("interval", ["korn_graubard", "wilson"])
def test_the_bounds_shown_have_p_values_of_five_percent(interval):
    sample = clustered_rate(0.3)
    cell = infer_cell("f", sample, Design(interval=interval))
    assert p_of(sample, cell.low, interval=interval) == pytest.approx(0.05)
    assert p_of(sample, cell.high, interval=interval) == pytest.approx(0.05)
    assert p_of(sample, cell.low, "greater", interval=interval) == pytest.approx(0.025)
    assert p_of(sample, cell.low, "less", interval=interval) > 0.9


@pytest.mark.parametrize("interval", ["korn_graubard", "wilson"])
def test_the_estimate_itself_as_null_value_is_never_rejected(interval):
    sample = clustered_rate(0.3)
    null = sample.statistic.value(sample.weights)
    assert p_of(sample, null, interval=interval) == 1
    assert 0.5 <= p_of(sample, null, "greater", interval=interval) < 0.6
    assert 0.5 <= p_of(sample, null, "less", interval=interval) < 0.6


@pytest.mark.parametrize("event", [0, 1])
def test_korn_graubard_without_events_is_the_binomial_test_of_the_clusters(event):
    sample = sample_of(Mean(np.full(30, float(event))), "rate", np.repeat(np.arange(10), 3))
    for alternative in ("greater", "less"):
        exact = stats.binomtest(10 * event, 10, 0.2, alternative=alternative).pvalue
        assert p_of(sample, 0.2, alternative) == pytest.approx(exact)


def test_wilson_of_independent_rows_is_the_score_test():
    y = np.array([1.0] * 7 + [0.0] * 23)
    score = (7 / 30 - 0.4) / np.sqrt(0.4 * 0.6 / 30)
    found = p_of(sample_of(Mean(y), "rate"), 0.4, interval="wilson")
    assert found == pytest.approx(2 * stats.norm.sf(abs(score)))


@pytest.mark.parametrize("interval", ["korn_graubard", "wilson"])
@pytest.mark.parametrize(("null", "greater", "less"), [(0.0, 0.0, 1.0), (1.0, 1.0, 0.0)])
def test_null_values_that_the_data_rule_out(interval, null, greater, less):
    sample = clustered_rate(0.3)
    assert p_of(sample, null, "greater", interval=interval) == greater
    assert p_of(sample, null, "less", interval=interval) == less


@pytest.mark.parametrize("interval", ["korn_graubard", "wilson"])
def test_distant_null_values_have_small_p_values_without_warnings(interval):
    sample = clustered_rate(0.95, seed=1, clusters=3, size=200)
    found = p_of(sample, 1e-6, interval=interval)
    assert 0 <= found < 0.01
    many = sample_of(Mean(np.tile([1.0, 1.0, 0.0], 2000)), "rate")
    assert 0 < p_of(many, 0.5, interval=interval) < 1e-100


def test_percentile_counts_replicates_beyond_the_null_value():
    y = np.random.default_rng(2).normal(0.2, size=30)
    sample = sample_of(Mean(y), "mean")
    replicates = bootstrap("f", sample, 999, 5)
    greater = (np.sum(replicates <= 0) + 1) / 1000
    less = (np.sum(replicates >= 0) + 1) / 1000
    design = {"interval": "percentile", "n_resamples": 999, "seed": 5}
    assert p_of(sample, 0, "greater", **design) == greater
    assert p_of(sample, 0, "less", **design) == less
    assert p_of(sample, 0, **design) == 2 * min(greater, less)
    assert p_of(sample, -99, **design) == 2 / 1000


def test_identical_series_have_p_value_one_and_other_constants_none():
    identical = sample_of(Mean(np.zeros(5)), "paired")
    assert p_of(identical, 0.0) == 1
    assert p_of(identical, 0.0, interval="percentile") == 1
    assert p_of(identical, 0.1) is None
    assert p_of(sample_of(Mean(np.full(5, 0.5)), "paired"), 0.0) is None


@pytest.mark.parametrize(
    "sample",
    [
        sample_of(Mean([]), "mean"),
        sample_of(Mean([1.0]), "mean"),
        sample_of(AUC([1.0, 2.0], [1, 1]), "auc"),
    ],
)
def test_none_where_the_estimate_or_the_interval_is(sample):
    assert p_of(sample, 0.5) is None


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
@pytest.mark.parametrize("events", [0, 4, 15])
def test_clopper_pearson_is_the_binomial_test(events, alternative):
    sample = sample_of(Mean(np.arange(15) < events), "rate")
    one = {a: stats.binomtest(events, 15, 0.3, alternative=a).pvalue for a in ("greater", "less")}
    expected = one.get(alternative, min(1.0, 2 * min(one.values())))
    assert p_of(sample, 0.3, alternative, interval="clopper_pearson") == pytest.approx(expected)


def test_a_share_of_no_discordant_pairs_has_p_one():
    assert p_of(sample_of(Mean([]), "discordant"), 0.5) == 1
    assert p_of(sample_of(Mean([]), "rate"), 0.5) is None
