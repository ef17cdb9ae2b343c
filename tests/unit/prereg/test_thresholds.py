"""Thresholds: where on the axis a rule turns."""

from __future__ import annotations

import polars as pl
import pytest

from kvstats.expressions import check_expression
from kvstats.prereg.thresholds import thresholds

ROW = {
    "estimate": 0.3,
    "low": 0.1,
    "high": 0.5,
    "se": 0.1,
    "df": 9.0,
    "n": 10,
    "clusters": 10,
    "status": "ok",
}


def values(rule, *rows):
    return [threshold.values for threshold in thresholds(rule, rows or (ROW,))]


@pytest.mark.parametrize(
    ("rule", "column", "expected"),
    [
        ("low > 0.5", "low", 0.5),
        ("-0.05 <= high", "high", -0.05),
        ("estimate < 1/3", "estimate", 0.333333333333),
        ("high - 0.1 < 0.05", "high", 0.15),
        ("2 * estimate + 1 >= 2", "estimate", 0.5),
        ("0.3 > -low", "low", -0.3),
        ("low > CAST(0.25 AS DOUBLE)", "low", 0.25),
        ("estimate = 1", "estimate", 1.0),
    ],
)
def test_a_comparison_turns_at_its_threshold(rule, column, expected):
    (found,) = thresholds(rule, [ROW])
    assert (found.column, found.constant) == (column, pytest.approx(expected, abs=1e-9))
    beside = pl.DataFrame({column: [found.constant - 1e-6, found.constant, found.constant + 1e-6]})
    condition = check_expression("test", "rule", rule)
    answers = beside.with_columns(condition.alias("holds"))["holds"].to_list()
    assert len(set(answers)) == 2


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("low > 0.05 AND NOT (estimate < -5e-2)", [(-0.05,), (0.05,)]),
        ("estimate BETWEEN 0.1 AND 0.2", [(0.1,), (0.2,)]),
        ("ABS(estimate) <= 0.02", [(-0.02,), (0.02,)]),
        ("low > 0 OR high < 0", [(0.0,), (0.0,)]),
        ("low > 0 AND low > 0.0", [(0.0,)]),
        ("SUM(CASE WHEN low > 0.5 THEN 1 ELSE 0 END) >= 3", [(0.5,)]),
    ],
)
def test_every_comparison_is_found_once(rule, expected):
    assert values(rule) == expected


@pytest.mark.parametrize(
    "rule",
    [
        "status = 'ok'",
        "n > 100",
        "low > high",
        "estimate * estimate > 2",
        "AVG(low) > 0.5",
        "estimate IN (0.5, 0.6)",
        "ABS(estimate) < -1",
        "low + high > 0",
    ],
)
def test_what_has_no_place_on_the_axis_is_left_out(rule):
    assert values(rule) == []


def test_a_threshold_may_differ_between_rows():
    rows = [{"predicted": 0.2, **ROW}, {"predicted": None, **ROW}, {"predicted": 0.4, **ROW}]
    (found,) = thresholds("estimate >= predicted", rows)
    assert (found.values, found.constant) == ((0.2, None, 0.4), None)


def test_a_threshold_may_come_from_another_row():
    rows = [{"signal": "certificate", **ROW}, {"signal": "margin", **ROW, "low": 0.7}]
    (found,) = thresholds("estimate >= MAX(CASE WHEN signal = 'certificate' THEN low END)", rows)
    assert (found.column, found.constant) == ("estimate", 0.1)


def test_no_rows_have_no_thresholds():
    assert thresholds("low > 0", []) == ()


def test_rows_without_estimates_and_columns_without_values_do_no_harm():
    empty = {"condition": None, **ROW, "estimate": None, "low": None, "high": None}
    assert values("low > 0.5 AND condition = 'aware'", empty) == [(0.5,)]
