"""Scores for predictions that have none; what is there stays as it is."""

from __future__ import annotations

import json
import math

import polars as pl
import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.log import RunRecord, log_from_records

KEY = {"suite": "s", "model": "m", "arm": "full"}
ANSWER = {"prediction": "the old mill", "references": ["An old mill."]}


@pytest.fixture
def log():
    return log_from_records(
        [
            RunRecord(**KEY, task="qa", input_id="open", **ANSWER, extra={"page": 3}),
            RunRecord(**KEY, task="qa", input_id="half", prediction="a mill", references=["old mill"]),
            RunRecord(**KEY, task="qa", input_id="scored", **ANSWER, score=0.25, success=False),
            RunRecord(**KEY, task="qa", input_id="no answer", references=["old mill"]),
            RunRecord(**KEY, task="qa", input_id="no reference", prediction="a mill", references=[]),
            RunRecord(**KEY, task="qa", input_id="failed", **ANSWER, error="out of memory"),
            RunRecord(**KEY, task="other", input_id="degree", **ANSWER, score=0.5),
        ]
    )


def rows(log, *names):
    return {row[0]: row[1:] for row in log.runs.select("input_id", *names).iter_rows()}


def test_rounding_misses_no_threshold():
    runs = [
        RunRecord(**KEY, task="qa", input_id=str(score), score=score) for score in (0.7999999999999999, 0.79)
    ]
    found = kv.score_predictions(log_from_records(runs), threshold=0.8)
    assert rows(found, "success") == {"0.7999999999999999": (True,), "0.79": (False,)}


def test_runs_without_a_score_get_one(log):
    found = kv.score_predictions(log, metric="token_f1", threshold=0.5)
    assert rows(found, "score", "success") == {
        "open": (1.0, True),
        "half": (pytest.approx(2 / 3), True),
        "scored": (0.25, False),
        "no answer": (None, None),
        "no reference": (None, None),
        "failed": (None, None),
        "degree": (0.5, None),
    }
    extra = rows(found, "extra")
    assert json.loads(extra["open"][0]) == {"page": 3, "metric": "token_f1", "threshold": 0.5}
    assert json.loads(extra["half"][0]) == {"metric": "token_f1", "threshold": 0.5}
    assert extra["scored"] == extra["degree"] == (None,)
    assert rows(found, "error")["failed"] == ("out of memory",)
    changed = ["score", "success", "extra"]
    assert found.runs.drop(changed).equals(log.runs.drop(changed))
    assert found.runs.schema == log.runs.schema


def test_without_a_threshold_success_stays_null(log):
    found = rows(kv.score_predictions(log, metric="token_f1"), "score", "success", "extra")
    assert found["half"] == (pytest.approx(2 / 3), None, '{"metric":"token_f1"}')


def test_without_a_metric_scores_that_are_there_become_successes(log):
    found = rows(kv.score_predictions(log, threshold=0.5), "score", "success", "extra")
    assert found["degree"] == (0.5, True, '{"threshold":0.5}')
    assert found["scored"] == (0.25, False, None)
    assert found["open"] == (None, None, '{"page":3}')


def test_tasks_can_be_scored_one_after_the_other(log):
    found = kv.score_predictions(log, metric="rouge_l", where="input_id = 'half'")
    found = kv.score_predictions(found, metric="exact_match", threshold=1.0)
    extra = {name: json.loads(text[0]) for name, text in rows(found, "extra").items() if text[0]}
    assert {name: one.get("metric") for name, one in extra.items()} == {
        "open": "exact_match",
        "half": "rouge_l",
    }


def test_a_null_condition_selects_nothing(log):
    with pytest.raises(InputError, match="of 0 selected"):
        kv.score_predictions(log, metric="token_f1", where="budget < 1")


def test_nothing_to_do_says_why(log):
    told = (
        r"no run is left for metric='rouge_l': of 7 selected, 4 have a score, 2 have no prediction or no "
        r"references, 1 have an error; a score or success that is there is not changed"
    )
    with pytest.raises(InputError, match=told):
        kv.score_predictions(kv.score_predictions(log, metric="token_f1"), metric="rouge_l")
    done = log.with_runs(log.runs.filter(pl.col("input_id") == "scored"))
    with pytest.raises(InputError, match="a threshold: of 1 selected, 1 have a success, 0 have no score"):
        kv.score_predictions(done, threshold=0.1)


def test_another_metric_under_extra():
    run = RunRecord(**KEY, task="qa", input_id="1", **ANSWER, extra={"metric": "bleu"})
    told = (
        r"metric='token_f1' is not what extra says of the run .*input_id=1, arm=full.*, metric='bleu'; leave"
    )
    with pytest.raises(InputError, match=told):
        kv.score_predictions(log_from_records([run]), metric="token_f1")


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({}, "neither metric nor threshold is given"),
        ({"metric": "token_f2"}, r"metric='token_f2' is unknown; did you mean 'token_f1'\?"),
        ({"threshold": "0.5"}, "threshold='0.5' is no number"),
        ({"threshold": True}, "threshold=True is no number"),
        ({"threshold": math.nan}, "threshold=nan is no number"),
        ({"metric": "token_f1", "where": "tusk = 'qa'"}, "names the unknown column 'tusk'"),
    ],
)
def test_arguments_that_cannot_be_used(log, arguments, fault):
    with pytest.raises(InputError, match=f"score_predictions: .*{fault}"):
        kv.score_predictions(log, **arguments)
