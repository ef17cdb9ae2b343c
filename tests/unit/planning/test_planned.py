import numpy as np
import pytest
from scipy import stats

from kvstats.planning.planned import root, student_power


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("effect", [-0.4, -0.01, 0.0, 0.05, 0.4, 3.0])
@pytest.mark.parametrize("df", [1, 9, 400])
def test_power_against_the_noncentral_t(df, effect, alternative):
    shift = effect / 0.2
    tail = 0.025 if alternative == "two-sided" else 0.05
    critical = stats.t.isf(tail, df)
    above, below = stats.nct.sf(critical, df, shift), stats.nct.sf(critical, df, -shift)
    power = {"greater": above, "less": below, "two-sided": above + below}[alternative]
    level = 0.95
    assert abs(student_power(effect, 0.2, df, level, alternative) - power) < 1e-8


def test_power_without_spread_is_certain():
    assert student_power(0.1, 0.0, 5, 0.95, "two-sided") == 1.0
    assert student_power(0.1, 0.0, 5, 0.95, "greater") == 1.0
    assert student_power(0.1, 0.0, 5, 0.95, "less") == 0.0
    assert student_power(0.0, 0.0, 5, 0.95, "two-sided") == 0.0


def test_root_of_a_step_and_of_a_curve():
    assert root(lambda x: x**3, 8.0, 0.0, 10.0) == pytest.approx(2.0, abs=1e-14)
    assert root(lambda x: float(x >= 0.3), 0.5, 0.0, 1.0) == pytest.approx(0.3, abs=1e-15)


def test_power_of_an_estimate_that_spreads_more_than_its_error():
    random = np.random.default_rng(1)
    estimate = 0.5 + 0.2 * 1.3 * random.standard_normal(400_000)
    score = estimate / (0.2 * np.sqrt(random.chisquare(12, 400_000) / 12))
    for alternative, tail in (("two-sided", 0.025), ("greater", 0.05)):
        critical = stats.t.ppf(1 - tail, 12)
        beyond = (score > critical).mean() + (score < -critical).mean() * (alternative == "two-sided")
        assert student_power(0.5, 0.2, 12, 0.95, alternative, 1.3) == pytest.approx(beyond, abs=0.004)
