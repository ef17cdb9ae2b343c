"""Frames of several libraries give the same log, and each library's missing values are missing."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import kvstats as kv
from kvstats.errors import InputError

COLUMNS = kv.Columns(
    input_id="id",
    arm="arm",
    score="score",
    success="ok",
    n_kept="kept",
    references="gold",
    recorded_at="at",
    signals=("margin",),
    constants={"suite": "qa", "model": "llama", "task": "qa"},
)

ROWS = {
    "id": [1344800117571260417, 2, 3],
    "arm": ["full", "full", "full"],
    "score": [1.0, None, 0.5],
    "ok": [True, None, False],
    "kept": [480, None, 479],
    "gold": [["7", "seven"], ["8"], None],
    "at": [datetime(2026, 11, 1, tzinfo=UTC)] * 3,
    "margin": [0.5, 0.25, None],
    "note": ["a", None, "c"],
}


def as_duckdb(frame):
    return duckdb.connect().from_arrow(frame.to_arrow())


@pytest.mark.parametrize(
    "convert",
    [
        pl.DataFrame.lazy,
        pl.DataFrame.to_pandas,
        lambda frame: frame.to_pandas(use_pyarrow_extension_array=True),
        pl.DataFrame.to_arrow,
        as_duckdb,
    ],
    ids=["polars lazy", "pandas", "pandas arrow", "arrow", "duckdb"],
)
def test_every_library_gives_the_log_that_polars_gives(convert):
    frame = pl.DataFrame(ROWS)
    log, expected = kv.from_frame(convert(frame), columns=COLUMNS), kv.from_frame(frame, columns=COLUMNS)
    assert_frame_equal(log.runs, expected.runs)
    assert log.runs.select("input_id", "score", "n_kept", "margin").rows() == [
        ("1344800117571260417", 1.0, 480, 0.5),
        ("2", None, None, 0.25),
        ("3", 0.5, 479, None),
    ]
    assert log.runs["extra"].to_list() == ['{"note":"a"}', '{"note":null}', '{"note":"c"}']


NARROW = kv.Columns(
    input_id="id", score="score", constants={"suite": "s", "model": "m", "task": "t", "arm": "full"}
)


@pytest.mark.parametrize(
    ("frame", "fault"),
    [
        # One missing id makes floats of all whole numbers.
        (pd.DataFrame({"id": [1, None], "score": [1, 0]}), "row 1: has id=1.0, which is a float"),
        (
            pl.DataFrame({"id": ["1"], "score": [float("nan")]}),
            "row 1: has score=nan, which is no finite number",
        ),
        (pl.DataFrame({"id": ["1", None], "score": [1, 1]}), "row 2: has no input_id (column 'id')"),
        (
            pl.DataFrame({"id": ["1", "1"], "score": [1, 1]}),
            "row 2: repeats the run of row 1: input '1', arm 'full'",
        ),
        (pl.DataFrame({"id": ["1"], "score": ["good"]}), "row 1: has score='good', which is no number"),
        (
            pl.DataFrame({"id": ["1"], "scores": [1]}),
            "has no column 'score', declared as score; did you mean",
        ),
    ],
)
def test_a_row_that_breaks_the_contract_is_an_error_with_its_number(frame, fault):
    with pytest.raises(InputError, match=re.escape(f"from_frame: {fault}")):
        kv.from_frame(frame, columns=NARROW)


def test_skipped_rows_are_listed():
    frame = pl.DataFrame({"id": ["1", "2", "2"], "score": ["1", "?", "0.5"]})
    log = kv.from_frame(frame, columns=NARROW, on_error="skip")
    assert log.runs.select("input_id", "score").rows() == [("1", 1.0), ("2", 0.5)]
    assert log.rejects.select("file", "line").rows() == [("from_frame", 2)]


def test_what_json_cannot_hold_is_kept_as_text():
    frame = pd.DataFrame(
        {
            "id": ["1"],
            "score": [np.float32(0.5)],
            "array": [np.array([1.5, 2.5])],
            "time": [pd.Timestamp("2026-11-01")],
            "span": [pd.Interval(0, 1)],
        }
    )
    extra = kv.from_frame(frame, columns=NARROW).runs["extra"].item()
    assert extra == '{"array":[1.5,2.5],"span":"(0, 1]","time":"2026-11-01T00:00:00"}'


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"frame": [1]}, "from_frame: frame='list' is no frame that narwhals knows"),
        ({"columns": {"id": "input_id"}}, "from_frame: columns={'id': 'input_id'} is no Columns"),
        (
            {"columns": kv.Columns(input_id="id", constants={"task": "qa"})},
            "from_frame: columns tells no suite, model, arm; declare a column or constant, such as "
            "constants={'suite': ...}",
        ),
        ({"on_error": "ignore"}, "from_frame: on_error='ignore' is unknown; pass 'raise' or 'skip'"),
        (
            {"frame": pd.DataFrame([["1", 1, 2]], columns=["id", "score", "score"])},
            "from_frame: frame=['id', 'score', 'score'] has two columns of one name; rename one of them",
        ),
        (
            {"frame": pd.DataFrame({("a", "b"): [1]})},
            "from_frame: frame=('a', 'b') has a column whose name is no text; rename it",
        ),
    ],
)
def test_wrong_arguments(given, message):
    frame = pl.DataFrame({"id": ["1"], "score": [1]})
    with pytest.raises(InputError, match=re.escape(message)):
        kv.from_frame(**{"frame": frame, "columns": NARROW, **given})


def test_an_empty_frame_is_an_empty_log():
    frame = pl.DataFrame(schema={"id": pl.String, "score": pl.Float64})
    assert kv.from_frame(frame, columns=NARROW).runs.height == 0
