"""The log: fixed columns, one order of rows, and a description of itself."""

from __future__ import annotations

import itertools
import math

import polars as pl
import pytest

from kvstats.errors import InputError
from kvstats.log import InputRecord, Log, RunRecord, log_from_records
from kvstats.log.frames import INPUT_SCHEMA, REPLAY_SCHEMA, RUN_SCHEMA, STUDY_SCHEMA

KEY = {"suite": "s", "model": "m", "task": "t"}


def run(input_id="1", arm="full", **fields):
    return RunRecord(**KEY, input_id=input_id, arm=arm, **fields)


def test_columns_do_not_depend_on_what_was_recorded(study, full_records):
    for records in ([], [run()], [study, *full_records]):
        log = log_from_records(records)
        for name, schema in (
            ("runs", RUN_SCHEMA),
            ("inputs", INPUT_SCHEMA),
            ("replays", REPLAY_SCHEMA),
            ("studies", STUDY_SCHEMA),
        ):
            frame = getattr(log, name)
            assert {c: frame.schema[c] for c in schema} == schema
            assert list(frame.columns)[: len(schema)] == list(schema)


def test_signals_are_columns_and_null_where_a_record_lacks_them():
    log = log_from_records([run("1", signals={"b": 1.0}), run("2", signals={"a": 2.0, "b": None}), run("3")])
    assert log.run_signals == ("a", "b")
    assert log.runs.select("a", "b").rows() == [(None, 1.0), (2.0, None), (None, None)]


@pytest.mark.parametrize(
    "record", [run(signals={"score": 1.0}), InputRecord(**KEY, input_id="1", signals={"drop": 1})]
)
def test_a_signal_cannot_have_the_name_of_a_field(record):
    (name,) = record.signals
    with pytest.raises(
        InputError, match=f"signals='{name}' is the name of a field of the record; rename the signal"
    ):
        log_from_records([record])


def test_rows_are_sorted_by_key_with_nulls_first():
    records = [
        run("2", budget=0.5),
        run("10", budget=0.5),
        run("1", budget=0.5, condition="stream"),
        run("1", arm="a", budget=0.5),
        run("1", budget=0.5),
        run("1", budget=0.25, seed=1),
        run("1", budget=0.25, seed=0),
        run("1"),
    ]
    expected = [
        ("1", None, "a", 0.5, 0),
        ("1", None, "full", None, 0),
        ("1", None, "full", 0.25, 0),
        ("1", None, "full", 0.25, 1),
        ("1", None, "full", 0.5, 0),
        ("1", "stream", "full", 0.5, 0),
        ("10", None, "full", 0.5, 0),
        ("2", None, "full", 0.5, 0),
    ]
    log = log_from_records(records)
    assert log.runs.select("input_id", "condition", "arm", "budget", "seed").rows() == expected


def test_rows_of_the_same_key_have_one_order_too():
    records = [run(score=score, prediction=text) for score in (0.0, 1.0, None) for text in ("x", "y")]
    logs = [log_from_records(order) for order in itertools.permutations(records)]
    assert all(log.runs.equals(logs[0].runs) for log in logs)


def test_dictionaries_are_canonical_json():
    first, second = (run(seconds=dict.fromkeys(names, 1.0)) for names in (("a", "b"), ("b", "a")))
    assert log_from_records([first]).runs.equals(log_from_records([second]).runs)
    assert log_from_records([first]).runs["seconds"].item() == '{"a":1.0,"b":1.0}'


def test_with_runs_keeps_everything_else(full_records):
    log = log_from_records(full_records)
    other = log.with_runs(log.runs.head(0))
    assert other.runs.height == 0
    assert other.inputs.equals(log.inputs)
    assert other.run_signals == log.run_signals
    assert log.runs.height == 1


def test_a_log_describes_itself(full_records):
    assert repr(Log()) == (
        "Log: 0 runs of 0 inputs by 0 models, 0 tasks, 0 arms; 0 input records, 0 replay cells, 0 rejects"
    )
    assert repr(log_from_records(full_records)) == (
        "Log: 1 run of 1 input by 1 model (smollm2), 1 task (single), 1 arm (poisson); 1 input record, "
        "1 replay cell, 0 rejects"
    )
    many = log_from_records([run(str(i % 2), arm=f"a{i}") for i in range(1200)])
    assert repr(many) == (
        "Log: 1,200 runs of 2 inputs by 1 model (m), 1 task (t), "
        "1,200 arms (a0, a1, a10, a100, a1000, a1001, ...); 0 input records, 0 replay cells, 0 rejects"
    )


def test_html_is_escaped_and_counts_runs():
    html = log_from_records([run(arm="<b>", score=1.0), run("2", arm="<b>", score=0.0)])._repr_html_()
    assert html.startswith("<p>Log: 2 runs of 2 inputs")
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "<td>2</td>" in html


def test_a_log_of_frames_is_sorted_too():
    frame = pl.DataFrame([[None] * len(RUN_SCHEMA)] * 2, schema=RUN_SCHEMA, orient="row")
    frame = frame.with_columns(input_id=pl.Series(["b", "a"]))
    assert Log(runs=frame).runs["input_id"].to_list() == ["a", "b"]


@pytest.mark.parametrize("field", ["score", "kept_fraction"])
def test_nan_is_refused_wherever_it_comes_from(make_run, field):
    run = make_run(**{field: math.nan})
    with pytest.raises(InputError, match=rf"Log: {field} is NaN in 1 of 1 runs, such as .*; write null for"):
        log_from_records([run])
    with pytest.raises(InputError, match="Log: score is NaN in 1 of 1 runs"):
        log_from_records([make_run()]).with_runs(
            log_from_records([make_run()]).runs.with_columns(score=pl.lit(math.nan))
        )


def test_a_run_signal_must_not_be_named_like_a_field_of_its_input(make_run):
    with pytest.raises(InputError, match="signals='drop' is the name of a field of the record; rename"):
        log_from_records([make_run(signals={"drop": 0.1})])
