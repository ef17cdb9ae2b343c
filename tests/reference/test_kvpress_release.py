"""Released results of kvpress: every printed score of every task comes out of its rows."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kvstats.errors import InputError
from kvstats.log import read_log
from kvstats.log.adapters.kvpress_folder import kvpress_folder
from kvstats.log.adapters.printed_arrays import parse_printed_array

RELEASE = Path(__file__).parents[2] / ".." / "shared" / "data" / "kvpress_centrality"
FOLDERS = sorted(path.parent for path in RELEASE.glob("*/predictions.csv"))

pytestmark = pytest.mark.skipif(not FOLDERS, reason="the released results are not here")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name.rpartition("__")[2])
def test_printed_scores_come_out_of_the_rows(folder):
    printed = json.loads((folder / "metrics.json").read_text())
    # A score that is not the printed one would be a warning, and so an error here.
    runs = read_log(folder).runs
    means = runs.group_by("task").agg((100 * pl.col("score").mean()).round(2), pl.len().alias("rows"))
    assert {task: {"string_match": score} for task, score, _ in means.iter_rows()} == printed
    assert len(printed) == 13
    assert set(means["rows"]) == {500}


def test_folders_pair_by_content_and_budgets_are_fractions_kept():
    log = read_log(FOLDERS)
    assert sorted(set(log.runs["budget"])) == [0.125, 0.25, 0.5, 0.75]
    assert log.runs.height == 26_000
    assert log.runs.select("task", "input_id").n_unique() == 6_500
    assert set(log.runs["suite"]) == {"ruler_4096"}


def test_every_reference_is_read_and_prints_again():
    # Printed by numpy, they are what the file has.
    with (FOLDERS[0] / "predictions.csv").open(encoding="utf-8", newline="") as file:
        answers = [row["answer"] for row in csv.DictReader(file)]
    assert sum("\n" in answer for answer in answers) > 500
    for answer in answers:
        assert str(np.array(parse_printed_array(answer), dtype=object)) == answer


def test_folders_of_aggregates_are_rejects():
    alone = sorted(path.parent for path in RELEASE.glob("*__fraction0.060/metrics.json"))
    assert len(alone) == 6
    with pytest.raises(InputError, match=r"metrics\.json:1: has scores by task only"):
        read_log(RELEASE)
    log = read_log(RELEASE, on_error="skip")
    assert (log.runs.height, log.rejects.height) == (26_000, 6)
    assert {kvpress_folder(path).arm for path in alone} == {"full", "knorm", "snapkv"}
