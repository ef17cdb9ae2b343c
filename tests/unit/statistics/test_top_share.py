import re

import numpy as np
import pytest

from kvstats.errors import InputError
from kvstats.statistics import BandMean, RiskAtCoverage, TopShareMean

RANDOM = np.random.default_rng(7)
N = 40
TIED = RANDOM.integers(0, 5, N).astype(float)
FREE = RANDOM.normal(size=N)
BASE = (RANDOM.uniform(size=N) < 0.4).astype(float)
FULL = (RANDOM.uniform(size=N) < 0.7).astype(float)
STRATA = RANDOM.integers(0, 3, N)
WEIGHTS = RANDOM.uniform(0.2, 3, N)


def inside(signal, weights, share):
    """Part of each row among the top share of the weight, one level after the other."""
    room = share * weights.sum()
    parts = np.zeros(signal.size)
    for level in np.unique(signal)[::-1]:
        rows = signal == level
        mass = weights[rows].sum()
        parts[rows] = min(max(room / mass, 0.0), 1.0)
        room -= mass
    return parts


def inside_strata(signal, weights, share, strata):
    parts = np.zeros(signal.size)
    for stratum in np.unique(strata):
        rows = strata == stratum
        parts[rows] = inside(signal[rows], weights[rows], share)
    return parts


SIGNALS = pytest.mark.parametrize("signal", [TIED, FREE], ids=["ties", "no ties"])
STRATIFIED = pytest.mark.parametrize("strata", [np.zeros(N, dtype=int), STRATA], ids=["one", "strata"])


@SIGNALS
@STRATIFIED
@pytest.mark.parametrize("share", [0.0, 0.13, 0.25, 0.5, 1.0])
def test_the_top_share_by_definition(signal, strata, share):
    part = inside_strata(signal, WEIGHTS, share, strata)
    expected = np.average(part * FULL + (1 - part) * BASE, weights=WEIGHTS)
    found = TopShareMean(signal, FULL, BASE, share, strata)
    assert found.value(WEIGHTS) == pytest.approx(expected, abs=1e-13)
    assert found.held_fixed(WEIGHTS).value(WEIGHTS) == pytest.approx(expected, abs=1e-13)


@SIGNALS
@STRATIFIED
@pytest.mark.parametrize(("low", "high"), [(0, 1 / 3), (1 / 3, 2 / 3), (2 / 3, 1), (0, 1)])
def test_a_band_by_definition(signal, strata, low, high):
    part = inside_strata(signal, WEIGHTS, high, strata) - inside_strata(signal, WEIGHTS, low, strata)
    found = BandMean(signal, FULL, low, high, strata)
    assert found.value(WEIGHTS) == pytest.approx(np.average(FULL, weights=WEIGHTS * part), abs=1e-12)
    assert found.held_fixed(WEIGHTS).value(WEIGHTS) == pytest.approx(found.value(WEIGHTS), abs=1e-12)
    assert found.membership(WEIGHTS) == pytest.approx(part, abs=1e-12)


@SIGNALS
def test_it_is_the_risk_of_answering_the_most_suspicious_only(signal):
    gain = TopShareMean(signal, FULL, np.zeros(N), 0.3).value(WEIGHTS)
    assert gain == pytest.approx(0.3 * RiskAtCoverage(-signal, FULL, 0.3).value(WEIGHTS), abs=1e-14)


def test_without_strata_and_ties_the_influence_is_that_of_the_risk_at_a_coverage():
    found = TopShareMean(FREE, FULL, np.zeros(N), 0.3).influence(WEIGHTS)
    assert found == pytest.approx(0.3 * RiskAtCoverage(-FREE, FULL, 0.3).influence(WEIGHTS), abs=1e-14)


@pytest.mark.parametrize("share", [0.15, 0.85])
def test_the_influence_is_the_derivative_where_the_limit_lies_within_a_wide_level(share):
    # With two levels, one step of the curve is all that the smoothing sees, and the derivative is exact.
    signal = np.repeat([1.0, 0.0], N // 2)
    statistics = [
        TopShareMean(signal, np.tile([1.0, 0.0], N // 2), np.full(N, 0.5), share),
        BandMean(signal, np.tile([1.0, 0.0, 1.0, 1.0], N // 4), 0.0, share),
    ]
    for statistic in statistics:
        influence = statistic.influence(WEIGHTS)
        for row in (0, 1, N - 2, N - 1):
            step = np.zeros(N)
            step[row] = 1e-6
            slope = (statistic.value(WEIGHTS + step) - statistic.value(WEIGHTS - step)) / 2e-6
            assert influence[row] == pytest.approx(slope, abs=1e-7)


@SIGNALS
@STRATIFIED
def test_influences_sum_to_zero(signal, strata):
    for statistic in (
        TopShareMean(signal, FULL, BASE, 0.25, strata),
        BandMean(signal, FULL, 1 / 3, 2 / 3, strata),
    ):
        assert WEIGHTS @ statistic.influence(WEIGHTS) == pytest.approx(0, abs=1e-12)


def test_nothing_and_everything_need_no_limit():
    for share, expected in ((0.0, BASE), (1.0, FULL)):
        statistic = TopShareMean(TIED, FULL, BASE, share)
        mean = np.average(expected, weights=WEIGHTS)
        assert statistic.value(WEIGHTS) == pytest.approx(mean, abs=1e-14)
        assert statistic.influence(WEIGHTS) == pytest.approx((expected - mean) / WEIGHTS.sum(), abs=1e-14)


def test_resampled_values_refit_the_limit_and_held_ones_do_not():
    codes = np.arange(N) // 2
    counts = RANDOM.multinomial(20, np.full(20, 1 / 20), 30).astype(float)
    statistic = TopShareMean(FREE, FULL, BASE, 0.25)
    refitted = statistic.cluster_values(counts, codes, WEIGHTS)
    held = statistic.held_fixed(WEIGHTS).cluster_values(counts, codes, WEIGHTS)
    for row, values in enumerate(zip(refitted, held, strict=True)):
        w = WEIGHTS * counts[row][codes]
        for value, part in zip(
            values, (inside(FREE, w + 1e-300, 0.25), inside(FREE, WEIGHTS, 0.25)), strict=True
        ):
            assert value == pytest.approx(np.average(part * FULL + (1 - part) * BASE, weights=w), abs=1e-12)
    assert np.abs(refitted - held).max() > 0.01


@SIGNALS
@STRATIFIED
def test_resampled_values_are_values_under_the_counts(signal, strata):
    codes = np.arange(N) // 2
    counts = RANDOM.multinomial(20, np.full(20, 1 / 20), 30).astype(float)
    counts[0] = 0
    for statistic in (
        TopShareMean(signal, FULL, BASE, 0.3, strata),
        BandMean(signal, FULL, 1 / 3, 2 / 3, strata),
    ):
        expected = [statistic.value(WEIGHTS * row[codes]) for row in counts]
        found = statistic.cluster_values(counts, codes, WEIGHTS)
        assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)
        assert np.isnan(found[0])


def test_without_weight_nothing_is_defined():
    for statistic in (TopShareMean(TIED, FULL, BASE, 0.5), BandMean(TIED, FULL, 0, 0.5)):
        assert np.isnan(statistic.value(np.zeros(N)))
        assert np.isnan(statistic.influence(np.zeros(N))).all()
    assert np.isnan(TopShareMean([], [], [], 0.5).value([]))
    empty = BandMean([], [], 0, 0.5)
    assert np.isnan(empty.value([]))
    assert empty.membership([]).size == 0
    assert np.isnan(empty.cluster_values(np.ones((2, 1)), np.empty(0, dtype=int), [])).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TopShareMean([1.0], [1.0], [0.0], 1.5), "TopShareMean: share=1.5 is not in [0, 1]"),
        (lambda: TopShareMean([1.0], [1.0, 2.0], [0.0], 0.5), "does not fit a signal of 1 rows"),
        (lambda: TopShareMean([np.nan], [1.0], [0.0], 0.5), "TopShareMean: signal=nan is not finite"),
        (lambda: TopShareMean([1.0], [1.0], [0.0], 0.5, ["a", "b"]), "TopShareMean: stratum="),
        (lambda: BandMean([1.0], [1.0], 0.5, 0.5), "BandMean: low=0.5 is not in [0, high=0.5)"),
        (lambda: BandMean([1.0], [np.inf], 0.0, 0.5), "BandMean: y=inf is not finite"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=re.escape(message)):
        call()
