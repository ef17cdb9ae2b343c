import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from kvstats.errors import InputError
from kvstats.inference.intervals import korn_graubard_interval
from kvstats.planning import rate_power, rate_precision


def brute_force_power(n, rate, limit, level=0.95):
    """Sum over all counts whose Clopper-Pearson interval is below the limit."""
    counts = np.arange(n + 1)
    _, high = proportion_confint(counts, n, 1 - level, method="beta")
    return stats.binom.pmf(counts, n, rate)[high < limit].sum()


@pytest.mark.parametrize("n", [71, 72, 150, 400])
@pytest.mark.parametrize("rate", [0.0, 0.01, 0.03])
def test_power_against_brute_force(n, rate):
    plan = rate_power(inputs=n, rate=rate, limit=0.05)
    assert plan.power == pytest.approx(brute_force_power(n, rate, 0.05), abs=1e-12)


def test_power_above_a_limit_mirrors_the_one_below():
    below = rate_power(inputs=300, rate=0.05, limit=0.1)
    above = rate_power(inputs=300, rate=0.95, limit=0.9, alternative="greater")
    assert above.power == pytest.approx(below.power, abs=1e-12)
    assert above.critical_events == 300 - below.critical_events
    low, _ = proportion_confint(above.critical_events, 300, 0.05, method="beta")
    one_less, _ = proportion_confint(above.critical_events - 1, 300, 0.05, method="beta")
    assert low > 0.9 >= one_less


@pytest.mark.parametrize(("rate", "limit", "power"), [(0.02, 0.05, 0.8), (0.0, 0.05, 0.8), (0.1, 0.2, 0.9)])
def test_the_number_of_inputs_is_the_least_from_which_on_the_power_stays(rate, limit, power):
    n = rate_power(rate=rate, limit=limit, power=power).inputs
    assert brute_force_power(n - 1, rate, limit) < power
    for more in range(n, n + 200):
        assert brute_force_power(more, rate, limit) >= power


def test_the_highest_rate_that_is_shown():
    plan = rate_power(inputs=400, power=0.8, limit=0.05)
    assert plan.power == pytest.approx(0.8, abs=1e-9)
    assert 0 < plan.rate < 0.05
    mirrored = rate_power(inputs=400, power=0.8, limit=0.95, alternative="greater")
    assert mirrored.rate == pytest.approx(1 - plan.rate, abs=1e-12)


def test_rows_of_an_input_count_by_the_design_effect():
    plan = rate_power(rate=0.02, power=0.8, limit=0.05, rows_per_input=4, intraclass_correlation=0.5)
    independent = rate_power(rate=0.02, power=0.8, limit=0.05)
    assert plan.design_effect == 2.5
    assert plan.effective_size >= independent.inputs
    assert abs(plan.inputs - independent.inputs * 2.5 / 4) < 5
    few = rate_power(
        inputs=plan.inputs - 1, rate=0.02, limit=0.05, rows_per_input=4, intraclass_correlation=0.5
    )
    assert few.effective_size < independent.inputs


def test_without_events_inputs_count_and_not_rows():
    # 20 rows of each of 30 inputs: even where the rows are independent, no event shows less than 5%.
    plan = rate_power(inputs=30, rate=0.0, limit=0.05, rows_per_input=20)
    assert plan.power == 0.0
    assert plan.critical_events == -1
    assert rate_power(inputs=72, rate=0.0, limit=0.05, rows_per_input=20).power == 1.0
    _, high = korn_graubard_interval(0.0, 0.0, 600, 30, 29)
    assert high > 0.05


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.3, 1.0])
def test_precision_is_that_of_the_interval(rate):
    plan = rate_precision(inputs=120, rate=rate, rows_per_input=3, intraclass_correlation=0.25)
    se = math.sqrt(rate * (1 - rate) * 1.5 / 360)
    low, high = korn_graubard_interval(rate, se, 360, 120, 119)
    assert (plan.low, plan.high) == pytest.approx((float(low), float(high)), abs=1e-12)
    assert plan.half_width == pytest.approx(float(high - low) / 2, abs=1e-12)


def test_the_inputs_for_a_width_are_the_least():
    plan = rate_precision(half_width=0.03, rate=0.1, rows_per_input=2, intraclass_correlation=0.1)
    assert plan.half_width <= 0.03
    fewer = rate_precision(inputs=plan.inputs - 1, rate=0.1, rows_per_input=2, intraclass_correlation=0.1)
    assert fewer.half_width > 0.03


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": 0.05}, "rate_power: rate=0.05 is not below the limit of 0.05"),
        ({"alternative": "greater"}, "rate=0.02 is not above the limit of 0.05"),
        ({"alternative": "two-sided"}, "alternative='two-sided' is not known; known: greater, less"),
        ({"limit": 0.0}, "limit=0.0 is not between 0 and 1"),
        ({"rate": -0.1}, r"rate=-0.1 is not in \[0, 1\]"),
        ({"rate": None}, r"arguments=\['inputs', 'rate'\] is not the one figure to solve for"),
        ({"rate": None, "inputs": 30}, "inputs=30 is too few: not even a rate of 0 is shown"),
        ({"rate": 0.0499999}, "power=0.8 is not reached with 1,000,000,000 rows"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(InputError, match=message):
        rate_power(**{"rate": 0.02, "power": 0.8, "limit": 0.05, **change})


def test_bad_input_of_the_precision():
    with pytest.raises(InputError, match=r"rate_precision: half_width=0.0 is not between 0 and 1"):
        rate_precision(half_width=0.0, rate=0.1)
    with pytest.raises(InputError, match=r"arguments=\[\] is not the one figure"):
        rate_precision(half_width=0.1, inputs=10, rate=0.1)


def test_inputs_to_show_a_rate_above_a_limit():
    below = rate_power(rate=0.05, power=0.8, limit=0.1)
    above = rate_power(rate=0.95, power=0.8, limit=0.9, alternative="greater")
    assert above.inputs == below.inputs
    assert above.power == pytest.approx(below.power, abs=1e-12)
