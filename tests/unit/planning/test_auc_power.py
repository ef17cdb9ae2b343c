import math

import numpy as np
import pytest
from scipy import stats

from kvstats.errors import InputError
from kvstats.planning import auc_difference_power, auc_power
from kvstats.planning.auc_variance import (
    anticipated_counts,
    auc_covariance,
    auc_variance,
    bivariate_normal,
    class_covariances,
    class_variances,
    satterthwaite_df,
)
from kvstats.planning.truth import separation


@pytest.mark.parametrize("correlation", [-0.9, -0.3, 0.0, 0.5, 0.99])
@pytest.mark.parametrize(
    ("h", "k"), [(0.0, 0.0), (0.0, -1.2), (1.3, 0.4), (-0.7, 2.0), (-1.0, -2.0), (1e-9, 0.0)]
)
def test_bivariate_normal_against_scipy(h, k, correlation):
    expected = stats.multivariate_normal(cov=[[1, correlation], [correlation, 1]]).cdf([h, k])
    assert abs(bivariate_normal(h, k, correlation) - expected) < 1e-6
    assert bivariate_normal(h, k, correlation) == pytest.approx(
        bivariate_normal(k, h, correlation), abs=1e-14
    )


def areas_of(score, n_positives):
    """Mann-Whitney areas of scores of shape [replications, rows], positives first."""
    ranks = stats.rankdata(score, axis=1)[:, :n_positives].sum(axis=1)
    return (ranks / n_positives - (n_positives + 1) / 2) / (score.shape[1] - n_positives)


def test_variance_and_covariance_of_normal_scores_by_simulation():
    random = np.random.default_rng(1)
    positives, negatives, correlation = 15, 40, 0.6
    shared = random.standard_normal((40_000, positives + negatives))
    areas = []
    for area in (0.8, 0.65):
        own = random.standard_normal(shared.shape)
        score = math.sqrt(correlation) * shared + math.sqrt(1 - correlation) * own
        score[:, :positives] += separation(area)
        areas.append(areas_of(score, positives))
    observed = np.cov(areas)
    for number, area in enumerate((0.8, 0.65)):
        assert auc_variance(area, positives, negatives) == pytest.approx(observed[number, number], rel=0.03)
    covariance = auc_covariance(0.8, 0.65, positives, negatives, correlation)
    assert covariance == pytest.approx(observed[0, 1], rel=0.03)


def test_variance_of_exponential_scores_by_simulation():
    random = np.random.default_rng(2)
    area, positives, negatives = 0.75, 15, 40
    score = random.exponential(size=(40_000, positives + negatives))
    score[:, :positives] *= area / (1 - area)  # P(a E1 > E2) = a / (1 + a)
    observed = areas_of(score, positives).var()
    assert auc_variance(area, positives, negatives, "exponential") == pytest.approx(observed, rel=0.03)


def placements(score, n_positives):
    """Shares of the other class that each row beats, or is beaten by; no ties."""
    wins = score[:, :n_positives, None] > score[:, None, n_positives:]
    return wins.mean(axis=2), wins.mean(axis=1)


def test_parts_of_delongs_variance_and_covariance_by_simulation():
    random = np.random.default_rng(3)
    positives, negatives, correlation = 6, 15, 0.6
    shared = random.standard_normal((20_000, positives + negatives))
    by_signal = []
    for area in (0.8, 0.65):
        own = random.standard_normal(shared.shape)
        score = math.sqrt(correlation) * shared + math.sqrt(1 - correlation) * own
        score[:, :positives] += separation(area)
        by_signal.append(placements(score, positives))
    for number, size in enumerate((positives, negatives)):
        one, two = (placed[number] - placed[number].mean(axis=1, keepdims=True) for placed in by_signal)
        for area, each in ((0.8, one), (0.65, two)):
            observed = (each**2).sum(axis=1).mean() / (size - 1) / size
            assert class_variances(area, positives, negatives)[number] == pytest.approx(observed, rel=0.02)
        observed = (one * two).sum(axis=1).mean() / (size - 1) / size
        parts = class_covariances(0.8, 0.65, positives, negatives, correlation)
        assert parts[number] == pytest.approx(observed, rel=0.03)


@pytest.mark.parametrize("shape", ["binormal", "exponential"])
def test_parts_exceed_the_variance_by_the_bias_of_delong(shape):
    area = 0.8
    z = stats.norm.ppf(area)
    both = stats.multivariate_normal(cov=[[1, 0.5], [0.5, 1]]).cdf([z, z])
    above, below = (both, both) if shape == "binormal" else (area / (2 - area), 2 * area**2 / (1 + area))
    excess = sum(class_variances(area, 9, 31, shape)) - auc_variance(area, 9, 31, shape)
    assert excess == pytest.approx((area - above - below + area**2) / (9 * 31), rel=1e-4)


def test_counts_that_are_drawn_are_worth_less():
    positives, negatives = anticipated_counts(300, 0.1)
    counts = np.arange(2, 299)
    chances = stats.binom.pmf(counts, 300, 0.1)
    for found, inverse in ((positives, 1 / counts), (negatives, 1 / (300 - counts))):
        assert 1 / found == pytest.approx((chances * inverse).sum(), rel=5e-3)
    assert positives < 30 < 270
    assert anticipated_counts(300, 0.1, 2.5) == pytest.approx(anticipated_counts(120, 0.1))


def test_degrees_of_freedom():
    assert satterthwaite_df((2.0, 1.0), (5.0, 9.0), 100) == pytest.approx(9 / (4 / 4 + 1 / 8))
    assert satterthwaite_df((2.0, 1.0), (50.0, 90.0), 7) == 6.0  # no more than inputs - 1
    assert satterthwaite_df((2.0, 1.0), (1.0, 90.0), 100) == 0.0
    assert satterthwaite_df((0.0, 0.0), (4.0, 90.0), 100) == 3.0


def oracle(plan):
    """Power of a plan of one row an input by scipy, from the parts of the variance."""

    def log_se(area):
        counts = anticipated_counts(plan.inputs, plan.prevalence)
        return math.log(math.sqrt(sum(class_variances(area, *counts))) / (area * (1 - area)))

    def logit(area):
        return math.log(area / (1 - area))

    counts = anticipated_counts(plan.inputs, plan.prevalence)
    parts = class_variances(plan.auc, *counts)
    df = sum(parts) ** 2 / sum(part**2 / (count - 1) for part, count in zip(parts, counts, strict=True))
    distance = logit(plan.auc) - logit(plan.null)
    near, far = plan.auc * (1 - 1e-5), plan.auc * (1 + 1e-5)
    slope = (log_se(far) - log_se(near)) / (logit(far) - logit(near))
    spread = 1 - distance * slope
    shift, critical = abs(distance) / math.exp(log_se(plan.auc)), stats.t.ppf(0.975, df)
    return df, spread, stats.nct.sf(critical / spread, df, shift / spread)


@pytest.mark.parametrize(
    ("auc", "null", "prevalence"), [(0.65, 0.5, 0.1), (0.35, 0.5, 0.1), (0.9, 0.8, 0.3), (0.8, 0.9, 0.2)]
)
def test_power_is_that_of_the_test_on_the_logit_scale(auc, null, prevalence):
    plan = auc_power(auc=auc, null=null, prevalence=prevalence, power=0.8)
    df, spread, power = oracle(plan)
    assert plan.df == pytest.approx(df)
    assert plan.spread == pytest.approx(spread, rel=1e-4)
    assert plan.power == pytest.approx(power, abs=1e-4)
    assert (plan.spread > 1) == (auc == 0.8)


def test_the_other_class_and_the_other_direction_are_alike():
    one = auc_power(auc=0.65, power=0.8, prevalence=0.1)
    for change in ({"auc": 0.35}, {"prevalence": 0.9}):
        other = auc_power(**{"auc": 0.65, "power": 0.8, "prevalence": 0.1, **change})
        assert (other.inputs, other.power) == (one.inputs, pytest.approx(one.power, abs=1e-9))


def test_degrees_of_freedom_of_few_positives_are_about_as_many():
    for plan in (
        auc_power(auc=0.65, power=0.8, prevalence=0.1),
        auc_difference_power(auc=0.8, other_auc=0.7, score_correlation=0.5, prevalence=0.1, power=0.8),
    ):
        assert 0.1 * plan.inputs - 2 < plan.df < 0.15 * plan.inputs
    alike = auc_power(inputs=200, auc=0.7, prevalence=0.5, rows_per_input=4, intraclass_correlation=1.0)
    single = auc_power(inputs=200, auc=0.7, prevalence=0.5)
    assert (alike.se, alike.df, alike.power) == pytest.approx((single.se, single.df, single.power))
    apart = auc_power(inputs=200, auc=0.7, prevalence=0.5, rows_per_input=4)
    assert apart.df == 199


def test_too_few_rows_of_a_class_have_no_power():
    for plan in (
        auc_power(inputs=20, auc=0.9, prevalence=0.05),
        auc_difference_power(inputs=20, auc=0.9, other_auc=0.5, score_correlation=0.0, prevalence=0.05),
    ):
        assert (plan.power, plan.df) == (0.0, 0.0)


def test_the_least_area_is_found_though_power_falls_again_beyond():
    figures = {"inputs": 60, "prevalence": 0.2}
    least = auc_power(power=0.8, **figures)
    assert least.power == pytest.approx(0.8, abs=1e-9)
    assert auc_power(auc=1 - 1e-9, **figures).power < 0.8
    nearer = [auc_power(auc=area, **figures).power for area in np.linspace(0.501, least.auc - 1e-6, 50)]
    assert max(nearer) < 0.8


def test_without_discrimination_all_forms_agree():
    classical = (20 + 30 + 1) / (12 * 20 * 30)
    for shape in ("binormal", "exponential"):
        assert auc_variance(0.5, 20, 30, shape) == pytest.approx(classical, rel=1e-12)
    assert auc_covariance(0.5, 0.5, 20, 30, 1 - 1e-12) == pytest.approx(classical, rel=1e-5)


@pytest.mark.parametrize("function", [auc_power, auc_difference_power])
def test_solutions_agree_with_each_other(function):
    figures = {"prevalence": 0.15, "rows_per_input": 3, "intraclass_correlation": 0.2}
    if function is auc_difference_power:
        figures |= {"other_auc": 0.6, "score_correlation": 0.4}
    plan = function(auc=0.72, power=0.8, **figures)
    assert plan.power >= 0.8
    assert function(auc=0.72, inputs=plan.inputs - 1, **figures).power < 0.8
    least = function(inputs=plan.inputs, power=0.8, **figures)
    assert least.auc < 0.72
    assert least.power == pytest.approx(0.8, abs=1e-9)
    low = function(inputs=plan.inputs, power=0.8, alternative="less", **figures)
    assert low.auc < figures.get("other_auc", 0.5)
    assert low.power == pytest.approx(0.8, abs=1e-9)
    assert plan.design_effect == 1.4
    assert "<- solved for" in repr(plan)


def test_the_more_alike_two_signals_the_fewer_inputs():
    sizes = [
        auc_difference_power(auc=0.8, other_auc=0.75, score_correlation=r, prevalence=0.2, power=0.8).inputs
        for r in (0.0, 0.5, 0.9)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 3 * sizes[2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": 10}, r"auc_power: arguments=\[\] is not the one figure"),
        ({"auc": 0.5}, "auc=0.5 is the area to tell it from"),
        ({"auc": 1.0}, "auc=1.0 is not between 0 and 1"),
        ({"alternative": "less"}, "auc=0.7 is not on the side of alternative 'less' of 0.5"),
        ({"alternative": "up"}, "alternative='up' is not known"),
        ({"prevalence": 0.0}, "prevalence=0.0 is not between 0 and 1"),
        ({"null": 1.0}, "null=1.0 is not between 0 and 1"),
        ({"shape": "normal"}, "shape='normal' is not known; did you mean 'binormal'"),
        (
            {"auc": None, "inputs": 2, "prevalence": 0.01},
            "inputs=2 is too few: no area is told from it with such power",
        ),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(InputError, match=message):
        auc_power(**{"auc": 0.7, "power": 0.8, "prevalence": 0.1, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"auc": 0.6}, "auc_difference_power: auc=0.6 is the area to tell it from"),
        ({"score_correlation": 1.0}, "score_correlation=1.0 is not between -1 and 1"),
        ({"other_auc": 0.0}, "other_auc=0.0 is not between 0 and 1"),
    ],
)
def test_bad_input_of_the_difference(change, message):
    given = {"auc": 0.7, "other_auc": 0.6, "power": 0.8, "prevalence": 0.1, "score_correlation": 0.5}
    with pytest.raises(InputError, match=message):
        auc_difference_power(**given | change)
