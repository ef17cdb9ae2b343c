"""What a plan will cost, counted and piloted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from collectors.cli import app
from collectors.config import read_plan
from collectors.forecast import forecast, pilot_units, run_pilot, shown_forecast
from collectors.units import Unit, plan_units
from kvstats.errors import InputError

PLAN = """
suite: small
model: smollm2-135m
length: 190
seed: 5
tasks: {niah_single: 3, niah_multikey_1: 2}
conditions: [aware, stream]
arms:
  - {name: snapkv, evictor: {evictor: snapkv, scope: layer, pool: 7}, budgets: [0.5, 1.0]}
  - {name: poisson, evictor: {evictor: poisson}, budgets: [0.6], seeds: [0, 1]}
"""
COMMAND = [sys.executable, "-c", "from collectors.cli import main\nif __name__ == '__main__': main()"]


@pytest.fixture
def study(tmp_path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(PLAN)
    return path


def test_cells_units_and_runs_are_counted(study):
    plan = read_plan(study)
    found = forecast(plan)
    assert found.units == len(plan_units(plan)) == 10
    assert found.runs == 10 * 5 == sum(cell.inputs for cell in found.cells)
    assert len(found.cells) == 2 * 2 * 5
    assert found.cells[-1] == type(found.cells[0])("niah_multikey_1", "stream", "poisson", 0.6, 1, 2)
    assert list(shown_forecast(found)) == [
        "small: smollm2-135m, float32 on cpu, 190 tokens a prompt",
        "tasks",
        "  niah_single      3 inputs under 2 (aware, stream)",
        "  niah_multikey_1  2 inputs under 2 (aware, stream)",
        "arms",
        "  full             budgets 1.0",
        "  snapkv           budgets 0.5, 1.0",
        "  poisson          budgets 0.6; seeds 0, 1",
        "20 cells, 10 inputs with their conditions, 50 runs",
    ]


def test_arms_of_one_condition_and_what_a_plan_adds_are_counted(study):
    text = PLAN.replace("budgets: [0.5, 1.0]}", "budgets: [0.5], conditions: [aware]}")
    study.write_text(text + "retrieval: {arm: poisson, budgets: [0.6]}\nno_context: true\n")
    found = forecast(read_plan(study))
    # Per input the full cache, two draws with three answers again each, the control, and SnapKV under one.
    assert found.runs == sum(cell.inputs for cell in found.cells) == 10 * 10 + 5
    assert list(shown_forecast(found))[4:] == [
        "arms",
        "  full             budgets 1.0",
        "  snapkv           budgets 0.5; aware only",
        "  poisson          budgets 0.6; seeds 0, 1",
        "  poisson+ranked   budgets 0.6; seeds 0, 1",
        "  poisson+random   budgets 0.6; seeds 0, 1",
        "  poisson+oracle   budgets 0.6; seeds 0, 1",
        "  no_context       no budget",
        "42 cells, 10 inputs with their conditions, 105 runs",
    ]


def test_the_pilot_takes_three_inputs_of_different_kinds(study):
    plan = read_plan(study)
    assert pilot_units(plan) == [
        Unit("niah_single", 0, "aware"),
        Unit("niah_single", 1, "stream"),
        Unit("niah_multikey_1", 1, "aware"),
    ]
    many = msgspec.structs.replace(plan, tasks={"niah_single": 60, "niah_multikey_1": 60})
    assert [unit.index for unit in pilot_units(many)] == [10, 30, 50]
    one = msgspec.structs.replace(plan, tasks={"niah_single": 1}, conditions=["stream"])
    assert pilot_units(one) == [Unit("niah_single", index, "stream") for index in range(3)]


def test_a_pilot_on_the_studys_inputs_is_refused(study):
    message = r"run_pilot: seed=5 is the seed of the study, whose inputs a pilot must not see; pass another"
    with pytest.raises(InputError, match=message):
        run_pilot(read_plan(study), seed=5)


def test_plan_shows_time_and_memory_of_a_pilot(study):
    done = subprocess.run(
        [*COMMAND, "plan", str(study), "--json"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    pilot = found["pilot"]
    assert pilot["seed"] == 1_000_005
    assert [(item["task"], item["condition"], item["error"]) for item in pilot["inputs"]] == [
        ("niah_single", "aware", None),
        ("niah_single", "stream", None),
        ("niah_multikey_1", "aware", None),
    ]
    seconds = [item["seconds"] for item in pilot["inputs"]]
    assert pilot["seconds"] == pytest.approx(10 * sum(seconds) / 3)
    assert pilot["least_seconds"] == pytest.approx(10 * min(seconds))
    assert pilot["most_seconds"] == pytest.approx(10 * max(seconds))
    # The weights alone take 135 million times 4 bytes.
    assert 0.5e9 < pilot["memory_bytes"] < 4e9
    assert pilot["device_bytes"] == 0
    assert 10_000 < pilot["log_bytes"] < 1_000_000
    assert list(study.parent.iterdir()) == [study]


def test_plan_without_a_pilot_shows_the_cells_alone(study):
    done = CliRunner().invoke(app, ["plan", str(study), "--no-pilot"], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "20 cells, 10 inputs with their conditions, 50 runs"
    assert done.stderr == ""
