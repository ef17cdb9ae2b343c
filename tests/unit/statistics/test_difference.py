import numpy as np
import pytest

from kvstats.statistics import AUC, Difference, Mean
from kvstats.statistics.difference import parts, signed_parts


def test_values_influences_and_resampled_values_subtract():
    random = np.random.default_rng(2)
    mean, auc = Mean(random.normal(size=5)), AUC(random.normal(size=7), np.arange(7) % 2)
    difference, weights = Difference(auc, mean), random.uniform(0.5, 1, 12)
    assert difference.n == 12
    assert difference.value(weights) == auc.value(weights[:7]) - mean.value(weights[7:])
    np.testing.assert_array_equal(
        difference.influence(weights),
        np.concatenate([auc.influence(weights[:7]), -mean.influence(weights[7:])]),
    )
    counts, codes = random.integers(0, 3, size=(5, 4)).astype(float), random.integers(0, 4, 12)
    np.testing.assert_array_equal(
        difference.cluster_values(counts, codes, weights),
        auc.cluster_values(counts, codes[:7], weights[:7])
        - mean.cluster_values(counts, codes[7:], weights[7:]),
    )


def test_undefined_where_a_side_is():
    assert np.isnan(Difference(Mean([1.0]), Mean([])).value([1]))
    assert np.isnan(Difference(AUC([1.0], [1]), Mean([1.0])).value([1, 1]))


def test_parts_are_in_the_order_of_their_rows():
    a, b, c = Mean([1.0]), Mean([1.0, 2.0]), Mean([1.0, 2.0, 3.0])
    assert parts(Difference(Difference(a, b), c)) == [a, b, c]
    assert parts(a) == [a]


def test_a_difference_of_differences():
    means = [Mean([float(value)]) for value in (10, 4, 3, 1)]
    assert Difference(Difference(means[0], means[1]), Difference(means[2], means[3])).value(
        np.ones(4)
    ) == pytest.approx((10 - 4) - (3 - 1))


def test_signs_follow_the_subtractions():
    a, b, c = Mean([1.0]), Mean([1.0, 2.0]), Mean([1.0, 2.0, 3.0])
    assert signed_parts(Difference(a, Difference(b, c))) == [(1.0, a), (-1.0, b), (1.0, c)]
    assert signed_parts(a) == [(1.0, a)]
