import re

import numpy as np
import polars as pl
import pytest

from kvstats.errors import InputError
from kvstats.estimators import accuracy, accuracy_at_kept, kept_fraction, memory_crossover, memory_curve
from kvstats.inference import Design, defined_share
from kvstats.log import log_from_records


def only(result):
    assert result.frame.height == 1
    return result.frame.row(0, named=True)


def shares(counts, size=20):
    return [[1.0] * count + [0.0] * (size - count) for count in counts]


BUDGETS = (0.2, 0.5, 0.8)


@pytest.fixture
def log(make_records):
    records = []
    for arm, counts, shift in (("gate", (9, 11, 12), 0.1), ("plain", (1, 14, 19), 0.0)):
        for budget, values in zip(BUDGETS, shares(counts), strict=True):
            records += make_records({arm: {budget: values}}, kept_fraction=budget + shift)
    return log_from_records(records)


def curve(log, arm):
    rows = accuracy(log, arm=arm, by="budget").frame, kept_fraction(log, arm=arm, by="budget").frame
    return [frame["estimate"].to_numpy() for frame in rows]


def test_the_points_are_what_was_kept_and_what_came_out(log):
    frame = memory_curve(log, by="arm").frame
    for quantity, estimator in (("kept", kept_fraction), ("outcome", accuracy)):
        points = frame.filter(quantity=quantity).drop("quantity")
        alone = estimator(log, by=["arm", "budget", "budget_tokens"]).frame
        assert points.equals(alone.select(points.columns))
    with pytest.raises(InputError, match=r"memory_curve: the rows differ in arm \(gate, plain\)"):
        memory_curve(log)
    assert memory_curve(log, arm="gate").frame.height == 6


def test_a_signal_with_the_name_of_a_column_of_the_result_is_refused(make_log):
    named = make_log({"a": {0.25: [1, 0], 0.75: [1, 1]}}, signals={"kept": [1.0, 2.0]})
    assert accuracy_at_kept(named, kept=[0.5]).frame.select("kept", "estimate").rows() == [(0.5, 0.75)]
    message = (
        "accuracy_at_kept: by='kept' is a signal of the log, and the name of a column that the result has"
    )
    with pytest.raises(InputError, match=message):
        accuracy_at_kept(named, kept=[0.5], by="kept")
    with pytest.raises(InputError, match="memory_curve: by='quantity' is a signal of the log"):
        memory_curve(make_log({"a": {0.25: [1, 0]}}, signals={"quantity": [1.0, 2.0]}), by=["quantity"])


def test_the_curve_is_straight_between_what_was_kept(log):
    kept = [0.35, 0.6, 0.75]
    for arm in ("gate", "plain"):
        y, x = curve(log, arm)
        found = accuracy_at_kept(log, arm=arm, kept=kept).frame
        assert found["estimate"].to_list() == pytest.approx(np.interp(kept, x, y))
        assert found["kept"].to_list() == kept


def test_at_a_budget_it_is_the_accuracy_there(log):
    row, alone = (
        only(accuracy_at_kept(log, arm="plain", kept=[0.5])),
        accuracy(log, arm="plain", by="budget").frame,
    )
    assert row["estimate"] == pytest.approx(alone["estimate"][1])
    assert row["se"] == pytest.approx(alone["se"][1])


def test_nothing_is_read_off_outside_what_was_kept(log):
    found = accuracy_at_kept(log, kept=[0.25, 0.85], by="arm").frame
    assert found.select("arm", "kept", "status").rows() == [
        ("gate", 0.25, "undefined"),
        ("gate", 0.85, "ok"),
        ("plain", 0.25, "ok"),
        ("plain", 0.85, "undefined"),
    ]


def test_arms_are_compared_at_equal_memory(log):
    found = only(accuracy_at_kept(log, kept=[0.4], by="arm").contrast(arm=("gate", "plain")))
    (gate_y, gate_x), (plain_y, plain_x) = curve(log, "gate"), curve(log, "plain")
    expected = np.interp(0.4, gate_x, gate_y) - np.interp(0.4, plain_x, plain_y)
    assert found["estimate"] == pytest.approx(expected)
    assert found["low"] < expected < found["high"]


def test_the_crossing_is_where_the_difference_vanishes(log):
    row = only(memory_crossover(log, arm="gate", baseline="plain"))
    assert (row["n"], row["clusters"]) == (120, 20)
    at = accuracy_at_kept(log, kept=[row["estimate"]], by="arm").contrast(arm=("gate", "plain"))
    assert only(at)["estimate"] == pytest.approx(0, abs=1e-9)
    swapped = only(memory_crossover(log, arm="plain", baseline="gate"))
    assert swapped["estimate"] == pytest.approx(row["estimate"])


def test_its_interval_is_that_of_resamples_with_a_crossing(log):
    result = memory_crossover(log, arm="gate", baseline="plain")
    assert result.design.interval == "auto"
    row, share = only(result), defined_share(result)
    assert share["resamples"].item() == 2000
    assert 0.9 < share["defined"].item() <= 1
    by_hand = only(memory_crossover(log, arm="gate", baseline="plain", design=Design(interval="percentile")))
    assert (row["low"], row["high"]) == (by_hand["low"], by_hand["high"])
    assert row["low"] < row["estimate"] < row["high"]


def test_curves_that_do_not_cross_have_no_crossing(make_log):
    apart = make_log(
        {
            "a": dict(zip(BUDGETS, shares((9, 12, 15)), strict=True)),
            "b": dict(zip(BUDGETS, shares((1, 4, 7)), strict=True)),
        }
    )
    result = memory_crossover(apart, arm="a", baseline="b")
    assert (only(result)["estimate"], only(result)["status"]) == (None, "undefined")
    assert defined_share(result)["defined"].item() < 0.01
    touching = make_log({"a": {0.2: [1, 0, 1], 1.0: [1, 1, 1]}, "b": {0.2: [0, 0, 1], 1.0: [1, 1, 1]}})
    assert only(memory_crossover(touching, arm="a", baseline="b"))["status"] == "undefined"


def test_a_crossing_of_few_resamples_has_no_interval(make_log):
    close = make_log(
        {
            "a": {0.2: [1, 0, 0, 1, 0, 0], 0.8: [1, 1, 0, 1, 0, 0]},
            "b": {0.2: [0, 1, 1, 0, 1, 0], 0.8: [0, 1, 0, 1, 0, 0]},
        }
    )
    row = only(memory_crossover(close, arm="a", baseline="b"))
    assert row["status"] == "undefined in bootstrap"
    assert (row["estimate"], row["low"]) == (pytest.approx(0.5), None)


def test_parts_and_empty_parts(log):
    result = memory_crossover(log, arm="gate", baseline="plain", by="task")
    assert result.by == ("task",)
    assert (
        only(memory_crossover(log, arm="gate", baseline="plain", where="budget > 1"))["status"] == "no rows"
    )
    half = memory_crossover(log, arm="gate", baseline="plain", where="arm = 'gate'")
    assert only(half)["status"] == "undefined"
    assert defined_share(half)["defined"].item() == 0
    none = accuracy_at_kept(log, arm="gate", kept=[0.5], where="budget > 1")
    assert only(none)["status"] == "no rows"


def test_token_budgets_are_points_of_a_curve(make_records):
    records = [
        record
        for tokens, count in ((32, 5), (64, 15))
        for record in make_records(
            {"a": {0.5: shares([count])[0]}}, budget=None, budget_tokens=tokens, kept_fraction=tokens / 128
        )
    ]
    row = only(accuracy_at_kept(log_from_records(records), kept=[0.375]))
    assert row["estimate"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kept": [0.0]}, "accuracy_at_kept: kept=0.0 is not a fraction in (0, 1]"),
        ({"kept": 0.5}, "accuracy_at_kept: kept=0.5 is no list of fractions; pass a list such as"),
        ({"kept": []}, "accuracy_at_kept: kept=[] is empty or names a fraction twice"),
        ({"kept": [0.5, 0.5]}, "accuracy_at_kept: kept=[0.5, 0.5] is empty or names a fraction twice"),
        ({"kept": [0.5], "by": None}, "accuracy_at_kept: the rows differ in arm (gate, plain)"),
        ({"kept": [0.5], "outcome": "f1"}, "accuracy_at_kept: outcome='f1' is not known"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(log, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        accuracy_at_kept(log, **({"by": "arm"} | arguments))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"baseline": "gate"}, "memory_crossover: baseline='gate' is the arm itself"),
        ({"baseline": "plan"}, "memory_crossover: baseline='plan' is not an arm of the log"),
        ({"by": "arm"}, "memory_crossover: by='arm' names the arm, and two are compared"),
    ],
)
def test_two_arms_are_compared(log, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        memory_crossover(log, **({"arm": "gate", "baseline": "plain"} | arguments))


def test_runs_must_tell_what_they_kept_and_scored(log):
    without = log.with_runs(
        log.runs.with_columns(kept_fraction=pl.lit(None, pl.Float64), n_kept=pl.lit(None, pl.Int64))
    )
    with pytest.raises(InputError, match="memory_crossover: kept_fraction is null in 120 of 120 rows"):
        memory_crossover(without, arm="gate", baseline="plain")
