"""Whether plans keep their word: the power they promise, and audits that are unbiased and cover."""

import dataclasses
import math

import numpy as np
import polars as pl
import pytest

from kvstats.inference import Design
from kvstats.inference.cell import infer_cell
from kvstats.inference.contrast import difference_sample
from kvstats.inference.sample import Sample
from kvstats.planning import (
    anticipated_harm,
    auc_difference_power,
    auc_power,
    audit_estimate,
    difference_power,
    plan_audit,
    rate_power,
    simulate_log,
)
from kvstats.planning.audit_interval import gamma_interval, most_hidden
from kvstats.planning.truth import separation
from kvstats.statistics import AUC, Mean
from kvstats.statistics.allocation import proportional_inclusion
from kvstats.statistics.student import student_quantile
from kvstats.tables import paired

pytestmark = pytest.mark.slow


def tolerance(share, replications):
    """Three and a half binomial standard deviations."""
    return 3.5 * math.sqrt(share * (1 - share) / replications)


def pairs_of(made, n_studies):
    """The pairs of a log of many inputs, input by input, as columns of shape [studies, rows]."""
    pairs = paired(made.log, arm="plain").sort("input_id", "budget")
    return lambda name: pairs[name].cast(pl.Float64).to_numpy().reshape(n_studies, -1)


def judged(statistic, n_inputs, kind):
    """The interval of one study, whose inputs are clusters of equally many rows."""
    return infer_cell("simulation", sample_of(statistic, n_inputs, kind), Design())


def sample_of(statistic, n_inputs, kind):
    codes = np.repeat(np.arange(n_inputs), statistic.n // n_inputs)
    clusters = tuple((f"{number:05}",) for number in range(n_inputs))
    return Sample((), statistic, np.ones(statistic.n), codes, clusters, kind)


def correlation_of_differences(p, harm, recovery, rho):
    """Correlation of two differences of one input, by the shared draws of `simulate_log`."""
    q, s, difference = harm / p, recovery / (1 - p), recovery - harm
    together = p * (q**2 + rho * q * (1 - q)) + (1 - p) * (s**2 + rho * s * (1 - s))
    return (together - difference**2) / (harm + recovery - difference**2)


STUDIES = 1500


def test_power_of_a_paired_difference():
    p, harm, recovery, rho = 0.8, 0.1, 0.04, 0.4
    correlation = correlation_of_differences(p, harm, recovery, rho)
    plan = difference_power(
        difference=recovery - harm,
        discordance=harm + recovery,
        power=0.8,
        rows_per_input=3,
        intraclass_correlation=correlation,
    )
    made = simulate_log(
        seed=1,
        inputs=STUDIES * plan.inputs,
        accuracy=p,
        harm=harm,
        recovery=recovery,
        intraclass_correlation=rho,
        signals={},
    )
    differences = pairs_of(made, STUDIES)("difference")
    cells = [judged(Mean(row), plan.inputs, "paired") for row in differences]
    assert np.std([cell.estimate for cell in cells]) == pytest.approx(plan.se, rel=0.1)
    shown = np.mean([cell.high < 0 for cell in cells])
    assert abs(shown - plan.power) < tolerance(0.8, STUDIES)
    # To take the rows for independent would promise more than comes true.
    naive = difference_power(
        inputs=plan.inputs, difference=recovery - harm, discordance=harm + recovery, rows_per_input=3
    )
    assert naive.power > shown + 2 * tolerance(0.8, STUDIES)


def failures(seed, inputs, signals, **options):
    """A log in which the full cache always succeeds, so that each pair counts."""
    return simulate_log(
        seed=seed, inputs=inputs, accuracy=1.0, harm=0.125, recovery=0.0, signals=signals, **options
    )


def test_power_of_an_area():
    plan = auc_power(auc=0.65, power=0.8, prevalence=0.125)
    made = failures(2, STUDIES * plan.inputs, {"margin": (0.65, 0.5)}, budgets=[0.5])
    column = pairs_of(made, STUDIES)
    cells = [
        judged(AUC(score, failed), plan.inputs, "auc")
        for score, failed in zip(column("margin"), column("induced_failure"), strict=True)
    ]
    assert np.std([cell.estimate for cell in cells]) == pytest.approx(plan.se, rel=0.1)
    assert abs(np.mean([cell.low > 0.5 for cell in cells]) - plan.power) < tolerance(0.8, STUDIES)


@pytest.mark.parametrize(
    ("area", "null", "prevalence"), [(0.65, 0.5, 0.1), (0.8, 0.5, 0.3), (0.9, 0.8, 0.3), (0.8, 0.9, 0.2)]
)
def test_power_of_an_area_against_any_value(area, null, prevalence):
    plan = auc_power(auc=area, null=null, prevalence=prevalence, power=0.8)
    random = np.random.default_rng([round(100 * area), round(100 * null)])
    shown = 0
    for _ in range(STUDIES):
        failed = random.random(plan.inputs) < prevalence
        score = random.standard_normal(plan.inputs) + separation(area) * failed
        cell = judged(AUC(score, failed), plan.inputs, "auc")
        if cell.low is not None:
            shown += cell.low > null if area > null else cell.high < null
    assert abs(shown / STUDIES - plan.power) < tolerance(0.8, STUDIES)


def test_power_of_an_area_with_the_correlation_of_a_pilot():
    options = {"budgets": [0.25, 0.5, 0.75], "intraclass_correlation": 0.6}
    signals = {"margin": (0.65, 0.5)}
    pilot = pairs_of(failures(3, 4000, signals, **options), 1)
    statistic = AUC(pilot("margin")[0], pilot("induced_failure")[0])
    clustered, plain = (judged(statistic, inputs, "auc").se for inputs in (4000, 12_000))
    correlation = ((clustered / plain) ** 2 - 1) / 2
    assert 0.1 < correlation < 0.6
    plan = auc_power(
        auc=0.65, power=0.8, prevalence=0.125, rows_per_input=3, intraclass_correlation=correlation
    )
    column = pairs_of(failures(4, STUDIES * plan.inputs, signals, **options), STUDIES)
    cells = [
        judged(AUC(score, failed), plan.inputs, "auc")
        for score, failed in zip(column("margin"), column("induced_failure"), strict=True)
    ]
    assert np.std([cell.estimate for cell in cells]) == pytest.approx(plan.se, rel=0.1)
    assert abs(np.mean([cell.low > 0.5 for cell in cells]) - plan.power) < tolerance(0.8, STUDIES)


def test_power_of_a_difference_of_areas():
    plan = auc_difference_power(auc=0.8, other_auc=0.65, score_correlation=0.0, prevalence=0.125, power=0.8)
    made = failures(5, STUDIES * plan.inputs, {"one": (0.8, 0.5), "two": (0.65, 0.5)}, budgets=[0.5])
    column = pairs_of(made, STUDIES)
    cells = []
    for one, two, failed in zip(column("one"), column("two"), column("induced_failure"), strict=True):
        areas = [sample_of(AUC(score, failed), plan.inputs, "auc") for score in (one, two)]
        cells.append(infer_cell("simulation", difference_sample((), *areas), Design()))
    assert np.std([cell.estimate for cell in cells]) == pytest.approx(plan.se, rel=0.1)
    assert abs(np.mean([cell.low > 0 for cell in cells]) - plan.power) < tolerance(0.8, STUDIES)


@pytest.mark.parametrize("rows", [1, 3])
def test_power_to_show_a_rate_below_a_limit(rows):
    plan = rate_power(
        rate=0.03, power=0.8, limit=0.08, rows_per_input=rows, intraclass_correlation=0.4 * (rows > 1)
    )
    made = simulate_log(
        seed=6,
        inputs=STUDIES * plan.inputs,
        accuracy=1.0,
        harm=0.03,
        recovery=0.0,
        budgets=[0.25, 0.5, 0.75][:rows],
        intraclass_correlation=0.4,
        signals={},
    )
    cells = [judged(Mean(row), plan.inputs, "rate") for row in pairs_of(made, STUDIES)("harm")]
    shown = np.mean([cell.high < 0.08 for cell in cells])
    if rows == 1:
        assert abs(shown - plan.power) < tolerance(0.8, STUDIES)
    else:
        # The effective size is itself estimated, and the counts of clusters spread more than binomial ones.
        assert plan.power - 0.08 < shown < plan.power
        assert shown > 0.8 - tolerance(0.8, STUDIES)


DRAWS = 800


def audited(area, taken_for, rate, size=3000, budget=300, **options):
    """Estimates and intervals of many audits of one population; `taken_for` is the AUC that is believed."""
    made = simulate_log(
        seed=7,
        inputs=size,
        budgets=[0.5],
        accuracy=1.0,
        harm=rate,
        recovery=0.0,
        signals={"certificate": (area, 0.5)},
    )
    runs = paired(made.log, arm="plain")
    runs = runs.with_columns(risk=anticipated_harm(runs["certificate"], rate=rate, auc=taken_for))
    plan = plan_audit(runs, budget=budget, seed=0, harm_probability="risk", **options)
    random = np.random.default_rng(8)
    rows = {"gamma": [], "cautious": []}
    for _ in range(DRAWS):
        drawn = pl.Series("drawn", plan.sampling_design.sample(random))
        again = dataclasses.replace(plan, frame=plan.frame.with_columns(drawn))
        vars(again)["sampling_design"] = plan.sampling_design  # fitted once
        for interval, found in rows.items():
            found += audit_estimate(again, again.sample, interval=interval).frame.rows(named=True)
    return plan, runs["harm"].mean(), {interval: pl.DataFrame(found) for interval, found in rows.items()}


def check_audits(truth, found):
    """Estimates are unbiased, their standard errors honest, and both intervals cover."""
    estimates, errors = found["gamma"]["estimate"], found["gamma"]["se"].fill_null(0.0)
    assert abs(estimates.mean() - truth) < 3.5 * estimates.std() / math.sqrt(DRAWS)
    assert (errors**2).mean() == pytest.approx(estimates.var(), rel=0.2)
    for frame in found.values():
        covered = ((frame["low"] <= truth) & (truth <= frame["high"])).mean()
        assert covered > 0.95 - tolerance(0.95, DRAWS)
        assert (frame["high"] > frame["low"]).all()
    widths = [(found[interval]["high"] - found[interval]["low"]).mean() for interval in ("gamma", "cautious")]
    assert widths[0] < widths[1]


@pytest.mark.parametrize(("rate", "estimator"), [(0.02, "hajek"), (0.08, "difference")])
def test_an_audit_by_an_informative_signal_beats_a_simple_random_one(rate, estimator):
    plan, truth, found = audited(0.9, 0.9, rate, estimator=estimator)
    check_audits(truth, found)
    spread = found["gamma"]["estimate"].std()
    assert spread == pytest.approx(plan.anticipated_se, rel=0.2)
    assert spread < 0.8 * plan.simple_random_se
    assert spread < 0.8 * math.sqrt(truth * (1 - truth) * (1 / 300 - 1 / 3000))


@pytest.mark.parametrize(
    ("area", "taken_for", "rate", "estimator"),
    [(0.7, 0.9, 0.03, "hajek"), (0.2, 0.9, 0.03, "difference"), (0.5, 0.5, 0.4, "hajek")],
)
def test_an_audit_by_a_signal_that_is_wrong_is_still_right(area, taken_for, rate, estimator):
    plan, truth, found = audited(area, taken_for, rate, estimator=estimator)
    check_audits(truth, found)
    # The floor of 1/4 bounds the variance, at a share of 1/10, by 0.975 / (0.25 * 0.9) = 4.33 times that of a
    # simple random audit, and the standard error by 2.08 times.
    assert found["gamma"]["estimate"].std() < 2.2 * plan.simple_random_se


def test_an_audit_of_fixed_size():
    _, truth, found = audited(0.9, 0.9, 0.1, size=200, budget=40, design="conditional_poisson")
    check_audits(truth, found)
    assert set(found["gamma"]["n"]) == {40}
    assert found["gamma"]["estimate"].std() < 0.9 * math.sqrt(truth * (1 - truth) * (1 / 40 - 1 / 200))


def coverage_of(budget, rate, area, replications=1200, size=3000):
    """Coverage of three intervals in audits by a signal of a given AUC that is taken for 0.9."""
    random = np.random.default_rng([budget, round(1000 * rate), round(10 * area)])
    harm = np.arange(size) < rate * size
    signal = random.standard_normal(size) + separation(area) * harm
    p = anticipated_harm(signal, rate=rate, auc=0.9)
    spread = np.sqrt(p * (1 - p) + (p - rate) ** 2)
    pi = proportional_inclusion(spread, float(budget), floor=0.25 * budget / size)
    largest, hidden = 1 / (size * pi.min()), most_hidden(pi, 0.025) / size
    held = dict.fromkeys(("gamma", "cautious", "t"), 0)
    for drawn in random.random((replications, size)) < pi:
        weights, y, chance = 1 / pi[drawn] / size, harm[drawn], pi[drawn]
        estimate = (weights * y).sum() / weights.sum()
        variance = ((1 - chance) * (weights * (y - estimate)) ** 2).sum() / weights.sum() ** 2
        gamma = gamma_interval(estimate, variance, weights.mean(), (weights**2).mean(), 0.95)
        half = student_quantile(0.025, y.size - 1) * math.sqrt(variance)
        for name, (low, high) in (
            ("gamma", gamma if y.any() else (0.0, hidden)),
            ("cautious", gamma_interval(estimate, variance, largest, largest**2, 0.95)),
            ("t", (estimate - half, estimate + half)),
        ):
            held[name] += low <= rate <= high
    return {name: count / replications for name, count in held.items()}


def test_the_coverage_that_the_documentation_states():
    found = [
        coverage_of(budget, rate, area)
        for budget in (100, 300)
        for rate in (0.01, 0.03, 0.1)
        for area in (0.9, 0.7, 0.5, 0.2)
    ]
    extremes = {
        name: [round(100 * extreme(each[name] for each in found), 1) for extreme in (min, max)]
        for name in ("gamma", "cautious", "t")
    }
    # As in the notes of audit_estimate.
    assert extremes["gamma"] == pytest.approx([94.3, 99.4], abs=0.5)
    assert extremes["cautious"] == pytest.approx([96.0, 99.4], abs=0.5)
    assert extremes["t"] == pytest.approx([28, 95], abs=1)
