"""What every statistic of a weighted sample must satisfy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvstats.statistics import AUC, Difference, Mean, RankCorrelation, Ratio

KINDS = ("mean", "ratio", "auc", "rank_correlation", "difference")


def build(kind, x, y):
    if kind == "mean":
        return Mean(x)
    if kind == "ratio":
        return Ratio(x, y + 1)
    if kind == "auc":
        return AUC(x, y > 1)
    if kind == "rank_correlation":
        return RankCorrelation(x, y)
    return Difference(Mean(x), AUC(y, x > 1))


@st.composite
def columns(draw, least=3):
    """Two columns of few levels, so that ties are common, and positive weights."""
    size = draw(st.integers(least, 12))
    level = st.integers(0, 4).map(float)
    x, y = (np.array(draw(st.lists(level, min_size=size, max_size=size))) for _ in range(2))
    weights = np.array(draw(st.lists(st.floats(0.1, 5), min_size=size, max_size=size)))
    return x, y, weights


def doubled(kind, weights):
    """Weights of a difference are those of its two sides, one after the other."""
    return np.concatenate([weights, weights]) if kind == "difference" else weights


def close(first, second):
    assert first == pytest.approx(second, nan_ok=True, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@given(columns(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(kind, sample, random):
    x, y, weights = sample
    order = np.array(random.sample(range(x.size), x.size))
    one, other = build(kind, x, y), build(kind, x[order], y[order])
    close(one.value(doubled(kind, weights)), other.value(doubled(kind, weights[order])))
    if kind != "difference":
        close(one.influence(weights)[order], other.influence(weights[order]))


@pytest.mark.parametrize("kind", KINDS)
@given(columns(), st.floats(1e-6, 1e6))
def test_the_scale_of_the_weights_does_not_matter(kind, sample, scale):
    x, y, weights = sample
    statistic, weights = build(kind, x, y), doubled(kind, weights)
    close(statistic.value(scale * weights), statistic.value(weights))
    close(scale * statistic.influence(scale * weights), statistic.influence(weights))


@pytest.mark.parametrize("kind", KINDS)
@given(columns(), st.data())
def test_a_row_twice_is_a_row_of_twice_the_weight(kind, sample, data):
    x, y, weights = sample
    row = data.draw(st.integers(0, x.size - 1))
    heavier = weights.copy()
    heavier[row] *= 2
    one = build(kind, x, y).value(doubled(kind, heavier))
    x, y, weights = (np.append(column, column[row]) for column in (x, y, weights))
    close(build(kind, x, y).value(doubled(kind, weights)), one)


@pytest.mark.parametrize("kind", KINDS)
@given(columns(), st.data())
def test_a_row_of_weight_zero_is_absent(kind, sample, data):
    x, y, weights = sample
    row = data.draw(st.integers(0, x.size - 1))
    lighter = weights.copy()
    lighter[row] = 0
    with_it = build(kind, x, y).value(doubled(kind, lighter))
    x, y, weights = (np.delete(column, row) for column in (x, y, weights))
    close(build(kind, x, y).value(doubled(kind, weights)), with_it)


@pytest.mark.parametrize("kind", KINDS)
@given(columns(), st.floats(0.1, 10))
def test_constant_weights_are_none(kind, sample, weight):
    x, y, _ = sample
    statistic = build(kind, x, y)
    close(statistic.value(np.full(statistic.n, weight)), statistic.value(np.ones(statistic.n)))


@pytest.mark.parametrize("kind", KINDS)
@given(columns())
def test_the_influence_is_the_derivative(kind, sample):
    x, y, weights = sample
    statistic, weights = build(kind, x, y), doubled(kind, weights)
    influence, step = statistic.influence(weights), 1e-5
    if np.isnan(statistic.value(weights)):
        assert np.isnan(influence).any()
        return
    numerical = [
        (statistic.value(weights + step * unit) - statistic.value(weights - step * unit)) / (2 * step)
        for unit in np.eye(statistic.n)
    ]
    np.testing.assert_allclose(influence, numerical, rtol=1e-4, atol=1e-6)
    # The value does not change with the scale of the weights: Euler's relation.
    assert float(weights @ influence) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@given(columns(), st.data())
def test_resampled_values_are_values_under_multiplied_weights(kind, sample, data):
    x, y, weights = sample
    statistic, weights = build(kind, x, y), doubled(kind, weights)
    codes = np.array(data.draw(st.lists(st.integers(0, 2), min_size=statistic.n, max_size=statistic.n)))
    counts = np.array(data.draw(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=4)))
    found = statistic.cluster_values(counts.astype(float), codes, weights)
    close(found, [statistic.value(weights * row[codes]) for row in counts])


@given(columns())
def test_the_areas_of_a_signal_and_its_negative_make_one(sample):
    x, y, weights = sample
    forwards, backwards = AUC(x, y > 1), AUC(-x, y > 1)
    close(forwards.value(weights) + backwards.value(weights), 1.0 if 0 < np.mean(y > 1) < 1 else np.nan)
    close(forwards.influence(weights), -backwards.influence(weights))


@given(columns())
def test_the_areas_for_a_class_and_its_complement_make_one(sample):
    x, y, weights = sample
    close(
        AUC(x, y > 1).value(weights) + AUC(x, y <= 1).value(weights),
        1.0 if 0 < np.mean(y > 1) < 1 else np.nan,
    )


@given(columns())
def test_rank_correlation_is_symmetric_and_changes_sign_with_a_column(sample):
    x, y, weights = sample
    rho = RankCorrelation(x, y).value(weights)
    close(RankCorrelation(y, x).value(weights), rho)
    close(RankCorrelation(-x, y).value(weights), -rho)
    close(RankCorrelation(np.exp(x), y).value(weights), rho)
    assert np.isnan(rho) or -1 <= rho <= 1


@given(columns())
def test_a_mean_lies_between_the_extremes_and_a_difference_changes_sign(sample):
    x, y, weights = sample
    mean = Mean(x).value(weights)
    assert x.min() - 1e-12 <= mean <= x.max() + 1e-12
    both = np.concatenate([weights, weights])
    close(Difference(Mean(x), Mean(y)).value(both), -Difference(Mean(y), Mean(x)).value(both))
