"""Answers of InfiniteBench: fields that differ by model, scores by task, and tasks without a metric."""

from __future__ import annotations

import json

import pytest

import kvstats as kv
from kvstats.errors import InputError

ROWS = [
    {"id": 0, "prediction": 'The value is "4a-7c".', "ground_truth": "4a-7c"},
    {"id": 1, "prediction": "4a-7c9", "ground_truth": "5b-11"},
    {"id": 2, "prediction": "", "ground_truth": "6d-00"},
]


@pytest.fixture
def write(tmp_path):
    def write_rows(rows, name="tiny/preds_kv_retrieval.jsonl"):
        path = tmp_path / "results" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write_rows


def test_rows_become_runs_with_scores(write):
    rows = [{**row, "seconds": 1} for row in ROWS]
    runs = kv.read_log(write(rows), arm="full").runs
    assert runs.select("input_id", "score", "success").rows() == [
        ("0", 1.0, True),
        ("1", 0.0, False),
        # An empty answer is a wrong one.
        ("2", 0.0, False),
    ]
    assert set(runs.select("suite", "model", "task", "arm", "budget").rows()) == {
        ("infinitebench", "tiny", "kv_retrieval", "full", 1.0)
    }
    assert runs["references"].to_list() == [["4a-7c"], ["5b-11"], ["6d-00"]]
    assert json.loads(runs["extra"][0]) == {"metric": "whole_word", "threshold": 1.0, "seconds": 1}


@pytest.mark.parametrize(
    ("task", "prediction", "label", "score", "success"),
    [
        ("passkey", "The key is 04711.", "04711", 1.0, True),
        ("number_string", "none", "04711", 0.0, False),
        ("longbook_choice_eng", "The answer is: B", ["Mill", "B"], 1.0, True),
        ("longbook_qa_eng", "old mill", ["the mill", "a farm"], 2 / 3, None),
        ("longbook_qa_chn", "北京市", ["北京"], 0.8, None),
        ("longdialogue_qa_eng", "Ada", ["ADA"], 1.0, True),
        ("math_find", "It is 12.0", 12, 1.0, True),
        ("code_run", "f(3) is -12.", -12, 1.0, True),
        ("code_debug", "B. parse_line", ["parse_line", "B"], 1.0, True),
    ],
)
def test_each_task_has_its_metric(write, task, prediction, label, score, success):
    path = write([{"id": "x", "pred": prediction, "label": label}], f"tiny/preds_{task}.jsonl")
    runs = kv.read_log(path, arm="full").runs
    assert runs.select("task", "score", "success").row(0) == (task, pytest.approx(score), success)


@pytest.mark.parametrize("task", ["math_calc", "longbook_sum_eng", "my_task"])
def test_predictions_of_tasks_without_a_metric_are_kept(write, task):
    path = write([{"id": 0, "prediction": "1 2 3", "ground_truth": [1, 2, 3]}], f"tiny/preds_{task}.jsonl")
    with pytest.warns(
        UserWarning, match=rf"no metric is known for this task \({task}\); predictions are kept"
    ):
        runs = kv.read_log(path, arm="full").runs
    assert runs.select("prediction", "references", "score", "success", "error").row(0) == (
        "1 2 3",
        ["1", "2", "3"],
        None,
        None,
        "no metric is known for this task",
    )


def test_models_are_paired_by_id(write, tmp_path):
    write(ROWS, "a/preds_kv_retrieval.jsonl")
    write(ROWS[:2], "b/preds_kv_retrieval.jsonl")
    log = kv.read_log(
        tmp_path / "results" / "*" / "*.jsonl",
        arm={"a": "full", "b": "snapkv"},
        model="tiny",
        budget={"a": 1.0, "b": 0.5},
    )
    assert kv.paired(log, arm="snapkv")["input_id"].to_list() == ["0", "1"]


def test_a_repeated_id(write):
    path = write([*ROWS, {**ROWS[0], "prediction": "another"}])
    with pytest.raises(InputError, match=r"kv_retrieval\.jsonl:4: repeats the id '0' of line 1"):
        kv.read_log(path, arm="full")
    log = kv.read_log(path, arm="full", on_duplicate="first")
    assert (log.runs.height, log.rejects["line"].to_list()) == (3, [4])


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({"id": 1, "ground_truth": "a"}, "has neither prediction nor pred"),
        ({"id": 1, "pred": "a"}, "has neither ground_truth nor label"),
        ({"id": 1, "pred": ["a"], "label": "a"}, r"has a prediction that is not text: \['a'\]"),
        ({"id": 1, "pred": "a", "label": None}, "has references that are neither texts nor numbers"),
        ({"id": 1, "pred": "a", "label": []}, "has no reference"),
        ({"pred": "a", "label": "a"}, "has no id to pair inputs by"),
        ({"id": 1.5, "pred": "a", "label": "a"}, r"has id=1\.5, which is neither text nor a whole number"),
    ],
)
def test_a_faulty_row_is_an_error_that_names_it_or_a_reject(write, row, fault):
    path = write([ROWS[0], row, ROWS[2]])
    with pytest.raises(InputError, match=rf"kv_retrieval\.jsonl:2: {fault}"):
        kv.read_log(path, arm="full")
    log = kv.read_log(path, arm="full", on_error="skip")
    assert (log.runs.height, log.rejects["line"].to_list()) == (2, [2])


def test_the_arm_is_asked_for_and_the_name_tells_the_format(write):
    with pytest.raises(InputError, match=r"arm=None is told by nothing in .* format infinitebench"):
        kv.read_log(write(ROWS))
    path = write(ROWS, "tiny/answers.jsonl")
    with pytest.raises(InputError, match="is in no known format"):
        kv.read_log(path, arm="full")
    assert kv.read_log(path, format="infinitebench", task="kv_retrieval", arm="full").runs.height == 3
