import re

import numpy as np
import pytest
from scipy import stats

from kvstats.errors import InputError
from kvstats.inference.linear import linear_error
from kvstats.inference.sample import Sample
from kvstats.statistics import AUC, delong, obuchowski

RANDOM = np.random.default_rng(11)
N = 70
SCORES = RANDOM.integers(0, 15, (3, N)).astype(float)
LABEL = RANDOM.uniform(size=N) < 0.4
CLUSTER = RANDOM.integers(0, 25, N)


def components(score, label):
    """Structural components by comparing all pairs."""
    wins = (score[label][:, None] > score[~label]) + 0.5 * (score[label][:, None] == score[~label])
    return wins.mean(axis=1), wins.mean(axis=0), wins.mean()


def test_delong_by_comparing_all_pairs():
    found = delong(SCORES, LABEL)
    v10, v01, areas = zip(*(components(score, LABEL) for score in SCORES), strict=True)
    expected = np.cov(v10) / LABEL.sum() + np.cov(v01) / (~LABEL).sum()
    np.testing.assert_allclose(found.area, areas, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.covariance, expected, rtol=0, atol=1e-16)


def test_obuchowski_by_its_definition():
    found = obuchowski(SCORES, LABEL, CLUSTER)
    m, n = LABEL.sum(), (~LABEL).sum()
    names = np.unique(CLUSTER)
    i10, i01, i = np.unique(CLUSTER[LABEL]).size, np.unique(CLUSTER[~LABEL]).size, names.size
    assert i10 < i01 <= i
    sums = []
    for score in SCORES:
        v10, v01, area = components(score, LABEL)
        a = [v10[CLUSTER[LABEL] == name].sum() - (CLUSTER[LABEL] == name).sum() * area for name in names]
        b = [v01[CLUSTER[~LABEL] == name].sum() - (CLUSTER[~LABEL] == name).sum() * area for name in names]
        sums.append((np.array(a), np.array(b)))
    for r, (a, b) in enumerate(sums):
        for s, (c, d) in enumerate(sums):
            s10 = i10 / ((i10 - 1) * m) * np.sum(a * c)
            s01 = i01 / ((i01 - 1) * n) * np.sum(b * d)
            s11 = i / (i - 1) * np.sum(a * d)
            s11 += i / (i - 1) * np.sum(b * c)
            expected = s10 / m + s01 / n + s11 / (m * n)
            assert found.covariance[r, s] == pytest.approx(expected, rel=1e-12)


def linearised(score, label, cluster):
    names, codes = np.unique(cluster, return_inverse=True)
    clusters = tuple((str(name),) for name in names)
    sample = Sample((), AUC(score, label), np.ones(label.size), codes, clusters, "auc")
    return linear_error(sample)[0] ** 2


def test_clusters_of_both_classes_give_the_linearised_variance():
    cluster = np.repeat(np.arange(20), 4)
    label = np.tile([True, False, False, True], 20)
    score = RANDOM.normal(size=80) + label
    assert obuchowski(score, label, cluster).covariance[0, 0] == pytest.approx(
        linearised(score, label, cluster), rel=1e-12
    )


def test_else_the_linearised_variance_has_another_factor_of_the_cross_term():
    found = obuchowski(SCORES[0], LABEL, CLUSTER).covariance[0, 0]
    influence = AUC(SCORES[0], LABEL).influence(np.ones(N))
    i = CLUSTER.max() + 1
    sizes = [np.unique(CLUSTER[rows]).size for rows in (LABEL, ~LABEL)]
    sums = [np.bincount(CLUSTER[rows], influence[rows], i) for rows in (LABEL, ~LABEL)]
    clusters = np.unique(CLUSTER).size
    factor = np.sqrt(np.prod([size / (size - 1) for size in sizes])) - clusters / (clusters - 1)
    assert factor > 0
    expected = found + 2 * factor * (sums[0] @ sums[1])
    assert linearised(SCORES[0], LABEL, CLUSTER) == pytest.approx(expected, rel=1e-12)


def test_a_row_a_cluster_is_delong():
    np.testing.assert_allclose(
        obuchowski(SCORES, LABEL, np.arange(N)).covariance, delong(SCORES, LABEL).covariance, rtol=1e-12
    )


def test_rows_that_come_twice_in_a_cluster_add_no_certainty():
    once = obuchowski(SCORES, LABEL, np.arange(N))
    twice = obuchowski(np.repeat(SCORES, 2, axis=1), np.repeat(LABEL, 2), np.repeat(np.arange(N), 2))
    np.testing.assert_allclose(twice.area, once.area, rtol=1e-14)
    np.testing.assert_allclose(twice.covariance, once.covariance, rtol=1e-12)


def test_one_row_or_cluster_of_a_class_has_no_variance():
    one = delong([1.0, 2.0, 3.0], [0, 0, 1])
    assert one.area[0] == 1
    assert np.isnan(one.covariance[0, 0])
    assert np.isnan(one.interval(0.95)).all()
    assert np.isnan(obuchowski([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1], ["a", "b", "a", "a"]).covariance[0, 0])
    assert np.isnan(obuchowski([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1], ["a"] * 4).covariance[0, 0])


@pytest.mark.parametrize("label", [[0, 0], [1, 1]])
def test_one_class_is_undefined(label):
    found = delong([1.0, 2.0], label)
    assert np.isnan(found.area).all()
    assert np.isnan(found.covariance).all()
    assert np.isnan(found.test(0, 0)).all()


def test_tests_of_two_scores():
    found = delong(SCORES, LABEL)
    z, p = found.test(0, 1)
    assert found.test(1, 0) == (-z, p)
    assert 0 < p < 1


def test_identical_scores_and_perfect_ones():
    same = delong([SCORES[0], 2 * SCORES[0] + 1], LABEL)
    assert same.test(0, 1) == (0.0, 1.0)
    apart = delong([[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]], [0, 0, 1, 1])
    assert apart.area.tolist() == [1.0, 0.0]
    assert np.isnan(apart.test(0, 1)).all()


def test_intervals_are_cut_off():
    score = np.array([1.0, 3.0, 2.0, 4.0])
    low, high = delong(score, [0, 0, 1, 1]).interval(0.95)[0]
    assert 0 < low < 0.75 < high == 1


def test_logit_intervals():
    found = delong(SCORES, LABEL)
    m, n = LABEL.sum(), (~LABEL).sum()
    for k, score in enumerate(SCORES):
        v10, v01, area = components(score, LABEL)
        a, b = np.var(v10, ddof=1) / m, np.var(v01, ddof=1) / n
        df = (a + b) ** 2 / (a**2 / (m - 1) + b**2 / (n - 1))
        assert found.df[k] == pytest.approx(df, rel=1e-12)
        half = stats.t.ppf(0.95, df) * np.sqrt(a + b) / (area * (1 - area))
        odds = area / (1 - area) * np.exp([-half, half])
        np.testing.assert_allclose(found.logit_interval(0.9)[k], odds / (1 + odds), rtol=1e-12)


def test_no_logit_interval_without_variance():
    apart = delong([[1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0]], [0, 0, 1, 1])
    assert np.isnan(apart.logit_interval(0.95)).all(axis=1).tolist() == [True, False]
    assert np.isnan(delong([1.0, 3.0, 2.0], [0, 0, 1]).logit_interval(0.95)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: delong([1.0, 2.0], [0, 2]), "AUC: label=2.0 is no class"),
        (lambda: delong([1.0, np.nan], [0, 1]), "AUC: score=nan is not finite, at row 1"),
        (lambda: delong(np.ones((1, 1, 2)), [0, 1]), "delong: scores='array of shape (1, 1, 2)' is no row a"),
        (lambda: obuchowski([1.0, 2.0], [0, 1], ["a"]), "obuchowski: cluster='array of shape (1,)' does not"),
        (lambda: delong(SCORES, LABEL).test(0, 3), "AreaCovariance.test: second=3 is none of 3 scores"),
        (lambda: delong(SCORES, LABEL).test(-1, 0), "AreaCovariance.test: first=-1 is none of 3 scores"),
        (
            lambda: delong(SCORES, LABEL).logit_interval(0),
            "AreaCovariance.logit_interval: level=0 is not between",
        ),
        (lambda: delong(SCORES, LABEL).interval(1.0), "AreaCovariance.interval: level=1.0 is not between"),
    ],
)
def test_what_cannot_be_used_is_refused(call, message):
    with pytest.raises(InputError, match=re.escape(message)):
        call()
