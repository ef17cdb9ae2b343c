import re

import numpy as np
import pytest

from kvstats.errors import InputError
from kvstats.statistics import AUC, StratifiedAUC

RANDOM = np.random.default_rng(3)
N = 90
SCORE = RANDOM.integers(0, 9, N).astype(float)
LABEL = RANDOM.integers(0, 2, N)
STRATUM = RANDOM.choice(["a", "b", "c"], N)
WEIGHTS = RANDOM.uniform(0.1, 3, N)


def brute_force(score, label, stratum, weights):
    top = bottom = 0.0
    for i in np.flatnonzero(label):
        for j in np.flatnonzero(label == 0):
            if stratum[i] == stratum[j]:
                pair = weights[i] * weights[j]
                top += pair * (score[j] < score[i]) + pair / 2 * (score[j] == score[i])
                bottom += pair
    return top / bottom


def test_the_sum_over_pairs_of_the_same_stratum():
    value = StratifiedAUC(SCORE, LABEL, STRATUM).value(WEIGHTS)
    assert value == pytest.approx(brute_force(SCORE, LABEL, STRATUM, WEIGHTS), abs=1e-14)
    assert value != pytest.approx(AUC(SCORE, LABEL).value(WEIGHTS), abs=1e-3)


def test_the_mean_of_the_strata_weighted_by_their_pairs():
    areas, pairs = [], []
    for name in "abc":
        rows = name == STRATUM
        areas.append(AUC(SCORE[rows], LABEL[rows]).value(WEIGHTS[rows]))
        pairs.append(WEIGHTS[rows & (LABEL == 1)].sum() * WEIGHTS[rows & (LABEL == 0)].sum())
    expected = np.average(areas, weights=pairs)
    assert StratifiedAUC(SCORE, LABEL, STRATUM).value(WEIGHTS) == pytest.approx(expected, abs=1e-14)


def test_scales_of_strata_never_mix():
    shift = {"a": 0.0, "b": 1e6, "c": -50.0}
    moved = SCORE * 3 + [shift[name] for name in STRATUM]
    expected = StratifiedAUC(SCORE, LABEL, STRATUM)
    found = StratifiedAUC(moved, LABEL, STRATUM)
    assert found.value(WEIGHTS) == expected.value(WEIGHTS)
    np.testing.assert_array_equal(found.influence(WEIGHTS), expected.influence(WEIGHTS))


def test_strata_of_one_class_add_nothing_and_are_counted():
    score = np.append(SCORE, [100.0, -100.0])
    label = np.append(LABEL, [0, 1])
    more = StratifiedAUC(score, label, np.append(STRATUM, ["d", "e"]))
    weights = np.append(WEIGHTS, [5.0, 5.0])
    expected = StratifiedAUC(SCORE, LABEL, STRATUM)
    assert more.value(weights) == pytest.approx(expected.value(WEIGHTS), abs=1e-14)
    np.testing.assert_allclose(more.influence(weights)[-2:], 0, atol=1e-15)
    assert (more.n_strata, more.one_class_strata(weights)) == (5, 2)
    # A stratum without weight is not there.
    assert more.one_class_strata(np.append(WEIGHTS, [5.0, 0.0])) == 1


def test_undefined_where_no_stratum_has_both_classes():
    area = StratifiedAUC([1.0, 2.0, 3.0], [0, 0, 1], ["a", "a", "b"])
    assert np.isnan(area.value(np.ones(3)))
    assert np.isnan(area.influence(np.ones(3))).all()
    assert np.isnan(area.cluster_values(np.ones((2, 3)), np.arange(3), np.ones(3))).all()
    assert area.one_class_strata(np.ones(3)) == 2


def test_empty():
    area = StratifiedAUC([], [], [])
    assert np.isnan(area.value([]))
    assert area.influence([]).size == 0
    assert np.isnan(area.cluster_values(np.ones((2, 3)), np.array([], dtype=int), [])).all()
    assert (area.n, area.n_strata, area.one_class_strata([])) == (0, 0, 0)


@pytest.mark.parametrize("base", ["equal", "whole", "any"])
@pytest.mark.parametrize("share", [0.2, 0.8], ids=["few positives", "few negatives"])
@pytest.mark.parametrize("levels", [5, 10**6], ids=["ties", "no ties"])
@pytest.mark.parametrize("strata", [1, 4])
@pytest.mark.parametrize("whole", [True, False], ids=["counts", "fractions"])
def test_resampled_areas_are_those_of_the_weights(base, share, levels, strata, whole):
    random = np.random.default_rng(levels)
    n = 200
    score, label = random.integers(0, levels, n).astype(float), random.uniform(size=n) < share
    area = StratifiedAUC(score, label, random.integers(0, strata, n))
    weights = {
        "equal": np.full(n, 0.3),
        "whole": random.integers(0, 4, n),
        "any": random.uniform(0, 2, n),
    }[base]
    codes = random.integers(0, 30, n)
    counts = random.integers(0, 3, (20, 30)) if whole else random.uniform(0, 2, (20, 30))
    counts[3] = 0
    found = area.cluster_values(counts.astype(float), codes, weights)
    expected = [area.value(weights * row[codes]) for row in counts]
    assert np.isnan(found[3])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


def test_resampling_holds_for_weights_that_overflow_whole_numbers():
    weights = np.full(N, 2.0**30)
    weights[0] = 2.0**31
    area = StratifiedAUC(SCORE, LABEL, STRATUM)
    counts = np.ones((1, 1))
    found = area.cluster_values(counts, np.zeros(N, dtype=int), weights)
    assert found[0] == pytest.approx(area.value(weights), abs=1e-13)


def test_text_of_any_array_names_strata():
    expected = StratifiedAUC(SCORE, LABEL, STRATUM).value(WEIGHTS)
    for kind in (object, "S", np.dtypes.StringDType()):
        assert StratifiedAUC(SCORE, LABEL, STRATUM.astype(kind)).value(WEIGHTS) == expected
    assert StratifiedAUC(SCORE, LABEL, STRATUM.tolist()).value(WEIGHTS) == expected


def test_numbers_may_name_strata():
    budgets = np.where(STRATUM == "a", 0.25, 0.5)
    names = np.where(STRATUM == "a", "x", "y")
    by_number = StratifiedAUC(SCORE, LABEL, budgets).value(WEIGHTS)
    assert by_number == pytest.approx(StratifiedAUC(SCORE, LABEL, names).value(WEIGHTS), abs=1e-15)


@pytest.mark.parametrize(
    ("stratum", "message"),
    [
        (["a"], "StratifiedAUC: stratum='array of shape (1,)' does not fit 2 rows; pass one name a row"),
        (["a", None], "StratifiedAUC: stratum='array of object' holds what is no name; pass text or numbers"),
        ([1.0, np.nan], "StratifiedAUC: stratum='array of float64' holds what is no name"),
    ],
)
def test_strata_that_are_none_are_refused(stratum, message):
    with pytest.raises(InputError, match=re.escape(message)):
        StratifiedAUC([1.0, 2.0], [0, 1], stratum)


def test_columns_are_checked_under_its_own_name():
    with pytest.raises(InputError, match=re.escape("StratifiedAUC: label=2.0 is no class")):
        StratifiedAUC([1.0, 2.0], [0, 2], ["a", "a"])
    with pytest.raises(InputError, match=re.escape("StratifiedAUC: weights=-1.0 is not a weight, at row 1")):
        StratifiedAUC([1.0, 2.0], [0, 1], ["a", "a"]).value([1, -1])


@pytest.mark.parametrize("heavy", [1.0, 1e8, 1e17, 1e30])
@pytest.mark.parametrize("share", [0.3, 0.7], ids=["few positives", "few negatives"])
@pytest.mark.parametrize("levels", [4, 10**6], ids=["ties", "no ties"])
def test_a_heavy_stratum_without_pairs_leaves_the_digits_of_a_light_one(heavy, share, levels):
    random = np.random.default_rng(levels)
    score, label = random.integers(0, levels, 40).astype(float), random.uniform(size=40) < share
    stratum = np.repeat([0, 1, 2, 3], 10)
    label[stratum == 0], label[stratum == 2] = False, True
    weights = random.uniform(0.5, 2, 40)
    inside = np.isin(stratum, [1, 3])
    expected = brute_force(score[inside], label[inside], stratum[inside], weights[inside])
    weights[~inside] *= heavy
    area = StratifiedAUC(score, label, stratum)
    assert area.value(weights) == pytest.approx(expected, rel=1e-13)
    assert area.cluster_values(np.ones((1, 40)), np.arange(40), weights)[0] == pytest.approx(
        expected, rel=1e-13
    )
    alone = StratifiedAUC(score[inside], label[inside], stratum[inside]).influence(weights[inside])
    np.testing.assert_allclose(area.influence(weights)[inside], alone, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("first", [1e-12, 1.0, 1e17])
def test_replicates_without_the_heavy_stratum_see_the_light_one(first):
    """One class of the heavy stratum, then the other, is not drawn: then its weight does not matter."""
    random = np.random.default_rng(0)
    score, label = random.normal(size=40), np.arange(40) % 2 == 0
    stratum = np.repeat([0, 1], 20)
    weights = np.where(stratum == 0, first, 1.0) * random.uniform(0.5, 2, 40)
    codes = np.where(stratum == 0, label.astype(int), 2)
    light = stratum == 1
    expected = brute_force(score[light], label[light], stratum[light], weights[light])
    counts = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.5], [0.0, 0.0, 2.0]])
    found = StratifiedAUC(score, label, stratum).cluster_values(counts, codes, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
