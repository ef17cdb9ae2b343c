"""Printed scores held against those of rows: what rounding explains, and what it does not."""

from __future__ import annotations

import pytest

from kvstats.log.adapters.printed_scores import ScoreDifference, score_differences


@pytest.mark.parametrize(
    ("printed", "scores", "expected"),
    [
        ({"a": 50.0}, {"a": [0, 1]}, []),
        ({"a": 66.67}, {"a": [1, 1, 0]}, []),
        ({"a": 66.66}, {"a": [1, 1, 0]}, ["a printed 66.66, recomputed 66.67 from 3 rows"]),
        # A half may be rounded either way.
        ({"a": 0.12}, {"a": [1] + [0] * 799}, []),
        ({"a": 0.13}, {"a": [1] + [0] * 799}, []),
        ({"b": 1.0}, {"a": [0]}, ["a not printed, recomputed 0.00 from 1 row", "b printed 1, without a row"]),
        ({"a": float("nan")}, {"a": [0]}, ["a printed nan, recomputed 0.00 from 1 row"]),
        ({"a": 1.0}, {"a": []}, ["a printed 1, without a row"]),
        ({}, {}, []),
    ],
)
def test_differences(printed, scores, expected):
    assert [str(found) for found in score_differences(printed, scores)] == expected


def test_digits_and_fields():
    assert list(score_differences({"a": 66.7}, {"a": [1, 1, 0]}, digits=1)) == []
    (found,) = score_differences({"a": 66.7}, {"a": [1, 1, 0]})
    assert found == ScoreDifference("a", 66.7, pytest.approx(200 / 3), 3)
