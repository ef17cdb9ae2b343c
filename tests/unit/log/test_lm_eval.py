"""Samples of lm-evaluation-harness: one run a document, whatever its filters, metrics and other files."""

from __future__ import annotations

import json
import re

import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.log.adapters import recognising

TIME = "2026-11-01T10-20-30.123456"


def sample(number, filter="none", **columns):
    """Return a row as the harness writes it."""
    return {
        "doc_id": number,
        "doc": {"question": f"q{number}", "answer": f"a{number}"},
        "target": f"a{number}",
        "arguments": {"gen_args_0": {"arg_0": f"q{number}"}},
        "resps": [["it is a1"]],
        "filtered_resps": ["a1"],
        "filter": filter,
        "metrics": ["exact_match"],
        "doc_hash": f"hash{number}",
        "prompt_hash": "p",
        "target_hash": "t",
        "exact_match": 1.0 if number == 1 else 0.0,
        **columns,
    }


@pytest.fixture
def write(tmp_path):
    """Write samples below a folder named as the harness names it, and results beside them."""

    def write_samples(rows, run="run", task="gsm8k", results=None):
        folder = tmp_path / run / "Qwen__Qwen2.5-0.5B"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"samples_{task}_{TIME}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        if results is not None:
            (folder / f"results_{TIME}.json").write_text(json.dumps(results))
        return path

    return write_samples


def fails(message):
    return pytest.raises(InputError, match=re.escape(message))


def test_each_document_is_a_run(write):
    path = write([sample(1), sample(2)])
    log = kv.read_log(path, arm="full")
    columns = (
        "suite",
        "model",
        "task",
        "input_id",
        "arm",
        "budget",
        "score",
        "success",
        "prediction",
        "references",
    )
    key = ("lm-evaluation-harness", "Qwen__Qwen2.5-0.5B", "gsm8k")
    assert log.runs.select(columns).rows() == [
        (*key, "1", "full", 1.0, 1.0, True, "a1", ["a1"]),
        (*key, "2", "full", 1.0, 0.0, False, "a1", ["a2"]),
    ]
    extra = json.loads(log.runs["extra"][0])
    assert extra.keys() == sample(1).keys() - {"target", "exact_match"} | {"metric"}
    assert extra["metric"] == "exact_match"


def test_two_arms_pair_by_the_documents(write):
    files = [write([sample(1), sample(2)], "full"), write([sample(2), sample(1, exact_match=0.0)], "snap")]
    log = kv.read_log(files, arm={"full": "full", "snap": "snapkv"}, budget={"full": 1.0, "snap": 0.25})
    assert kv.paired(log, arm="snapkv").select("input_id", "budget", "difference").rows() == [
        ("1", 0.25, -1.0),
        ("2", 0.25, 0.0),
    ]


def test_several_filters_need_a_choice_and_never_double_the_documents(write):
    path = write(
        [sample(1, "strict"), sample(2, "strict"), sample(1, "loose"), sample(2, "loose", exact_match=1)]
    )
    with fails(
        f"read_log: answer_filter=None is needed: {path} has a row of each document for 'loose', 'strict'"
    ):
        kv.read_log(path, arm="full")
    assert kv.read_log(path, arm="full", answer_filter="strict").runs["score"].to_list() == [1.0, 0.0]
    assert kv.read_log(path, arm="full", answer_filter="loose").runs["score"].to_list() == [1.0, 1.0]
    with fails("is no filter of"):
        kv.read_log(path, arm="full", answer_filter="strictest")
    # Tasks read along with it may have no choice of filters, or another one.
    assert kv.read_log(write([sample(1)]), arm="full", answer_filter="strict").runs.height == 1
    with fails("answer_filter='strict' is no filter of"):
        kv.read_log(write([sample(1, "loose")]), arm="full", answer_filter="strict")


def test_a_document_that_lacks_the_filter_is_told(write):
    rows = [sample(1), sample(1, filter="strict"), sample(2), sample(3, filter="strict"), sample(2)]
    path = write(rows)
    fault = "is of document 2, which has no row of the filter that counts"
    with fails(f"{path}:3: {fault}; complete the file"):
        kv.read_log(path, arm="full", answer_filter="strict")
    log = kv.read_log(path, arm="full", answer_filter="strict", on_error="skip")
    assert log.runs["input_id"].to_list() == ["1", "3"]
    assert log.rejects.select("line", "error").rows() == [(3, fault)]


def test_several_metrics_need_a_choice(write):
    rows = [
        sample(1, metrics=["acc", "f1"], acc=1.0, f1=0.5),
        sample(2, metrics=["acc", "f1"], acc=0.0, f1=0.25),
    ]
    path = write(rows)
    with fails(f"read_log: metric=None is needed: {path} has 'acc', 'f1'; name one of them"):
        kv.read_log(path, arm="full")
    with fails("read_log: metric='f2' is no metric of"):
        kv.read_log(path, arm="full", metric="f2")
    assert kv.read_log(path, arm="full", metric="f1").runs["score"].to_list() == [0.5, 0.25]


def test_older_rows_do_not_list_their_metrics(write):
    row = sample(1)
    del row["metrics"], row["filter"]
    assert kv.read_log(write([row]), arm="full").runs["score"].to_list() == [1.0]


def test_success_is_known_of_fractions_only(write):
    log = kv.read_log(write([sample(1, exact_match=1.0), sample(2, exact_match=27.5)]), arm="full")
    assert log.runs["success"].to_list() == [None, None]


def test_a_null_score_is_kept_and_says_so(write):
    log = kv.read_log(write([sample(1), sample(2, exact_match=None)]), arm="full")
    assert log.runs.select("score", "error").rows() == [(1.0, None), (None, "exact_match is null")]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (sample(2, exact_match="1"), "has exact_match='1', which is text"),
        (sample(2, exact_match=[-3.5, 7]), "which is a list and no number; it is no score of a document"),
        (sample(2, doc_id=None), "has no id to pair inputs by"),
        (sample(2, doc_id=1.5), "has id=1.5, which is neither text nor a whole number"),
        (sample(1), "repeats the id '1' of line 1"),
        ({**sample(2), "exact_match": float("nan")}, "is not JSON (NaN is not JSON)"),
        (
            {"doc_id": 2, "filter": "none", "metrics": ["exact_match"]},
            "has no column 'exact_match', the metric",
        ),
    ],
)
def test_a_faulty_row_is_an_error_with_its_line(write, row, fault):
    path = write([sample(1), row])
    with fails(fault) as raised:
        kv.read_log(path, arm="full")
    assert str(raised.value).startswith(f"{path}:2: ")
    log = kv.read_log(path, arm="full", on_error="skip")
    assert (log.runs.height, log.rejects["line"].to_list()) == (1, [2])


RESULTS = {
    "results": {"gsm8k": {"exact_match,none": 0.5, "exact_match_stderr,none": "N/A"}},
    "n-samples": {"gsm8k": {"original": 1319, "effective": 2}},
    "higher_is_better": {"gsm8k": {"exact_match": True}},
    "model_name": "Qwen/Qwen2.5-0.5B",
}


def test_results_say_the_model_and_are_no_rows(write):
    path = write([sample(1), sample(2)], results=RESULTS)
    log = kv.read_log(path.parent, arm="full")
    assert (log.runs["model"].unique().to_list(), log.runs.height) == (["Qwen/Qwen2.5-0.5B"], 2)


def test_missing_documents_are_a_fault(write):
    path = write([sample(1)], results=RESULTS)
    with fails(f"{path}:1: ends with 1 of 2 documents by the results beside it"):
        kv.read_log(path, arm="full")
    log = kv.read_log(path, arm="full", on_error="skip")
    assert (log.runs.height, log.rejects.height) == (1, 1)


def test_a_metric_that_is_better_where_lower_is_no_score(write):
    path = write(
        [sample(1), sample(2)], results=RESULTS | {"higher_is_better": {"gsm8k": {"exact_match": False}}}
    )
    with fails("read_log: metric='exact_match' is better where it is lower"):
        kv.read_log(path, arm="full")


@pytest.mark.parametrize("content", ["{", "[]"])
def test_results_that_cannot_be_read_are_an_error(write, content):
    path = write([sample(1)])
    beside = path.with_name(f"results_{TIME}.json")
    beside.write_text(content)
    with fails(f"{beside}: is no results file"):
        kv.read_log(path, arm="full")


def test_another_document_under_the_same_id_is_an_error(write):
    files = [write([sample(1), sample(2)], "full"), write([sample(1), sample(2, doc_hash="other")], "snap")]
    arms = {"full": "full", "snap": "snapkv"}
    with fails("read_log: 1 documents have another doc_hash in another file, such as gsm8k 2"):
        kv.read_log(files, arm=arms)
    assert kv.read_log(files, arm=arms, on_error="skip").runs.height == 4
    assert kv.read_log(files, arm=arms, pair_by="content").runs["input_id"].n_unique() == 3


def test_the_arm_must_be_told_and_the_task_too(write):
    path = write([sample(1)])
    with fails("read_log: arm=None is told by nothing in"):
        kv.read_log(path)
    other = path.rename(path.with_name("gsm8k.jsonl"))
    with fails("tells no task; pass task=..."):
        kv.read_log(other, arm="full")
    assert kv.read_log(other, arm="full", task="gsm8k").runs["task"].to_list() == ["gsm8k"]


def test_the_full_cache_keeps_everything(write):
    path = write([sample(1)])
    with fails(f"read_log: budget=0.5 is not that of the full cache, which is the arm of {path}; pass 1"):
        kv.read_log(path, arm="full", budget=0.5)
    assert kv.read_log(path, arm="full", budget=1).runs["budget"].to_list() == [1.0]
    assert kv.read_log(path, arm="snapkv", budget=0.5).runs["budget"].to_list() == [0.5]


def test_samples_that_all_hold_nan_say_so_and_not_that_the_arm_is_too_much(write):
    path = write([sample(1, exact_match=float("nan"))])
    with fails(f"{path}:1: is not JSON (NaN is not JSON); repair the line"):
        kv.read_log(path, arm="full")


def test_samples_are_recognised_by_their_columns(tmp_path):
    assert recognising(tmp_path / "a.jsonl", [sample(1)]).name == "lm_eval"
    assert recognising(tmp_path / "samples_a.jsonl", [{"doc_id": 1}]) is None


def test_rows_without_any_metric_are_an_error(write):
    row = sample(1, metrics=[])
    with fails("has no column of a metric"):
        kv.read_log(write([row]), arm="full")
