"""Survey estimators and designs against R's survey and sampling packages (survey/survey.R)."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from kvstats.statistics.designs import ConditionalPoisson, Sampford, SimpleRandom, Stratified
from kvstats.statistics.effective_size import degrees_of_freedom
from kvstats.statistics.hajek import design_effect, hajek_mean, hajek_ratio
from kvstats.statistics.horvitz_thompson import horvitz_thompson_total
from kvstats.statistics.survey_difference import survey_difference
from kvstats.statistics.survey_sample import SurveySample

R = json.loads((Path(__file__).parent / "survey" / "survey.json").read_text())
COLUMNS = {name: np.array(values, dtype=float) for name, values in R["columns"].items()}
DOMAIN = COLUMNS["domain"] == 1
STATISTICS = [
    "total",
    "mean",
    "rate",
    "domain_total",
    "domain_mean",
    "ratio",
    "domain_ratio",
    "difference",
]
UNEQUAL = ["maximum_entropy", "maximum_entropy_tight", "sampford"]


def first_units(design, counts):
    """Return the sample of the first units of each stratum, or of the population."""
    drawn = np.zeros(design.inclusion_probability.size, dtype=bool)
    for begin, count in counts:
        drawn[begin : begin + count] = True
    return SurveySample.drawn(design, drawn)


def samples():
    """Yield the name of each design, its R figures and our sample."""
    yield "poisson", R["poisson"], SurveySample(R["poisson"]["pi"])
    for name in UNEQUAL:
        for ours, theirs in (("syg", "YG"), ("ht", "HT")):
            yield f"{name} {ours}", R[name][theirs], SurveySample(R[name]["pi"], R[name]["joint"], ours)
    size = R["simple_random"]["population_size"]
    yield "simple random", R["simple_random"], first_units(SimpleRandom(size, 8), [(0, 8)])
    sizes = R["stratified"]["sizes"]
    labels = [label for label, size in sizes.items() for _ in range(size)]
    design = Stratified(labels, {"a": 3, "b": 3, "c": 2})
    yield "stratified", R["stratified"], first_units(design, [(0, 3), (10, 3), (16, 2)])


CASES = {name: (figures, sample) for name, figures, sample in samples()}


def estimate(name, sample, columns, domain):
    y, x = columns["y"], columns["x"]
    return {
        "total": lambda: horvitz_thompson_total(y, sample),
        "mean": lambda: hajek_mean(y, sample),
        "rate": lambda: hajek_mean(columns["event"], sample),
        "domain_total": lambda: horvitz_thompson_total(y, sample, domain=domain),
        "domain_mean": lambda: hajek_mean(y, sample, domain=domain),
        "ratio": lambda: hajek_ratio(y, x, sample),
        "domain_ratio": lambda: hajek_ratio(y, x, sample, domain=domain),
        "difference": lambda: survey_difference(hajek_mean(y, sample), hajek_mean(x, sample)),
    }[name]()


def in_torch(sample):
    joint = sample.joint_inclusion_probability
    return SurveySample(
        torch.from_numpy(sample.inclusion_probability),
        None if joint is None else torch.from_numpy(joint),
        sample.variance_form,
        sample.strata,
    )


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("case", CASES)
def test_estimates_variances_and_standard_errors_equal_r(case, statistic, kind):
    figures, sample = CASES[case]
    expected, columns, domain = figures[statistic], COLUMNS, DOMAIN
    if kind == "torch":
        sample, domain = in_torch(sample), torch.from_numpy(DOMAIN)
        columns = {name: torch.from_numpy(values) for name, values in COLUMNS.items()}
    found = estimate(statistic, sample, columns, domain)
    assert found.estimate == pytest.approx(expected["estimate"], rel=1e-10)
    if expected["variance"] < 0:
        assert expected["se"] is None
        assert (found.variance, found.se, found.status) == (None, None, "negative variance: use syg")
        assert sample.variance(found.linearised) == pytest.approx(expected["variance"], rel=1e-10)
        return
    assert found.status == "ok"
    assert found.variance == pytest.approx(expected["variance"], rel=1e-10)
    assert found.se == pytest.approx(expected["se"], rel=1e-10)
    assert found.df == expected["df"]


def test_published_figures():
    """The figures of the reference that this library was specified with, typed in rather than read."""
    _, sample = CASES["poisson"]
    mean = hajek_mean(COLUMNS["event"], sample)
    total = horvitz_thompson_total(COLUMNS["event"], sample)
    np.testing.assert_allclose([mean.estimate, mean.se], [0.480581471034932, 0.160602788061134], rtol=1e-12)
    np.testing.assert_allclose([total.estimate, total.se], [8.78968253968254, 3.15231511384435], rtol=1e-12)
    _, sample = CASES["maximum_entropy syg"]
    total, mean = horvitz_thompson_total(COLUMNS["y"], sample), hajek_mean(COLUMNS["y"], sample)
    np.testing.assert_allclose([total.estimate, total.se], [133.046875, 6.74497200916095], rtol=1e-12)
    np.testing.assert_allclose([mean.estimate, mean.se], [5.56899934597776, 1.44100981869909], rtol=1e-12)
    _, sample = CASES["maximum_entropy ht"]
    total, mean = horvitz_thompson_total(COLUMNS["y"], sample), hajek_mean(COLUMNS["y"], sample)
    assert total.status == "negative variance: use syg"
    assert sample.variance(total.linearised) == pytest.approx(-71.4601785785452, rel=1e-12)
    assert mean.se == pytest.approx(1.41534280313589, rel=1e-12)


@pytest.mark.parametrize("name", UNEQUAL)
def test_both_forms_equal_the_sampling_package(name):
    found = [CASES[f"{name} {form}"][1].variance(COLUMNS["y"]) for form in ("ht", "syg")]
    np.testing.assert_allclose(found, R[name]["varHT"], rtol=1e-10)


@pytest.mark.parametrize(
    ("name", "design", "tolerance"),
    [
        ("maximum_entropy_tight", ConditionalPoisson, 1e-10),
        ("maximum_entropy", ConditionalPoisson, 1e-6),
        ("sampford", Sampford, 1e-10),
    ],
)
def test_joint_probabilities_equal_the_sampling_package(name, design, tolerance):
    found = design(R["population"]["pi"]).joint_inclusion_probability
    np.testing.assert_allclose(found, R[name]["population_joint"], rtol=tolerance)


@pytest.mark.parametrize("name", ["maximum_entropy_tight", "sampford"])
def test_a_sample_drawn_by_the_design_has_the_variance_of_r(name):
    design = {"sampford": Sampford}.get(name, ConditionalPoisson)(R["population"]["pi"])
    drawn = np.zeros(20, dtype=bool)
    drawn[np.array(R["population"]["drawn"]) - 1] = True
    found = horvitz_thompson_total(COLUMNS["y"], SurveySample.drawn(design, drawn))
    assert found.variance == pytest.approx(R[name]["YG"]["total"]["variance"], rel=1e-10)


@pytest.mark.parametrize(
    "case", ["poisson", "simple random", "stratified", *(f"{name} syg" for name in UNEQUAL)]
)
def test_design_effects_equal_r(case):
    figures, sample = CASES[case]
    figures = R[case.removesuffix(" syg")] if case.endswith("syg") else figures
    assert design_effect(COLUMNS["y"], sample) == pytest.approx(figures["deff"]["with"], rel=1e-10)
    without = design_effect(COLUMNS["y"], sample, replacement=False)
    assert without == pytest.approx(figures["deff"]["without"], rel=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_degrees_of_freedom_equal_r(case):
    figures, sample = CASES[case]
    assert degrees_of_freedom(sample) == figures["mean"]["df"]
    assert degrees_of_freedom(sample, DOMAIN) == figures["domain_mean"]["df"]
