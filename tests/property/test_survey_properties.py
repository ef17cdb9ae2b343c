"""Identities of survey designs and estimators, by enumerating every sample of small populations."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kvstats.statistics.allocation import proportional_inclusion
from kvstats.statistics.design_variance import horvitz_thompson_form, poisson_form, sen_yates_grundy_form
from kvstats.statistics.designs import ConditionalPoisson, Poisson, Sampford, SimpleRandom, Stratified
from kvstats.statistics.hajek import hajek_mean, hajek_ratio
from kvstats.statistics.horvitz_thompson import horvitz_thompson_total
from kvstats.statistics.survey_difference import survey_difference
from kvstats.statistics.survey_sample import SurveySample

VALUES = st.floats(-10, 10).map(lambda value: round(value, 3))


def values(n, columns=None):
    return arrays.arrays(np.float64, n if columns is None else (n, columns), elements=VALUES)


@st.composite
def designs(draw):
    """Draw a design of a few units under which every pair can be drawn."""
    kind = draw(st.sampled_from([Poisson, SimpleRandom, Stratified, ConditionalPoisson, Sampford]))
    if kind is Poisson:
        return Poisson(draw(st.lists(st.floats(0.05, 1.0), min_size=1, max_size=6)))
    if kind is Stratified:
        return Stratified(list("aabbbccc"), {"a": 2, "b": draw(st.integers(2, 3)), "c": 2})
    n = draw(st.integers(3, 7))
    size = draw(st.integers(2, n - 1))
    if kind is SimpleRandom:
        return SimpleRandom(n, size)
    score = draw(st.lists(st.floats(0.1, 2.0), min_size=n, max_size=n))
    design = kind(proportional_inclusion(np.array(score), float(size)))
    assume((design.joint_inclusion_probability > 0).all())
    return design


def sample_weight(design, sample):
    """Return a number proportional to the probability of a sample, by the definition of its design."""
    pi = design.inclusion_probability
    free = pi < 1
    if not sample[~free].all():
        return 0.0
    if isinstance(design, Poisson):
        return float(np.prod(np.where(sample, pi, 1 - pi)))
    if isinstance(design, SimpleRandom):
        return float(sample.sum() == design.sample_size)
    if isinstance(design, Stratified):
        wanted = [round(pi[design.strata == label].sum()) for label in "abc"]
        return float(wanted == [sample[design.strata == label].sum() for label in "abc"])
    inside = sample & free
    if sample.sum() != design.sample_size:
        return 0.0
    if isinstance(design, Sampford):
        return float((1 - pi[inside]).sum() * np.prod(pi[inside] / (1 - pi[inside]))) if free.any() else 1.0
    odds = np.ones(pi.size)
    odds[free] = design._sums._include / design._sums._exclude
    return float(np.prod(odds[inside]))


def enumerated(design):
    """Return all samples that can be drawn, and their probabilities."""
    every = itertools.product([False, True], repeat=design.inclusion_probability.size)
    weighted = [(s, w) for s in map(np.array, every) if (w := sample_weight(design, s)) > 0]
    total = sum(weight for _, weight in weighted)
    return [(sample, weight / total) for sample, weight in weighted]


@given(designs(), st.data())
def test_horvitz_thompson_is_unbiased_and_so_are_its_variances(design, data):
    pi, joint = design.inclusion_probability, design.joint_inclusion_probability
    y = data.draw(values(pi.size))
    found = {"total": 0.0, "square": 0.0, "syg": 0.0, "ht": 0.0, "poisson": 0.0}
    for s, p in enumerated(design):
        pairs = joint[np.ix_(s, s)]
        estimate = horvitz_thompson_total(y[s], SurveySample(pi[s])).estimate
        found["total"] += p * estimate
        found["square"] += p * (estimate - y.sum()) ** 2
        found["syg"] += p * sen_yates_grundy_form(y[s], pi[s], pairs)
        found["ht"] += p * horvitz_thompson_form(y[s], pi[s], pairs)
        found["poisson"] += p * poisson_form(y[s], pi[s])
    assert found["total"] == pytest.approx(y.sum(), abs=1e-8)
    scale = (np.abs(y / pi).sum()) ** 2
    assert found["ht"] == pytest.approx(found["square"], abs=1e-9 * scale + 1e-12)
    own = "poisson" if isinstance(design, Poisson) else "syg"
    assert found[own] == pytest.approx(found["square"], abs=1e-9 * scale + 1e-12)


@given(designs(), st.data())
def test_vectors_of_any_design_are_unbiased_in_squared_norm(design, data):
    pi = design.inclusion_probability
    y = data.draw(values(pi.size, 2))
    mean, square, estimated = np.zeros(2), 0.0, 0.0
    for s, p in enumerated(design):
        if design.variance_form == "poisson":
            sample = SurveySample.drawn(design, s)
        else:
            sample = SurveySample(pi[s], design.joint_inclusion_probability[np.ix_(s, s)], "ht")
        estimate = horvitz_thompson_total(y[s], sample).estimate
        mean += p * estimate
        square += p * ((estimate - y.sum(axis=0)) ** 2).sum()
        estimated += p * sample.variance(y[s])
    np.testing.assert_allclose(mean, y.sum(axis=0), atol=1e-8)
    assert estimated == pytest.approx(square, abs=1e-9 * np.sum((y / pi[:, None]) ** 2) * pi.size + 1e-12)


@given(designs())
def test_inclusion_probabilities_are_those_of_the_samples(design):
    joint = sum(p * np.outer(s, s) for s, p in enumerated(design))
    np.testing.assert_allclose(design.joint_inclusion_probability, joint, rtol=1e-8, atol=1e-12)


@given(designs(), st.integers(0, 2**32 - 1))
def test_draws_are_samples_that_can_be_drawn(design, seed):
    assert sample_weight(design, design.sample(np.random.default_rng(seed))) > 0


@given(designs(), st.data())
def test_yates_grundy_is_not_negative_where_no_pair_is_favoured(design, data):
    pi, joint = design.inclusion_probability, design.joint_inclusion_probability
    apart = ~np.eye(pi.size, dtype=bool)
    assert (joint <= np.outer(pi, pi) * (1 + 1e-10))[apart].all()
    y = data.draw(values(pi.size))
    drawn = design.sample(np.random.default_rng(0))
    pairs = np.minimum(joint, np.outer(pi, pi) * apart + np.diag(pi))[np.ix_(drawn, drawn)]
    assert sen_yates_grundy_form(y[drawn], pi[drawn], pairs) >= 0


@st.composite
def samples(draw):
    """Draw a sample with the values of its units."""
    design = draw(designs())
    drawn = design.sample(np.random.default_rng(draw(st.integers(0, 1000))))
    assume(drawn.any())
    sample = SurveySample.drawn(design, drawn)
    return sample, draw(values(sample.size)), draw(values(sample.size))


def close(a, b, scale=1.0, shift=0.0):
    """Say whether a is scale * b + shift, with a variance of scale squared times that of b."""
    if a.estimate is None:
        return b.estimate is None and a.status == b.status
    same = a.estimate == pytest.approx(scale * b.estimate + shift, rel=1e-8, abs=1e-8)
    if a.variance is None or b.variance is None:
        return same and (a.variance or b.variance or 0.0) < 1e-16 * (1 + abs(shift)) ** 2
    return same and a.variance == pytest.approx(scale**2 * b.variance, rel=1e-6, abs=1e-12)


@given(samples(), st.floats(0.1, 10), st.floats(-100, 100))
def test_hajek_follows_shifts_and_scales_of_y(drawn, scale, shift):
    sample, y, _ = drawn
    assert close(hajek_mean(scale * y + shift, sample), hajek_mean(y, sample), scale, shift)


@given(samples(), st.floats(0.1, 10))
def test_means_and_ratios_do_not_feel_the_scale_of_the_weights(drawn, scale):
    sample, y, _ = drawn
    pi = sample.inclusion_probability
    thinner = SurveySample(pi * scale / 10.0)
    assert hajek_mean(y, thinner).estimate == pytest.approx(
        hajek_mean(y, SurveySample(pi)).estimate, abs=1e-9
    )


@given(samples(), st.randoms(use_true_random=False))
def test_the_order_of_units_does_not_matter(drawn, random):
    sample, y, x = drawn
    order = np.array(random.sample(range(sample.size), sample.size))
    joint = sample.joint_inclusion_probability
    other = SurveySample(
        sample.inclusion_probability[order],
        None if joint is None else joint[np.ix_(order, order)],
        sample.variance_form,
        None if sample.strata is None else sample.strata[order],
    )
    inside = np.arange(sample.size) % 2 == 0
    for estimator in (horvitz_thompson_total, hajek_mean):
        assert close(estimator(y[order], other), estimator(y, sample))
        assert close(estimator(y[order], other, domain=inside[order]), estimator(y, sample, domain=inside))
    positive = np.abs(x) + 1
    assert close(hajek_ratio(y[order], positive[order], other), hajek_ratio(y, positive, sample))
    assert hajek_mean(y[order], other).df == hajek_mean(y, sample).df


@given(samples())
def test_a_duplicated_row_is_a_row_of_double_weight(drawn):
    sample, y, x = drawn
    pi = sample.inclusion_probability
    doubled = SurveySample(np.append(pi, pi[0]))
    heavy = SurveySample(np.concatenate([[pi[0] / 2], pi[1:]]))
    positive = np.abs(x) + 1
    for estimator, columns in (
        (horvitz_thompson_total, (y,)),
        (hajek_mean, (y,)),
        (hajek_ratio, (y, positive)),
    ):
        twice = estimator(*(np.append(column, column[0]) for column in columns), doubled)
        assert twice.estimate == pytest.approx(estimator(*columns, heavy).estimate, rel=1e-9, abs=1e-9)


@given(samples())
def test_domains_add_up_to_the_population(drawn):
    sample, y, _ = drawn
    inside = y > 0
    parts = [horvitz_thompson_total(y, sample, domain=mask).estimate for mask in (inside, ~inside)]
    assert sum(parts) == pytest.approx(horvitz_thompson_total(y, sample).estimate, rel=1e-12, abs=1e-12)


@given(samples())
def test_a_difference_has_the_variance_of_the_differences(drawn):
    sample, y, x = drawn
    found = survey_difference(hajek_mean(y, sample), hajek_mean(x, sample))
    assert close(found, hajek_mean(y - x, sample))


@given(samples())
def test_numpy_and_torch_agree(drawn):
    sample, y, x = drawn
    joint = sample.joint_inclusion_probability
    other = SurveySample(
        torch.from_numpy(sample.inclusion_probability),
        None if joint is None else torch.from_numpy(joint),
        sample.variance_form,
        sample.strata,
    )
    ty, tx = torch.from_numpy(y), torch.from_numpy(np.abs(x) + 1)
    assert close(horvitz_thompson_total(ty, other), horvitz_thompson_total(y, sample))
    assert close(hajek_mean(ty, other, domain=ty > 0), hajek_mean(y, sample, domain=y > 0))
    assert close(hajek_ratio(ty, tx, other), hajek_ratio(y, np.abs(x) + 1, sample))


@given(st.integers(2, 40), st.floats(0.02, 0.98), st.integers(0, 2**32 - 1))
def test_conditional_poisson_meets_any_probabilities_exactly(n, share, seed):
    size = min(max(round(n * share), 1), n - 1)
    score = np.random.default_rng(seed).gamma(0.15, size=n) + 1e-12
    pi = proportional_inclusion(score, float(size))
    design = ConditionalPoisson(pi)
    inside, _ = design._sums.inclusion()
    np.testing.assert_allclose(inside, pi[pi < 1], rtol=2e-12, atol=1e-15)
    np.testing.assert_allclose(design.joint_inclusion_probability.sum(axis=1), size * pi, rtol=1e-9)


@given(designs(), st.data())
def test_the_interval_of_a_rate_holds_it_and_mirrors_with_the_outcome(design, data):
    n = design.inclusion_probability.size
    y = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    drawn = design.sample(np.random.default_rng(data.draw(st.integers(0, 2**32))))
    sample = SurveySample.drawn(design, drawn)
    rate, rest = hajek_mean(y[drawn], sample), hajek_mean(~y[drawn], sample)
    interval = rate.rate_interval()
    if interval is None:
        assert (sample.inclusion_probability == 1).all()
        return
    assert 0 <= interval[0] <= rate.estimate <= interval[1] <= 1
    assert interval[1] > interval[0]
    low, high = rest.rate_interval()
    assert interval == pytest.approx((1 - high, 1 - low), abs=1e-9)


@given(designs(), st.data())
def test_pairs_of_a_sample_are_those_of_the_whole_matrix(design, data):
    members = np.array(data.draw(st.permutations(range(design.inclusion_probability.size))))[:4]
    whole = design.joint_inclusion_probability
    np.testing.assert_array_equal(design.joint_of(members), whole[members][:, members])
    assert design.excluded_pairs == 0
