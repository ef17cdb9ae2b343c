import math

import numpy as np
import pytest
from scipy import stats

from kvstats.inference.intervals import (
    clopper_pearson_interval,
    clustered_wilson_interval,
    effective_size,
    korn_graubard_interval,
    log_interval,
    student_ratio,
    wilson_interval,
    wilson_size,
)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
@pytest.mark.parametrize(
    ("function", "method"), [(wilson_interval, "wilson"), (clopper_pearson_interval, "exact")]
)
def test_agrees_with_scipy(function, method, level):
    counts = np.array([0, 1, 7, 29, 30])
    low, high = function(counts / 30, 30, level)
    for count, *bounds in zip(counts, low, high, strict=True):
        reference = stats.binomtest(int(count), 30).proportion_ci(level, method)
        assert bounds == pytest.approx([reference.low, reference.high], abs=1e-12)


@pytest.mark.parametrize("function", [wilson_interval, clopper_pearson_interval])
def test_the_ends_are_exact_and_the_width_never_zero(function):
    low, high = function([0.0, 1.0], [1.0, 100_000.0])
    assert low[0] == 0
    assert high[1] == 1
    assert (low < high).all()


def test_effective_size_is_at_most_n_and_at_the_ends_the_clusters():
    np.testing.assert_allclose(
        effective_size([0.5, 0.5, 0.5, 0.0, 1.0], [0.1, 0.01, 0.0, 0.0, 0.0], 80, 10), [25, 80, 80, 10, 10]
    )


def test_student_ratio_is_continuous_at_one_half_and_at_most_one():
    assert student_ratio(80, 9, 0.5) == pytest.approx(float(student_ratio(80, 9, 0.4997)), abs=1e-6)
    assert student_ratio(80, 79, 0.025) == 1
    assert student_ratio(80, 9, 0.025) == pytest.approx((stats.t.ppf(0.975, 79) / stats.t.ppf(0.975, 9)) ** 2)


def test_korn_graubard_by_its_definition():
    p, se, n, clusters, df, level = 0.15, 0.05, 200, 25, 24, 0.9
    ratio = stats.t.ppf(0.95, n - 1) / stats.t.ppf(0.95, df)
    size = p * (1 - p) / se**2 * ratio**2
    low, high = korn_graubard_interval(p, se, n, clusters, df, level)
    assert low == pytest.approx(stats.beta.ppf(0.05, size * p, size * (1 - p) + 1))
    assert high == pytest.approx(stats.beta.ppf(0.95, size * p + 1, size * (1 - p)))


def test_korn_graubard_without_events_is_exact_for_the_clusters():
    low, high = korn_graubard_interval([0.0, 1.0], 0.0, 80, 10, 9)
    exact = stats.binomtest(0, 10).proportion_ci(0.95, "exact")
    np.testing.assert_allclose([low[0], high[0]], [exact.low, exact.high])
    np.testing.assert_allclose([low[1], high[1]], [1 - exact.high, 1])


def test_wilson_of_independent_rows_is_the_textbook_one():
    p, n = 6 / 100, 100
    se = np.sqrt(p * (1 - p) / (n - 1))
    assert wilson_size(p, se, n, n) == pytest.approx(n)
    np.testing.assert_allclose(clustered_wilson_interval(p, se, n, n, n - 1), wilson_interval(p, n))


def test_wilson_of_clusters_is_wider():
    independent = np.subtract(*clustered_wilson_interval(0.2, np.sqrt(0.16 / 79), 80, 80, 79))
    clustered = np.subtract(*clustered_wilson_interval(0.2, np.sqrt(0.16 / 9), 80, 10, 9))
    assert clustered < 2 * independent < 0


def test_a_ratio_s_upper_bound_beyond_all_floats_is_infinite():
    low, high = log_interval(0.1, 0.2, 1.0, 0.999)
    assert (low, high) == (0.0, math.inf)
    low, high = log_interval(0.1, 0.2, 1.0, 0.99)
    assert 0 < low < 0.1 < high < math.inf
