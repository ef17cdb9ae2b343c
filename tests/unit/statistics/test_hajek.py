"""Hájek means and ratios, their design effect, and differences."""

import math
import re

import numpy as np
import pytest
import torch

from kvstats.errors import InputError
from kvstats.statistics import AUC, Mean, Ratio
from kvstats.statistics.designs import Poisson, SimpleRandom
from kvstats.statistics.effective_size import degrees_of_freedom, effective_sample_size
from kvstats.statistics.hajek import design_effect, hajek_mean, hajek_ratio
from kvstats.statistics.horvitz_thompson import horvitz_thompson_total
from kvstats.statistics.linearised import linearised_estimate
from kvstats.statistics.survey_difference import survey_difference
from kvstats.statistics.survey_sample import SurveySample

PI = np.array([0.9, 0.5, 0.3, 0.8, 1.0])
Y = np.array([1.0, -2.0, 4.0, 0.0, 3.0])
X = np.array([2.0, 1.0, 1.0, 3.0, 5.0])
DOMAIN = np.array([True, False, True, True, False])
SAMPLE = SurveySample(PI)


def test_mean_and_its_poisson_variance():
    w = 1 / PI
    mean = (w * Y).sum() / w.sum()
    found = hajek_mean(Y, SAMPLE)
    assert found.estimate == pytest.approx(mean, rel=1e-14)
    variance = ((1 - PI) / PI**2 * (Y - mean) ** 2).sum() / w.sum() ** 2
    assert found.variance == pytest.approx(variance, rel=1e-13)
    assert (found.n, found.df, found.status) == (5, 3, "ok")


def test_domain_mean_is_the_mean_of_its_units():
    found, alone = hajek_mean(Y, SAMPLE, domain=DOMAIN), hajek_mean(Y[DOMAIN], SurveySample(PI[DOMAIN]))
    assert found.estimate == pytest.approx(alone.estimate, rel=1e-14)
    assert found.variance == pytest.approx(alone.variance, rel=1e-13)
    assert (found.n, found.df) == (alone.n, alone.df) == (3, 2)


def test_units_outside_a_domain_need_no_value():
    y, x = np.where(DOMAIN, Y, np.nan), np.where(DOMAIN, X, np.inf)
    for found, expected in (
        (hajek_mean(y, SAMPLE, domain=DOMAIN), hajek_mean(Y, SAMPLE, domain=DOMAIN)),
        (hajek_ratio(y, x, SAMPLE, domain=DOMAIN), hajek_ratio(Y, X, SAMPLE, domain=DOMAIN)),
        (
            horvitz_thompson_total(y[:, None], SAMPLE, domain=DOMAIN),
            horvitz_thompson_total(Y[:, None], SAMPLE, domain=DOMAIN),
        ),
    ):
        assert (found.estimate, found.variance) == (expected.estimate, expected.variance)


def test_ratio_and_its_poisson_variance():
    w = 1 / PI
    ratio = (w * Y).sum() / (w * X).sum()
    found = hajek_ratio(Y, X, SAMPLE)
    assert found.estimate == pytest.approx(ratio, rel=1e-14)
    variance = ((1 - PI) / PI**2 * (Y - ratio * X) ** 2).sum() / (w * X).sum() ** 2
    assert found.variance == pytest.approx(variance, rel=1e-13)
    inside = hajek_ratio(Y, X, SAMPLE, domain=DOMAIN)
    alone = hajek_ratio(Y[DOMAIN], X[DOMAIN], SurveySample(PI[DOMAIN]))
    assert inside.variance == pytest.approx(alone.variance, rel=1e-13)


@pytest.mark.parametrize("convert", [np.asarray, torch.as_tensor])
def test_vectors(convert):
    y = np.random.default_rng(0).normal(size=(5, 3))
    sample = SurveySample(convert(PI))
    for whole, part in (
        (hajek_mean(convert(y), sample), lambda c: hajek_mean(convert(y[:, c]), sample)),
        (
            hajek_ratio(convert(y), convert(X), sample, domain=convert(DOMAIN)),
            lambda c: hajek_ratio(convert(y[:, c]), convert(X), sample, domain=convert(DOMAIN)),
        ),
    ):
        parts = [part(c) for c in range(3)]
        np.testing.assert_allclose(np.asarray(whole.estimate), [p.estimate for p in parts], rtol=1e-12)
        assert whole.variance == pytest.approx(sum(p.variance for p in parts), rel=1e-12)


def test_no_unit_has_no_mean():
    for found in (hajek_mean([], SurveySample([])), hajek_mean(Y, SAMPLE, domain=[False] * 5)):
        assert (found.estimate, found.variance, found.n, found.status) == (None, None, 0, "no units")
        assert found.interval() is None


def test_a_denominator_of_zero_has_no_ratio():
    found = hajek_ratio(Y, np.zeros(5), SAMPLE)
    assert (found.estimate, found.variance, found.n, found.status) == (None, None, 5, "zero denominator")


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 + 0.1])
def test_equal_values_tell_nothing_of_the_variance(value):
    found = hajek_mean(np.full(5, value), SAMPLE)
    assert found.estimate == pytest.approx(value, rel=1e-15)
    assert (found.variance, found.se, found.status) == (None, None, "zero variance")
    single = hajek_mean(torch.full((3,), 0.1), SurveySample(torch.tensor([0.3, 0.7, 0.9])))
    assert single.status == "zero variance"


def test_one_uncertain_unit_tells_nothing_of_the_variance():
    assert hajek_mean([3.0], SurveySample([0.5])).status == "one unit"
    assert hajek_mean(Y, SAMPLE, domain=[True] + [False] * 4).status == "one unit"
    assert hajek_mean([3.0, 3.0], SurveySample([0.5, 1.0])).status == "one unit"


def test_certain_units_alone_do_not_tell_a_census_from_bad_luck():
    found = hajek_mean([1.0, 2.0], SurveySample([1.0, 1.0]))
    assert (found.estimate, found.variance, found.df, found.status) == (1.5, None, None, "only certain units")
    found = hajek_mean(Y, SAMPLE, domain=np.arange(5) == 4)
    assert (found.estimate, found.variance, found.status) == (3.0, None, "only certain units")


def test_a_matrix_is_no_denominator():
    with pytest.raises(
        InputError, match=re.escape("hajek_ratio: x='array of shape (5, 5)' is not a vector; ")
    ):
        hajek_ratio(Y, np.eye(5), SAMPLE)


def test_columns_are_checked_under_their_names():
    with pytest.raises(InputError, match="hajek_mean: y='an array' is not finite"):
        hajek_mean([1.0, 2.0, np.nan, 4.0, 5.0], SAMPLE)
    with pytest.raises(InputError, match="hajek_ratio: x='an array' is not finite"):
        hajek_ratio(Y, [1.0, 2.0, np.nan, 4.0, 5.0], SAMPLE)
    with pytest.raises(
        InputError, match=re.escape("hajek_mean: domain='bool array of shape (1,)' is no mask")
    ):
        hajek_mean(Y, SAMPLE, domain=[True])


def test_a_linearised_statistic_is_the_estimator_of_the_same_name():
    for statistic, direct in (
        (Mean(Y), hajek_mean(Y, SAMPLE)),
        (Ratio(Y, X), hajek_ratio(Y, X, SAMPLE)),
    ):
        found = linearised_estimate(statistic, SAMPLE)
        assert found.estimate == pytest.approx(direct.estimate, rel=1e-13)
        assert found.variance == pytest.approx(direct.variance, rel=1e-13)
        assert (found.df, found.n, found.status) == (direct.df, direct.n, "ok")


def test_a_linearised_area_against_its_numerical_derivative():
    auc, w, step = AUC(Y, [True, True, False, False, True]), 1 / PI, 1e-6
    slopes = np.array([(auc.value(w + step * e) - auc.value(w - step * e)) / (2 * step) for e in np.eye(5)])
    found = linearised_estimate(auc, SAMPLE)
    assert found.variance == pytest.approx(((1 - PI) / PI**2 * slopes**2).sum(), rel=1e-7)
    assert found.status == "ok"


def test_an_undefined_statistic_is_null():
    found = linearised_estimate(AUC(Y, [True] * 5), SAMPLE)
    assert (found.estimate, found.variance, found.n, found.status) == (None, None, 5, "undefined")


def test_a_statistic_of_other_rows_is_refused():
    message = "linearised_estimate: statistic='Mean of 2 rows' does not fit 5 sampled units; prepare it from"
    with pytest.raises(InputError, match=message):
        linearised_estimate(Mean([1.0, 2.0]), SAMPLE)


def test_difference_of_two_variables_is_that_of_their_difference():
    found = survey_difference(hajek_mean(Y, SAMPLE), hajek_mean(X, SAMPLE))
    direct = hajek_mean(Y - X, SAMPLE)
    assert found.estimate == pytest.approx(direct.estimate, rel=1e-13)
    assert found.variance == pytest.approx(direct.variance, rel=1e-12)


def test_difference_of_two_domains_adds_their_variances_under_poisson_sampling():
    a, b = hajek_mean(Y, SAMPLE, domain=DOMAIN), hajek_mean(Y, SAMPLE, domain=~DOMAIN)
    found = survey_difference(a, b)
    assert (b.status, b.df) == ("ok", 0)  # one uncertain and one certain unit
    assert found.estimate == pytest.approx(a.estimate - b.estimate)
    assert found.variance == pytest.approx(a.variance + SAMPLE.variance(b.linearised), rel=1e-12)
    assert (found.n, found.df) == (5, 3)


def test_difference_of_overlapping_domains_counts_their_units_once():
    a, b = hajek_mean(Y, SAMPLE, domain=DOMAIN), hajek_mean(Y, SAMPLE)
    assert survey_difference(a, b).n == 5


def test_a_variable_less_itself_has_no_variance():
    mean = hajek_mean(Y, SAMPLE)
    found = survey_difference(mean, mean)
    assert (found.estimate, found.variance, found.status) == (0.0, None, "zero variance")


def test_independent_differences_add_their_variances():
    a, b = hajek_mean(Y, SAMPLE), hajek_mean(X, SurveySample(PI / 2))
    found = survey_difference(a, b, independent=True)
    assert found.variance == pytest.approx(a.variance + b.variance)
    df = found.variance**2 / (a.variance**2 / 3 + b.variance**2 / 4)
    assert found.df == pytest.approx(df)
    assert found.n == 10
    lone, other = (hajek_mean([1.0, 2.0], SurveySample([pi, 1.0])) for pi in (0.5, 0.4))
    assert (lone.df, other.df) == (0, 0)
    assert survey_difference(lone, other, independent=True).interval() is None


def test_a_difference_from_what_is_undefined_is_undefined():
    nothing = hajek_mean(Y, SAMPLE, domain=[False] * 5)
    mean = hajek_mean(Y, SAMPLE)
    for pair in ((mean, nothing), (nothing, mean)):
        found = survey_difference(*pair)
        assert (found.estimate, found.variance, found.status) == (None, None, "no units")
    lone = hajek_mean([3.0], SurveySample([0.5]))
    found = survey_difference(mean, lone, independent=True)
    assert (found.estimate, found.variance, found.status) == (mean.estimate - 3, None, "one unit")


def test_differences_that_mix_samples_are_refused():
    a, b = hajek_mean(Y, SAMPLE), hajek_mean(Y, SurveySample(PI))
    with pytest.raises(
        InputError, match="survey_difference: a and b come from different samples; pass indep"
    ):
        survey_difference(a, b)
    with pytest.raises(
        InputError, match="survey_difference: a and b come from one sample; leave independent"
    ):
        survey_difference(a, a, independent=True)
    apart = survey_difference(a, b, independent=True)
    with pytest.raises(InputError, match="come from different samples"):
        survey_difference(apart, apart)


def test_degrees_of_freedom_leave_certain_units_and_their_strata_out():
    sample = SurveySample([0.5, 0.5, 1.0, 0.5, 1.0, 1.0], strata=["a", "a", "a", "b", "b", "c"])
    assert degrees_of_freedom(sample) == 1
    assert degrees_of_freedom(sample, [True, True, True, False, False, True]) == 1
    assert degrees_of_freedom(sample, [False] * 5 + [True]) == 0
    assert degrees_of_freedom(SurveySample([])) == 0
    assert degrees_of_freedom(SurveySample(torch.tensor([0.5, 0.5])), torch.tensor([True, True])) == 1


def test_effective_size_is_kishs():
    w = 1 / PI
    assert effective_sample_size(SAMPLE) == pytest.approx(w.sum() ** 2 / (w**2).sum(), rel=1e-14)
    inside = effective_sample_size(SAMPLE, DOMAIN)
    assert inside == pytest.approx(w[DOMAIN].sum() ** 2 / (w[DOMAIN] ** 2).sum(), rel=1e-14)
    assert effective_sample_size(SurveySample([])) is None
    assert effective_sample_size(SAMPLE, [False] * 5) is None


def test_design_effect_of_simple_random_sampling_is_one():
    design = SimpleRandom(20, 5)
    sample = SurveySample.drawn(design, design.sample(np.random.default_rng(0)))
    assert design_effect(Y, sample, replacement=False) == pytest.approx(1, rel=1e-12)
    assert design_effect(Y, sample) == pytest.approx(1 - 5 / 20, rel=1e-12)


def test_design_effect_of_a_domain_and_of_vectors():
    alone = design_effect(Y[DOMAIN], SurveySample(PI[DOMAIN]))
    assert design_effect(Y, SAMPLE, domain=DOMAIN) == pytest.approx(alone, rel=1e-12)
    assert design_effect(Y[:, None], SAMPLE) == pytest.approx(design_effect(Y, SAMPLE), rel=1e-12)


def test_design_effect_is_null_without_a_variance():
    assert design_effect(np.ones(5), SAMPLE) is None
    assert design_effect([1.0], SurveySample([0.5])) is None
    assert design_effect([], SurveySample([])) is None
    assert design_effect([1.0, 2.0], SurveySample([1.0, 1.0]), replacement=False) is None


def test_repr_names_what_is_null():
    assert repr(hajek_mean([3.0], SurveySample([0.5]))) == (
        "SurveyEstimate(estimate=3, se=None, df=None, n=1, status='one unit')"
    )
    assert math.isfinite(hajek_mean(Y, SurveySample.drawn(Poisson(PI), np.ones(5, dtype=bool))).se)
