"""Draws stay what they were: rows of a collected log, made again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec
import pytest

from collectors.config import read_plan
from collectors.record import collect_input
from collectors.tasks import make_example
from kvstats.log.records import RunRecord

FOLDER = Path(__file__).parents[2] / "notebooks" / "needles"
BUDGETS = {"snapkv_layer": (0.25,), "snapkv_global": (0.5,), "random": (0.25, 0.75), "poisson": (0.5, 0.75)}


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER.is_dir(), reason="the collected log is not part of the distribution")
@pytest.mark.parametrize("condition", ["aware", "stream"])
def test_a_row_of_the_needles_log_comes_out_as_it_was(smollm2, condition):
    plan = read_plan(FOLDER / "study.yaml")
    arms = [msgspec.structs.replace(arm, budgets=BUDGETS[arm.name]) for arm in plan.arms]
    plan = msgspec.structs.replace(plan, arms=arms)
    example = make_example(
        "niah_multikey_1", seed=plan.seed, index=20, length=plan.length, tokenizer=smollm2.tokenizer
    )
    records = collect_input(smollm2, plan, example, condition, index=20)
    made = {(r.arm, r.budget): r for r in records if isinstance(r, RunRecord)}
    assert len(made) == 7
    found = 0
    with gzip.open(FOLDER / "smollm2-135m.jsonl.gz", "rt") as lines:
        for line in map(json.loads, lines):
            place = (line.get("arm"), line.get("budget"))
            if (line.get("input_id"), line.get("condition")) != (example.input_id, condition):
                continue
            if line["record"] == "run" and place in made:
                found += 1
                assert made[place].kept_fraction == line["kept_fraction"]
                assert made[place].prediction == line["prediction"]
                assert made[place].score == line["score"]
    assert found == 7
