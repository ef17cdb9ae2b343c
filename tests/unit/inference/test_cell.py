import dataclasses
import re

import numpy as np
import pytest
from scipy import stats

from kvstats.errors import InputError
from kvstats.inference import Design
from kvstats.inference.cell import infer_cell
from kvstats.inference.contrast import difference_sample
from kvstats.inference.intervals import clustered_wilson_interval, korn_graubard_interval
from kvstats.inference.p_values import cell_p_value
from kvstats.inference.sample import Sample
from kvstats.statistics import AUC, Mean, Quantile, RankCorrelation, Ratio, TruePositiveRate, delong

UNDEFINED = {"low": None, "high": None, "se": None, "df": None}


def sample_of(statistic, kind, codes=None, weights=None):
    codes = np.arange(statistic.n) if codes is None else np.asarray(codes)
    clusters = tuple((str(number),) for number in range(int(codes.max(initial=-1)) + 1))
    weights = np.ones(statistic.n) if weights is None else np.asarray(weights)
    return Sample((), statistic, weights, codes, clusters, kind)


def figures(cell):
    return {name: getattr(cell, name) for name in ("low", "high", "se", "df")}


def test_linear_interval_is_students():
    y = np.random.default_rng(0).normal(size=12)
    cell = infer_cell("f", sample_of(Mean(y), "mean"), Design(level=0.9))
    reference = stats.ttest_1samp(y, 0).confidence_interval(0.9)
    assert (cell.low, cell.high) == pytest.approx((reference.low, reference.high))
    assert (cell.n, cell.clusters, cell.df, cell.status) == (12, 12, 11, "ok")
    assert cell.se == pytest.approx(stats.sem(y))


def test_auto_takes_korn_graubard_for_rates_only():
    y = np.array([0.0] * 15 + [1.0] * 5)
    rate = infer_cell("f", sample_of(Mean(y), "rate"), Design())
    named = infer_cell("f", sample_of(Mean(y), "rate"), Design(interval="korn_graubard"))
    mean = infer_cell("f", sample_of(Mean(y), "mean"), Design())
    linear = infer_cell("f", sample_of(Mean(y), "rate"), Design(interval="linear"))
    assert rate == named
    assert mean == linear
    size = 19  # independent rows: p(1 - p) over the variance p(1 - p) / 19
    assert rate.low == pytest.approx(stats.beta.ppf(0.025, size / 4, size * 3 / 4 + 1))
    assert rate.high == pytest.approx(stats.beta.ppf(0.975, size / 4 + 1, size * 3 / 4))
    assert rate.se == pytest.approx(stats.sem(y))


@pytest.mark.parametrize("interval", ["auto", "wilson"])
@pytest.mark.parametrize("event", [0.0, 1.0])
def test_a_rate_without_events_has_an_interval_and_no_standard_error(interval, event):
    codes = np.repeat(np.arange(10), 3)
    cell = infer_cell("f", sample_of(Mean(np.full(30, event)), "rate", codes), Design(interval=interval))
    method = {"auto": "exact", "wilson": "wilson"}[interval]
    reference = stats.binomtest(int(10 * event), 10).proportion_ci(0.95, method)
    assert (cell.low, cell.high) == pytest.approx((reference.low, reference.high), abs=1e-12)
    assert (cell.estimate, cell.se, cell.df, cell.status) == (event, None, 9, "ok")


@pytest.mark.parametrize("interval", ["linear", "percentile"])
def test_a_rate_without_events_has_no_linear_or_bootstrap_interval(interval):
    cell = infer_cell("f", sample_of(Mean(np.zeros(30)), "rate"), Design(interval=interval))
    assert figures(cell) == UNDEFINED
    assert (cell.estimate, cell.status) == (0, "zero variance")


@pytest.mark.parametrize(
    ("statistic", "kind", "estimate", "status"),
    [
        (Mean([]), "mean", None, "no rows"),
        (Mean([]), "rate", None, "no rows"),
        (AUC([1.0, 2.0], [1, 1]), "auc", None, "one class"),
        (RankCorrelation([1.0, 1.0], [1.0, 2.0]), "correlation", None, "undefined"),
        (Mean([2.5]), "mean", 2.5, "one cluster"),
        (Mean([1.0]), "rate", 1.0, "one cluster"),
        (Mean([0.1, 0.1, 0.1]), "mean", 0.1, "zero variance"),
        (Mean([0.0, 0.0, 0.0]), "mean", 0.0, "zero variance"),
        (Mean([0.0, 0.0, 0.0]), "paired", 0.0, "no discordant pairs"),
        (Mean([0.5, 0.5, 0.5]), "paired", 0.5, "zero variance"),
        (AUC([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1]), "auc", 1.0, "zero variance"),
        (RankCorrelation([1.0, 2.0, 3.0], [1.0, 2.0, 9.0]), "correlation", 1.0, "zero variance"),
    ],
)
@pytest.mark.parametrize("interval", ["auto", "percentile"])
def test_what_is_undefined_is_none_with_a_reason(statistic, kind, estimate, status, interval):
    cell = infer_cell("f", sample_of(statistic, kind), Design(interval=interval))
    assert cell.estimate == (None if estimate is None else pytest.approx(estimate))
    assert cell.status == status
    assert figures(cell) == UNDEFINED


def test_differences_that_cancel_within_clusters_are_discordant():
    cell = infer_cell("f", sample_of(Mean([1.0, -1.0, 1.0, -1.0]), "paired", [0, 0, 1, 1]), Design())
    assert (cell.estimate, cell.status) == (0, "zero variance")


def test_constant_values_far_from_zero_have_zero_variance_despite_rounding():
    y = np.full(1000, 1e6 + 0.1)
    weights = np.random.default_rng(0).uniform(0.1, 1, 1000)
    cell = infer_cell("f", sample_of(Mean(y), "mean", weights=weights), Design())
    assert cell.status == "zero variance"
    same = sample_of(Mean(y), "mean", weights=weights)
    assert infer_cell("f", difference_sample((), same, same), Design()).status == "zero variance"


@pytest.mark.parametrize(
    ("statistic", "kind", "low", "high"),
    [
        (TruePositiveRate([1.0, 2.0, 3.0, 4.0, 5.0, 3.5], [0, 0, 1, 1, 1, 0], 0.4), "auc", 0.0, 1.0),
        (RankCorrelation([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0]), "correlation", -1.0, 1.0),
        (RankCorrelation([1.0, 2.0, 3.0], [1.0, 3.0, 2.0]), "correlation", -1.0, 1.0),
        (Mean([1.0, 0.0, 0.0]), "rate", 0.0, 1.0),
    ],
)
def test_a_linear_interval_is_cut_off_at_the_range_of_what_is_estimated(statistic, kind, low, high):
    cell = infer_cell("f", sample_of(statistic, kind), Design(interval="linear"))
    free = infer_cell("f", sample_of(statistic, "mean"), Design(interval="linear"))
    assert free.low < low or free.high > high
    assert (cell.low, cell.high) == (max(free.low, low), min(free.high, high))


def test_the_interval_of_an_area_is_on_the_logit_scale_and_its_p_value_inverts_it():
    area = AUC([1.0, 2.0, 3.0, 4.0, 5.0, 3.5], [0, 0, 1, 1, 1, 0])
    sample = sample_of(area, "auc")
    cell = infer_cell("f", sample, Design())
    expected = delong([1.0, 2.0, 3.0, 4.0, 5.0, 3.5], [0, 0, 1, 1, 1, 0])
    assert (cell.low, cell.high) == pytest.approx(tuple(expected.logit_interval(0.95)[0]), rel=1e-12)
    assert (cell.se, cell.df) == pytest.approx((expected.covariance[0, 0] ** 0.5, expected.df[0]), rel=1e-12)
    for bound in (cell.low, cell.high):
        assert cell_p_value("f", sample, Design(), cell, bound, "two-sided") == pytest.approx(0.05, rel=1e-9)
    assert cell_p_value("f", sample, Design(), cell, 0.0, "greater") == 0.0
    assert cell_p_value("f", sample, Design(), cell, 1.0, "greater") == 1.0


def test_a_ratio_s_interval_stays_above_0_by_any_method():
    top, bottom = np.array([9.0, 0.0, 0.0, 1.0, 0.0, 0.0]), np.ones(6)
    sample = sample_of(Ratio(top, bottom), "ratio")
    for interval in ("jackknife", "basic"):
        cell = infer_cell("ratio", sample, Design(interval=interval))
        assert (cell.status, cell.low) == ("ok", 0.0)
        assert infer_cell("ratio", sample_of(Ratio(top, bottom), "mean"), Design(interval=interval)).low < 0
    assert infer_cell("ratio", sample, Design()).low > 0


def test_a_class_of_one_cluster_has_no_interval():
    sample = sample_of(AUC([2.5, 3.0, 2.0, 4.0], [1, 0, 0, 0]), "auc")
    for interval in ("auto", "linear", "percentile", "bca", "jackknife"):
        cell = infer_cell("f", sample, Design(interval=interval))
        assert (cell.status, cell.low, cell.high, cell.se) == ("one cluster of a class", None, None, None)
        assert cell.estimate == pytest.approx(1 / 3)


def test_percentile_interval_and_standard_error_are_of_the_replicates():
    y = np.random.default_rng(1).normal(size=40)
    design = Design(interval="percentile", n_resamples=5000, level=0.9)
    cell = infer_cell("f", sample_of(Mean(y), "mean"), design)
    assert cell.se == pytest.approx(y.std() / np.sqrt(40), rel=0.05)
    assert (cell.low, cell.high) == pytest.approx(
        (y.mean() - 1.645 * cell.se, y.mean() + 1.645 * cell.se), abs=0.03
    )
    assert cell.df is None


def test_too_many_undefined_replicates():
    auc = AUC(np.arange(20.0) % 7, np.arange(20) < 2)
    cell = infer_cell("f", sample_of(auc, "auc"), Design(interval="percentile"))
    assert cell.status == "undefined in bootstrap"
    assert cell.estimate is not None
    assert figures(cell) == UNDEFINED


def test_few_undefined_replicates_are_left_out():
    auc = AUC(np.arange(20.0) % 7, np.arange(20) < 5)
    cell = infer_cell("f", sample_of(auc, "auc"), Design(interval="percentile"))
    assert cell.status == "ok"
    assert cell.low < cell.estimate < cell.high


def test_a_bootstrap_interval_of_width_zero_is_none():
    y = np.zeros(2000)
    y[0] = 1
    cell = infer_cell("f", sample_of(Mean(y), "mean"), Design(interval="percentile", level=0.05))
    assert cell.status == "zero variance"
    assert figures(cell) == UNDEFINED


def test_an_interval_for_rates_is_refused_elsewhere_and_gives_way_in_contrasts():
    mean = sample_of(Mean([0.5, 1.0, 0.0]), "mean")
    message = (
        "f: design.interval='wilson' is for rates, whose values are all 0 or 1; use 'linear', 'percentile'"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        infer_cell("f", mean, Design(interval="wilson"))
    rate = sample_of(Mean([1.0, 1.0, 0.0]), "rate")
    contrast = difference_sample((), mean, rate)
    assert infer_cell("f", contrast, Design(interval="wilson")) == infer_cell("f", contrast, Design())


def test_quantiles_and_their_contrasts_are_resampled_where_an_interval_does_not_fit_them():
    random = np.random.default_rng(4)
    first, second = (sample_of(Quantile(random.normal(size=40)), "quantile") for _ in range(2))
    for sample in (first, difference_sample((), first, second)):
        resampled = infer_cell("f", sample, Design(interval="percentile"))
        for interval in ("auto", "jackknife", "korn_graubard", "wilson"):
            assert infer_cell("f", sample, Design(interval=interval)) == resampled
            p_value = cell_p_value("f", sample, Design(interval=interval), resampled, 0.1, "two-sided")
            assert p_value == cell_p_value(
                "f", sample, Design(interval="percentile"), resampled, 0.1, "two-sided"
            )
        assert infer_cell("f", sample, Design(interval="linear")).df is not None


@pytest.mark.parametrize("events", [0, 3, 20])
def test_clopper_pearson_of_independent_rows_is_scipys(events):
    y = np.arange(20) < events
    cell = infer_cell("f", sample_of(Mean(y), "rate"), Design(interval="clopper_pearson"))
    exact = stats.binomtest(events, 20).proportion_ci(0.95, "exact")
    assert (cell.low, cell.high) == pytest.approx((exact.low, exact.high), abs=1e-12)
    assert cell.status == "ok"


@pytest.mark.parametrize(
    ("arguments", "strata", "fault"),
    [
        ({"codes": [0, 0, 1, 2]}, None, "ignores clusters, and 4 rows are in 3"),
        ({"weights": [1, 1, 2, 1]}, None, "ignores weights, and they differ"),
        ({}, (("a",), ("a",), ("b",), ("b",)), "ignores strata"),
    ],
)
def test_clopper_pearson_is_refused_for_dependent_or_weighted_rows(arguments, strata, fault):
    sample = dataclasses.replace(sample_of(Mean([1.0, 0.0, 0.0, 1.0]), "rate", **arguments), strata=strata)
    message = f"f: design.interval='clopper_pearson' {fault}; use 'korn_graubard'"
    with pytest.raises(InputError, match=re.escape(message)):
        infer_cell("f", sample, Design(interval="clopper_pearson"))


@pytest.mark.parametrize("interval", ["auto", "jackknife", "percentile", "basic", "bca", "studentized"])
@pytest.mark.parametrize("kind", ["rate", "mean"])
def test_one_cluster_in_a_stratum(interval, kind):
    sample = sample_of(Mean([1.0, 0.0, 0.0]), kind)
    lone = dataclasses.replace(sample, strata=(("a",), ("a",), ("b",)))
    cell = infer_cell("f", lone, Design(interval=interval))
    assert cell.status == "one cluster in a stratum"
    assert cell.estimate == pytest.approx(1 / 3)
    assert figures(cell) == UNDEFINED


@pytest.mark.parametrize("interval", ["linear", "jackknife", "percentile", "basic", "bca", "studentized"])
def test_strata_take_out_what_lies_between_them(interval):
    y = np.random.default_rng(3).normal(size=60) + np.repeat([0.0, 8.0], 30)
    sample = sample_of(Mean(y), "mean")
    strata = tuple((name,) for name in np.repeat(["a", "b"], 30))
    plain, stratified = (
        infer_cell("f", s, Design(interval=interval))
        for s in (sample, dataclasses.replace(sample, strata=strata))
    )
    assert stratified.high - stratified.low < (plain.high - plain.low) / 3
    within = np.sqrt((stats.sem(y[:30]) ** 2 + stats.sem(y[30:]) ** 2) / 4)
    assert stratified.se == pytest.approx(within, rel=0.08)


@pytest.mark.parametrize("interval", ["jackknife", "percentile", "basic", "bca", "studentized"])
@pytest.mark.parametrize(
    ("y", "kind", "status"),
    [
        ([], "mean", "no rows"),
        ([], "discordant", "no discordant pairs"),
        ([2.5], "mean", "one cluster"),
        ([0.0, 0.0, 0.0], "rate", "zero variance"),
        ([0.0, 0.0, 0.0], "paired", "no discordant pairs"),
    ],
)
def test_other_intervals_are_undefined_alike(y, kind, status, interval):
    cell = infer_cell("f", sample_of(Mean(y), kind), Design(interval=interval))
    assert cell.status == status
    assert figures(cell) == UNDEFINED


def test_a_class_of_one_cluster_is_named_with_strata_too():
    sample = sample_of(AUC([2.5, 3.0, 2.0, 4.0], [1, 0, 0, 0]), "auc")
    strata = (("a",), ("a",), ("b",), ("b",))
    assert infer_cell("f", dataclasses.replace(sample, strata=strata), Design()).status == (
        "one cluster of a class"
    )
    lone = dataclasses.replace(sample, strata=(("a",), ("a",), ("a",), ("b",)))
    assert infer_cell("f", lone, Design()).status == "one cluster in a stratum"


@pytest.mark.parametrize("interval", ["auto", "wilson"])
def test_the_interval_of_a_rate_knows_unequal_weights(interval):
    y, weights = np.arange(40) % 5 == 0, np.repeat([1.0, 4.0], 20)
    sample = sample_of(Mean(y), "rate", weights=weights)
    cell = infer_cell("f", sample, Design(interval=interval))
    kish = 100**2 / (20 + 320)
    function = {"auto": korn_graubard_interval, "wilson": clustered_wilson_interval}[interval]
    df = kish - 1  # each row is a cluster
    se = max(cell.se, np.sqrt(0.16 / (kish - 1)))
    assert (cell.low, cell.high) == pytest.approx(
        tuple(map(float, function(0.2, se, kish, 40, df, effective_clusters=kish))), rel=1e-12
    )
    for bound in (cell.low, cell.high):
        p_value = cell_p_value("f", sample, Design(interval=interval), cell, bound, "two-sided")
        assert p_value == pytest.approx(0.05, rel=1e-6)
    equal = infer_cell("f", sample_of(Mean(y), "rate", weights=np.full(40, 0.1)), Design(interval=interval))
    plain = infer_cell("f", sample_of(Mean(y), "rate"), Design(interval=interval))
    assert (equal.low, equal.high) == pytest.approx((plain.low, plain.high), rel=1e-12)


@pytest.mark.parametrize(("interval", "method"), [("auto", "exact"), ("wilson", "wilson")])
def test_a_rate_without_events_knows_unequal_clusters(interval, method):
    sizes = [6, 2, 2, 2]
    codes = np.repeat(np.arange(4), sizes)
    cell = infer_cell("f", sample_of(Mean(np.zeros(12)), "rate", codes), Design(interval=interval))
    kish = 144 / 48
    assert (cell.low, cell.high) == pytest.approx(
        tuple(stats.binomtest(0, int(kish)).proportion_ci(0.95, method)), abs=1e-12
    )


def test_one_huge_cluster_leaves_the_whole_range():
    codes = np.repeat(np.arange(20), [2000] + [1] * 19)
    y = (codes == 3).astype(float)
    cell = infer_cell("f", sample_of(Mean(y), "rate", codes), Design())
    assert cell.low == pytest.approx(0, abs=1e-6)
    assert cell.high > 0.99
    assert cell.df == 19
