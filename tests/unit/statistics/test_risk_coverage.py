import re

import numpy as np
import pytest
from scipy.integrate import quad

from kvstats.errors import InputError
from kvstats.statistics import RiskAtCoverage, RiskCoverageArea, risk_coverage_curve

RANDOM = np.random.default_rng(12)
N = 60
TIED = RANDOM.integers(0, 8, N).astype(float)
FREE = RANDOM.normal(size=N)
LOSS = (RANDOM.uniform(size=N) < 0.3).astype(float)
WEIGHTS = RANDOM.uniform(0.2, 3, N)


def risk_at(signal, loss, weights, coverage):
    """Mean loss among the surest share of the weight, one level after the other."""
    room = coverage * weights.sum()
    total = 0.0
    for level in np.unique(signal):
        rows = signal == level
        taken = min(room, weights[rows].sum())
        total += taken * np.average(loss[rows], weights=weights[rows])
        room -= taken
    return total / (coverage * weights.sum())


@pytest.mark.parametrize("signal", [TIED, FREE], ids=["ties", "no ties"])
@pytest.mark.parametrize("coverage", [0.05, 0.5, 0.83, 1.0])
def test_risk_at_a_coverage(signal, coverage):
    found = RiskAtCoverage(signal, LOSS, coverage).value(WEIGHTS)
    assert found == pytest.approx(risk_at(signal, LOSS, WEIGHTS, coverage), abs=1e-14)


@pytest.mark.parametrize("signal", [TIED, FREE], ids=["ties", "no ties"])
def test_the_area_is_the_integral_of_the_risk(signal):
    ends = risk_coverage_curve(signal, LOSS, WEIGHTS)[0]
    expected = sum(
        quad(lambda c: risk_at(signal, LOSS, WEIGHTS, c), a, b, epsabs=1e-12)[0]
        for a, b in zip([1e-12, *ends], ends, strict=False)
    )
    assert RiskCoverageArea(signal, LOSS).value(WEIGHTS) == pytest.approx(expected, abs=1e-9)


def test_the_mean_over_rows_approaches_the_area():
    order = np.argsort(FREE)
    expected = RiskCoverageArea(FREE, LOSS).value(np.ones(N))
    errors = []
    for copies in (1, 10, 100):
        loss = np.repeat(LOSS[order], copies)
        means = np.cumsum(loss) / np.arange(1, loss.size + 1)
        errors.append(abs(means.mean() - expected))
    assert errors[0] > 5 * errors[1] > 25 * errors[2]
    assert errors[2] < 1e-3


def test_the_curve():
    coverage, risk = risk_coverage_curve(TIED, LOSS, WEIGHTS)
    assert coverage[-1] == pytest.approx(1, abs=1e-15)
    assert risk[-1] == pytest.approx(np.average(LOSS, weights=WEIGHTS), abs=1e-15)
    for c, r in zip(coverage, risk, strict=True):
        assert r == pytest.approx(risk_at(TIED, LOSS, WEIGHTS, c), abs=1e-13)
    lighter = np.where(TIED.min() == TIED, 0.0, WEIGHTS)
    assert risk_coverage_curve(TIED, LOSS, lighter)[0].size == coverage.size - 1
    assert [part.size for part in risk_coverage_curve([], [])] == [0, 0]


@pytest.mark.parametrize("signal", [TIED, FREE], ids=["ties", "no ties"])
def test_the_influence_of_the_area_is_its_derivative(signal):
    area, step = RiskCoverageArea(signal, LOSS), 1e-6
    numerical = [
        (area.value(WEIGHTS + step * unit) - area.value(WEIGHTS - step * unit)) / (2 * step)
        for unit in np.eye(N)
    ]
    np.testing.assert_allclose(area.influence(WEIGHTS), numerical, rtol=1e-5, atol=1e-8)
    assert WEIGHTS @ area.influence(WEIGHTS) == pytest.approx(0, abs=1e-14)


def test_the_influence_on_a_large_level_is_the_derivative_of_the_risk():
    # Within one level the loss at the margin is that level's mean, whatever the width.
    signal = np.repeat([0.0, 1.0], [10, 50])
    risk, step = RiskAtCoverage(signal, LOSS, 0.7), 1e-6
    numerical = [
        (risk.value(WEIGHTS + step * unit) - risk.value(WEIGHTS - step * unit)) / (2 * step)
        for unit in np.eye(N)
    ]
    np.testing.assert_allclose(risk.influence(WEIGHTS), numerical, rtol=1e-4, atol=1e-8)


def test_full_coverage_is_the_mean():
    risk = RiskAtCoverage(FREE, LOSS, 1.0)
    mean = np.average(LOSS, weights=WEIGHTS)
    assert risk.value(WEIGHTS) == pytest.approx(mean, abs=1e-15)
    np.testing.assert_allclose(risk.influence(WEIGHTS), (LOSS - mean) / WEIGHTS.sum(), atol=1e-15)


def test_useless_perfect_and_reversed_signals():
    loss, ones = np.repeat([0.0, 1.0], [6, 4]), np.ones(10)
    assert RiskCoverageArea(np.zeros(10), loss).value(ones) == pytest.approx(0.4, abs=1e-15)
    # All successes first: the integral of (c - 0.6) / c from 0.6 to 1.
    best = RiskCoverageArea(np.arange(10.0), loss).value(ones)
    assert best == pytest.approx(0.4 + 0.6 * np.log(0.6), abs=1e-14)
    worst = RiskCoverageArea(-np.arange(10.0), loss).value(ones)
    assert worst == pytest.approx(0.4 - 0.4 * np.log(0.4), abs=1e-14)


def test_rows_without_weight():
    weights = WEIGHTS.copy()
    weights[[0, 5, np.argmin(FREE)]] = 0
    kept = weights > 0
    for kind, rest in ((RiskCoverageArea, ()), (RiskAtCoverage, (0.4,))):
        whole, part = kind(FREE, LOSS, *rest), kind(FREE[kept], LOSS[kept], *rest)
        assert whole.value(weights) == pytest.approx(part.value(weights[kept]), abs=1e-14)
        np.testing.assert_allclose(
            whole.influence(weights)[kept], part.influence(weights[kept]), rtol=0, atol=1e-14
        )
    assert (RiskCoverageArea(FREE, LOSS).influence(weights)[~kept] == 0).all()


@pytest.mark.parametrize("rest", [(), (0.5,)])
def test_undefined_without_weight(rest):
    kind = RiskAtCoverage if rest else RiskCoverageArea
    statistic = kind([1.0, 2.0], [0.0, 1.0], *rest)
    assert np.isnan(statistic.value([0, 0]))
    assert np.isnan(statistic.influence([0, 0])).all()
    assert np.isnan(kind([], [], *rest).value([]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: RiskCoverageArea([1.0], [1.0, 2.0]),
            "RiskCoverageArea: loss='array of shape (2,)' does not",
        ),
        (lambda: RiskCoverageArea([np.nan], [1.0]), "RiskCoverageArea: signal=nan is not finite, at row 0"),
        (lambda: RiskAtCoverage([1.0], [1.0], 0.0), "RiskAtCoverage: coverage=0.0 is not in (0, 1]; pass a"),
        (lambda: RiskAtCoverage([1.0], [np.inf], 0.5), "RiskAtCoverage: loss=inf is not finite, at row 0"),
        (
            lambda: risk_coverage_curve([1.0], [1.0], [-1.0]),
            "risk_coverage_curve: weights=-1.0 is not a weight, at row 0",
        ),
    ],
)
def test_what_cannot_be_used_is_refused(call, message):
    with pytest.raises(InputError, match=re.escape(message)):
        call()
