"""Functions of totals: value against a definition, influence against a difference quotient."""

import re
from itertools import combinations

import numpy as np
import pytest

from kvstats.errors import InputError
from kvstats.statistics.batch import BatchKept
from kvstats.statistics.best import BestMean
from kvstats.statistics.co_occurrence import Covariance, FrechetBound, OriginSlope, ProductOfMeans
from kvstats.statistics.memory_curve import CurveCrossing, InterpolatedMean
from kvstats.statistics.mixture import MixtureCrossing, MixtureMean

N = 24
RNG = np.random.default_rng(3)
X, Y = RNG.random(N), RNG.random(N)
FLAGS = (np.arange(N) % 3 > 0).astype(int)
NODES = np.arange(N) % 4
CODES = np.arange(N) // 4  # clusters of four rows, which have all nodes
FOLDS = CODES % 3
KEPT = np.array([0.2, 0.7, 0.1, 0.9])[NODES] + 0.05 * RNG.random(N)
CROSSED = np.array([0.1, 0.9, 0.5, 0.6])[NODES] + 0.05 * RNG.random(N)


def mean(column, w, keep=True):
    rows = [i for i in range(N) if np.broadcast_to(keep, N)[i]]
    return sum(column[i] * w[i] for i in rows) / sum(w[i] for i in rows)


def node_means(column, w):
    return [mean(column, w, node == NODES) for node in range(4)]


def best_in_folds(w):
    top = bottom = 0.0
    for fold in range(3):
        outside = [mean(Y, w, (fold != FOLDS) & (node == NODES)) for node in range(4)]
        chosen = (fold == FOLDS) & (outside.index(max(outside)) == NODES)
        top, bottom = top + sum(w[chosen] * Y[chosen]), bottom + sum(w[chosen])
    return top / bottom


def crossing(w):
    kept, y = node_means(KEPT, w), node_means(CROSSED, w)

    def gap(x):
        return np.interp(x, kept[:2], y[:2]) - np.interp(x, kept[2:], y[2:])

    low, high = max(kept[0], kept[2]), min(kept[1], kept[3])
    for _ in range(60):  # bisection
        middle = (low + high) / 2
        low, high = (middle, high) if gap(middle) * gap(low) > 0 else (low, middle)
    return low


def kept_of_batch(w):
    opened = sum(w * FLAGS) / sum(w)
    return 1 - opened**3 * (1 - mean(X, w, FLAGS == 1))


CASES = {
    "mixture": (
        MixtureMean(Y, FLAGS, 0.3),
        lambda w: 0.3 * mean(Y, w, FLAGS == 1) + 0.7 * mean(Y, w, FLAGS == 0),
    ),
    "mixture of one": (MixtureMean(Y, FLAGS, 1.0), lambda w: mean(Y, w, FLAGS == 1)),
    "mixture crossing": (
        MixtureCrossing(Y + FLAGS, FLAGS, 0.7),
        lambda w: (0.7 - mean(Y, w, FLAGS == 0)) / (1 + mean(Y, w, FLAGS == 1) - mean(Y, w, FLAGS == 0)),
    ),
    "best": (BestMean(Y, NODES), lambda w: max(node_means(Y, w))),
    "best in folds": (BestMean(Y, NODES, FOLDS), best_in_folds),
    "batch": (BatchKept(X, FLAGS, 3), kept_of_batch),
    "interpolated": (
        InterpolatedMean(Y, KEPT, NODES, 4, 0.5),
        lambda w: np.interp(0.5, sorted(node_means(KEPT, w)), [node_means(Y, w)[i] for i in (2, 0, 1, 3)]),
    ),
    "curves": (CurveCrossing(CROSSED, KEPT, NODES, 2, 2), crossing),
    "product": (ProductOfMeans(X, Y), lambda w: mean(X, w) * mean(Y, w)),
    "covariance": (Covariance(X, Y), lambda w: mean((X - mean(X, w)) * (Y - mean(Y, w)), w)),
    "lower bound": (FrechetBound(X + 0.5, Y, upper=False), lambda w: mean(X + 0.5, w) + mean(Y, w) - 1),
    "upper bound": (FrechetBound(X + 1, Y, upper=True), lambda w: mean(Y, w)),
    "slope": (
        OriginSlope(X, Y, NODES),
        lambda w: np.dot(node_means(X, w), node_means(Y, w)) / np.dot(node_means(X, w), node_means(X, w)),
    ),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def test_the_value_is_that_of_the_definition(case):
    statistic, definition = case
    for seed in range(5):
        w = np.random.default_rng(seed).uniform(0.5, 2, N)
        assert statistic.value(w) == pytest.approx(definition(w), abs=1e-12)


def test_the_influence_is_the_derivative(case):
    statistic, _ = case
    w = np.random.default_rng(9).uniform(0.5, 2, N)
    step = 1e-6 * np.eye(N)
    quotients = (statistic.values(w + step) - statistic.values(w - step)) / 2e-6
    np.testing.assert_allclose(statistic.influence(w), quotients, atol=1e-7)


def test_resampled_clusters_are_weights(case):
    statistic, _ = case
    counts = np.random.default_rng(1).integers(1, 3, (7, 6)).astype(float)
    w = np.random.default_rng(2).uniform(0.5, 2, N)
    expected = [statistic.value(w * row[CODES]) for row in counts]
    np.testing.assert_allclose(statistic.cluster_values(counts, CODES, w), expected, rtol=1e-12)


def test_without_weight_nothing_is_defined(case):
    statistic, _ = case
    assert np.isnan(statistic.value(np.zeros(N)))
    assert np.isnan(statistic.influence(np.zeros(N))).all()


@pytest.mark.parametrize(
    ("n", "opened", "batch"), [(6, 4, 1), (6, 4, 2), (6, 4, 4), (6, 4, 5), (6, 0, 2), (6, 6, 6)]
)
def test_batches_without_replacement_are_all_subsets(n, opened, batch):
    kept = np.linspace(0.1, 0.6, n)
    is_open = (np.arange(n) < opened).astype(int)
    kept_of = [
        1.0 if not is_open[list(members)].all() else kept[list(members)].mean()
        for members in combinations(range(n), batch)
    ]
    statistic = BatchKept(kept, is_open, batch, replacement=False)
    assert statistic.value(np.ones(n)) == pytest.approx(np.mean(kept_of))


def test_the_gradient_of_batches_without_replacement():
    statistic = BatchKept(X, FLAGS, 3, replacement=False)
    w, step = np.ones(N), 1e-6 * np.eye(N)
    quotients = (statistic.values(w + step) - statistic.values(w - step)) / 2e-6
    np.testing.assert_allclose(statistic.influence(w), quotients, atol=1e-7)


def test_a_batch_larger_than_the_log_cannot_be_drawn_from_it():
    assert np.isnan(BatchKept([0.5, 0.5], [1, 1], 3, replacement=False).value([1, 1]))
    assert BatchKept([0.5, 0.5], [1, 1], 3).value([1, 1]) == 0.5


def curves(first, second):
    """Make the crossing of curves given as lists of (kept, y)."""
    kept, y = np.array([*first, *second]).T
    return CurveCrossing(y, kept, np.arange(kept.size), len(first), len(second)).value(np.ones(kept.size))


def test_curves_that_touch_do_not_cross():
    assert np.isnan(curves([(0.2, 0.5), (1.0, 0.9)], [(0.2, 0.3), (1.0, 0.9)]))
    assert np.isnan(curves([(0.2, 0.5), (0.6, 0.6), (1.0, 0.9)], [(0.2, 0.3), (0.6, 0.6), (1.0, 0.8)]))
    assert np.isnan(curves([(0.2, 0.5), (1.0, 0.9)], [(0.2, 0.5), (1.0, 0.9)]))


def test_of_several_crossings_the_lowest_counts():
    zigzag = [(0.0, 0.0), (0.5, 1.0), (1.0, 0.0)]
    assert curves(zigzag, [(0.0, 0.5), (1.0, 0.5)]) == pytest.approx(0.25)


def test_a_crossing_may_pass_a_node_or_a_stretch():
    flat = [(0.0, 0.5), (1.0, 0.5)]
    assert curves([(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)], flat) == pytest.approx(0.5)
    assert curves([(0.0, 0.0), (0.4, 0.5), (0.6, 0.5), (1.0, 1.0)], flat) == pytest.approx(0.5)
    # The straight line over the stretch would pass 0.36, before it.
    assert curves([(0.0, 0.0), (0.4, 0.5), (0.5, 0.5), (0.6, 1.0)], flat) == pytest.approx(0.4)


def test_curves_without_a_common_range_do_not_cross():
    assert np.isnan(curves([(0.1, 0.2), (0.4, 0.9)], [(0.5, 0.1), (0.9, 0.2)]))


def test_the_derivative_of_a_crossing_in_a_stretch_is_finite():
    kept, y = np.array([(0.0, 0.0), (0.4, 0.5), (0.6, 0.5), (1.0, 1.0), (0.0, 0.5), (1.0, 0.5)]).T
    assert np.isfinite(CurveCrossing(y, kept, np.arange(6), 4, 2).influence(np.ones(6))).all()


def test_nothing_is_read_off_beyond_the_nodes():
    def at(x):
        return InterpolatedMean([0.2, 0.8], [0.25, 0.75], [0, 1], 2, x).value([1, 1])

    assert (at(0.25), at(0.75)) == pytest.approx((0.2, 0.8))
    assert np.isnan([at(0.2), at(0.8)]).all()
    # One node is a curve of one point; nodes above each other are read at the last one.
    assert InterpolatedMean([0.2], [0.5], [0], 1, 0.5).value([1]) == 0.2
    assert InterpolatedMean([0.2, 0.6], [1.0, 1.0], [0, 1], 2, 1.0).value([1, 1]) == 0.6


def test_the_choice_follows_the_weights():
    best = BestMean([1.0, 0.0, 0.6, 0.6], [0, 0, 1, 1])
    assert best.chosen([1, 1, 1, 1]).tolist() == [1]
    assert best.chosen([2, 1, 1, 1]).tolist() == [0]
    assert BestMean([1.0, 1.0], [0, 1]).chosen([1, 1]).tolist() == [0]


def test_a_choice_needs_rows_outside_the_fold():
    assert np.isnan(BestMean([1.0, 0.5], [0, 1], [0, 0]).value([0, 0]))
    assert np.isnan(BestMean([1.0, 0.5, 0.5], [0, 1, 0], [0, 0, 1]).value([1, 1, 0]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: MixtureMean([1.0], [1], 1.5),
            "MixtureMean: share=1.5 is not in [0, 1]; pass one such as 0.5",
        ),
        (lambda: MixtureMean([1.0], [2], 0.5), "is not true or false for 1 rows"),
        (lambda: MixtureCrossing([1.0], [1], np.nan), "MixtureCrossing: level=nan is not a finite number"),
        (lambda: BatchKept([0.5], [0.5], 1), "BatchKept: is_open='array of shape (1,)' is not true or false"),
        (lambda: BatchKept([0.5], [1], 0), "BatchKept: batch=0 is not a whole number of at least 1"),
        (lambda: BestMean([1.0], [0.5]), "BestMean: candidate='array of shape (1,)' is not a whole number"),
        (lambda: BestMean([1.0], [0], [-1]), "BestMean: fold='array of shape (1,)' is not a whole number"),
        (lambda: InterpolatedMean([1.0], [1.0], [0], 1, np.inf), "InterpolatedMean: at=inf is not a finite"),
        (
            lambda: InterpolatedMean([1.0], [1.0, 2.0], [0], 1, 0.5),
            "InterpolatedMean: kept='array of shape (2,)'",
        ),
        (lambda: InterpolatedMean([1.0], [1.0], [3], 1, 0.5), "node=3.0 is not the number of one of 1 nodes"),
        (
            lambda: Covariance([1.0], [1.0, 2.0]),
            "Covariance: y='array of shape (2,)' does not fit an x of 1 rows",
        ),
        (lambda: OriginSlope([1.0], [1.0], [0, 1]), "do not fit each other; pass columns of the same length"),
        (lambda: Covariance([np.nan], [1.0]), "Covariance: x=nan is not finite, at row 0"),
    ],
)
def test_columns_that_cannot_be_used_are_refused(make, message):
    with pytest.raises(InputError, match=re.escape(message)):
        make()
