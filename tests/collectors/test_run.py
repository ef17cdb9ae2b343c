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
from collectors.run import plan_units, written_alone
from kvstats.errors import InputError

PLAN = """
suite: small
model: smollm2-135m
length: 190
seed: 5
tasks: {niah_single: 1, niah_multikey_1: 1}
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
    assert out.strip() == f"{folder / 'log.jsonl'}: 2 inputs added"
    assert "small: 2 of 2 inputs" in err
    return folder / "log.jsonl"


def test_the_log_holds_what_the_plan_asks_for(unbroken):
    log = kv.read_log(unbroken)
    assert log.rejects.height == 0
    assert log.inputs.height == 2
    counts = dict(log.runs["arm"].value_counts().iter_rows())
    assert counts == {"full": 2, "snapkv": 4, "poisson": 4}
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
    assert poisson["certificate_per_head"].list.len().to_list() == [3] * 4
    assert log.runs.filter(arm="snapkv")["certificate"].null_count() == 4
    draws = poisson.filter(task="niah_multikey_1")
    assert draws["kept_fraction"].n_unique() == 2
    assert set(log.replays["step"]) <= {0, 2}
    assert log.replays.height == 2 * 2 * len({0, 2}) * 3 * 3
    assert (log.replays["true_error"] >= 0).all()
    assert log.inputs["head_agreement_per_layer"].list.len().to_list() == [30] * 2
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
    assert int(out.split(": ")[1].split()[0]) < 2
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


TASKS = "tasks: {niah_single: 1, niah_multikey_1: 1}"
POOL = "scope: layer, pool: 7}"
SAMPLED = "{evictor: poisson}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "niah_single: 1",
            "niah_singel: 2",
            "6: has the unknown task 'niah_singel'; did you mean 'niah_single'",
        ),
        (TASKS, "tasks: {}", "6: tasks is a mapping: expected a mapping of length >= 1"),
        (
            TASKS,
            "tasks:\n  niah_single: many",
            "7: tasks.niah_single is 'many': expected a whole number, got te",
        ),
        (
            TASKS,
            "tasks:\n  niah_single: 1\n  niah_single: 2",
            "8: has the key 'niah_single' again, first on li",
        ),
        ("seed: 5", "seed: 5\nseed: 6", "6: has the key 'seed' again, first on line 5; keep one of them"),
        ("seed: 5", "seed: -5", "5: seed is -5: expected a whole number >= 0"),
        ("length: 190", "lenght: 190", "4: the file has the unknown key 'lenght'; did you mean 'length'?"),
        (
            "length: 190",
            "length: long",
            "4: length is 'long': expected a whole number, got text; write a number",
        ),
        (
            "length: 190",
            "length: 36",
            "4: length is 36, which leaves nothing to evict beside 36 protected tok",
        ),
        (
            "length: 190",
            "length: 67",
            "4: agreement_top_k is 32, more than the 31 evictable of 67 tokens; lower",
        ),
        (
            "seed: 5",
            "seed: 5\nagreement_top_k: 155",
            "6: agreement_top_k is 155, more than the 154 evictable of",
        ),
        (
            "conditions: [aware]",
            "conditions: [awear]",
            "7: conditions[0] is 'awear', which is unknown; did you",
        ),
        (
            "conditions: [aware]",
            "conditions: [aware, aware]",
            "7: conditions has 'aware' twice; keep one of them",
        ),
        ("name: snapkv,", "name: full,", "9: the arm name 'full' is taken; rename the arm"),
        ("name: poisson,", "name: snapkv,", "10: the arm name 'snapkv' is taken; rename the arm"),
        (
            "steps: [0, 2]",
            "steps: [0, 3]",
            "12: replay.steps[1] is 3, which is not among the 3 certified steps",
        ),
        (
            "evictor: snapkv,",
            "evictor: snapvk,",
            "9: arms[0].evictor.evictor is 'snapvk', which is unknown; did",
        ),
        (
            "evictor: snapkv,",
            "evictor: h2o,",
            "evictor is 'h2o', which is unknown; known: poisson, snapkv, uni",
        ),
        (POOL, "scope: layer, pol: 7}", "9: arms[0].evictor has the unknown key 'pol'; did you mean 'pool'?"),
        (POOL, "scope: layer, pool: 6}", "9: SnapKV: pool=6 is even; pass an odd width"),
        (SAMPLED, "{evictor: poisson, pool: 0}", "10: Poisson: pool=0 is below 1; pass an odd width"),
        (SAMPLED, "{evictor: poisson, floor: 0.0}", "10: Poisson: floor=0.0 is not in (0, 1]; pass a small"),
        (
            SAMPLED,
            "{evictor: poisson, floor: 1e-6}",
            "10: arms[1].evictor.floor is 1e-6, which is a number in",
        ),
        ("budgets: [0.6]", "budgets: [60]", "10: arms[1].budgets[0] is 60: expected a number <= 1.0"),
        ("budgets: [0.5, 1.0]", "budgets: [0.5, 0.50]", "9: arms[0].budgets has 0.5 twice; keep one of them"),
        (
            "budgets: [0.6]",
            "budgets: [0.6, 0.18]",
            "10: arms[1].budgets[1] is 0.18, which of 190 tokens does no",
        ),
        ("seeds: [0, 1]", "seeds: [1, 1]", "10: arms[1].seeds has 1 twice; keep one of them"),
        ("seeds: [0, 1]", "seeds: [0, -1]", "10: arms[1].seeds[1] is -1: expected a whole number >= 0"),
        ("suite: small", "suite: [", "is not YAML (while parsing a flow"),
    ],
)
def test_a_bad_plan_is_refused(tmp_path, old, new, message):
    assert PLAN.count(old) == 1
    text = PLAN.replace(old, new)
    with pytest.raises(InputError) as error:
        read_plan(write_plan(tmp_path, text))
    assert str(error.value).startswith(f"{tmp_path / 'small.yaml'}:")
    assert message in str(error.value)


def test_a_tab_in_a_plan_is_named(tmp_path):
    text = PLAN.replace("  - {name: poisson", "\t- {name: poisson")
    with pytest.raises(
        InputError, match=r"small\.yaml:10: .*; replace the tab: indentation is made of spaces$"
    ):
        read_plan(write_plan(tmp_path, text))


def test_a_plan_at_the_limits_is_read(tmp_path):
    least = PLAN.replace("length: 190", "length: 68").replace("[0.6]", "[0.53]").replace("seed: 5", "seed: 0")
    assert 36 < 0.53 * read_plan(write_plan(tmp_path, least)).length < 37


@pytest.mark.parametrize("content", [PLAN.encode("utf-16"), b"\x1f\x8b\x08\x00"])
def test_a_plan_that_is_not_text_is_refused(tmp_path, content):
    path = tmp_path / "small.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"small\.yaml:1: is not UTF-8; save the file as UTF-8"):
        read_plan(path)


def test_a_missing_plan_is_named(tmp_path):
    with pytest.raises(
        InputError, match=r"nothing\.yaml: cannot be read \(No such file or directory\); check"
    ):
        read_plan(tmp_path / "nothing.yaml")


def test_a_log_that_another_collection_writes_is_left_alone(tmp_path):
    log = tmp_path / "log.jsonl"
    with (
        written_alone(log),
        pytest.raises(InputError, match=r"log\.jsonl: is being written by another collection; wait"),
        written_alone(log),
    ):
        raise AssertionError("two at once")
    with written_alone(log):
        assert (tmp_path / "log.jsonl.lock").exists()
    assert list(tmp_path.iterdir()) == []


def test_units_take_tasks_in_turn(tmp_path):
    units = plan_units(read_plan(write_plan(tmp_path, PLAN.replace("niah_single: 1", "niah_single: 2"))))
    assert [(unit.task, unit.index) for unit in units] == [
        ("niah_single", 0),
        ("niah_multikey_1", 0),
        ("niah_single", 1),
    ]
