"""Confidence sequences against their formulas in loops, their limits, and bad input."""

import math

import numpy as np
import pytest

from kvstats.errors import InputError
from kvstats.inference.sequential import betting_confidence_sequence, empirical_bernstein_sequence
from kvstats.inference.sequential.capital import FRACTIONS

BOTH = pytest.mark.parametrize("function", [betting_confidence_sequence, empirical_bernstein_sequence])


def draws(n=60, p=0.3, seed=0):
    return (np.random.default_rng(seed).random(n) < p).astype(float)


def bernstein_in_a_loop(outcomes, alpha, population=None):
    bounds, above, below, price = [], 0.0, 0.0, 0.0
    for t, x in enumerate(outcomes, start=1):
        before = outcomes[: t - 1]
        means = [(0.5 + sum(outcomes[:i])) / (i + 1) for i in range(t)]
        variance = (0.25 + sum((before[i] - means[i + 1]) ** 2 for i in range(t - 1))) / t
        bet = min(0.5, math.sqrt(2 * math.log(2 / alpha) / (variance * t * math.log(1 + t))))
        left = math.inf if population is None else population - t + 1
        above += bet * (x + sum(before) / left)
        below += bet * (1 if population is None else population / left)
        price += (x - means[-1]) ** 2 * (-math.log(1 - bet) - bet)
        margin = (math.log(2 / alpha) + price) / below
        bounds.append((max(above / below - margin, 0), min(above / below + margin, 1)))
    return np.array(bounds).T


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_empirical_bernstein_equals_its_formula(level):
    outcomes = np.random.default_rng(0).beta(1, 3, 40)
    low, high = bernstein_in_a_loop(outcomes.tolist(), 1 - level)
    found = empirical_bernstein_sequence(outcomes, level=level, running_intersection=False)
    np.testing.assert_allclose(found.low, low, rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(found.high, high, rtol=1e-10)
    np.testing.assert_allclose(found.estimate, np.cumsum(outcomes) / np.arange(1, 41))


def test_empirical_bernstein_without_replacement_equals_its_formula():
    outcomes = draws(40)
    low, high = bernstein_in_a_loop(outcomes.tolist(), 0.05, population=50)
    found = empirical_bernstein_sequence(outcomes, population=50, running_intersection=False)
    total, time = np.cumsum(outcomes), np.arange(1, 41)
    np.testing.assert_allclose(found.low, np.maximum(low, total / 50))
    np.testing.assert_allclose(found.high, np.minimum(high, (total + 50 - time) / 50))


def capital_in_a_loop(outcomes, mean, population=None):
    """Average capital of the mixture's players who bet that the mean is higher."""
    players = [1.0] * len(FRACTIONS)
    for t, x in enumerate(outcomes):
        m = mean if population is None else (population * mean - sum(outcomes[:t])) / (population - t)
        if m < 0 or (m == 0 and x > 0):
            return math.inf
        players = [k * (1 + f * (x / m - 1) if m else 1) for k, f in zip(players, FRACTIONS, strict=True)]
    return sum(players) / len(players)


@pytest.mark.parametrize("population", [None, 45])
def test_a_mean_inside_the_interval_is_one_that_no_bet_refutes(population):
    outcomes = draws(40, 0.2).tolist()
    found = betting_confidence_sequence(outcomes, population=population, running_intersection=False)
    for mean in np.linspace(0.01, 0.99, 50):
        for t in (1, 5, 17, 40):
            total, known = (sum(outcomes[:t]), t) if population else (0, 0)
            size = population or 1
            left = (
                capital_in_a_loop(outcomes[:t], mean, population) < 40
                and capital_in_a_loop([1 - x for x in outcomes[:t]], 1 - mean, population) < 40
                and total / size <= mean <= (total + size - known) / size
            )
            low, high = found.low[t - 1], found.high[t - 1]
            # A refuted mean is inside by the rounding to the grid at most.
            assert low <= mean <= high if left else not low + 0.001 < mean < high - 0.001


def test_running_intersection_is_the_running_extreme_of_the_plain_bounds():
    outcomes = np.concatenate([draws(100, 0.5), draws(200, 0.3, seed=1)])
    for function in (betting_confidence_sequence, empirical_bernstein_sequence):
        plain = function(outcomes, running_intersection=False)
        running = function(outcomes)
        np.testing.assert_allclose(running.low, np.maximum.accumulate(plain.low))
        np.testing.assert_allclose(running.high, np.minimum.accumulate(plain.high))


@BOTH
def test_mirrored_outcomes_have_mirrored_intervals(function):
    outcomes = np.random.default_rng(3).beta(1, 5, 100)
    one, other = function(outcomes), function(1 - outcomes)
    np.testing.assert_allclose(one.low, 1 - other.high, atol=1e-12)
    np.testing.assert_allclose(one.high, 1 - other.low, atol=1e-12)


@BOTH
@pytest.mark.parametrize("value", [0, 1])
def test_constant_outcomes_never_give_an_interval_of_width_zero(function, value):
    found = function([value] * 500)
    assert (found.high - found.low).min() > 0.001
    assert found.low[-1] <= value <= found.high[-1]


@BOTH
@pytest.mark.parametrize("harmed", [0, 7, 50])
def test_a_fully_seen_population_leaves_its_mean(function, harmed):
    outcomes = np.random.default_rng(5).permutation(np.repeat([1.0, 0.0], [harmed, 50 - harmed]))
    found = function(outcomes, population=50)
    assert found.low[-1] == pytest.approx(harmed / 50)
    assert found.high[-1] == pytest.approx(harmed / 50)
    assert (found.high >= found.low).all()


@BOTH
def test_intervals_are_undefined_once_no_mean_is_left(function):
    found = function(np.repeat([0.0, 1.0], 400))
    empty = np.isnan(found.low)
    assert not empty[:400].any()
    assert empty[-1]
    assert (np.diff(empty.astype(int)) >= 0).all()
    np.testing.assert_array_equal(empty, np.isnan(found.high))
    assert not np.isnan(function(np.repeat([0.0, 1.0], 400), running_intersection=False).low).any()


def test_booleans_and_a_single_outcome():
    found = betting_confidence_sequence([True])
    assert found.estimate.tolist() == [1.0]
    assert found.low[0] < 0.05
    assert found.high[0] == 1


def test_the_mixture_needs_fewer_outcomes_to_see_a_rare_rate_rise():
    outcomes = draws(2000, 0.01, seed=2)
    mixture = betting_confidence_sequence(outcomes).low
    plug_in = betting_confidence_sequence(outcomes, bets="plug_in").low
    assert np.argmax(mixture > 0.001) < np.argmax(plug_in > 0.001)


@BOTH
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"outcomes": []}, "outcomes='an empty array' has no outcome; pass one"),
        (
            {"outcomes": [0.5, 1.5]},
            r"outcomes=1.5 is outside \[0, 1\] or undefined at position 1; leave it out",
        ),
        ({"outcomes": [-0.1]}, r"outcomes=-0.1 is outside \[0, 1\]"),
        ({"outcomes": [0, math.nan]}, r"outcomes=nan is outside \[0, 1\] or undefined at position 1"),
        ({"outcomes": [None]}, r"outcomes=nan is outside \[0, 1\]"),
        ({"outcomes": ["a"]}, "outcomes='list' does not hold numbers; pass numbers in"),
        ({"outcomes": [[0, 1]]}, r"outcomes='array of shape \(1, 2\)' is not one-dimensional; flatten it"),
        ({"outcomes": [0, 1, 0], "population": 2}, "population=2 is below the 3 outcomes seen; raise it"),
        ({"population": 0}, "population=0 is not a whole number >= 1; pass the size or None"),
        ({"population": 9.5}, "population=9.5 is not a whole number"),
        ({"population": True}, "population=True is not a whole number"),
        ({"level": 1}, r"level=1 is not in \(0, 1\); pass a level such as 0.95"),
        ({"level": math.nan}, r"level=nan is not in \(0, 1\)"),
        ({"level": "95%"}, r"level='95%' is not in \(0, 1\)"),
    ],
)
def test_bad_input(function, arguments, message):
    with pytest.raises(InputError, match=f"{function.__name__}: {message}"):
        function(**{"outcomes": [0, 1]} | arguments)


def test_unknown_bets_and_a_coarse_grid():
    with pytest.raises(InputError, match=r"bets='mixtur' is unknown; did you mean 'mixture'\?"):
        betting_confidence_sequence([0], bets="mixtur")
    with pytest.raises(InputError, match="candidates=9 is below 10; pass 2000"):
        betting_confidence_sequence([0], candidates=9)
