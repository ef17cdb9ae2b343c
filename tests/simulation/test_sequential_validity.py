"""Errors of sequential inference when one looks after every outcome, next to what naive gates do.

Run with ``pytest -s`` to see the figures.
"""

import math

import numpy as np
import pytest
from scipy import special

from kvstats.inference.sequential import (
    RateMonitor,
    betting_confidence_sequence,
    block_e_process,
    block_means,
    empirical_bernstein_sequence,
    first_crossing,
    mean_e_process,
)
from kvstats.statistics.empirical_bernstein import empirical_bernstein_spheres

pytestmark = pytest.mark.slow

DELTA = 0.05
STREAMS = 300
LENGTHS = {0.001: 3000, 0.01: 2000, 0.2: 500, 0.5: 500}


def coarse_betting(outcomes, **arguments):
    """On a coarse grid, for speed: bounds are rounded outwards by 0.005 at most."""
    return betting_confidence_sequence(outcomes, candidates=300, **arguments)


def streams(rate, label=0):
    rng = np.random.default_rng([label, round(1e6 * rate)])
    return (rng.random((STREAMS, LENGTHS[rate])) < rate).astype(float)


def at_most(share, nominal, trials=STREAMS):
    """Whether a share is compatible with a probability of at most `nominal`, at 3.5 standard deviations."""
    return share <= nominal + 3.5 * math.sqrt(nominal * (1 - nominal) / trials)


def stopped_by_plug_in_likelihood_ratio(outcomes, rate):
    """Stop once the likelihood at the rate estimated so far is 1 / delta times that at the null."""
    n = np.arange(1, outcomes.shape[1] + 1)
    harmed = np.cumsum(outcomes, axis=1)
    estimate = harmed / n
    log_ratio = special.xlogy(harmed, estimate / rate) + special.xlogy(
        n - harmed, (1 - estimate) / (1 - rate)
    )
    return ((estimate > rate) & (log_ratio >= math.log(1 / DELTA))).any(axis=1).mean()


def stopped_by_plug_in_variance(outcomes, rate):
    """Stop once the two-sided z test with the estimated variance rejects, from the 30th outcome on.

    Thirty outcomes without an event have an estimated variance of 0, and are taken for certainty.
    """
    n = np.arange(1, outcomes.shape[1] + 1)
    estimate = np.cumsum(outcomes, axis=1) / n
    error = np.sqrt(estimate * (1 - estimate) / n)
    return (np.abs(estimate - rate) > special.ndtri(1 - DELTA / 2) * error)[:, 29:].any(axis=1).mean()


@pytest.mark.parametrize("rate", LENGTHS)
def test_continuous_peeking_under_the_null(rate):
    outcomes = streams(rate)
    naive = stopped_by_plug_in_variance(outcomes, rate)
    ratio = stopped_by_plug_in_likelihood_ratio(outcomes, rate)
    valid = {
        (bets, alternative): np.mean(
            [
                first_crossing(mean_e_process(x, rate, alternative=alternative, bets=bets), DELTA) is not None
                for x in outcomes
            ]
        )
        for bets, alternative in [("mixture", "greater"), ("mixture", "less"), ("plug_in", "greater")]
    }
    shown = ", ".join(f"{bets} {side} {share:.3f}" for (bets, side), share in valid.items())
    print(
        f"\nrate {rate}, {outcomes.shape[1]} looks: plug-in variance {naive:.3f}, "
        f"likelihood ratio {ratio:.3f}, {shown}"
    )
    assert naive > (0.7 if rate <= 0.01 else 0.3)
    assert ratio > DELTA
    for share in valid.values():
        assert at_most(share, DELTA)


@pytest.mark.parametrize("rate", [0.01, 0.5])
@pytest.mark.parametrize("function", [coarse_betting, empirical_bernstein_sequence])
def test_all_intervals_together_hold_the_rate(function, rate):
    missed = 0
    for x in streams(rate, label=1):
        found = function(x)
        missed += not found.low[-1] <= rate <= found.high[-1]
    assert at_most(missed / STREAMS, DELTA)


@pytest.mark.parametrize("function", [coarse_betting, empirical_bernstein_sequence])
def test_all_intervals_together_hold_the_mean_of_skewed_outcomes(function):
    rng = np.random.default_rng(7)
    missed = 0
    for _ in range(STREAMS):
        found = function(rng.beta(0.2, 3.8, 400))
        missed += not found.low[-1] <= 0.05 <= found.high[-1]
    assert at_most(missed / STREAMS, DELTA)


@pytest.mark.parametrize("function", [coarse_betting, empirical_bernstein_sequence])
def test_without_replacement_all_intervals_together_hold_the_population_mean(function):
    rng = np.random.default_rng(8)
    population = np.repeat([1.0, 0.0], [12, 388])
    missed, with_n, without_n = 0, [], []
    for _ in range(STREAMS):
        order = rng.permutation(population)[:300]
        found = function(order, population=400)
        missed += not found.low[-1] <= 0.03 <= found.high[-1]
        with_n.append(found.high[-1] - found.low[-1])
        if len(without_n) < 50:
            plain = function(order)
            without_n.append(plain.high[-1] - plain.low[-1])
    assert at_most(missed / STREAMS, DELTA)
    assert np.nanmedian(with_n) < 0.7 * np.nanmedian(without_n)


@pytest.mark.parametrize("horizon", [None, 300])
def test_all_spheres_together_hold_the_mean_vector(horizon):
    rng = np.random.default_rng(11)
    corners = rng.normal(size=(5, 8))
    corners /= np.linalg.norm(corners, axis=1, keepdims=True)
    chance = np.array([0.6, 0.2, 0.1, 0.07, 0.03])
    missed, ratio = 0, []
    for _ in range(STREAMS):
        found = empirical_bernstein_spheres(
            corners[rng.choice(5, 300, p=chance)], bound=1.0, delta=DELTA, horizon=horizon
        )
        error = np.linalg.norm(found.centre - chance @ corners, axis=1)
        missed += (error > found.radius).any()
        ratio.append(found.radius[-1] / error[-1])
    print(f"\nspheres: {missed / STREAMS:.3f} missed, radius {np.median(ratio):.1f} times the error")
    assert at_most(missed / STREAMS, DELTA)


def test_draws_shared_within_blocks():
    """Six steps read the same draw. Multiplying all of them stops falsely; block by block it does not."""
    rng = np.random.default_rng(9)
    steps, blocks, null = 6, 60, 0.1
    labels = np.repeat(np.arange(blocks), steps)
    stopped = {"every step multiplied": 0, "block average": 0, "block mean": 0}
    for _ in range(STREAMS):
        draws = rng.random(blocks) < null
        shared = np.repeat(draws, steps).astype(float)
        each = 1 + 0.2 * (shared / null - 1)
        processes = {
            "every step multiplied": np.cumprod(each),
            "block average": block_e_process(each, labels, size=steps),
            "block mean": mean_e_process(block_means(shared, labels), null),
        }
        for name, process in processes.items():
            stopped[name] += first_crossing(process, DELTA) is not None
    shares = {name: count / STREAMS for name, count in stopped.items()}
    print(f"\nfalse stops with shared draws: {shares}")
    assert shares["every step multiplied"] > 0.2
    assert at_most(shares["block average"], DELTA)
    assert at_most(shares["block mean"], DELTA)


def test_a_rate_above_the_threshold_is_found():
    rng = np.random.default_rng(10)
    steps = []
    for _ in range(60):
        process = mean_e_process(rng.random(1500) < 0.05, 0.01)
        steps.append(first_crossing(process, DELTA))
    print(f"\nrate 0.05 against 0.01: median of {np.median(steps):.0f} outcomes to stop")
    assert None not in steps
    assert np.median(steps) < 150
    monitor = RateMonitor(0.01)
    outcomes = rng.random(1500) < 0.05
    assert monitor.update(outcomes).stop
    assert monitor.reading.low > 0.01
