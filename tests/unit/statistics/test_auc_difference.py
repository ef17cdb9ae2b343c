import re

import numpy as np
import pytest

from kvstats.errors import InputError
from kvstats.statistics import AUC, AUCDifference, Difference, StratifiedAUC, delong, obuchowski

RANDOM = np.random.default_rng(8)
N = 80
FIRST, SECOND = RANDOM.integers(0, 12, (2, N)).astype(float)
LABEL = RANDOM.integers(0, 2, N)
STRATUM = RANDOM.integers(0, 3, N)
WEIGHTS = RANDOM.uniform(0.1, 3, N)


def test_it_is_the_difference_on_rows_given_once():
    once, twice = AUCDifference(FIRST, SECOND, LABEL), Difference(AUC(FIRST, LABEL), AUC(SECOND, LABEL))
    assert (once.n, twice.n) == (N, 2 * N)
    both = np.concatenate([WEIGHTS, WEIGHTS])
    assert once.value(WEIGHTS) == twice.value(both)
    sides = twice.influence(both).reshape(2, N)
    np.testing.assert_allclose(once.influence(WEIGHTS), sides.sum(axis=0), rtol=0, atol=1e-15)
    counts, codes = RANDOM.integers(0, 3, (10, 20)).astype(float), RANDOM.integers(0, 20, N)
    np.testing.assert_array_equal(
        once.cluster_values(counts, codes, WEIGHTS),
        twice.cluster_values(counts, np.concatenate([codes, codes]), both),
    )


def test_within_strata():
    expected = StratifiedAUC(FIRST, LABEL, STRATUM).value(WEIGHTS)
    expected -= StratifiedAUC(SECOND, LABEL, STRATUM).value(WEIGHTS)
    assert AUCDifference(FIRST, SECOND, LABEL, STRATUM).value(WEIGHTS) == expected


def test_its_influence_holds_the_covariance():
    ones = np.ones(N)
    influence = AUCDifference(FIRST, SECOND, LABEL).influence(ones)
    contrast = np.array([1, -1])
    sizes = np.bincount(LABEL)[LABEL]
    expected = contrast @ delong([FIRST, SECOND], LABEL).covariance @ contrast
    assert np.sum(influence**2 * sizes / (sizes - 1)) == pytest.approx(expected, rel=1e-12)
    # Two rows of each class in every cluster: Obuchowski's factors are the linearised one.
    cluster = np.empty(N, dtype=int)
    for label in (0, 1):
        cluster[label == LABEL] = np.arange(np.sum(label == LABEL)) % 20
    expected = contrast @ obuchowski([FIRST, SECOND], LABEL, cluster).covariance @ contrast
    totals = np.bincount(cluster, influence)
    assert 20 / 19 * np.sum(totals**2) == pytest.approx(expected, rel=1e-12)


def test_scores_that_rank_alike_do_not_differ():
    difference = AUCDifference(FIRST, np.exp(FIRST / 3), LABEL)
    assert difference.value(WEIGHTS) == 0
    assert not difference.influence(WEIGHTS).any()


def test_undefined_with_one_class():
    difference = AUCDifference([1.0, 2.0], [2.0, 1.0], [1, 1])
    assert np.isnan(difference.value([1, 1]))
    assert np.isnan(difference.influence([1, 1])).all()


def test_columns_of_other_lengths_are_refused():
    with pytest.raises(
        InputError, match=re.escape("AUC: label='array of shape (3,)' does not fit a score of 2")
    ):
        AUCDifference([1.0, 2.0, 3.0], [1.0, 2.0], [0, 1, 1])
