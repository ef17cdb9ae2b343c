import re

import numpy as np
import pytest
from scipy import stats

from kvstats.errors import InputError
from kvstats.statistics.variance_components import DrawAnalysis, crossed_draws, nested_draws

RNG = np.random.default_rng(8)


def test_nested_mean_squares_are_those_of_the_analysis_of_variance():
    groups = [RNG.normal(shift, 1, size) for shift, size in ((0, 4), (1, 6), (3, 5))]
    found = nested_draws(np.concatenate(groups), np.repeat([0, 1, 2], [4, 6, 5]))
    test = stats.f_oneway(*groups)
    assert found.between_square / found.within_square == pytest.approx(test.statistic)
    assert (found.between_df, found.within_df) == (2, 12)
    assert found.size == pytest.approx((15 - (16 + 36 + 25) / 15) / 2)


def test_crossed_mean_squares_leave_out_what_inputs_differ_by():
    y = RNG.normal(size=(4, 7))
    shifted = y + 10 * RNG.normal(size=(1, 7))
    first, second = crossed_draws(y), crossed_draws(shifted)
    assert first.within_square == pytest.approx(second.within_square)
    assert first.between_square == pytest.approx(second.between_square)
    # With two draws it is the paired t test.
    two = crossed_draws(y[:2])
    t = stats.ttest_rel(y[0], y[1]).statistic
    assert two.between_square / two.within_square == pytest.approx(t**2)


def test_the_share_at_its_bounds_has_the_tail_probabilities():
    found = DrawAnalysis(6.0, 1.0, 5, 40, 9.0)
    low, high = found.share_interval(0.9)
    for share, tail in ((low, 0.95), (high, 0.05)):
        theta = share / (1 - share)
        f = found.between_square / found.within_square / (1 + 9 * theta)
        assert stats.f.cdf(f, 5, 40) == pytest.approx(tail)


def test_williams_interval_by_hand():
    found = DrawAnalysis(6.0, 1.0, 5, 40, 9.0)
    by_hand = [5 * (6 - stats.f.ppf(q, 5, 40)) / (9 * stats.chi2.ppf(q, 5)) for q in (0.975, 0.025)]
    assert found.between_interval(0.95) == pytest.approx(by_hand)
    assert found.within_interval(0.95) == pytest.approx([40 / stats.chi2.ppf(q, 40) for q in (0.975, 0.025)])


def test_nothing_within_is_no_ratio():
    found = nested_draws([1.0, 1.0, 2.0, 2.0], [0, 0, 1, 1])
    assert found.share() == 1
    assert np.isnan(found.share_interval(0.95)).all()
    assert np.isnan(nested_draws([1.0, 1.0, 1.0, 1.0], [0, 0, 1, 1]).share())


def test_bounds_are_not_below_zero():
    found = DrawAnalysis(0.1, 1.0, 5, 40, 9.0)
    assert found.between < 0
    assert found.between_interval(0.95)[0] == 0
    assert found.share() == 0
    assert found.share_interval(0.95)[0] == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nested_draws([1.0, 2.0], [0, 0]), "nested_draws: draw=1 draws are too few to differ"),
        (
            lambda: nested_draws([1.0, 2.0], [0, 1]),
            "nested_draws: y=2 values in 2 draws leave none",
        ),
        (
            lambda: nested_draws([1.0, 2.0], [0]),
            "nested_draws: draw='array of shape (1,)' does not fit 2",
        ),
        (
            lambda: crossed_draws([[1.0, 2.0]]),
            "crossed_draws: y='array of shape (1, 2)' is no matrix",
        ),
        (lambda: crossed_draws([[1.0, np.nan], [1.0, 2.0]]), "is no matrix of finite numbers"),
    ],
)
def test_values_that_cannot_be_split_are_refused(make, message):
    with pytest.raises(InputError, match=re.escape(message)):
        make()
