"""Collections as a user runs them: the plan, the log, a kill and a resume."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import kvstats as kv
from collectors.config import read_plan
from collectors.run import plan_units
from kvstats.errors import InputError

PLAN = """
suite: small
model: smollm2-135m
length: 190
seed: 5
tasks: {niah_single: 2, niah_multikey_1: 1}
conditions: [aware]
arms:
  - {name: snapkv, evictor: {evictor: snapkv, scope: layer, pool: 7}, budgets: [0.5, 1.0]}
  - {name: poisson, evictor: {evictor: poisson}, budgets: [0.6], seeds: [0, 1]}
certificate: {per_head: true, head_stride: 4, layer_stride: 10, steps: 3}
replay: {inputs: 1, steps: [0, 2]}
"""
COMMAND = [sys.executable, "-c", "from collectors.cli import main\nif __name__ == '__main__': main()"]


def write_plan(folder: Path, text: str = PLAN) -> Path:
    path = folder / "small.yaml"
    path.write_text(text)
    return path


def without_times(log: Path) -> list[dict]:
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        for name in ("started_at", "recorded_at", "seconds"):
            line.pop(name, None)
    return lines


def collect(plan: Path, log: Path, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [*COMMAND, "run", str(plan), "--out", str(log)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


def group_is_gone(group: int, patience: float = 30.0) -> bool:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    os.killpg(group, signal.SIGKILL)
    return False


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("unbroken")
    process = collect(write_plan(folder), folder / "log.jsonl")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert out.strip() == f"{folder / 'log.jsonl'}: 3 inputs added"
    assert "small: 3 of 3 inputs" in err
    return folder / "log.jsonl"


def test_the_log_holds_what_the_plan_asks_for(unbroken):
    log = kv.read_log(unbroken)
    assert log.rejects.height == 0
    assert log.inputs.height == 3
    counts = dict(log.runs["arm"].value_counts().iter_rows())
    assert counts == {"full": 3, "snapkv": 6, "poisson": 6}
    full = log.runs.filter(arm="full")
    same = log.runs.filter(arm="snapkv", budget=1.0)
    assert same["prediction"].to_list() == full["prediction"].to_list()
    assert same["logprob"].to_list() == pytest.approx(full["logprob"].to_list(), abs=1e-4)
    assert (
        log.runs["n_prompt"].to_list()
        == log.runs.join(log.inputs, on=["input_id"])["context_tokens"].to_list()
    )
    poisson = log.runs.filter(arm="poisson")
    assert poisson["certificate"].is_not_null().all()
    assert (poisson["certificate"] > 0).all()
    assert poisson["certificate_per_head"].list.len().to_list() == [3] * 6
    assert log.runs.filter(arm="snapkv")["certificate"].null_count() == 6
    draws = poisson.filter(task="niah_multikey_1")
    assert draws["kept_fraction"].n_unique() == 2
    assert set(log.replays["step"]) <= {0, 2}
    assert log.replays.height == 2 * 2 * len({0, 2}) * 3 * 3
    assert (log.replays["true_error"] >= 0).all()
    assert log.inputs["head_agreement_per_layer"].list.len().to_list() == [30] * 3
    study = log.studies.row(0, named=True)
    assert study["model_revision"].startswith("b179c952")
    assert json.loads(study["settings"])["length"] == 190
    assert set(json.loads(study["versions"])) == {"python", "kvstats", "torch", "transformers", "numpy"}


def test_a_killed_collection_resumes_to_the_same_log(unbroken, tmp_path):
    log = tmp_path / "log.jsonl"
    plan = write_plan(tmp_path)
    process = collect(plan, log)
    try:
        deadline = time.monotonic() + 200
        while not (log.exists() and '"record":"input"' in log.read_text()):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    assert group_is_gone(process.pid), "workers outlive their killed parent"
    process.communicate()
    lines = log.read_text().splitlines(keepends=True)
    begun = '{"record":"run","suite":"small"'
    log.write_text("".join(lines) + lines[1] + begun)
    again = collect(plan, log)
    out, err = again.communicate(timeout=300)
    assert again.returncode == 0, err
    assert int(out.split(": ")[1].split()[0]) < 3
    assert without_times(log) == without_times(unbroken)


def test_an_interrupt_ends_all_processes_with_their_exit_code(tmp_path):
    log = tmp_path / "log.jsonl"
    process = collect(write_plan(tmp_path), log)
    deadline = time.monotonic() + 200
    while not log.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=100)
    assert process.returncode == 130
    assert err.endswith("interrupted; run the same command again to continue\n")
    assert "Traceback" not in err
    assert group_is_gone(process.pid)


def test_a_log_of_another_plan_is_refused(unbroken, tmp_path):
    plan = write_plan(tmp_path, PLAN.replace("seed: 5", "seed: 6"))
    before = unbroken.read_bytes()
    process = collect(plan, unbroken)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 2
    assert "log.jsonl:1: was begun with settings.seed=5, not 6; continue with the same settings" in err
    assert "Traceback" not in err
    assert unbroken.read_bytes() == before


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("niah_single: 2", "niah_singel: 2", "unknown task 'niah_singel'; did you mean 'niah_single'?"),
        ("length: 190", "lenght: 190", "unknown field `lenght`"),
        ("length: 190", "length: long", "Expected `int`, got `str` - at `\\$.length`"),
        ("name: snapkv,", "name: full,", "the arm name 'full' is taken; rename the arm"),
        ("name: poisson,", "name: snapkv,", "the arm name 'snapkv' is taken"),
        ("steps: [0, 2]", "steps: [0, 3]", "replay steps \\[3\\] are not among the 3 certified"),
        ("evictor: snapkv,", "evictor: h2o,", "Invalid value 'h2o'"),
        ("budgets: [0.6]", "budgets: [60]", "Expected `float` <= 1.0"),
        ("suite: small", "suite: [", "correct the plan"),
    ],
)
def test_a_bad_plan_is_refused(tmp_path, old, new, message):
    with pytest.raises(InputError, match=message):
        read_plan(write_plan(tmp_path, PLAN.replace(old, new)))


def test_a_missing_plan_is_named(tmp_path):
    with pytest.raises(InputError, match=r"path='.*nothing.yaml' is not a file; check the path"):
        read_plan(tmp_path / "nothing.yaml")


def test_units_take_tasks_in_turn(tmp_path):
    units = plan_units(read_plan(write_plan(tmp_path)))
    assert [(unit.task, unit.index) for unit in units] == [
        ("niah_single", 0),
        ("niah_multikey_1", 0),
        ("niah_single", 1),
    ]
