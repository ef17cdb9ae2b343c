import re
import sys

import numpy as np
import polars as pl
import pytest

from kvstats.errors import InputError
from kvstats.inference import RESULT_SCHEMA, Design, infer, samples_by
from kvstats.statistics import Mean

FRAME = pl.DataFrame(
    {
        "task": ["b"] * 6 + ["a"] * 6 + ["c"],
        "budget": [0.5, 1.0, 0.5, 1.0, 0.5, 1.0] * 2 + [0.5],
        "id": [str(i // 2) for i in range(12)] + ["9"],
        "y": [0.1, 0.9, 0.3, 0.8, 0.2, 0.7, 0.0, 0.2, 0.1, 0.4, 0.3, 0.3, 0.5],
    }
)


def result_of(by=("task",), frame=FRAME, design=Design(cluster="id"), null=None):  # noqa: B008 (frozen)
    samples = samples_by("mean", frame, by, design, lambda part: (Mean(part["y"].to_numpy()), "mean"))
    return infer("mean", samples, design, {name: frame.schema[name] for name in by}, null)


def test_columns_and_types():
    frame = result_of(("task", "budget")).frame
    assert dict(frame.schema) == {"task": pl.String, "budget": pl.Float64, **RESULT_SCHEMA}
    assert frame.select("task", "budget").rows() == [
        ("a", 0.5),
        ("a", 1.0),
        ("b", 0.5),
        ("b", 1.0),
        ("c", 0.5),
    ]


def test_undefined_is_null_never_nan():
    frame = result_of().frame
    assert frame["status"].to_list() == ["ok", "ok", "one cluster"]
    assert frame.filter(task="c").select("low", "high", "se", "df").row(0) == (None,) * 4
    assert not any(frame[name].is_nan().any() for name in ("estimate", "low", "high", "se", "df"))


def test_no_rows_without_by_and_no_row_with():
    without = result_of((), FRAME.clear()).frame
    assert without.select("estimate", "n", "clusters", "status").rows() == [(None, 0, 0, "no rows")]
    empty = result_of(("task",), FRAME.clear()).frame
    assert empty.height == 0
    assert dict(empty.schema) == {"task": pl.String, **RESULT_SCHEMA}


def test_samples_follow_the_rows():
    result = result_of()
    assert [sample.key for sample in result.samples] == [("a",), ("b",), ("c",)]
    backwards = infer("mean", result.samples[::-1], result.design, {"task": pl.String()})
    assert backwards.frame.equals(result.frame)
    assert [sample.key for sample in backwards.samples] == [("a",), ("b",), ("c",)]


def test_neither_the_order_of_rows_nor_other_groups_change_a_bootstrap():
    design = Design(cluster="id", interval="percentile", n_resamples=200)
    result = result_of(design=design)
    shuffled = result_of(frame=FRAME.sample(fraction=1, shuffle=True, seed=1), design=design)
    alone = result_of(frame=FRAME.filter(task="b"), design=design)
    for name in ("estimate", "low", "high", "se"):
        np.testing.assert_allclose(shuffled.frame[name].to_numpy(), result.frame[name].to_numpy(), rtol=1e-12)
    assert alone.frame.equals(result.frame.filter(task="b"))


def test_p_values_are_a_frame_with_nulls():
    found = result_of(null=0.0).p_value()
    assert found.columns == ["task", "p_value"]
    assert found["p_value"].is_null().to_list() == [False, False, True]
    assert result_of(()).p_value(0.0).columns == ["p_value"]
    two, greater = (result_of(null=0.0).p_value(alternative=a) for a in ("two-sided", "greater"))
    assert two["p_value"][0] == pytest.approx(2 * greater["p_value"][0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "Result.p_value: null=None is not given and mean has no null value of its own; pass a number"),
        ({"null": float("nan")}, "Result.p_value: null=nan is not a finite number; pass one such as 0.0"),
        ({"null": "0"}, "Result.p_value: null='0' is not a finite number"),
        ({"null": 0, "alternative": "great"}, "alternative='great' is not known; did you mean 'greater'?"),
    ],
)
def test_tests_that_cannot_be_made_are_refused(arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        result_of().p_value(**arguments)


def test_to_pandas_keeps_columns_and_turns_null_into_nan():
    frame = result_of().to_pandas()
    assert list(frame.columns) == result_of().frame.columns
    assert frame["low"].isna().tolist() == [False, False, True]
    assert frame["estimate"].tolist() == result_of().frame["estimate"].to_list()
    assert str(frame["n"].dtype) == "int64"


def test_to_pandas_says_when_pandas_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=re.escape("Result.to_pandas: needs pandas; install it, or use")):
        result_of().to_pandas()


def test_text_and_html():
    result = result_of(frame=FRAME.filter(pl.col("task") != "b"))
    assert repr(result) == (
        "mean, 95% interval\n"
        "task  estimate    low  high     se  df  n  clusters  status\n"
        "a         0.22  -0.04  0.48  0.060   2  6         3  ok\n"
        "c        0.500      –     –      –   –  1         1  one cluster"
    )
    html = result._repr_html_()
    assert html.startswith("<table>")
    assert "mean, 95% interval" in html
    assert html.count("<tr>") == 3


def test_markdown_and_latex():
    result = result_of(frame=FRAME.filter(pl.col("task") != "b"))
    assert result.to_markdown().splitlines()[4] == ("| a | 0.22 | -0.04 | 0.48 | 0.060 | 2 | 6 | 3 | ok |")
    assert result.to_latex().splitlines()[5:7] == [
        r"a & 0.22 & $-$0.04 & 0.48 & 0.060 & 2 & 6 & 3 & ok \\",
        r"c & 0.500 & -- & -- & -- & -- & 1 & 1 & one cluster \\",
    ]
