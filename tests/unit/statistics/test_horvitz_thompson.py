"""Horvitz-Thompson totals and means: values, undefined cases and bad input."""

import math
import re

import numpy as np
import pytest
import torch

from kvstats.errors import InputError
from kvstats.statistics.designs import ConditionalPoisson
from kvstats.statistics.horvitz_thompson import horvitz_thompson_mean, horvitz_thompson_total
from kvstats.statistics.survey_sample import SurveySample

PI = np.array([0.9, 0.5, 0.3, 0.8, 1.0])
Y = np.array([1.0, -2.0, 4.0, 0.0, 3.0])


def test_total_is_the_weighted_sum():
    found = horvitz_thompson_total(Y, SurveySample(PI))
    assert found.estimate == pytest.approx(1 / 0.9 - 4 + 4 / 0.3 + 3, rel=1e-14)
    assert found.variance == pytest.approx(0.1 / 0.81 + 0.5 / 0.25 * 4 + 0.7 / 0.09 * 16, rel=1e-14)
    assert found.se == math.sqrt(found.variance)
    assert (found.n, found.df, found.status) == (5, 3, "ok")


def test_mean_is_the_total_over_the_known_size():
    sample = SurveySample(PI)
    total, mean = horvitz_thompson_total(Y, sample), horvitz_thompson_mean(Y, sample, 8)
    assert mean.estimate == pytest.approx(total.estimate / 8, rel=1e-14)
    assert mean.variance == pytest.approx(total.variance / 64, rel=1e-14)


def test_domains_count_other_units_as_zero():
    sample, domain = SurveySample(PI), np.array([True, False, True, False, True])
    found = horvitz_thompson_total(Y, sample, domain=domain)
    whole = horvitz_thompson_total(np.where(domain, Y, 0), sample)
    assert (found.estimate, found.variance) == (whole.estimate, whole.variance)
    assert (found.n, found.df, whole.n) == (3, 1, 5)
    mean = horvitz_thompson_mean(Y, sample, 4, domain=domain.tolist())
    assert mean.estimate == pytest.approx(found.estimate / 4, rel=1e-14)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_vectors_have_one_estimate_a_component_and_one_variance(kind):
    y = np.random.default_rng(0).normal(size=(5, 3))
    convert = np.asarray if kind == "numpy" else torch.as_tensor
    sample = SurveySample(convert(PI))
    found = horvitz_thompson_total(convert(y), sample)
    parts = [horvitz_thompson_total(convert(y[:, c]), sample) for c in range(3)]
    assert type(found.estimate) is type(convert(y))
    np.testing.assert_allclose(np.asarray(found.estimate), [part.estimate for part in parts], rtol=1e-13)
    assert found.variance == pytest.approx(sum(part.variance for part in parts), rel=1e-13)


def test_torch_single_precision_stays_single():
    sample = SurveySample(torch.tensor([0.9, 0.5, 0.3]))
    found = horvitz_thompson_total(torch.tensor([[1.0], [2.0], [3.0]]), sample)
    assert found.estimate.dtype == torch.float32
    assert float(found.estimate[0]) == pytest.approx(1 / 0.9 + 4 + 10, rel=1e-6)


def test_integers_and_booleans_are_numbers():
    sample = SurveySample(torch.tensor([0.5, 0.25], dtype=torch.float64))
    assert horvitz_thompson_total(torch.tensor([1, 2]), sample).estimate == 10
    assert horvitz_thompson_total(torch.tensor([True, False]), sample).estimate == 2
    assert horvitz_thompson_total([True, True], SurveySample([0.5, 0.25])).estimate == 6


def test_a_negative_variance_is_null_and_advises_syg():
    pi, joint = [0.5, 0.5], [[0.5, 0.1], [0.1, 0.5]]
    found = horvitz_thompson_total([2.0, 2.0], SurveySample(pi, joint, "ht"))
    assert (found.variance, found.se, found.df) == (None, None, None)
    assert found.status == "negative variance: use syg"
    assert found.estimate == 8
    assert found.interval() is None


def test_a_negative_syg_variance_is_null_without_that_advice():
    joint = [[0.5, 0.4], [0.4, 0.5]]
    found = horvitz_thompson_total([2.0, 3.0], SurveySample([0.5, 0.5], joint))
    assert (found.variance, found.status) == (None, "negative variance")


def test_no_unit_gives_the_empty_sum_without_variance():
    for found in (
        horvitz_thompson_total([], SurveySample([])),
        horvitz_thompson_total(Y, SurveySample(PI), domain=[False] * 5),
    ):
        assert (found.estimate, found.variance, found.n, found.status) == (0.0, None, 0, "no units")


def test_certain_units_alone_do_not_tell_a_census_from_bad_luck():
    found = horvitz_thompson_total([1.0, 2.0], SurveySample([1.0, 1.0]))
    assert (found.estimate, found.variance, found.se, found.df) == (3.0, None, None, None)
    assert found.status == "only certain units"


def test_one_unit():
    """Poisson sampling estimates a variance from one unit, a design of fixed size cannot."""
    poisson = horvitz_thompson_total([3.0], SurveySample([0.5]))
    assert (poisson.variance, poisson.df, poisson.status) == (18.0, 0, "ok")
    assert poisson.interval() is None
    fixed = horvitz_thompson_total([3.0], SurveySample([0.5], [[0.5]]))
    assert (fixed.variance, fixed.status) == (None, "one unit")


def test_values_proportional_to_the_probabilities_are_no_certainty():
    design = ConditionalPoisson(np.arange(1, 11) * 5 / 55)
    sample = SurveySample.drawn(design, np.arange(10) >= 5)
    found = horvitz_thompson_total(0.1 * sample.inclusion_probability, sample)
    assert found.estimate == pytest.approx(0.5)
    assert (found.variance, found.status) == (None, "zero variance")


def test_rounding_is_no_variance_of_the_ht_form():
    """The terms 0.5 a^2 + 0.5 a^2 - a^2 cancel but for rounding, of either sign."""
    joint = [[0.5, 1 / 6], [1 / 6, 0.5]]
    sample = SurveySample([0.5, 0.5], joint, "ht")
    for y in (0.1, 0.3, 0.7, 1.1):
        found = horvitz_thompson_total([y, y], sample)
        assert (found.variance, found.status) == (None, "zero variance")


def test_zeros_have_no_variance():
    found = horvitz_thompson_total(np.zeros(5), SurveySample(PI))
    assert (found.estimate, found.variance, found.status) == (0.0, None, "zero variance")


def test_the_interval_is_students():
    found = horvitz_thompson_total(Y, SurveySample(PI))
    low, high = found.interval(0.9)
    assert (low + high) / 2 == pytest.approx(found.estimate, rel=1e-13)
    assert (high - low) / 2 == pytest.approx(2.353363434801823 * found.se, rel=1e-12)  # t(0.95, 3)


@pytest.mark.parametrize("level", [0, 1, 1.5, math.nan])
def test_levels_out_of_range_are_refused(level):
    found = horvitz_thompson_total(Y, SurveySample(PI))
    message = f"SurveyEstimate.interval: level={level!r} is not in (0, 1); pass 0.95"
    with pytest.raises(InputError, match=re.escape(message)):
        found.interval(level)


def test_vectors_have_no_interval():
    found = horvitz_thompson_total(np.eye(5), SurveySample(PI))
    with pytest.raises(InputError, match="interval: the estimate is a vector; use its se, or one component"):
        found.interval()


@pytest.mark.parametrize(
    ("y", "domain", "message"),
    [
        ([1.0], None, "y='array of shape (1,)' does not fit 5 sampled units; pass one value, or one row"),
        (1.0, None, "y='array of shape ()' does not fit 5 sampled units"),
        ([1.0, 2.0, np.nan, 4.0, 5.0], None, "y='an array' is not finite; leave units without a value out"),
        ([1.0, 2.0, np.inf, 4.0, 5.0], None, "y='an array' is not finite"),
        (torch.ones(5), None, "y='a torch array' is not of the sample's kind; convert one"),
        (Y, [True, False], "domain='bool array of shape (2,)' is no mask of 5 sampled units; pass True or"),
        (Y, [1, 0, 1, 0, 1], "domain='int64 array of shape (5,)' is no mask of 5 sampled units"),
    ],
)
def test_bad_columns(y, domain, message):
    for name, call in (
        ("horvitz_thompson_total", lambda: horvitz_thompson_total(y, SurveySample(PI), domain=domain)),
        ("horvitz_thompson_mean", lambda: horvitz_thompson_mean(y, SurveySample(PI), 8, domain=domain)),
    ):
        with pytest.raises(InputError, match=re.escape(f"{name}: {message}")):
            call()


@pytest.mark.parametrize("size", [0, -1, math.nan, math.inf, True, "8"])
def test_bad_sizes(size):
    message = f"horvitz_thompson_mean: population_size={size!r} is not a number of units; pass the known size"
    with pytest.raises(InputError, match=re.escape(message)):
        horvitz_thompson_mean(Y, SurveySample(PI), size)
