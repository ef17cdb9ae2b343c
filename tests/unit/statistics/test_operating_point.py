import re

import numpy as np
import pytest

from kvstats.errors import InputError
from kvstats.statistics import OperatingThreshold, TruePositiveRate
from kvstats.statistics.auc_curve import smoothing_width

RANDOM = np.random.default_rng(6)
N = 80
LABEL = RANDOM.integers(0, 2, N)
TIED = RANDOM.integers(0, 12, N).astype(float)
FREE = RANDOM.normal(size=N) + LABEL
WEIGHTS = RANDOM.uniform(0.1, 3, N)
RATES = [0.03, 0.1, 0.25, 0.7]


def shares_flagged(score, label, weights, threshold):
    flagged = score >= threshold
    return [weights[flagged & (label == c)].sum() / weights[label == c].sum() for c in (0, 1)]


@pytest.mark.parametrize("score", [TIED, FREE], ids=["ties", "no ties"])
@pytest.mark.parametrize("rate", RATES)
def test_the_curve_at_the_rate(score, rate):
    points = [shares_flagged(score, LABEL, WEIGHTS, t) for t in [np.inf, *np.unique(score)[::-1]]]
    before = max(i for i, (false_alarms, _) in enumerate(points) if false_alarms <= rate)
    (x0, y0), (x1, y1) = points[before], points[before + 1]
    expected = y0 + (y1 - y0) * (rate - x0) / (x1 - x0)
    assert TruePositiveRate(score, LABEL, rate).value(WEIGHTS) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("score", [TIED, FREE], ids=["ties", "no ties"])
@pytest.mark.parametrize("rate", RATES)
def test_the_lowest_threshold_within_the_rate(score, rate):
    allowed = [t for t in np.unique(score) if shares_flagged(score, LABEL, WEIGHTS, t)[0] <= rate]
    found = OperatingThreshold(score, LABEL, rate).value(WEIGHTS)
    assert found == min(allowed) if allowed else np.isnan(found)
    # The mirrored score has the mirrored threshold.
    low = OperatingThreshold(-score, LABEL, rate, flagged="low")
    assert low.value(WEIGHTS) == -found if allowed else np.isnan(low.value(WEIGHTS))


def test_a_rate_that_is_met_exactly():
    score, label = np.arange(20.0), np.arange(20) % 2 == 1
    for weights in (np.ones(20), np.full(20, 0.1)):
        # The negatives 14, 16 and 18 are the 3 of 10; the positives 13, 15, 17 and 19 are not below them.
        assert TruePositiveRate(score, label, 0.3).value(weights) == pytest.approx(0.4, abs=1e-14)
        assert OperatingThreshold(score, label, 0.3).value(weights) == 13


def test_weights_of_zero_are_absent():
    score, label = np.append(FREE, [0.123, 0.124]), np.append(LABEL, [0, 1])
    weights = np.append(WEIGHTS, [0, 0])
    for kind in (TruePositiveRate, OperatingThreshold):
        expected = kind(FREE, LABEL, 0.3)
        found = kind(score, label, 0.3)
        assert found.value(weights) == expected.value(WEIGHTS)
        np.testing.assert_allclose(found.influence(weights)[:N], expected.influence(WEIGHTS), atol=1e-15)


@pytest.mark.parametrize("rate", RATES)
def test_influences_add_up_to_nothing_and_rescale(rate):
    for kind in (TruePositiveRate, OperatingThreshold):
        statistic = kind(FREE, LABEL, rate)
        influence = statistic.influence(WEIGHTS)
        assert WEIGHTS @ influence == pytest.approx(0, abs=1e-13)
        np.testing.assert_allclose(7 * statistic.influence(7 * WEIGHTS), influence, rtol=1e-9, atol=1e-13)


def test_errors_of_large_samples_are_those_of_theory():
    """Normal scores one apart, 20% false alarms; the estimated slope has an error of about 4%."""
    random = np.random.default_rng(2)
    n = 40_000
    label = np.arange(n) % 2
    score = random.normal(size=n) + label
    z, density, at_positive = (
        0.8416212335729143,
        0.2799619204,
        np.exp(-((0.8416212 - 1) ** 2) / 2) / 2.5066283,
    )
    found = 0.5629  # 1 - Phi(z - 1)
    half = n / 2
    slope = at_positive / density
    expected = found * (1 - found) / half + slope**2 * 0.2 * 0.8 / half
    rate = TruePositiveRate(score, label, 0.2)
    assert np.sum(rate.influence(np.ones(n)) ** 2) == pytest.approx(expected, rel=0.15)
    assert rate.value(np.ones(n)) == pytest.approx(found, abs=4 * expected**0.5)
    threshold = OperatingThreshold(score, label, 0.2)
    expected = 0.2 * 0.8 / half / density**2
    assert np.sum(threshold.influence(np.ones(n)) ** 2) == pytest.approx(expected, rel=0.15)
    assert threshold.value(np.ones(n)) == pytest.approx(z, abs=4 * expected**0.5)


def test_undefined():
    ones = np.ones(3)
    for label in ([0, 0, 0], [1, 1, 1]):
        rate = TruePositiveRate([1.0, 2.0, 3.0], label, 0.4)
        assert np.isnan(rate.value(ones))
        assert np.isnan(rate.influence(ones)).all()
    assert np.isnan(OperatingThreshold([1.0, 2.0, 3.0], [1, 1, 1], 0.4).value(ones))
    # All negatives share the highest score.
    threshold = OperatingThreshold([3.0, 3.0, 3.0], [0, 0, 1], 0.4)
    assert np.isnan(threshold.value(ones))
    assert np.isnan(threshold.influence(ones)).all()
    # Negatives only: the threshold needs no positive.
    assert OperatingThreshold([1.0, 2.0, 3.0], [0, 0, 0], 0.4).value(ones) == 3
    assert np.isnan(TruePositiveRate([], [], 0.4).value([]))
    assert np.isnan(OperatingThreshold([], [], 0.4).value([]))


def test_the_smoothing_width_is_hall_and_sheathers():
    # From the formula of bandwidth.rq(0.1, 300, hs = TRUE) of R's quantreg, evaluated in R.
    assert smoothing_width(0.1, np.ones(300)) == pytest.approx(0.051684731896, rel=1e-9)
    assert smoothing_width(0.1, np.full(300, 5.0)) == smoothing_width(0.1, np.ones(300))
    assert smoothing_width(0.1, np.ones(300)) == pytest.approx(smoothing_width(0.9, np.ones(300)), rel=1e-12)


@pytest.mark.parametrize("kind", [TruePositiveRate, OperatingThreshold])
@pytest.mark.parametrize("rate", [0.0, 1.0, np.nan])
def test_rates_that_are_none_are_refused(kind, rate):
    message = f"{kind.__name__}: false_alarm_rate={rate!r} is not between 0 and 1; pass a share such as 0.1"
    with pytest.raises(InputError, match=re.escape(message)):
        kind([1.0, 2.0], [0, 1], rate)


def test_sides_that_are_none_are_refused():
    with pytest.raises(
        InputError, match=re.escape("OperatingThreshold: flagged='up' is not known; pass 'high'")
    ):
        OperatingThreshold([1.0, 2.0], [0, 1], 0.1, flagged="up")
