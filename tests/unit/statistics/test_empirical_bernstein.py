"""Spheres against their formula in a loop, their supermartingale by enumeration, and bad input."""

import itertools
import math

import numpy as np
import pytest
import torch

from kvstats.errors import InputError
from kvstats.statistics.concentration import bernstein_radius
from kvstats.statistics.empirical_bernstein import empirical_bernstein_spheres, psi_exponential


def test_psi_exponential_bounds_the_exponential():
    bets, xi = np.meshgrid(np.linspace(0, 0.99, 34), np.linspace(-1, 3, 101))
    assert (np.exp(bets * xi - psi_exponential(bets) * xi**2) <= 1 + bets * xi + 1e-12).all()
    np.testing.assert_allclose(psi_exponential(torch.tensor([0.5])).numpy(), psi_exponential(0.5), rtol=1e-6)


def test_the_spheres_supermartingale_by_enumeration():
    """Vectors of three values in the plane: the mean of cosh|S| exp(-sum psi |xi|^2) never rises above 1."""
    support = np.array([[0.5, 0.0], [-0.3, 0.4], [-0.1, -0.45]])
    probability = np.array([0.2, 0.3, 0.5])
    mean = probability @ support
    for bets in ([0.9, 0.9, 0.9, 0.9], [0.99, 0.05, 0.5, 0.7]):
        expected = np.zeros(4)
        for picks in itertools.product(range(3), repeat=4):
            weight, total, price = 1.0, np.zeros(2), 0.0
            for step, pick in enumerate(picks):
                centre = support[list(picks[:step])].sum(axis=0) / (step + 1)
                weight *= probability[pick]
                total = total + bets[step] * (support[pick] - mean)
                price += psi_exponential(bets[step]) * ((support[pick] - centre) ** 2).sum()
                share = 3.0 ** -(3 - step)
                expected[step] += (
                    probability[list(picks[: step + 1])].prod()
                    * share
                    * (np.cosh(np.linalg.norm(total)) * np.exp(-price))
                )
        assert (np.diff(np.concatenate([[1.0], expected])) <= 1e-12).all()


def spheres_in_a_loop(vectors, bound, delta, horizon=None):
    scaled = vectors / (2 * bound)
    found, weighted, total, price = [], 0.0, 0.0, 0.0
    for t in range(1, len(scaled) + 1):
        means = [scaled[:i].sum(axis=0) / (i + 1) for i in range(t)]
        spread = (0.25 + sum(((scaled[i] - means[i + 1]) ** 2).sum() for i in range(t - 1))) / t
        clock = t * math.log(1 + t) if horizon is None else horizon
        bet = min(0.5, math.sqrt(2 * math.log(2 / delta) / (spread * clock)))
        weighted, total = weighted + bet * vectors[t - 1], total + bet
        price += psi_exponential(bet) * ((scaled[t - 1] - means[-1]) ** 2).sum()
        found.append((weighted / total, 2 * bound * (math.log(2 / delta) + price) / total))
    return np.array([c for c, _ in found]), np.array([r for _, r in found])


@pytest.mark.parametrize("horizon", [None, 30])
def test_spheres_equal_their_formula_on_both_kinds_of_array(horizon):
    vectors = np.random.default_rng(0).uniform(-1, 1, size=(30, 3))
    centre, radius = spheres_in_a_loop(vectors, 2.0, 0.1, horizon)
    for data in (vectors, torch.from_numpy(vectors)):
        found = empirical_bernstein_spheres(data, bound=2.0, delta=0.1, horizon=horizon)
        np.testing.assert_allclose(np.asarray(found.centre), centre, rtol=1e-10)
        np.testing.assert_allclose(np.asarray(found.radius), radius, rtol=1e-10)


def test_spheres_do_not_depend_on_the_dimension_or_the_units():
    line = np.random.default_rng(1).uniform(-1, 1, size=(50, 1))
    space = np.concatenate([line, np.zeros((50, 9))], axis=1)
    np.testing.assert_allclose(
        empirical_bernstein_spheres(space, bound=1.0).radius,
        empirical_bernstein_spheres(line, bound=1.0).radius,
    )
    np.testing.assert_allclose(
        empirical_bernstein_spheres(7 * line, bound=7.0).radius,
        7 * empirical_bernstein_spheres(line, bound=1.0).radius,
    )


def test_the_width_approaches_that_of_bernstein_with_the_variance_known():
    vectors = np.random.default_rng(2).choice([-1.0, 1.0], size=(40_000, 1))
    radius = empirical_bernstein_spheres(vectors, bound=1.0, delta=0.05, horizon=40_000).radius[-1]
    assert radius / (bernstein_radius(40_000.0, 2.0, delta=0.05) / 40_000) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: empirical_bernstein_spheres(np.zeros(3), bound=1.0),
            r"vectors='array of shape \(3,\)' is not of shape \(n, d\)",
        ),
        (
            lambda: empirical_bernstein_spheres(np.zeros((0, 3)), bound=1.0),
            r"vectors='array of shape \(0, 3\)' is not of shape \(n, d\)",
        ),
        (
            lambda: empirical_bernstein_spheres(np.array([[math.nan]]), bound=1.0),
            "vectors='an array' holds undefined values",
        ),
        (
            lambda: empirical_bernstein_spheres(np.array([[2.0]]), bound=1.0),
            "vectors='an array' is longer than the bound 1.0; raise it",
        ),
        (
            lambda: empirical_bernstein_spheres(np.zeros((1, 1)), bound=0.0),
            "bound=0.0 is not above 0 and finite",
        ),
        (lambda: empirical_bernstein_spheres(np.zeros((1, 1)), bound=math.inf), "bound=inf is not above 0"),
        (
            lambda: empirical_bernstein_spheres(np.zeros((1, 1)), bound=1.0, horizon=0),
            "empirical_bernstein_spheres: horizon=0 is below 1",
        ),
        (lambda: empirical_bernstein_spheres(np.zeros((1, 1)), bound=1.0, delta=2), "delta=2 is not in"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
