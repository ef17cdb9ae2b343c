"""Poisson, simple random and stratified designs by enumerating their samples."""

import itertools
import re

import numpy as np
import pytest

from kvstats.errors import InputError
from kvstats.statistics.designs import Poisson, SimpleRandom, Stratified


def masks(n, sizes=None):
    """Yield every sample of n units, or those of the given sizes."""
    for bits in itertools.product([False, True], repeat=n):
        if sizes is None or sum(bits) in sizes:
            yield np.array(bits)


def joint_of(samples, probabilities):
    samples = np.array(samples, dtype=float)
    return samples.T @ (np.array(probabilities)[:, None] * samples)


def test_poisson_probabilities_by_enumeration():
    pi = np.array([0.9, 0.2, 1.0, 0.5])
    samples = list(masks(4))
    weights = [np.prod(np.where(sample, pi, 1 - pi)) for sample in samples]
    design = Poisson(pi)
    np.testing.assert_allclose(design.joint_inclusion_probability, joint_of(samples, weights), atol=1e-15)
    np.testing.assert_array_equal(design.inclusion_probability, pi)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (4, 1), (5, 3), (6, 6)])
def test_simple_random_probabilities_by_enumeration(n, m):
    samples = list(masks(n, {m}))
    design = SimpleRandom(n, m)
    expected = joint_of(samples, np.full(len(samples), 1 / len(samples)))
    np.testing.assert_allclose(design.joint_inclusion_probability, expected, atol=1e-15)
    np.testing.assert_allclose(design.inclusion_probability, m / n)


def test_stratified_probabilities_by_enumeration():
    strata = np.array(["b", "a", "b", "a", "b", "c"])
    sizes = {"a": 1, "b": 2, "c": 1}
    samples = [s for s in masks(6) if all(s[strata == label].sum() == size for label, size in sizes.items())]
    design = Stratified(strata, sizes)
    expected = joint_of(samples, np.full(len(samples), 1 / len(samples)))
    np.testing.assert_allclose(design.joint_inclusion_probability, expected, atol=1e-15)
    np.testing.assert_allclose(design.inclusion_probability, np.diag(expected))


@pytest.mark.parametrize(
    "design",
    [
        Poisson([0.9, 0.2, 1.0, 0.5]),
        SimpleRandom(4, 2),
        Stratified([1, 1, 2, 2, 2], {1: 1, 2: 2}),
    ],
    ids=lambda design: type(design).__name__,
)
def test_samples_occur_as_often_as_the_probabilities_say(design):
    rng = np.random.default_rng(0)
    draws = np.array([design.sample(rng) for _ in range(8000)], dtype=float)
    joint = design.joint_inclusion_probability
    error = np.sqrt(joint * (1 - joint) / len(draws))
    assert (np.abs(draws.T @ draws / len(draws) - joint) <= 4.5 * error + 1e-12).all()


def test_samples_are_masks_set_by_the_generator():
    for design in (
        Poisson([0.5] * 9),
        SimpleRandom(9, 4),
        Stratified(list("aaabbbccc"), {"a": 1, "b": 2, "c": 1}),
    ):
        first, again = (design.sample(np.random.default_rng(3)) for _ in range(2))
        assert first.dtype == np.bool_
        assert first.shape == (9,)
        np.testing.assert_array_equal(first, again)


def test_the_callers_array_is_neither_kept_nor_changed():
    pi = np.array([0.5, 0.5])
    design = Poisson(pi)
    pi[0] = 0.9
    assert design.inclusion_probability[0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        design.inclusion_probability[0] = 0.1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Poisson([]),
            "Poisson: inclusion_probability='an empty array' has no units; pass at least one",
        ),
        (
            lambda: Poisson([0.5, 0.0]),
            "Poisson: inclusion_probability=0.0 is not in (0, 1], at unit 1; give each unit",
        ),
        (lambda: Poisson([1.1]), "Poisson: inclusion_probability=1.1 is not in (0, 1], at unit 0"),
        (lambda: Poisson([np.nan]), "Poisson: inclusion_probability=nan is not finite, at row 0"),
        (lambda: Poisson([[0.5]]), "Poisson: inclusion_probability='array of shape (1, 1)' is not a vector"),
        (lambda: SimpleRandom(0, 1), "SimpleRandom: population_size=0 has no units; pass at least 1"),
        (lambda: SimpleRandom(3, 0), "SimpleRandom: sample_size=0 is not in [1, 3], the number of units"),
        (lambda: SimpleRandom(3, 4), "SimpleRandom: sample_size=4 is not in [1, 3]"),
        (lambda: SimpleRandom(3, 1.5), "SimpleRandom: sample_size=1.5 is not an integer; pass a count"),
        (lambda: SimpleRandom(True, 1), "SimpleRandom: population_size=True is not an integer"),
        (lambda: Stratified([], {}), "Stratified: strata='array of shape (0,)' is not a vector with units"),
        (
            lambda: Stratified(["a", "b"], {"a": 1}),
            "Stratified: sample_sizes={'a': 1} and the strata do not match at 'b'",
        ),
        (lambda: Stratified(["a"], {"a": 1, "c": 1}), "do not match at 'c'; give a size to every stratum"),
        (
            lambda: Stratified(["a", "a"], {"a": 3}),
            "Stratified: sample_sizes['a']: SimpleRandom: sample_size=3 is not in [1, 2]",
        ),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(InputError, match=re.escape(message)):
        make()
