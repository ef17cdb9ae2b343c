"""The interval of a rate against beta quantiles, on both kinds of array, and where it is undefined."""

import math
import re

import numpy as np
import pytest
import torch
from scipy import stats

from kvstats.errors import InputError
from kvstats.statistics.designs import Stratified
from kvstats.statistics.hajek import hajek_mean, hajek_ratio
from kvstats.statistics.horvitz_thompson import horvitz_thompson_total
from kvstats.statistics.rate_interval import clopper_pearson_interval, effective_trials
from kvstats.statistics.survey_sample import SurveySample

PI = np.array([0.9, 0.5, 0.3, 0.8, 0.2, 0.6, 0.4, 0.7])
Y = np.array([1, 0, 1, 1, 0, 1, 0, 1])


def quantiles(p, n, level=0.95):
    tail = (1 - level) / 2
    low = stats.beta.ppf(tail, n * p, n * (1 - p) + 1) if p else 0.0
    return low, stats.beta.ppf(1 - tail, n * p + 1, n * (1 - p)) if p < 1 else 1.0


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize(("p", "n"), [(0.0, 7.5), (1.0, 3), (0.02, 50), (0.5, 2.2)])
def test_clopper_pearson_interval(p, n, level):
    low, high = clopper_pearson_interval(p, n, level)
    assert (float(low), float(high)) == pytest.approx(quantiles(p, n, level), rel=1e-9)


def test_effective_trials_are_at_most_the_units_and_fewer_with_few_degrees_of_freedom():
    assert effective_trials(0.2, 0.01, 100, 99, 0.95) == pytest.approx(100)
    assert effective_trials(0.2, 0.08, 100, 99, 0.95) == pytest.approx(25)
    ratio = stats.t.ppf(0.975, 99) / stats.t.ppf(0.975, 4)
    assert effective_trials(0.2, 0.08, 100, 4, 0.95) == pytest.approx(25 * ratio**2)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_a_rate_has_the_interval_of_its_effective_trials(level):
    sample = SurveySample(PI)
    found = hajek_mean(Y, sample)
    size = min(8, found.estimate * (1 - found.estimate) / found.variance)
    wanted = quantiles(found.estimate, size, level)
    assert found.rate_interval(level) == pytest.approx(wanted, rel=1e-9)
    tensor = hajek_mean(torch.from_numpy(Y), SurveySample(torch.from_numpy(PI)))
    assert tensor.rate_interval(level) == pytest.approx(wanted, rel=1e-9)
    single = hajek_mean(torch.from_numpy(Y), SurveySample(torch.from_numpy(PI).float()))
    assert single.rate_interval(level) == pytest.approx(wanted, rel=1e-4)


def test_a_domain_counts_its_own_units():
    inside = np.arange(8) < 5
    found = hajek_mean(Y, SurveySample(PI), domain=inside)
    alone = hajek_mean(Y[inside], SurveySample(PI[inside]))
    assert found.rate_interval() == pytest.approx(alone.rate_interval(), rel=1e-12)


def test_without_event_and_with_events_only_kishs_size_takes_over():
    weights = 1 / PI
    size = weights.sum() ** 2 / (weights**2).sum()
    for p in (0.0, 1.0):
        found = hajek_mean(np.full(8, p), SurveySample(PI))
        assert found.se is None
        assert found.rate_interval() == pytest.approx(quantiles(p, size), rel=1e-9)
    assert hajek_mean([0], SurveySample([0.5])).rate_interval() == pytest.approx((0, 0.975))


def test_strata_that_agree_within_have_no_standard_error_and_kishs_size():
    design = Stratified(["a"] * 4 + ["b"] * 4, {"a": 2, "b": 2})
    sample = SurveySample.drawn(design, np.array([True, True, False, False] * 2))
    found = hajek_mean([0, 0, 1, 1], sample)
    assert (found.se, found.estimate) == (None, 0.5)
    assert found.rate_interval() == pytest.approx(quantiles(0.5, 4), rel=1e-9)


def test_undefined_without_units_or_with_certain_ones_only():
    sample = SurveySample([0.5, 1.0])
    assert hajek_mean([0, 1], sample, domain=[False, False]).rate_interval() is None
    assert hajek_mean([0, 1], sample, domain=[False, True]).rate_interval() is None


@pytest.mark.parametrize(
    "estimate",
    [
        hajek_mean(Y * 0.5, SurveySample(PI)),
        hajek_mean(np.stack([Y, Y], axis=1), SurveySample(PI)),
        hajek_ratio(Y, Y + 1, SurveySample(PI)),
        horvitz_thompson_total(Y, SurveySample(PI)),
    ],
    ids=["halves", "vector", "ratio", "total"],
)
def test_what_is_no_rate_is_refused(estimate):
    message = "SurveyEstimate.rate_interval: the estimate is no mean of zeros and ones; use interval"
    with pytest.raises(InputError, match=re.escape(message)):
        estimate.rate_interval()


@pytest.mark.parametrize("level", [0, 1, math.nan, 95])
def test_levels_that_are_none(level):
    found = hajek_mean(Y, SurveySample(PI))
    for name, method in (("interval", found.interval), ("rate_interval", found.rate_interval)):
        with pytest.raises(
            InputError, match=re.escape(f"SurveyEstimate.{name}: level={level} is not in (0, 1)")
        ):
            method(level)
