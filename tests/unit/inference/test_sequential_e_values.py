"""E-values against products in loops and exact expectations, and bad input."""

import itertools
import math

import numpy as np
import pytest

from kvstats.errors import InputError
from kvstats.inference.sequential import (
    average_e_value,
    first_crossing,
    mean_e_process,
    ville_threshold,
)
from kvstats.inference.sequential.capital import FRACTIONS


@pytest.mark.parametrize("mean", [0.02, 0.1, 0.5, 1.0])
def test_mixture_equals_the_average_of_products(mean):
    outcomes = np.random.default_rng(0).beta(1, 4, 200)
    found = mean_e_process(outcomes, mean)
    products = [np.cumprod([1 + f * (x / mean - 1) for x in outcomes]) for f in FRACTIONS]
    np.testing.assert_allclose(found, np.mean(products, axis=0), rtol=1e-10)


@pytest.mark.parametrize("bets", ["mixture", "plug_in"])
@pytest.mark.parametrize("alternative", ["greater", "less"])
@pytest.mark.parametrize("mean", [0.05, 0.5, 0.8])
def test_expectation_is_one_at_the_hypothetical_mean(bets, alternative, mean):
    total = 0.0
    for outcomes in itertools.product([0, 1], repeat=7):
        probability = math.prod(mean if x else 1 - mean for x in outcomes)
        total += probability * mean_e_process(outcomes, mean, alternative=alternative, bets=bets)[-1]
    assert total == pytest.approx(1)


@pytest.mark.parametrize("bets", ["mixture", "plug_in"])
@pytest.mark.parametrize("alternative", ["greater", "less"])
@pytest.mark.parametrize("harmed", [0, 1, 3])
def test_expectation_is_one_when_a_population_of_that_mean_is_sampled_in_random_order(
    bets, alternative, harmed
):
    units = [1] * harmed + [0] * (6 - harmed)
    orders = list(itertools.permutations(units))
    values = [
        mean_e_process(order, harmed / 6, alternative=alternative, population=6, bets=bets)
        for order in orders
    ]
    np.testing.assert_allclose(np.mean(values, axis=0), 1, rtol=1e-10)


def test_the_alternatives_are_mirror_images():
    outcomes = np.random.default_rng(1).random(50)
    np.testing.assert_allclose(
        mean_e_process(outcomes, 0.3, alternative="less"), mean_e_process(1 - outcomes, 0.7), rtol=1e-10
    )


def test_hypotheses_at_the_ends():
    assert mean_e_process([0, 0, 1, 0], 0).tolist() == [1, 1, math.inf, math.inf]
    assert mean_e_process([1, 1, 0, 1], 1, alternative="less").tolist() == [1, 1, math.inf, math.inf]
    assert (mean_e_process([1, 0.5, 0], 1) <= 1).all()


def test_a_population_that_is_impossible_has_infinite_evidence():
    assert mean_e_process([1, 1, 1], 0.2, population=10)[-1] == math.inf
    assert mean_e_process([0] * 9, 0.2, alternative="less", population=10)[-1] == math.inf
    assert mean_e_process([1, 1], 0.2, population=10)[-1] < math.inf


def test_a_long_run_stays_finite_or_becomes_infinite_in_silence():
    assert mean_e_process(np.zeros(100_000), 0.5)[-1] >= 0
    assert mean_e_process(np.ones(5000), 0.01)[-1] == math.inf


def test_average():
    values = np.array([[0.0, 2.0], [1.0, math.inf]])
    assert average_e_value(values).tolist() == [1.0, math.inf]
    assert average_e_value(values, axis=0).tolist() == [0.5, math.inf]


def test_threshold_and_crossing():
    assert ville_threshold(0.05) == pytest.approx(20)
    assert first_crossing([19.9, 20.1, 1.0], 0.05) == 2
    assert first_crossing([19.9], 0.05) is None
    assert first_crossing([], 0.05) is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean_e_process([0], 1.2), r"mean_e_process: mean=1.2 is not in \[0, 1\]; pass a rate"),
        (lambda: mean_e_process([0], math.nan), r"mean_e_process: mean=nan is not in \[0, 1\]"),
        (
            lambda: mean_e_process([0], 0.1, alternative="grater"),
            "mean_e_process: alternative='grater' is unknown; did you mean 'greater'?",
        ),
        (lambda: mean_e_process([], 0.1), "mean_e_process: outcomes='an empty array' has no outcome"),
        (lambda: mean_e_process([0], 0.1, delta=0), r"mean_e_process: delta=0 is not in \(0, 1\)"),
        (
            lambda: average_e_value([]),
            r"average_e_value: e_values='array of shape \(0,\)' is empty; pass some",
        ),
        (lambda: average_e_value(3.0), r"average_e_value: e_values='array of shape \(\)' is empty"),
        (lambda: average_e_value([1, -1]), "average_e_value: e_values=-1.0 is negative or undefined"),
        (lambda: first_crossing([math.nan], 0.1), "first_crossing: e_process=nan is negative or undefined"),
        (lambda: ville_threshold(1), r"ville_threshold: delta=1 is not in \(0, 1\)"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
