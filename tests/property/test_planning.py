"""What must hold of plans whatever the figures."""

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kvstats.planning import auc_power, audit_estimate, difference_power, plan_audit, rate_power
from kvstats.planning.audit_interval import gamma_interval, most_hidden
from kvstats.planning.truth import any_event

shares = st.floats(0.01, 0.99)
risks = arrays(np.float64, st.integers(5, 40), elements=st.floats(0, 1))


@given(risks, st.sampled_from(["hajek", "difference"]), st.integers(0, 1000))
def test_no_other_probabilities_of_the_same_size_anticipate_less_variance(risk, estimator, seed):
    runs = pl.DataFrame({"input_id": [str(i) for i in range(risk.size)], "risk": risk})
    budget = max(2, risk.size // 3)
    plan = plan_audit(runs, budget=budget, seed=0, harm_probability="risk", estimator=estimator, floor=0.2)
    pi = plan.frame["inclusion_probability"].to_numpy()
    p = plan.frame["risk"].to_numpy()
    square = p * (1 - p) + ((p - p.mean()) ** 2 if estimator == "hajek" else 0)
    random = np.random.default_rng(seed)
    one, other = random.choice(risk.size, 2, replace=False)
    room = min(1 - pi[one], pi[other] - 0.2 * budget / risk.size)
    step = random.uniform(0, max(room, 0.0))
    moved = pi.copy()
    moved[one] += step
    moved[other] -= step
    assert (square / pi).sum() <= (square / moved).sum() * (1 + 1e-9) + 1e-12


@given(risks, st.integers(0, 50))
def test_rows_in_another_order_change_nothing(risk, seed):
    runs = pl.DataFrame({"input_id": [f"{i:03}" for i in range(risk.size)], "risk": risk})
    runs = runs.with_columns(harm=pl.col("risk") > 0.5)
    plan, again = (
        plan_audit(frame, budget=risk.size // 2, seed=seed, harm_probability="risk")
        for frame in (runs, runs.reverse())
    )
    assert plan.frame.equals(again.frame)
    found = audit_estimate(plan, plan.sample)
    assert found.frame.equals(audit_estimate(plan, plan.sample.reverse()).frame)
    row = found.frame.row(0, named=True)
    if row["low"] is not None:
        assert 0 <= row["low"] <= row["estimate"] <= row["high"] <= 1


@given(arrays(np.float64, st.integers(1, 30), elements=st.floats(0.01, 1)), shares, shares)
def test_the_surer_the_more_may_hide(pi, one, other):
    low, high = sorted((one, other))
    assert most_hidden(pi, high) <= most_hidden(pi, low) <= (pi < 1).sum()
    assert most_hidden(pi[::-1], low) == most_hidden(pi, low)


@given(st.floats(0, 1), st.floats(0, 0.1), st.floats(1e-4, 0.2))
def test_gamma_intervals_hold_the_estimate(estimate, variance, weight):
    low, high = gamma_interval(estimate, variance, weight, weight**2, 0.95)
    assert 0 <= low <= estimate * (1 + 1e-9)
    assert low < high <= 1
    wider = gamma_interval(estimate, variance, weight, weight**2, 0.99)
    assert wider[0] <= low * (1 + 1e-9)
    assert wider[1] >= high * (1 - 1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.floats(0, 1))
def test_any_event_is_between_the_likeliest_and_the_sum(chances, correlation):
    value = any_event(chances, correlation)
    assert max(chances) - 1e-12 <= value <= min(1, sum(chances)) + 1e-12
    assert value == pytest.approx(any_event(chances[::-1], correlation))


@given(st.integers(3, 2000), shares, shares, st.floats(1, 10), st.floats(0, 1))
def test_power_of_a_difference_rises_with_inputs(inputs, part, discordance, rows, correlation):
    figures = {
        "difference": part * discordance,
        "discordance": discordance,
        "rows_per_input": rows,
        "intraclass_correlation": correlation,
    }
    fewer, more = (difference_power(inputs=n, **figures) for n in (inputs, 2 * inputs))
    assert 0 <= fewer.power <= more.power + 1e-9 <= 1 + 2e-9
    assert fewer.se >= more.se


@given(st.integers(20, 5000), st.floats(0.05, 0.9), shares, st.floats(0.02, 0.98), st.floats(1, 10), shares)
def test_power_of_an_area_rises_with_inputs(inputs, area, null, prevalence, rows, correlation):
    assume(abs(area - null) > 0.01)
    figures = {"auc": area, "null": null, "prevalence": prevalence, "rows_per_input": rows}
    fewer, more = (
        auc_power(inputs=n, intraclass_correlation=correlation, **figures) for n in (inputs, 2 * inputs)
    )
    assert 0 <= fewer.power <= more.power + 1e-6 <= 1 + 2e-6
    assert fewer.se >= more.se
    assert fewer.df <= more.df <= 2 * inputs - 1


@given(st.integers(2, 3000), st.floats(0, 0.9), st.floats(0.02, 0.5))
def test_power_of_a_rate_falls_with_the_rate(inputs, part, limit):
    low, high = (rate_power(inputs=inputs, rate=x * limit, limit=limit).power for x in (part / 2, part))
    assert 0 <= high <= low + 1e-12 <= 1 + 2e-12
