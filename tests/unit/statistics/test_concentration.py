"""Concentration inequalities against their equations, exact failure probabilities, and bad input."""

import math

import numpy as np
import pytest
import torch
from scipy import optimize, stats

from kvstats.errors import InputError
from kvstats.statistics.concentration import (
    bernstein_radius,
    variance_upper_bound,
)


@pytest.mark.parametrize("delta", [0.001, 0.1, 0.9])
@pytest.mark.parametrize(("variance", "largest"), [(1.0, 0.0), (0.0, 2.0), (0.3, 0.7), (1e-8, 1e-6)])
def test_bernstein_radius_solves_pinelis_equation(variance, largest, delta):
    r = bernstein_radius(variance, largest, delta=delta)
    assert 2 * math.exp(-(r**2) / (2 * (variance + largest * r / 3))) == pytest.approx(delta)


def test_bernstein_radius_at_the_ends():
    assert bernstein_radius(0, 0, delta=0.1) == 0
    assert bernstein_radius(math.inf, 1.0, delta=0.1) == math.inf


@pytest.mark.parametrize(
    ("estimate", "largest", "delta"), [(2.0, 0.5, 0.1), (0.0, 1.0, 0.01), (5.0, 0.0, 0.3)]
)
def test_variance_upper_bound_solves_its_equation(estimate, largest, delta):
    found = variance_upper_bound(estimate, largest, delta=delta)

    def excess(variance):
        return variance - estimate - math.sqrt(2 * largest * variance * math.log(1 / delta))

    assert excess(found) == pytest.approx(0, abs=1e-12)
    if largest:
        start = largest * math.log(1 / delta) / 2
        assert found == pytest.approx(optimize.brentq(excess, start, 1e3))


def test_variance_upper_bound_fails_no_more_often_than_it_says():
    """Exact for a binomial sum: all counts, all probabilities of a grid."""
    counts = np.arange(31)
    for delta in (0.05, 0.3):
        bound = variance_upper_bound(counts.astype(float), 1.0, delta=delta)
        for p in np.linspace(0.01, 0.99, 50):
            assert stats.binom.pmf(counts, 30, p)[bound < 30 * p].sum() <= delta


def test_arrays_of_both_kinds():
    variance, largest = np.array([[0.5, 2.0]]), np.array([[1.0], [0.1]])
    for function in (bernstein_radius, variance_upper_bound):
        wanted = [[function(v, b, delta=0.1) for v in (0.5, 2.0)] for b in (1.0, 0.1)]
        np.testing.assert_allclose(function(variance, largest, delta=0.1), wanted)
        found = function(torch.from_numpy(variance), torch.from_numpy(largest), delta=0.1)
        np.testing.assert_allclose(found.numpy(), wanted)
        np.testing.assert_allclose(function(0.5, torch.from_numpy(largest), delta=0.1)[0, 0], wanted[0][0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: bernstein_radius(-1, 1, delta=0.1),
            "bernstein_radius: variance=-1 is negative or undefined",
        ),
        (
            lambda: bernstein_radius(np.array([1, math.nan]), 1, delta=0.1),
            "bernstein_radius: variance='an array' is negative or undefined; pass numbers >= 0",
        ),
        (lambda: bernstein_radius(1, math.nan, delta=0.1), "bernstein_radius: largest=nan is negative"),
        (lambda: bernstein_radius(1, 1, delta=1), r"bernstein_radius: delta=1 is not in \(0, 1\); pass a"),
        (lambda: bernstein_radius(1, 1, delta=math.nan), "delta=nan is not in"),
        (lambda: variance_upper_bound(-1, 1, delta=0.1), "variance_upper_bound: estimate=-1 is negative"),
        (lambda: variance_upper_bound(1, -1, delta=0.1), "variance_upper_bound: largest=-1 is negative"),
        (lambda: variance_upper_bound(1, 1, delta=0), "variance_upper_bound: delta=0 is not in"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
