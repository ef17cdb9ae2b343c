"""A published paired comparison of a quantized cache with the full one gives the figures that it printed.

950 tasks of structured output, each with a cache of 16 bits, 4 bits and 2 bits. Nothing is evicted: the
quantized arms have no budget and no kept fraction. The published tables count parsed answers, scores, and
required paths, each of which a declaration of columns makes the outcome.
"""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import kvstats as kv

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "kivi_structeval"
ARMS = ["KIVI-4", "KIVI-2"]

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the released table is not here")


def read(score):
    """Read the table: a row has the quantized arm that `condition` names, and the full cache beside it."""
    columns = kv.Columns(
        input_id="task_id",
        task="task_name",
        arm="condition",
        score=f"candidate_{score}",
        success="candidate_parse",
        arms={"full": {"score": f"fp16_{score}", "success": "fp16_parse"}},
        constants={"suite": "structeval_t", "model": "unnamed"},
    )
    return kv.read_log(FOLDER / "task_transitions.csv", columns=columns)


@pytest.fixture(scope="module")
def log():
    return read("score")


@pytest.fixture(scope="module")
def published():
    return json.loads((FOLDER / "paired_analysis.json").read_text())["conditions"]


def outcomes(pairs):
    """Count pairs by who was a success."""
    full, arm = pl.col("baseline_success"), pl.col("success")
    names = {
        "both_pass": full & arm,
        "both_fail": ~full & ~arm,
        "fp16_only": full & ~arm,
        "candidate_only": ~full & arm,
    }
    return {name: count for name, condition in names.items() if (count := pairs.filter(condition).height)}


def transitions(pairs):
    counts = pairs.select(
        unchanged=(pl.col("difference") == 0).sum(),
        regressed=pl.col("harm").sum(),
        improved=pl.col("help").sum(),
    )
    return counts.row(0, named=True)


def test_every_row_is_two_runs_and_the_full_cache_is_one(log):
    assert log.runs.group_by("arm").len().sort("arm").rows() == [
        ("KIVI-2", 950),
        ("KIVI-4", 950),
        ("full", 950),
    ]
    quantized = log.runs.filter(pl.col("arm") != "full")
    assert quantized.select(pl.col("budget", "kept_fraction").null_count()).row(0) == (1900, 1900)
    assert log.runs["input_id"].min() == "000200"


@pytest.mark.parametrize("arm", ARMS)
def test_paired_counts_and_the_exact_mcnemar_test(log, published, arm):
    pairs = kv.paired(log, arm=arm)
    counts = outcomes(pairs)
    assert counts == published[arm]["parse_transitions"]
    p_value = kv.mcnemar_test(counts["fp16_only"], counts["candidate_only"])
    assert p_value == pytest.approx(published[arm]["parse_mcnemar_exact_two_sided_p"], rel=1e-12)


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("column", ["category", "output_type"])
def test_paired_counts_by_columns_that_were_not_declared(log, published, arm, column):
    pairs = kv.paired(log, arm=arm).with_columns(
        pl.col("extra").str.json_path_match(f"$.{column}").alias(column)
    )
    found = {name: outcomes(part) for (name,), part in pairs.group_by(column)}
    assert found == published[arm][f"parse_transitions_by_{column}"]


@pytest.mark.parametrize("arm", ARMS)
def test_score_differences(log, published, arm):
    pairs = kv.paired(log, arm=arm)
    assert transitions(pairs) == published[arm]["score_transitions"]
    delta = kv.delta(log, arm=arm, baseline="full")
    estimate = delta.frame["estimate"].item()
    assert estimate == pytest.approx(published[arm]["task_weighted_mean_score_delta"], abs=1e-12)
    # Their interval is a percentile bootstrap of 10,000 draws.
    low, high = published[arm]["task_weighted_mean_score_delta_95ci"]
    assert delta.frame["low"].item() == pytest.approx(low, abs=0.001)
    assert delta.frame["high"].item() == pytest.approx(high, abs=0.001)


@pytest.mark.parametrize("arm", ARMS)
def test_required_paths_are_another_score_of_the_same_runs(published, arm):
    pairs = kv.paired(read("path_score"), arm=arm)
    assert transitions(pairs) == published[arm]["required_path_transitions"]
    assert pairs["difference"].mean() == pytest.approx(published[arm]["mean_required_path_delta"], abs=1e-12)
