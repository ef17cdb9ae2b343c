"""Answers of LongBench: scores by task, inputs without ids, and the printed scores beside them."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.log.adapters.longbench_tasks import LONGBENCH_TASKS

QA = [
    {"pred": " The old mill", "answers": ["old mill"], "all_classes": None, "length": 3000},
    {"pred": "a farm in spring", "answers": ["barn", "the farm"], "all_classes": None, "length": 5000},
    {"pred": "unknown", "answers": ["a bridge"], "all_classes": None, "length": 9000},
]
"""Scores 1, 1/2 and 0."""


@pytest.fixture
def write(tmp_path):
    def write_rows(rows, name="tiny/hotpotqa.jsonl", result=None):
        path = tmp_path / "pred" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        if result is not None:
            path.with_name("result.json").write_text(
                result if isinstance(result, str) else json.dumps(result)
            )
        return path

    return write_rows


def test_rows_become_runs_with_scores(write):
    log = kv.read_log(write(QA, result={"hotpotqa": 50.0}), arm="full", pair_by="content")
    runs = log.runs.sort("score", descending=True)
    assert runs["score"].to_list() == pytest.approx([1.0, 0.5, 0.0])
    assert set(runs.select("suite", "model", "task", "arm", "budget").rows()) == {
        ("longbench", "tiny", "hotpotqa", "full", 1.0)
    }
    assert runs["prediction"].to_list() == [" The old mill", "a farm in spring", "unknown"]
    assert runs["references"].to_list()[1] == ["barn", "the farm"]
    # LongBench has no threshold of F1, so that success is not known.
    assert runs["success"].null_count() == 3
    assert json.loads(runs["extra"][0]) == {"metric": "token_f1", "threshold": None, "length": 3000}


def test_a_threshold_can_be_set_afterwards(write):
    log = kv.read_log(write(QA), arm="full", pair_by="position")
    assert kv.score_predictions(log, threshold=0.5).runs["success"].to_list() == [True, True, False]


def test_inputs_are_paired_by_nothing_that_was_not_asked_for(write):
    with pytest.raises(
        InputError, match=r"hotpotqa\.jsonl:1: has no id to pair inputs by; pass pair_by='cont"
    ):
        kv.read_log(write(QA), arm="full")


def test_the_arm_is_asked_for(write):
    with pytest.raises(InputError, match=r"arm=None is told by nothing in .*, which has format longbench"):
        kv.read_log(write(QA), pair_by="content")


def test_arms_by_folder_are_twins_by_content(write, tmp_path):
    write(QA, "tiny/hotpotqa.jsonl")
    # Another order, and one input less.
    write([{**QA[1], "pred": "farm"}, {**QA[0], "pred": "no"}], "tiny_snapkv/hotpotqa.jsonl")
    log = kv.read_log(
        tmp_path / "pred" / "*" / "*.jsonl",
        arm={"tiny": "full", "tiny_snapkv": "snapkv"},
        model="tiny",
        budget={"tiny": 1.0, "tiny_snapkv": 0.25},
        pair_by="content",
    )
    pairs = kv.paired(log, arm="snapkv").sort("score")
    assert pairs.select("baseline_score", "score").rows() == [(1.0, 0.0), (0.5, 1.0)]


def test_the_full_cache_keeps_everything(write):
    with pytest.raises(InputError, match=r"budget=0.5 is not that of the full cache, which is the arm of"):
        kv.read_log(write(QA), arm="full", budget=0.5, pair_by="content")


def test_an_id_of_the_rows_is_used(write):
    rows = [{**row, "_id": f"q{place}"} for place, row in enumerate(QA)]
    log = kv.read_log(write(rows), arm="full")
    assert log.runs["input_id"].to_list() == ["q0", "q1", "q2"]
    assert all("_id" not in extra for extra in log.runs["extra"])


CLASSED = {"all_classes": ["Date", "City"], "length": 100}


@pytest.mark.parametrize(
    ("task", "row", "score", "success"),
    [
        # The first line only.
        ("trec", {"pred": "\nDate\nType: City", "answers": ["Date"], **CLASSED}, 1.0, True),
        ("trec", {"pred": "Date, City", "answers": ["Date"], **CLASSED}, 0.5, False),
        ("triviaqa", {"pred": "Ada\nQuestion: who", "answers": ["Ada"]}, 1.0, None),
        ("samsum", {"pred": "Ada calls Ben\nDialogue:", "answers": ["Ada calls Ben"]}, 1.0, None),
        ("gov_report", {"pred": "a b\nc", "answers": ["a b"]}, 0.8, None),
        ("passage_retrieval_en", {"pred": "Paragraph 3", "answers": ["Paragraph 3"]}, 1.0, True),
        ("passage_retrieval_zh", {"pred": "段落3 4", "answers": ["段落3"]}, 0.5, False),
        ("passage_count", {"pred": "there are 7", "answers": ["7"]}, 1.0, True),
        ("passage_count", {"pred": "there are 7", "answers": [7]}, 1.0, True),
        ("lcc", {"pred": "```python\nreturn x\n```", "answers": ["return x"]}, 1.0, None),
    ],
)
def test_each_task_has_its_metric(write, task, row, score, success):
    path = write([{"all_classes": None, **row}], f"tiny/{task}.jsonl")
    runs = kv.read_log(path, arm="full", pair_by="content").runs
    assert runs.select("score", "success").row(0) == (pytest.approx(score), success)


def test_there_are_21_tasks_and_a_threshold_for_full_marks_only():
    assert len(LONGBENCH_TASKS) == 21
    metrics = {task.metric.__name__: task.threshold for task in LONGBENCH_TASKS.values()}
    assert {name for name, threshold in metrics.items() if threshold == 1.0} == {
        "classification",
        "retrieval",
    }
    assert set(metrics.values()) == {None, 1.0}


def test_classes_are_kept(write):
    path = write([{"pred": "Date", "answers": ["Date"], **CLASSED}], "tiny/trec.jsonl")
    extra = json.loads(kv.read_log(path, arm="full", pair_by="content").runs["extra"][0])
    assert extra == {"metric": "classification", "threshold": 1.0, **CLASSED}


def test_a_printed_score_that_is_not_reproduced(write):
    path = write(QA, result={"hotpotqa": 49.98, "trec": 10})
    with pytest.warns(
        UserWarning, match=r"hotpotqa printed 49\.98, recomputed 50\.00 from 3 rows, unlike result"
    ):
        log = kv.read_log(path, arm="full", pair_by="content")
    extra = [json.loads(text) for text in log.runs["extra"]]
    assert [(one["printed_score"], one["recomputed_score"]) for one in extra] == [(49.98, 50.0)] * 3


@pytest.mark.parametrize(
    ("result", "fault"),
    [
        ("{", r"result\.json is not JSON \(.*\), so that no score is held against it"),
        (
            {"hotpotqa": "N/A"},
            r"result\.json has no number for hotpotqa, so that no score is held against it",
        ),
    ],
)
def test_printed_scores_that_cannot_be_used(write, result, fault):
    path = write(QA, result=result)
    with pytest.warns(UserWarning, match=fault):
        log = kv.read_log(path, arm="full", pair_by="content")
    assert log.runs["score"].null_count() == 0


@pytest.mark.parametrize("result", [{"trec": 10}, [], {"hotpotqa": None}])
def test_no_printed_score_of_the_task(write, result):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kv.read_log(write(QA, result=result), arm="full", pair_by="content")


def test_a_repeated_input_is_an_error_with_both_lines(write):
    path = write([*QA, {**QA[0], "pred": "another"}])
    with pytest.raises(
        InputError, match=r"hotpotqa\.jsonl:4: repeats the content of line 1; remove one of them"
    ):
        kv.read_log(path, arm="full", pair_by="content")


def test_a_repeated_input_that_is_allowed_shows_which_rows_the_printed_score_rests_on(write):
    # 1, 1/2, 0 and again 1: 62.5 over all rows, 50 over the inputs.
    path = write([*QA, QA[0]], result={"hotpotqa": 62.5})
    told = (
        r"1 of 4 rows repeats the input of an earlier one; the mean is 62\.50 with them and 50\.00 without; "
    )
    with pytest.warns(UserWarning, match=told + r"result\.json prints 62\.5") as caught:
        log = kv.read_log(path, arm="full", pair_by="content", on_duplicate="first")
    assert (log.runs.height, log.rejects["line"].to_list(), len(caught)) == (3, [4], 1)
    # By position nothing is a duplicate, but the same row twice is told all the same.
    with pytest.warns(UserWarning, match=told):
        log = kv.read_log(path, arm="full", pair_by="position")
    assert log.runs["input_id"].to_list() == ["line 1", "line 2", "line 3", "line 4"]


def test_printed_scores_by_length(write):
    printed = {"0-4k": 100.0, "4-8k": 50.0, "8k+": 1.0}
    path = write(QA, "../pred_e/tiny/hotpotqa.jsonl", {"hotpotqa": printed})
    with pytest.warns(UserWarning, match=r"hotpotqa 8k\+ printed 1, recomputed 0\.00 from 1 row") as caught:
        log = kv.read_log(path, arm="full", pair_by="content")
    assert len(caught) == 1
    assert set(log.runs["suite"]) == {"longbench_e"}
    assert sum("printed_score" in extra for extra in log.runs["extra"]) == 1


def test_printed_lengths_without_rows(write):
    result = '{"hotpotqa": {"0-4k": 100.0, "4-8k": NaN, "8k+": NaN}}'
    path = write(QA[:1], result=result)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kv.read_log(path, arm="full", pair_by="content").runs.height == 1


def test_a_task_without_a_metric(write):
    path = write(QA, "tiny/my_task.jsonl", {"my_task": 12.0})
    with pytest.warns(
        UserWarning, match=r"no metric is known for this task \(my_task\); predictions are kept"
    ):
        log = kv.read_log(path, arm="full", pair_by="content")
    assert log.runs.select("score", "success", "error").unique().rows() == [
        (None, None, "no metric is known for this task")
    ]
    scored = kv.score_predictions(log, metric="exact_match", threshold=1.0).runs
    assert sorted(scored["score"]) == [0.0, 0.0, 1.0]
    assert scored["error"].null_count() == 3


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"pred": 3}, "has pred=3, which is not text"),
        ({"answers": {"a": 1}}, "has answers that are not texts"),
        ({"answers": []}, "has no reference"),
        ({"answers": None}, "has answers that are not texts"),
    ],
)
def test_a_faulty_row_is_an_error_that_names_it_or_a_reject(write, change, fault):
    path = write([QA[0], {**QA[1], **change}, QA[2]])
    with pytest.raises(InputError, match=rf"hotpotqa\.jsonl:2: {fault}"):
        kv.read_log(path, arm="full", pair_by="content")
    log = kv.read_log(path, arm="full", pair_by="content", on_error="skip")
    assert (log.runs.height, log.rejects["line"].to_list()) == (2, [2])


def test_columns_that_are_missing_and_references_that_cannot_be_used(write):
    with pytest.raises(InputError, match="2: has no answers"):
        kv.read_log(write([QA[0], {"pred": "x"}]), arm="full", pair_by="content")
    path = write([QA[0]], "tiny/passage_count.jsonl")
    with pytest.raises(InputError, match=r"1: cannot be scored \(retrieval: .* has no number"):
        kv.read_log(path, arm="full", pair_by="content")
    path = write([QA[0]], "tiny/trec.jsonl")
    with pytest.raises(InputError, match=r"1: cannot be scored \(classification: .* is not a list of names"):
        kv.read_log(path, arm="full", pair_by="content")


def test_a_row_without_a_prediction_has_no_score(write):
    log = kv.read_log(write([{**QA[0], "pred": None}, QA[1]]), arm="full", pair_by="position")
    assert log.runs.select("score", "error").rows() == [(None, "no prediction"), (0.5, None)]


def test_lines_that_are_no_json_and_an_empty_file(write):
    path = write(QA)
    path.write_text(path.read_text() + '{"pred": "cut o')
    with pytest.raises(InputError, match=r"hotpotqa\.jsonl:4: is not JSON"):
        kv.read_log(path, arm="full", pair_by="content")
    path = write([])
    with pytest.raises(InputError, match=r"hotpotqa\.jsonl:1: the file is empty"):
        kv.read_log(path, format="longbench", arm="full", pair_by="content")


def test_a_folder_is_read_without_its_printed_scores(write, tmp_path):
    write(QA, result={"hotpotqa": 50.0, "trec": 100.0})
    write([{"pred": "Date", "answers": ["Date"], **CLASSED}], "tiny/trec.jsonl")
    log = kv.read_log(Path(tmp_path / "pred"), arm="full", pair_by="content")
    assert sorted(log.runs["task"].unique()) == ["hotpotqa", "trec"]
