import numpy as np
import pytest
from scipy import stats

from kvstats.inference.bootstrap import bootstrap
from kvstats.inference.contrast import difference_sample
from kvstats.inference.jackknife import jackknife_error
from kvstats.inference.linear import linear_error
from kvstats.inference.sample import Sample
from kvstats.statistics import AUC, Mean, Ratio, StratifiedAUC, delong


def sample_of(statistic, codes, weights=None, names=None, strata=None):
    codes = np.asarray(codes)
    names = names or [str(number) for number in range(codes.max() + 1)]
    weights = np.ones(codes.size) if weights is None else np.asarray(weights)
    return Sample((), statistic, weights, codes, tuple((name,) for name in names), "mean", strata)


def test_one_row_a_cluster_is_the_standard_error_of_the_mean():
    y = np.random.default_rng(0).normal(size=30)
    se, df = linear_error(sample_of(Mean(y), np.arange(30)))
    assert se == pytest.approx(stats.sem(y))
    assert df == 29


def test_clusters_of_equal_size_are_as_good_as_their_means():
    y = np.random.default_rng(1).normal(size=(12, 5))
    se, df = linear_error(sample_of(Mean(y.ravel()), np.repeat(np.arange(12), 5)))
    assert se == pytest.approx(stats.sem(y.mean(axis=1)))
    assert df == 11


def test_duplicated_rows_in_their_cluster_add_no_information():
    y, codes = np.random.default_rng(2).normal(size=9), np.arange(9) // 2
    once = linear_error(sample_of(Mean(y), codes))
    twice = linear_error(sample_of(Mean(np.tile(y, 2)), np.tile(codes, 2)))
    assert twice == pytest.approx(once)


def test_weighted_clusters_of_unequal_size_by_the_definition():
    random = np.random.default_rng(3)
    top, bottom, codes = random.normal(size=40), random.uniform(1, 2, 40), random.integers(0, 7, 40)
    weights = random.uniform(0.5, 2, 40)
    ratio = np.sum(weights * top) / np.sum(weights * bottom)
    totals = [
        sum(weights[i] * (top[i] - ratio * bottom[i]) for i in range(40) if codes[i] == c) for c in range(7)
    ]
    totals = np.array(totals) / np.sum(weights * bottom)
    variance = 7 / 6 * np.sum((totals - totals.mean()) ** 2)
    assert linear_error(sample_of(Ratio(top, bottom), codes, weights)) == pytest.approx(
        (np.sqrt(variance), 6)
    )


def test_auc_approaches_delongs_variance():
    random = np.random.default_rng(4)
    label = np.arange(400) % 2
    score = random.normal(size=400) + label
    positive, negative = score[label == 1], score[label == 0]
    wins = (positive[:, None] > negative).astype(float)
    delong = wins.mean(axis=1).var(ddof=1) / 200 + wins.mean(axis=0).var(ddof=1) / 200
    se, _ = linear_error(sample_of(AUC(score, label), np.arange(400)))
    assert se**2 == pytest.approx(delong, rel=0.01)


def test_a_difference_on_the_same_clusters_is_the_paired_analysis():
    a, b = np.random.default_rng(5).normal(size=(2, 15))
    side = [sample_of(Mean(y), np.arange(15)) for y in (a, b)]
    se, df = linear_error(difference_sample((), *side))
    test = stats.ttest_rel(a, b)
    assert (a.mean() - b.mean()) / se == pytest.approx(test.statistic)
    assert df == test.df


def test_a_difference_on_other_clusters_is_welchs():
    random = np.random.default_rng(6)
    a, b = random.normal(size=5), random.normal(scale=3, size=20)
    first = sample_of(Mean(a), np.arange(5), names=[f"a{i}" for i in range(5)])
    second = sample_of(Mean(b), np.arange(20), names=[f"b{i}" for i in range(20)])
    se, df = linear_error(difference_sample((), first, second))
    test = stats.ttest_ind(a, b, equal_var=False)
    assert (a.mean() - b.mean()) / se == pytest.approx(test.statistic)
    assert df == pytest.approx(test.df)


def test_a_difference_on_partly_shared_clusters():
    random = np.random.default_rng(7)
    a, b = random.normal(size=8), random.normal(size=10)
    first = sample_of(Mean(a), np.arange(8), names=[f"{i:02}" for i in range(8)])
    second = sample_of(Mean(b), np.arange(10), names=[f"{i:02}" for i in range(3, 13)])
    se, df = linear_error(difference_sample((), first, second))
    in_a = {f"{i:02}": (a[i] - a.mean()) / 8 * np.sqrt(8 / 7) for i in range(8)}
    in_b = {f"{i:02}": (b[i - 3] - b.mean()) / 10 * np.sqrt(10 / 9) for i in range(3, 13)}
    totals = {name: in_a.get(name, 0) - in_b.get(name, 0) for name in {*in_a, *in_b}}
    variance = sum(total**2 for total in totals.values())
    groups = [in_a.keys() - in_b.keys(), in_b.keys() - in_a.keys(), in_a.keys() & in_b.keys()]
    parts = [sum(totals[name] ** 2 for name in group) for group in groups]
    expected = variance**2 / sum(p**2 / (len(g) - 1) for p, g in zip(parts, groups, strict=True))
    assert (se, df) == pytest.approx((np.sqrt(variance), expected))


def test_one_cluster_has_no_standard_error():
    assert np.isnan(linear_error(sample_of(Mean([1.0, 2.0]), [0, 0]))).all()
    two = sample_of(Mean([1.0, 2.0]), [0, 1])
    one = sample_of(Mean([1.0]), [0])
    assert np.isnan(linear_error(difference_sample((), two, one))).all()


def test_strata_add_their_variances():
    random = np.random.default_rng(8)
    y, strata = random.normal(size=15), np.repeat([0, 1], [5, 10])
    y[strata == 1] += 10
    se, df = linear_error(sample_of(Mean(y), np.arange(15), strata=tuple((str(s),) for s in strata)))
    variance = sum((y[strata == s].size / 15) ** 2 * stats.sem(y[strata == s]) ** 2 for s in (0, 1))
    assert (se, df) == pytest.approx((np.sqrt(variance), 13))
    assert se < linear_error(sample_of(Mean(y), np.arange(15)))[0] / 3


def test_one_stratum_is_none():
    y, codes = np.random.default_rng(9).normal(size=12), np.arange(12) // 2
    one = sample_of(Mean(y), codes, strata=(("a",),) * 6)
    assert linear_error(one) == linear_error(sample_of(Mean(y), codes))


def test_a_stratum_of_one_cluster_has_no_standard_error():
    strata = (("a",), ("a",), ("b",))
    assert np.isnan(linear_error(sample_of(Mean([1.0, 2.0, 5.0]), np.arange(3), strata=strata))).all()


def test_a_stratified_difference_of_shared_clusters_is_the_paired_analysis():
    a, b = np.random.default_rng(10).normal(size=(2, 12))
    strata = tuple((str(i % 3),) for i in range(12))
    sides = [sample_of(Mean(y), np.arange(12), strata=strata) for y in (a, b)]
    paired = sample_of(Mean(a - b), np.arange(12), strata=strata)
    assert linear_error(difference_sample((), *sides)) == pytest.approx(linear_error(paired))


def test_a_stratified_difference_of_other_clusters_adds_variances_and_has_satterthwaites_df():
    random = np.random.default_rng(11)
    a, b = random.normal(size=8), random.normal(scale=3, size=12)
    sides = [
        sample_of(
            Mean(y),
            np.arange(y.size),
            names=[f"{side}{i:02}" for i in range(y.size)],
            strata=tuple((str(i % 2),) for i in range(y.size)),
        )
        for side, y in (("a", a), ("b", b))
    ]
    (se_a, df_a), (se_b, df_b) = map(linear_error, sides)
    expected = (se_a**2 + se_b**2) ** 2 / (se_a**4 / df_a + se_b**4 / df_b)
    assert (df_a, df_b) == (6, 10)
    assert linear_error(difference_sample((), *sides)) == pytest.approx((np.hypot(se_a, se_b), expected))


def apart(size):
    """Return an area over two strata in one of which the positives lie high, in the other low."""
    random = np.random.default_rng(12)
    stratum, label = np.arange(size) % 2, random.uniform(size=size) < 0.3
    score = random.normal(size=size) + np.where(label, np.where(stratum == 1, 2.5, -1.0), 0.0)
    return stratum, label, score


def test_an_area_with_strata_by_the_definition():
    stratum, label, score = apart(60)
    sample = sample_of(AUC(score, label), np.arange(60), strata=tuple((str(s),) for s in stratum))
    influence, variance = sample.statistic.influence(sample.weights), 0.0
    for s in (0, 1):
        combined = np.zeros(30)
        for name in (False, True):
            total = np.where(label == name, influence, 0.0)[stratum == s]
            k = np.sum(label == name)
            combined += np.sqrt(30 / 29 * (k / (k - 1)) / (60 / 59)) * (total - total.mean())
        variance += combined @ combined
    assert linear_error(sample)[0] == pytest.approx(np.sqrt(variance), rel=1e-12)


def test_an_area_with_strata_agrees_with_jackknife_and_bootstrap():
    stratum, label, score = apart(200)
    sample = sample_of(AUC(score, label), np.arange(200), strata=tuple((str(s),) for s in stratum))
    se = linear_error(sample)[0]
    assert se == pytest.approx(jackknife_error(sample)[0], rel=0.01)
    assert se == pytest.approx(np.std(bootstrap("f", sample, 4000, 0)), rel=0.03)
    assert linear_error(sample_of(AUC(score, label), np.arange(200)))[0] > 1.1 * se


def test_an_area_in_one_stratum_is_delongs():
    _, label, score = apart(60)
    se, df = linear_error(sample_of(AUC(score, label), np.arange(60), strata=(("a",),) * 60))
    expected = delong(score, label)
    assert (se**2, df) == pytest.approx((expected.covariance[0, 0], expected.df[0]), rel=1e-12)


def test_a_stratum_with_one_positive_is_no_obstacle():
    label, stratum = np.zeros(40), np.repeat([0, 1], 20)
    label[[0, 1, 2, 3, 20]] = 1
    score = np.random.default_rng(13).normal(size=40) + label
    sample = sample_of(AUC(score, label), np.arange(40), strata=tuple((str(s),) for s in stratum))
    assert linear_error(sample)[0] == pytest.approx(jackknife_error(sample)[0], rel=0.1)


def test_an_area_within_strata_of_a_sample_with_strata():
    stratum, label, score = apart(120)
    statistic = StratifiedAUC(score, label, stratum)
    sample = sample_of(statistic, np.arange(120), strata=tuple((str(s),) for s in stratum))
    assert linear_error(sample)[0] == pytest.approx(jackknife_error(sample)[0], rel=0.03)


def test_clusters_outside_a_domain_count_with_a_total_of_zero():
    random = np.random.default_rng(14)
    y, stratum, inside = random.normal(size=30), np.arange(30) % 2, random.uniform(size=30) < 0.5
    y += 5 * stratum
    names = tuple((f"{i:02}",) for i in range(30))
    sample = Sample(
        (),
        Mean(y[inside]),
        np.ones(inside.sum()),
        np.flatnonzero(inside),
        names,
        "mean",
        tuple((str(s),) for s in stratum),
        np.ones((1, 30), dtype=bool),
    )
    totals = np.where(inside, y - y[inside].mean(), 0.0) / inside.sum()
    variance = sum(15 / 14 * np.sum((t - t.mean()) ** 2) for t in (totals[stratum == s] for s in (0, 1)))
    se, df = linear_error(sample)
    assert (se, df) == pytest.approx((np.sqrt(variance), inside.sum() - 2), rel=1e-12)
    assert jackknife_error(sample) == pytest.approx((se, df), rel=0.05)
    assert np.std(bootstrap("f", sample, 4000, 0)) == pytest.approx(se, rel=0.05)


def test_as_many_strata_as_clusters_with_rows_have_no_standard_error():
    names, strata = tuple((f"{i}",) for i in range(4)), (("a",), ("a",), ("b",), ("b",))
    drawn = np.ones((1, 4), dtype=bool)
    sample = Sample((), Mean([1.0, 2.0]), np.ones(2), np.array([0, 2]), names, "mean", strata, drawn)
    assert np.isnan(linear_error(sample)).all()
    assert np.isnan(jackknife_error(sample)).all()
