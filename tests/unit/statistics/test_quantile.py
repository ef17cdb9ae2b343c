import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvstats.errors import InputError
from kvstats.statistics.quantile import Quantile, QuantileCrossing, QuantileRatio

RNG = np.random.default_rng(8)


def brute_quantile(y, w, p):
    rows = sorted((v, m) for v, m in zip(y, w, strict=True) if m > 0)
    total, run = sum(w), 0.0
    for place, (v, m) in enumerate(rows):
        run += m
        if abs(run - p * total) <= 1e-9 * total:
            return (v + rows[place + 1][0]) / 2
        if run > p * total:
            return v
    raise AssertionError


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 3)), min_size=1, max_size=12),
    st.sampled_from([0.1, 0.25, 0.5, 0.9]),
)
def test_the_quantile_is_its_definition(rows, p):
    y, w = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    found = Quantile(y, p).value(w)
    if not w.any():
        assert np.isnan(found)
    else:
        assert found == brute_quantile(y, w, p)
        repeated = np.repeat(y, w.astype(int))
        assert found == Quantile(repeated, p).value(np.ones(repeated.size))


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_equal_weights_agree_with_numpy(p):
    y = RNG.normal(size=31)
    expected = np.quantile(y, p, method="averaged_inverted_cdf")
    assert Quantile(y, p).value(np.ones(31)) == pytest.approx(expected, rel=1e-12)


def test_resamples_are_weights():
    y, x = RNG.normal(size=60), np.repeat([0.1, 0.2, 0.4], 20)
    codes, w = np.arange(60) % 12, RNG.exponential(size=60)
    counts = RNG.poisson(1.0, size=(50, 12)).astype(float)
    other = np.abs(RNG.normal(size=60)) + 1
    for statistic in (Quantile(y), QuantileRatio(y, other), Quantile(y, 0.9)):
        expected = [statistic.value(w * row[codes]) for row in counts]
        np.testing.assert_allclose(statistic.cluster_values(counts, codes, w), expected, rtol=1e-12)
    crossing = QuantileCrossing(y - 3 * x + 0.6, x, level=0.0)
    found = crossing.cluster_values(counts, codes, w)
    expected = np.array([crossing.value(w * row[codes]) for row in counts])
    same = np.isfinite(found)
    np.testing.assert_allclose(found[same], expected[same], rtol=1e-12)
    assert np.isnan(expected[~same]).all()
    assert 0 < same.sum() < 50


def test_the_influence_gives_the_known_standard_error():
    y = RNG.normal(size=4000)
    error = np.sqrt(np.sum(Quantile(y).influence(np.ones(4000)) ** 2))
    assert error == pytest.approx(np.sqrt(np.pi / 2 / 4000), rel=0.1)
    ratio = QuantileRatio(np.exp(y), np.exp(RNG.normal(size=4000)))
    assert ratio.influence(np.ones(4000)).sum() == pytest.approx(0, abs=1e-9)
    x = np.repeat([0.1, 0.3], 2000)
    crossing = QuantileCrossing(y + np.where(x < 0.2, 0.5, -0.5), x, level=0.0)
    assert crossing.value(np.ones(4000)) == pytest.approx(0.2, abs=0.02)
    # Both medians have variance pi / 2 / 2000; the crossing moves by 0.1 of each, halfway between.
    expected = 0.1 * np.sqrt(2 * np.pi / 2 / 2000)
    assert np.sqrt(np.sum(crossing.influence(np.ones(4000)) ** 2)) == pytest.approx(expected, rel=0.15)


def crossing_of(medians, level=1.0):
    return QuantileCrossing(medians, np.arange(len(medians)) / 10, level).value(np.ones(len(medians)))


def test_where_a_line_crosses():
    assert crossing_of([1.4, 1.2, 0.8]) == pytest.approx(0.15)
    assert crossing_of([0.6, 0.8, 1.2]) == pytest.approx(0.15)
    assert crossing_of([1.0, 0.8, 0.6]) == 0
    assert crossing_of([1.2, 1.0, 0.8]) == pytest.approx(0.1)
    assert crossing_of([1.2, 1.1, 1.0]) == pytest.approx(0.2)
    assert crossing_of([1.2, 0.8, 1.2]) == pytest.approx(0.05)
    assert np.isnan(crossing_of([1.4, 1.3, 1.2]))


def test_a_curve_along_the_level_crosses_nowhere_in_particular():
    crossing = QuantileCrossing([1.0, 1.0, 1.0, 1.0], [0.25, 0.25, 0.5, 0.5], level=1.0)
    assert np.isnan(crossing.value(np.ones(4)))
    assert np.isnan(crossing.influence(np.ones(4))).all()


def test_resamples_without_a_crossing_are_beyond_the_range():
    crossing = QuantileCrossing([1.2, 1.1, 0.9, 0.5], [0.1, 0.1, 0.2, 0.2], level=1.0)
    counts = np.array([[1.0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
    high = QuantileCrossing([1.2, 0.8, 1.4, 0.7], [0.1, 0.1, 0.2, 0.2], level=0.99)
    assert np.isnan(crossing.cluster_values(counts, np.arange(4), np.ones(4))[:2]).all()
    found = high.cluster_values(counts[2:], np.arange(4), np.ones(4))
    assert found.tolist() == [np.inf, -np.inf]


def test_what_is_undefined():
    assert np.isnan(Quantile([1.0, 2.0]).value([0, 0]))
    assert np.isnan(Quantile([1.0, 2.0]).influence([0, 0])).all()
    assert np.isnan(Quantile([]).value([]))
    assert np.isnan(QuantileRatio([1.0], [0.0]).value([1]))
    assert np.isnan(QuantileRatio([1.0], [0.0]).influence([1])).all()
    assert np.isnan(QuantileCrossing([], [], 1.0).value([]))
    assert np.isnan(QuantileCrossing([1.0, 2.0], [0, 1], 1.5).value([1, 0]))


def test_messages():
    with pytest.raises(InputError, match=r"Quantile: p=0 is not between 0 and 1; pass 0\.5 for the median"):
        Quantile([1.0], 0)
    with pytest.raises(InputError, match="QuantileRatio: denominator='array of shape"):
        QuantileRatio([1.0, 2.0], [1.0])
    with pytest.raises(InputError, match=r"QuantileCrossing: x=0\.2 is the only place"):
        QuantileCrossing([1.0, 2.0], [0.2, 0.2], 1.0)
    with pytest.raises(InputError, match="QuantileCrossing: x='array of shape"):
        QuantileCrossing([1.0, 2.0], [0.2], 1.0)
