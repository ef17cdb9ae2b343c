"""Whatever a row of answers holds, it becomes a run or a reject."""

from __future__ import annotations

import json
import warnings

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kvstats as kv

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)

ROWS = {
    "longbench": ({"pred": "Date 7", "answers": ["Date 7"], "all_classes": ["Date 7", "City"], "length": 7}),
    "infinitebench": {"id": 1, "prediction": "12", "ground_truth": "12"},
}
TASKS = {
    "longbench": ["hotpotqa", "trec", "passage_count", "gov_report", "lcc", "my_task"],
    "infinitebench": [
        *("passkey", "kv_retrieval", "longdialogue_qa_eng", "longbook_choice_eng", "longbook_qa_chn"),
        *("math_find", "code_run", "code_debug", "math_calc"),
    ],
}


@pytest.mark.parametrize(("reader", "task"), [(name, task) for name in TASKS for task in TASKS[name]])
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_no_row_is_lost_and_none_breaks_the_reader(tmp_path, reader, task, data):
    row = ROWS[reader]
    changes = data.draw(
        st.lists(st.dictionaries(st.sampled_from([*row, "metric"]), JSON, max_size=2), max_size=3)
    )
    path = tmp_path / f"{task}.jsonl"
    path.write_text("".join(json.dumps({**row, **change}) + "\n" for change in [{}, *changes]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = kv.read_log(path, format=reader, task=task, arm="full", pair_by="position", on_error="skip")
    assert log.runs.height + log.rejects.height == 1 + len(changes)
    assert log.runs.filter(pl.col("score").is_null(), pl.col("error").is_null()).is_empty()
    assert log.runs["score"].drop_nulls().is_between(0, 1).all()
