"""Faults of other libraries, each as the right answer here."""

import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

from kvstats.errors import InputError
from kvstats.estimators import accuracy, delta, discordant_harm_share
from kvstats.inference import INTERVALS, Design, adjust, adjust_e_values, mcnemar_test, sign_flip_test
from kvstats.inference.multiplicity import METHODS
from kvstats.statistics import Mean

GENERAL = [name for name in INTERVALS if name not in ("korn_graubard", "wilson", "clopper_pearson")]


def only(result):
    assert result.frame.height == 1
    return result.frame.row(0, named=True)


@pytest.mark.parametrize("interval", GENERAL)
def test_one_observation_is_undefined_and_says_so(make_log, interval):
    result = accuracy(make_log({"a": {0.5: [0.5]}}), design=Design(interval=interval))
    row = only(result)
    assert (row["estimate"], row["status"]) == (0.5, "one cluster")
    assert row["low"] is row["high"] is row["se"] is None
    assert result.p_value(0.0)["p_value"].item() is None


@pytest.mark.parametrize("interval", GENERAL)
def test_identical_series_have_p_one(make_log, interval):
    scores = [0.1, 0.7, 1.0, 0.0, 0.3]
    log = make_log({"full": {1.0: scores}, "a": {0.5: scores}})
    result = delta(log, arm="a", design=Design(interval=interval))
    assert only(result)["status"] == "no discordant pairs"
    assert result.p_value()["p_value"].item() == 1
    assert discordant_harm_share(log, arm="a").p_value()["p_value"].item() == 1
    assert mcnemar_test(0, 0) == 1
    assert sign_flip_test(np.subtract(scores, scores)) == 1


def test_permutation_p_values_are_never_zero_and_ties_are_tolerant():
    assert sign_flip_test(np.full(500, 3.0), n_permutations=999) == 1 / 1000
    assert sign_flip_test([0.1, 0.2, -0.3]) == sign_flip_test([1, 2, -3]) == 1


@pytest.mark.parametrize("method", METHODS)
def test_families_that_are_empty_or_rejected_whole(method):
    assert adjust([], method).shape == (0,)
    assert (adjust([1e-9, 0.0, 1e-12], method) <= 1e-8).all()
    assert adjust_e_values([]).shape == (0,)
    assert (adjust_e_values([1e9, 1e12]) <= 1e-8).all()


@pytest.mark.parametrize("interval", INTERVALS)
def test_a_single_cluster_or_equal_values_have_no_standard_error(make_log, interval):
    log = make_log({"a": {0.5: [1.0], 0.25: [1.0]}})
    if interval == "clopper_pearson":
        with pytest.raises(InputError, match="ignores clusters, and 2 rows are in 1"):
            accuracy(log, design=Design(interval=interval))
    else:
        row = only(accuracy(log, design=Design(interval=interval)))
        assert (row["status"], row["se"], row["low"]) == ("one cluster", None, None)
    constant = only(accuracy(make_log({"a": {0.5: [1.0] * 6}}), design=Design(interval=interval)))
    assert constant["se"] is None


def test_nan_is_refused_and_null_is_no_row_that_can_be_dropped(make_log):
    with pytest.raises(InputError, match="y=nan is not finite"):
        Mean([1.0, math.nan])
    with pytest.raises(InputError, match="difference=nan is not finite"):
        sign_flip_test([math.nan, 1.0])
    with pytest.raises(InputError, match="p_values=nan is no probability"):
        adjust([math.nan])
    with pytest.raises(InputError, match="score is null in 1 of 3 rows"):
        accuracy(make_log({"a": {0.5: [1.0, None, 0.0]}}))


@pytest.mark.parametrize("pairs", [1100, 30_000])
def test_mcnemars_exact_test_of_many_pairs(pairs):
    found = mcnemar_test(pairs // 2 + 60, pairs // 2 - 60)
    expected = 2 * stats.binom.sf(pairs // 2 + 59, pairs, 0.5)
    assert found == pytest.approx(expected, rel=1e-9)


def test_every_point_has_an_interval(make_log):
    random = np.random.default_rng(0)
    budgets = [0.1, 0.3, 0.5, 0.7, 0.9]
    log = make_log({"a": {budget: random.integers(0, 2, 300).tolist() for budget in budgets}})
    result = accuracy(log, by="budget")
    assert result.frame["status"].to_list() == ["ok"] * 5
    widths = result.frame.select((pl.col("high") - pl.col("low")).alias("width"))["width"]
    assert widths.min() > 0.1
    noise = result.contrast(budget=(0.9, 0.1))
    assert noise.p_value()["p_value"].item() > 0.05
