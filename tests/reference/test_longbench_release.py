"""Printed figures of LongBench and InfiniteBench, recomputed from released answers where they are at hand."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

import kvstats as kv
from kvstats.errors import InputError

DATA = Path(__file__).parents[2] / ".." / "shared" / "data"
LONGBENCH = DATA / "longbench_pred"
INFINITEBENCH = DATA / "infinitebench"

FILES = sorted(LONGBENCH.glob("*/*.jsonl"))
REPEATED = LONGBENCH / "llama2-7b-chat-4k_S17-19-21-23" / "narrativeqa.jsonl"

PRINTED = {
    ("gpt4", "kv_retrieval"): 89.00,
    ("kimi", "kv_retrieval"): 53.60,
    ("claude2", "kv_retrieval"): 65.40,
    ("gpt4", "longbook_choice_eng"): 67.25,
    ("yarn-mistral", "longbook_choice_eng"): 27.95,
    ("kimi", "longbook_choice_eng"): 72.49,
    ("claude2", "longbook_choice_eng"): 62.88,
}
"""Accuracies in per cent, as printed in the table of https://github.com/OpenBMB/InfiniteBench."""


@pytest.mark.skipif(not FILES, reason="the released answers of LongBench are not here")
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_printed_scores_of_longbench_are_those_of_all_rows(file):
    printed = json.loads((file.parent / "result.json").read_bytes())[file.stem]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        log = kv.read_log(file, arm="full", pair_by="position")
    assert round(100 * log.runs["score"].mean(), 2) == printed
    assert [file == REPEATED] == [bool(caught)]


@pytest.mark.skipif(not REPEATED.exists(), reason="the released answers of LongBench are not here")
def test_the_file_with_repeated_rows():
    with pytest.raises(InputError, match=r"narrativeqa\.jsonl:201: repeats the content of line 1"):
        kv.read_log(REPEATED, arm="full", pair_by="content")
    told = (
        r"34 of 234 rows repeat the input of an earlier one; the mean is 17\.24 with them and 17\.27 "
        r"without; result\.json prints 17\.24"
    )
    with pytest.warns(UserWarning, match=told):
        log = kv.read_log(REPEATED, arm="full", pair_by="content", on_duplicate="first")
    assert log.runs.height == 200
    assert log.rejects["line"].to_list() == list(range(201, 235))


@pytest.mark.skipif(not INFINITEBENCH.exists(), reason="the released answers of InfiniteBench are not here")
def test_printed_accuracies_of_infinitebench():
    log = kv.read_log(INFINITEBENCH / "*" / "*.jsonl", arm="full")
    found = {
        (model, task): round(100 * score, 2)
        for model, task, score in kv.accuracy(log, by=["model", "task"])
        .frame.select("model", "task", "estimate")
        .iter_rows()
    }
    assert {cell: found[cell] for cell in PRINTED} == PRINTED
    # Printed as below 5; all answers of chatglm3 to this task are empty.
    assert found["yarn-mistral", "kv_retrieval"] < 5
    assert found["chatglm3", "kv_retrieval"] == 0
    assert log.runs["score"].null_count() == 0
