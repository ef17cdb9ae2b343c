"""Logs that the Inspect project tests with: every sample is a run, and accuracies are those printed."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

import kvstats as kv
from kvstats.errors import InputError

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "inspect_ai"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the released logs are not here")


def named(begin):
    (file,) = FOLDER.glob(f"{begin}*")
    return file


def read(begin):
    return kv.read_log(named(begin), arm="full")


def printed(file):
    """Return the results that a log itself holds."""
    if file.suffix == ".json":
        return json.loads(file.read_text())["results"]
    with zipfile.ZipFile(file) as archive:
        return json.loads(archive.read("header.json"))["results"]


@pytest.mark.parametrize(
    "begin",
    ["2025-02-11T15-18-04", "2025-05-12T20-28-13-04-00_popularity", "mmlu-summary", "mmlu-no-summary"],
)
def test_accuracies_are_those_printed(begin):
    log, results = read(begin), printed(named(begin))
    (score,) = results["scores"]
    assert log.runs.height == results["total_samples"] == log.runs["error"].null_count()
    assert log.runs["score"].mean() == pytest.approx(score["metrics"]["accuracy"]["value"], abs=1e-12)


def test_an_unscored_log_has_all_its_samples():
    log = read("2025-02-11T15-17-00")
    assert log.runs.height == 10
    assert log.runs["score"].null_count() == 10
    assert log.runs["error"].unique().to_list() == ["no score"]


def test_a_log_without_samples_says_so():
    with pytest.raises(InputError, match="holds 0 of 3 planned samples; its status is 'cancelled'"):
        read("2025-05-12T20-28-13-04-00_no-samples")
