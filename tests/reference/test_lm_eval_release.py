"""A sample that lm-evaluation-harness wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

import kvstats as kv

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "lm_eval_excerpt"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the released sample is not here")


def test_the_sample_is_a_run():
    log = kv.read_log(FOLDER, arm="full", model="dummy", task="copa")
    columns = ("model", "task", "input_id", "score", "success", "prediction")
    assert log.runs.select(columns).rows() == [("dummy", "copa", "19", 0.0, False, None)]
    assert log.runs["references"].to_list() == [[" she burned her finger on the toaster."]]
