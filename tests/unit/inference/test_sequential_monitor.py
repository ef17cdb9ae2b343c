"""The monitor against the functions that it joins, and what it does with bad input."""

import math

import numpy as np
import pytest

from kvstats.errors import InputError
from kvstats.inference.sequential import (
    RateMonitor,
    betting_confidence_sequence,
    first_crossing,
    mean_e_process,
)


def draws(n=300, p=0.05, seed=0):
    return (np.random.default_rng(seed).random(n) < p).astype(float)


@pytest.mark.parametrize("bets", ["mixture", "plug_in"])
@pytest.mark.parametrize("alternative", ["greater", "less"])
@pytest.mark.parametrize("population", [None, 400])
def test_singly_in_parts_or_at_once_it_says_what_the_functions_say(bets, alternative, population):
    outcomes = draws()
    arguments = {"alternative": alternative, "population": population, "bets": bets}
    singly, parts, at_once = (RateMonitor(0.02, **arguments) for _ in range(3))
    readings = [singly.update(x) for x in outcomes]
    parts.update(outcomes[:130])
    assert parts.reading == pytest.approx(readings[129], rel=1e-9)
    parts.update(outcomes[130:])
    at_once.update(outcomes)
    for monitor in (parts, at_once):
        for found, wanted in zip(monitor.reading, readings[-1], strict=True):
            assert found == pytest.approx(wanted, rel=1e-9)

    sequence = betting_confidence_sequence(outcomes, population=population, bets=bets)
    process = mean_e_process(outcomes, 0.02, **arguments, delta=0.025)
    np.testing.assert_allclose([r.low for r in readings], sequence.low)
    np.testing.assert_allclose([r.high for r in readings], sequence.high)
    np.testing.assert_allclose([r.estimate for r in readings], sequence.estimate)
    np.testing.assert_allclose([r.e_value for r in readings], process, rtol=1e-9)
    np.testing.assert_allclose(
        [r.largest_e_value for r in readings], np.maximum.accumulate(np.maximum(process, 1)), rtol=1e-9
    )
    crossing = first_crossing(process, 0.05)
    assert [r.stop for r in readings].index(True) + 1 == crossing if crossing else not readings[-1].stop


def test_before_the_first_outcome():
    reading = RateMonitor(0.1).reading
    assert reading == (0, None, 0.0, 1.0, 1.0, 1.0, False)


def test_the_decision_stays_when_the_evidence_falls():
    monitor = RateMonitor(0.1)
    assert monitor.update(np.ones(10)).stop
    reading = monitor.update(np.zeros(200))
    assert reading.e_value < 1
    assert reading.stop
    assert reading.largest_e_value > 20


def test_an_interval_above_the_threshold_means_stop():
    for seed in range(5):
        monitor = RateMonitor(0.02)
        for outcome in draws(seed=seed, p=0.15):
            reading = monitor.update(outcome)
            if reading.low > 0.02:
                assert reading.stop
                assert reading.largest_e_value >= 40
        assert reading.low > 0.02


def test_less_stops_when_the_rate_is_safe():
    monitor = RateMonitor(0.1, alternative="less")
    assert not monitor.update(np.zeros(10)).stop
    assert monitor.update(np.zeros(60)).stop
    assert not RateMonitor(0.1).update(np.zeros(70)).stop


def test_no_mean_left_is_none():
    monitor = RateMonitor(0.5)
    monitor.update(np.zeros(300))
    reading = monitor.update(np.ones(300))
    assert (reading.low, reading.high) == (None, None)
    assert reading.estimate == 0.5


def test_a_block_counts_once():
    blocks, plain = RateMonitor(0.1), RateMonitor(0.1)
    blocks.update_block([1, 1, 0, 0])
    blocks.update_block([0, 0, 0, 0])
    assert blocks.reading == plain.update([0.5, 0.0])
    assert blocks.reading.n == 2


def test_a_population_seen_wholly_is_known():
    monitor = RateMonitor(0.1, population=20)
    reading = monitor.update([1] + [0] * 19)
    assert (reading.low, reading.high) == (0.05, 0.05)


def test_bad_input_leaves_the_monitor_as_it_was():
    monitor = RateMonitor(0.1, population=4)
    before = monitor.update([0, 1])
    for wrong, message in [
        ([], "RateMonitor.update: outcomes='an empty array' has no outcome"),
        ([0, 2], r"RateMonitor.update: outcomes=2.0 is outside \[0, 1\] or undefined at position 1"),
        (math.nan, r"RateMonitor.update: outcomes=nan is outside \[0, 1\]"),
        (None, r"RateMonitor.update: outcomes=nan is outside \[0, 1\]"),
        ([0, 0, 0], "RateMonitor.update: population=4 is below the 5 outcomes seen; raise it"),
    ]:
        with pytest.raises(InputError, match=message):
            monitor.update(wrong)
        assert monitor.reading == before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RateMonitor(-0.1), r"RateMonitor: threshold=-0.1 is not in \[0, 1\]"),
        (
            lambda: RateMonitor(0.1, alternative="two-sided"),
            "RateMonitor: alternative='two-sided' is unknown",
        ),
        (lambda: RateMonitor(0.1, level=0), r"RateMonitor: level=0 is not in \(0, 1\)"),
        (lambda: RateMonitor(0.1, population=-3), "RateMonitor: population=-3 is not a whole number"),
        (lambda: RateMonitor(0.1, bets="kelly"), "bets='kelly' is unknown; known: mixture, plug_in"),
        (lambda: RateMonitor(0.1).update_block([]), "RateMonitor.update_block: outcomes='an empty array'"),
        (
            lambda: RateMonitor(0.1, population=9).update_block([0]),
            "RateMonitor.update_block: population=9 does not go with blocks; make a monitor without one",
        ),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(InputError, match=message):
        call()
