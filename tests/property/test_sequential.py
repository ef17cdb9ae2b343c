"""What holds for every sequence of outcomes and every sampled read."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvstats.inference.sequential import (
    RateMonitor,
    average_e_value,
    betting_confidence_sequence,
    block_e_process,
    empirical_bernstein_sequence,
    mean_e_process,
)
from kvstats.statistics.certified_radius import certified_radius

OUTCOMES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=80)
MEANS = st.floats(0.001, 0.999)
E_VALUES = st.lists(st.floats(0, 50), min_size=1, max_size=30)
BOTH = st.sampled_from([betting_confidence_sequence, empirical_bernstein_sequence])


@given(OUTCOMES, MEANS, st.randoms(use_true_random=False))
def test_the_final_e_value_of_the_mixture_does_not_depend_on_the_order(outcomes, mean, random):
    shuffled = random.sample(outcomes, len(outcomes))
    np.testing.assert_allclose(
        mean_e_process(outcomes, mean)[-1], mean_e_process(shuffled, mean)[-1], rtol=1e-9
    )


@given(OUTCOMES, MEANS, MEANS)
def test_evidence_that_the_mean_is_higher_falls_with_the_hypothesis(outcomes, one, other):
    low, high = sorted([one, other])
    for bets in ("mixture", "plug_in"):
        at_low, at_high = (mean_e_process(outcomes, mean, bets=bets) for mean in (low, high))
        assert (at_low >= at_high * (1 - 1e-9)).all()


@given(OUTCOMES, BOTH, st.booleans())
def test_intervals_are_nested_and_wider_at_a_higher_level(outcomes, function, finite):
    population = len(outcomes) + 10 if finite else None
    wide = function(outcomes, level=0.99, population=population)
    narrow = function(outcomes, level=0.8, population=population)
    assert (np.diff(wide.low) >= 0).all()
    assert (np.diff(wide.high) <= 0).all()
    left = ~np.isnan(narrow.low)
    # The plug-in bets depend on the level, so only the betting intervals are nested in it.
    if function is betting_confidence_sequence:
        assert (wide.low <= narrow.low)[left].all()
        assert (wide.high >= narrow.high)[left].all()
    assert ((wide.low >= 0) & (wide.high <= 1) & (wide.low <= wide.high)).all()


@given(OUTCOMES, MEANS, st.integers(0, 79))
def test_a_monitor_does_not_care_how_outcomes_are_handed_over(outcomes, threshold, cut):
    at_once, parts = RateMonitor(threshold), RateMonitor(threshold)
    at_once.update(outcomes)
    for part in (outcomes[:cut], outcomes[cut:]):
        if part:
            parts.update(part)
    np.testing.assert_allclose(
        np.array(parts.reading, dtype=float), np.array(at_once.reading, dtype=float), rtol=1e-9
    )


@given(E_VALUES)
def test_average_is_between_the_extremes_and_blocks_of_one_multiply(values):
    # The mean of equal numbers may differ from them by rounding.
    assert min(values) * (1 - 1e-12) <= average_e_value(values) <= max(values) * (1 + 1e-12)
    np.testing.assert_allclose(block_e_process(values, range(len(values))), np.cumprod(values), rtol=1e-9)
    one_block = block_e_process(values, [0] * len(values))
    np.testing.assert_allclose(one_block[-1], average_e_value(values), rtol=1e-9)
    assert (np.diff(one_block) >= 0).all()


@given(
    st.integers(0, 10_000),
    st.floats(0.01, 100),
    st.floats(-50, 50),
    st.sampled_from(["bernstein", "empirical_bernstein"]),
)
def test_certified_radius_follows_the_units_of_values_and_ignores_those_of_weights(
    seed, scale, shift, method
):
    rng = np.random.default_rng(seed)
    logits, values, pi = rng.normal(size=60), rng.normal(size=(60, 3)), rng.uniform(0.2, 1, 60)
    kept = rng.random(60) < pi
    kept[0] = True
    norm, log_weight = np.linalg.norm(values, axis=1).max(), (logits - np.log(pi)).max()
    plain = certified_radius(logits, values, pi, kept, value_norm=norm, log_weight=log_weight, method=method)
    other = certified_radius(
        logits + shift,
        scale * values,
        pi,
        kept,
        value_norm=scale * norm,
        log_weight=log_weight + shift,
        method=method,
    )
    np.testing.assert_allclose(other.absolute, scale * plain.absolute, rtol=1e-7)
    assert 0 < plain.absolute <= 2 * norm
