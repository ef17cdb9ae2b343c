"""Conditional Poisson, Sampford and systematic designs by enumerating their samples."""

import itertools
import re

import numpy as np
import pytest

from kvstats.errors import InputError
from kvstats.statistics.allocation import proportional_inclusion
from kvstats.statistics.designs import ConditionalPoisson, Sampford, SystematicPPS
from kvstats.statistics.designs.sequential import SampleSums

PROBABILITIES = [
    [0.3, 0.7],
    [0.2, 0.5, 0.5, 0.8],
    [0.5] * 8,
    [1.0, 0.25, 1.0, 0.75, 0.4, 0.6],
    [0.98, 0.01, 0.01],
    [1e-6, 1 - 1e-6, 0.5, 0.5],
    (np.arange(1, 13) * 5 / 78).tolist(),
    proportional_inclusion(np.random.default_rng(0).gamma(0.3, size=12), 4.0).tolist(),
    [1.0, 1.0],
    [1.0],
]


def subsets(n, m):
    for members in itertools.combinations(range(n), m):
        mask = np.zeros(n, dtype=bool)
        mask[list(members)] = True
        yield mask


def joint_of(samples, weights):
    samples, weights = np.array(samples, dtype=float), np.array(weights)
    return samples.T @ (weights[:, None] / weights.sum() * samples)


def sampford_weight(pi, sample):
    """Return the textbook weight of a sample, with units of probability 1 in every sample."""
    free = pi < 1
    if not sample[~free].all():
        return 0.0
    if not free.any():
        return 1.0
    inside = sample & free
    return (1 - pi[inside]).sum() * np.prod(pi[inside] / (1 - pi[inside]))


@pytest.mark.parametrize("pi", PROBABILITIES, ids=len)
def test_sampford_by_enumeration(pi):
    pi = np.array(pi)
    samples = list(subsets(pi.size, round(pi.sum())))
    expected = joint_of(samples, [sampford_weight(pi, sample) for sample in samples])
    np.testing.assert_allclose(np.diag(expected), pi, rtol=1e-9)
    np.testing.assert_allclose(Sampford(pi).joint_inclusion_probability, expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("pi", PROBABILITIES, ids=len)
def test_conditional_poisson_by_enumeration(pi):
    """The working odds come from the design's own sums; the enumeration judges all that follows from them."""
    pi = np.array(pi)
    design = ConditionalPoisson(pi)
    free = pi < 1
    odds = design._sums._include / design._sums._exclude
    samples = [s for s in subsets(pi.size, round(pi.sum())) if s[~free].all()]
    expected = joint_of(samples, [np.prod(odds[sample[free]]) for sample in samples])
    np.testing.assert_allclose(np.diag(expected), pi, rtol=2e-12)
    np.testing.assert_allclose(design.joint_inclusion_probability, expected, rtol=1e-11, atol=1e-15)


def test_conditional_poisson_has_the_largest_entropy():
    pi = np.array([0.2, 0.5, 0.5, 0.8])
    samples = list(subsets(4, 2))
    design = ConditionalPoisson(pi)
    odds = design._sums._include / design._sums._exclude
    p = np.array([np.prod(odds[sample]) for sample in samples])
    p /= p.sum()
    # The samples' probabilities may move along the null space of the inclusion probabilities.
    constraints = np.array([*np.array(samples, dtype=float).T, np.ones(len(samples))])
    _, sizes, vectors = np.linalg.svd(constraints)
    directions = vectors[(sizes > 1e-10).sum() :]
    assert len(directions) == 2
    for direction in directions:
        for step in (-0.01, 0.01):
            other = p + step * direction
            assert -(other * np.log(other)).sum() < -(p * np.log(p)).sum() - 1e-6


def sampford_formula(pi, m):
    """Return the joint probabilities by the formula of Sampford (1967), with its K, L and lambda."""
    odds = pi / m / (1 - pi)

    def sums_of_products(excluded):
        """Return, at position t, the sum over all sets of t other units of the product of their odds."""
        return np.poly(-np.delete(odds, excluded))

    whole = sums_of_products([])
    scale = 1 / sum(t * whole[m - t] / m**t for t in range(1, m + 1))
    joint = np.diag(pi)
    for i, j in itertools.combinations(range(pi.size), 2):
        rest = sums_of_products([i, j])
        total = sum((t - pi[i] - pi[j]) * rest[m - t] / m ** (t - 2) for t in range(2, m + 1))
        joint[i, j] = joint[j, i] = scale * odds[i] * odds[j] * total
    return joint


@pytest.mark.parametrize("pi", [PROBABILITIES[1], PROBABILITIES[2], PROBABILITIES[6]], ids=len)
def test_sampford_by_his_formula(pi):
    pi = np.array(pi)
    expected = sampford_formula(pi, round(pi.sum()))
    np.testing.assert_allclose(Sampford(pi).joint_inclusion_probability, expected, rtol=1e-9)


@pytest.mark.parametrize("design", [ConditionalPoisson, Sampford])
@pytest.mark.parametrize(("n", "m"), [(60, 20), (300, 200)])
def test_large_designs_keep_the_identities_of_a_fixed_size(design, n, m):
    pi = proportional_inclusion(np.random.default_rng(n).gamma(0.4, size=n), float(m))
    assert (pi == 1).any()
    joint = design(pi).joint_inclusion_probability
    np.testing.assert_allclose(joint.sum(axis=1), m * pi, rtol=1e-10)
    np.testing.assert_array_equal(joint, joint.T)
    np.testing.assert_array_equal(np.diag(joint), design(pi).inclusion_probability)
    np.testing.assert_allclose(np.diag(joint), pi, rtol=1e-12)
    assert (joint > 0).all()
    assert (joint <= np.outer(pi, pi) * (1 + 1e-10))[~np.eye(n, dtype=bool)].all()


@pytest.mark.parametrize("design", [ConditionalPoisson, Sampford])
def test_own_probabilities_come_from_the_sums(design):
    """The diagonal of the sums' own joint probabilities is what the public one replaces."""
    pi = np.arange(1, 21) * 8 / 210
    np.testing.assert_allclose(np.diag(design(pi)._sums.joint()), pi, rtol=2e-12)


@pytest.mark.parametrize("design", [ConditionalPoisson, Sampford, SystematicPPS])
@pytest.mark.parametrize("pi", [PROBABILITIES[1], PROBABILITIES[3]], ids=len)
def test_samples_have_fixed_size_and_the_given_probabilities(design, pi):
    rng = np.random.default_rng(1)
    made = design(pi)
    assert made.sample(rng).dtype == np.bool_
    draws = np.array([made.sample(rng) for _ in range(8000)], dtype=float)
    assert (draws.sum(axis=1) == round(sum(pi))).all()
    assert (draws[:, np.array(pi) == 1] == 1).all()
    frequency = draws.T @ draws / len(draws)
    expected = np.diag(pi) if design is SystematicPPS else made.joint_inclusion_probability
    compared = np.diag_indices(len(pi)) if design is SystematicPPS else np.indices(expected.shape)
    error = np.sqrt(expected * (1 - expected) / len(draws))
    assert (np.abs(frequency - expected) <= 4.5 * error + 1e-12)[tuple(compared)].all()


@pytest.mark.parametrize("design", [ConditionalPoisson, Sampford])
def test_whole_samples_occur_as_often_as_they_should(design):
    pi = np.array([0.2, 0.5, 0.5, 0.8])
    made = design(pi)
    samples = list(subsets(4, 2))
    if design is Sampford:
        p = np.array([sampford_weight(pi, sample) for sample in samples])
    else:
        odds = made._sums._include / made._sums._exclude
        p = np.array([np.prod(odds[sample]) for sample in samples])
    p /= p.sum()
    rng = np.random.default_rng(2)
    draws = [tuple(made.sample(rng)) for _ in range(12000)]
    counts = np.array([draws.count(tuple(sample)) for sample in samples])
    statistic = ((counts - 12000 * p) ** 2 / (12000 * p)).sum()
    assert statistic < 20.5  # 0.999 quantile of chi-square with 5 degrees of freedom


def test_sums_are_those_over_all_samples_for_any_weights():
    random = np.random.default_rng(4)
    p, q, c = random.uniform(0.1, 2, size=(3, 6))
    samples = list(subsets(6, 3))
    for mark in (None, c):
        weights = []
        for s in samples:
            product = np.prod(np.where(s, p, q))
            weights.append(product if mark is None else product * (mark[s] / p[s]).sum())
        expected = joint_of(samples, weights)
        sums = SampleSums(p, q, 3, mark)
        np.testing.assert_allclose(sums.joint(), expected, rtol=1e-13)
        inside, outside = sums.inclusion()
        np.testing.assert_allclose(inside, np.diag(expected), rtol=1e-13)
        np.testing.assert_allclose(outside, 1 - np.diag(expected), rtol=1e-12)


def test_small_rounding_of_the_sum_is_taken_up():
    pi = np.array([0.2, 0.5, 0.5, 0.8]) * (1 + 1e-11)
    design = ConditionalPoisson(pi)
    assert design.inclusion_probability.sum() == pytest.approx(2, abs=1e-15)
    assert design.sample_size == 2


def test_systematic_draws_where_the_points_fall():
    design = SystematicPPS([0.2, 0.5, 0.3, 0.6, 0.4])
    for start, members in [(0.0, [0, 3]), (0.1, [0, 3]), (0.2, [1, 3]), (0.65, [1, 4]), (0.7, [2, 4])]:
        assert np.flatnonzero(design._drawn_from(start)).tolist() == members


def test_systematic_has_no_unbiased_variance():
    message = (
        "SystematicPPS.joint_inclusion_probability: 6 of 10 pairs of units are never drawn together, "
        "so that no unbiased estimator of the variance exists; draw by ConditionalPoisson or Sampford"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        _ = SystematicPPS([0.2, 0.5, 0.3, 0.6, 0.4]).joint_inclusion_probability


def test_systematic_joint_probabilities_where_every_pair_can_be_drawn():
    joint = SystematicPPS([2 / 3] * 3).joint_inclusion_probability
    np.testing.assert_allclose(joint, np.full((3, 3), 1 / 3) + np.eye(3) / 3, rtol=1e-12)
    certain = SystematicPPS([1.0, 0.5, 1.0, 0.5]).inclusion_probability
    np.testing.assert_array_equal(certain, [1.0, 0.5, 1.0, 0.5])
    np.testing.assert_array_equal(SystematicPPS([1.0, 1.0]).joint_inclusion_probability, np.ones((2, 2)))


@pytest.mark.parametrize("design", [ConditionalPoisson, Sampford, SystematicPPS])
@pytest.mark.parametrize(
    ("pi", "message"),
    [
        (
            [0.5, 0.7],
            "inclusion_probability='array of sum 1.2' does not sum to a whole sample size; use prop",
        ),
        ([1e-3], "inclusion_probability='array of sum 0.001' does not sum to a whole sample size"),
        ([1.0, 1e-12], "does not sum to a whole sample size"),
        ([0.5, 1.5], "inclusion_probability=1.5 is not in (0, 1], at unit 1; give each unit a chance"),
        ([1.0, 0.0], "inclusion_probability=0.0 is not in (0, 1], at unit 1"),
        ([], "inclusion_probability='an empty array' has no units"),
    ],
)
def test_bad_input(design, pi, message):
    with pytest.raises(InputError, match=re.escape(f"{design.__name__}: ") + ".*" + re.escape(message)):
        design(pi)
