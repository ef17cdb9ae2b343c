"""Logs of Inspect, written by the package itself: scores, errors, epochs, and samples that are not there."""

from __future__ import annotations

import re
import sys
import zipfile

import pytest
from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalError,
    EvalLog,
    EvalSample,
    EvalSpec,
    write_eval_log,
)
from inspect_ai.model import ChatMessageUser, ModelOutput
from inspect_ai.scorer import Score

import kvstats as kv
from kvstats.errors import InputError

CREATED = "2026-11-01T10:00:00+00:00"


def sample(identity, value="C", epoch=1, **fields):
    """Return a sample that was scored, or with a value of `...` one that was not."""
    scores = {} if value is ... else {"match": Score(value=value, answer="a")}
    return EvalSample(
        **{
            "id": identity,
            "epoch": epoch,
            "input": f"question {identity}",
            "target": f"answer {identity}",
            "scores": scores,
            "output": ModelOutput.from_content("m", "said"),
            **fields,
        }
    )


@pytest.fixture
def write(tmp_path):
    """Write a log of samples and return its path."""

    def write_log(samples, name="a.eval", planned=None, epochs=1, status="success"):
        ids = list(dict.fromkeys(one.id for one in samples)) if planned is None else planned
        log = EvalLog(
            status=status,
            eval=EvalSpec(
                created=CREATED,
                task="qa",
                model="vllm/llama",
                dataset=EvalDataset(name="needles", samples=len(ids), sample_ids=ids),
                config=EvalConfig(epochs=epochs),
            ),
            samples=samples,
        )
        path = tmp_path / name
        write_eval_log(log, str(path))
        return path

    return write_log


def fails(message):
    return pytest.raises(InputError, match=re.escape(message))


@pytest.mark.parametrize("name", ["a.eval", "a.json"])
def test_each_sample_is_a_run(write, name):
    path = write([sample(1, metadata={"level": 3}), sample("0012", "I", target=["b", "c"])], name)
    log = kv.read_log(path, arm="full")
    columns = (
        "suite",
        "model",
        "task",
        "arm",
        "budget",
        "seed",
        "input_id",
        "score",
        "success",
        "references",
    )
    key = ("needles", "vllm/llama", "qa", "full", 1.0, 1)
    assert log.runs.select(columns).rows() == [
        (*key, "0012", 0.0, False, ["b", "c"]),
        (*key, "1", 1.0, True, ["answer 1"]),
    ]
    assert log.runs["prediction"].to_list() == ["said", "said"]
    assert log.runs["recorded_at"].dt.year().to_list() == [2026, 2026]
    extra = log.runs["extra"][1]
    assert '"metadata":{"level":3},"metric":"match","scores":{"match":"C"}' in extra


@pytest.mark.parametrize(
    ("value", "score"),
    [
        ("C", 1.0),
        ("P", 0.5),
        ("I", 0.0),
        ("N", 0.0),
        ("Yes", 1.0),
        ("false", 0.0),
        ("0.25", 0.25),
        (True, 1.0),
        (0.75, 0.75),
    ],
)
def test_values_become_numbers_as_inspect_makes_them(write, value, score):
    from inspect_ai.scorer import value_to_float

    assert value_to_float()(value) == score
    assert kv.read_log(write([sample(1, value)]), arm="full").runs["score"].to_list() == [score]


def test_a_value_that_is_no_number_is_an_error(write):
    path = write([sample(1), sample(2, "good")])
    with fails(f"{path}:2: sample 2, epoch 1: has match='good', which is no number"):
        kv.read_log(path, arm="full")
    log = kv.read_log(path, arm="full", on_error="skip")
    assert (log.runs.height, log.rejects.height) == (1, 1)


def test_samples_without_score_stay_in_the_log_and_say_why(write):
    samples = [
        sample(1),
        sample(2, ..., error=EvalError(message="timeout", traceback="", traceback_ansi="")),
        sample(3, ...),
        sample(4, float("nan")),
    ]
    log = kv.read_log(write(samples), arm="full")
    assert log.runs.select("input_id", "score", "error").rows() == [
        ("1", 1.0, None),
        ("2", None, "timeout"),
        ("3", None, "no score by match"),
        ("4", None, "no score by match"),
    ]
    with fails("score is null in 3 of 4 rows"):
        kv.accuracy(log, by="arm")


def test_a_log_that_nothing_scored_has_runs_without_score(write):
    log = kv.read_log(write([sample(1, ...)]), arm="full")
    assert log.runs.select("score", "success", "error").rows() == [(None, None, "no score")]


def test_epochs_are_seeds(write):
    log = kv.read_log(write([sample(1, epoch=1), sample(1, "I", epoch=2)], epochs=2), arm="rand", budget=0.5)
    assert log.runs.select("input_id", "seed", "score", "budget").rows() == [
        ("1", 1, 1.0, 0.5),
        ("1", 2, 0.0, 0.5),
    ]


def test_several_scorers_need_a_choice(write):
    scores = {"match": Score(value="C"), "judge": Score(value={"fluency": 0.5, "truth": 1})}
    path = write([sample(1, scores=scores)])
    with fails(f"read_log: metric=None is needed: {path} has 'judge.fluency', 'judge.truth', 'match'"):
        kv.read_log(path, arm="full")
    assert kv.read_log(path, arm="full", metric="judge.fluency").runs["score"].to_list() == [0.5]
    with fails("read_log: metric='judge.truht' is no score of"):
        kv.read_log(path, arm="full", metric="judge.truht")


def test_missing_samples_are_a_fault(write):
    path = write([sample(1)], planned=[1, 2, 3], epochs=2, status="cancelled")
    with fails(f"{path}:1: holds 1 of 6 planned samples; its status is 'cancelled'"):
        kv.read_log(path, arm="full")
    assert kv.read_log(path, arm="full", on_error="skip").runs.height == 1


@pytest.mark.parametrize(("planned", "count"), [([1, 2], "0 of 2 planned samples"), ([], "no samples")])
def test_a_log_without_samples_says_so(write, planned, count):
    path = write([], "a.json", planned=planned, status="error")
    with fails(f"{path}:1: holds {count}; its status is 'error'"):
        kv.read_log(path, arm="full")


def test_inputs_pair_by_content_whatever_their_messages_are_called(write):
    def asked():
        return [ChatMessageUser(content="what?")]

    files = [
        write([sample(1, input=asked())], "full.eval"),
        write([sample(9, "I", input=asked(), target="answer 1")], "snap.eval"),
    ]
    log = kv.read_log(files, arm={"full": "full", "snap": "snapkv"}, pair_by="content")
    assert kv.paired(log, arm="snapkv")["difference"].to_list() == [-1.0]


def test_success_is_known_of_fractions_only(write):
    log = kv.read_log(write([sample(1, 7), sample(2, 1)]), arm="full")
    assert log.runs["success"].to_list() == [None, None]


def test_a_repeated_sample_is_an_error(write):
    path = write([sample(1), sample(1, "I")], "a.json")
    with fails(f"{path}:2: repeats the id '1' of line 1"):
        kv.read_log(path, arm="full")


def test_a_file_that_inspect_cannot_read_is_an_error(tmp_path):
    path = tmp_path / "a.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", "{")
    with fails(f"{path}: cannot be read by inspect_ai"):
        kv.read_log(path, arm="full")


def test_without_the_package_the_error_names_it(write, monkeypatch):
    path = write([sample(1)])
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with fails(f"{path}: needs the package inspect-ai"):
        kv.read_log(path, arm="full")
