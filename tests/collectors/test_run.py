"""Collections as a user runs them: the log, failing inputs, kills, a resume."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import kvstats as kv
from collectors.config import read_plan
from collectors.failure import failed_block
from collectors.resume import written_alone
from collectors.run import run_plan
from collectors.units import Unit
from kvstats.errors import InputError
from kvstats.log.write import encode_record

# Of the four inputs the second and the third have a context of 149 tokens, of which the budget of the
# sampled arm keeps fewer than are protected, so they fail; the others have 151.
PLAN = """
suite: small
model: smollm2-135m
length: 190
seed: 5
tasks: {niah_single: 2, niah_multikey_1: 2}
conditions: [stream]
arms:
  - {name: snapkv, evictor: {evictor: snapkv, scope: layer, pool: 7}, budgets: [0.5, 1.0]}
  - {name: poisson, evictor: {evictor: poisson}, budgets: [0.241, 0.6], seeds: [0, 1]}
certificate: {per_head: true, head_stride: 4, layer_stride: 10, steps: 3}
replay: {inputs: 1, steps: [0, 2]}
"""
TOO_SMALL = "InputError: Poisson.select: budget=0.241 of 149 tokens does not exceed 36 protected; raise the"
COMMAND = [sys.executable, "-c", "from collectors.cli import main\nif __name__ == '__main__': main()"]


def write_plan(folder: Path, text: str = PLAN) -> Path:
    path = folder / "small.yaml"
    path.write_text(text)
    return path


def without_times(log: Path) -> list[bytes]:
    """Lines of a log, byte for byte but for the values of their times."""
    return [timeless(line) for line in log.read_bytes().splitlines(keepends=True)]


def timeless(line: bytes) -> bytes:
    record = json.loads(line)
    for name in ("started_at", "recorded_at", "seconds"):
        if name in record:
            value = f'"{name}":{json.dumps(record[name], separators=(",", ":"))}'.encode()
            assert line.count(value) == 1
            line = line.replace(value, b"")
    return line


def collect(plan: Path, log: Path, *options: str) -> subprocess.Popen:
    return subprocess.Popen(
        [*COMMAND, "run", str(plan), "--out", str(log), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen) -> tuple[str, str]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out, err


def wait_for(process: subprocess.Popen, ready) -> None:
    deadline = time.monotonic() + 200
    while not ready():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


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
    log = folder / "log.jsonl"
    out, err = finish(collect(write_plan(folder), log))
    assert out.strip() == f"{log}: 4 inputs added, 2 of them with errors"
    assert err.startswith("small: 0 of 4 inputs\n")
    assert "small: 4 of 4 inputs, " in err
    assert err.endswith(" a minute, 0 s left\n")
    return log


def test_the_log_holds_what_the_plan_asks_for(unbroken):
    log = kv.read_log(unbroken)
    assert log.rejects.height == 0
    assert log.inputs.height == 4
    counts = dict(log.runs["arm"].value_counts().iter_rows())
    assert counts == {"full": 4, "snapkv": 8, "poisson": 16}
    runs = log.runs.filter(log.runs["error"].is_null())
    full = runs.filter(arm="full")
    same = runs.filter(arm="snapkv", budget=1.0)
    assert same["prediction"].to_list() == full["prediction"].to_list()
    assert same["logprob"].to_list() == pytest.approx(full["logprob"].to_list(), abs=1e-4)
    assert runs["n_prompt"].to_list() == runs.join(log.inputs, on=["input_id"])["context_tokens"].to_list()
    poisson = runs.filter(arm="poisson")
    assert poisson["certificate"].is_not_null().all()
    assert (poisson["certificate"] >= 0).all()
    assert (poisson.filter(budget=0.6)["certificate"] > 0).all()
    assert poisson["certificate_per_head"].list.len().to_list() == [3] * 8
    assert runs.filter(arm="snapkv")["certificate"].null_count() == 4
    assert poisson.filter(budget=0.6)["kept_fraction"].n_unique() == 4
    assert set(log.replays["step"]) <= {0, 2}
    assert log.replays.height == 4 * len({0, 2}) * 3 * 3
    assert (log.replays["true_error"] >= 0).all()
    assert log.inputs["head_agreement_per_layer"].drop_nulls().list.len().to_list() == [30] * 2
    study = log.studies.row(0, named=True)
    assert study["model_revision"].startswith("b179c952")
    settings = json.loads(study["settings"])
    assert (settings["length"], settings["device"]) == (190, "cpu")
    assert set(json.loads(study["versions"])) == {"python", "kvstats", "torch", "transformers", "numpy"}


def test_a_failing_input_is_recorded_and_the_others_are_run(unbroken):
    log = kv.read_log(unbroken)
    assert log.rejects.height == 0
    assert log.inputs.height == 4
    assert log.runs.height == 4 * 7
    failed = log.runs.filter(log.runs["error"].is_not_null())
    assert failed.select("task", "input_id").unique(maintain_order=True).sort("input_id").rows() == [
        ("niah_multikey_1", "niah_multikey_1-5-0000"),
        ("niah_single", "niah_single-5-0001"),
    ]
    assert failed["error"].str.starts_with(TOO_SMALL).all()
    assert failed["score"].null_count() == failed["prediction"].null_count() == failed.height == 14
    assert failed.filter(input_id="niah_single-5-0001").select("arm", "budget", "seed").rows() == [
        ("full", 1.0, 0),
        ("poisson", 0.241, 0),
        ("poisson", 0.241, 1),
        ("poisson", 0.6, 0),
        ("poisson", 0.6, 1),
        ("snapkv", 0.5, 0),
        ("snapkv", 1.0, 0),
    ]
    others = log.runs.filter(log.runs["error"].is_null())
    assert others["score"].null_count() == 0
    assert log.inputs["drop"].null_count() == 2


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are not listed under /proc")
def test_two_kills_and_a_lost_worker_leave_the_same_log(unbroken, tmp_path):
    log = tmp_path / "log.jsonl"
    plan = write_plan(tmp_path)
    moments = np.random.default_rng(1).uniform(0, 2, size=2)

    process = collect(plan, log, "--workers", "2")
    wait_for(process, lambda: log.exists() and '"record":"input"' in log.read_text())
    time.sleep(moments[0])
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    cut_after(log, 1)
    # The worst that a kill can leave: a whole block but for its last record, and half a line.
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines) + lines[1] + '{"record":"run","suite":"small"')

    process = collect(plan, log)
    wait_for(process, lambda: log.read_text().endswith("}\n"))
    time.sleep(moments[1])
    process.kill()
    process.communicate()
    assert group_is_gone(process.pid), "workers outlive their killed parent"
    cut_after(log, 2)

    process = collect(plan, log, "--workers", "2")
    # Python's pool may hang on a worker that dies before the next one is started, milliseconds later.
    wait_for(process, lambda: len(workers_of(process.pid)) == 2)
    os.kill(workers_of(process.pid)[0], signal.SIGKILL)
    finish(process)
    assert without_times(log) == without_times(unbroken)


def cut_after(log: Path, inputs: int) -> None:
    """Leave what a kill after so many inputs leaves: on a fast machine the moment drawn may come too late."""
    lines = log.read_text().splitlines(keepends=True)
    ends = [place for place, line in enumerate(lines, start=1) if line.startswith('{"record":"input"')]
    log.write_text("".join(lines[: ends[inputs - 1]] if len(ends) > inputs else lines))


def workers_of(parent: int) -> list[int]:
    """Return the worker processes of a collection, on systems that list them under /proc."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    commands = {int(pid): Path(f"/proc/{pid}/cmdline") for pid in children}
    return [pid for pid, path in commands.items() if path.exists() and b"spawn_main" in path.read_bytes()]


def test_errors_are_kept_until_a_retry_is_asked_for(unbroken, tmp_path):
    """The last input failed for want of memory; a retry runs it again, and those that always fail."""
    log = tmp_path / "log.jsonl"
    path = write_plan(tmp_path)
    lines = unbroken.read_bytes().splitlines(keepends=True)
    ends = [place for place, line in enumerate(lines, start=1) if line.startswith(b'{"record":"input"')]
    block = failed_block(
        read_plan(path), Unit("niah_multikey_1", 1, "stream"), "OutOfMemoryError: tried to allocate 9 GB"
    )
    failed = [encode_record(record) + b"\n" for record in block]
    log.write_bytes(b"".join([*lines[: ends[2]], *failed]))
    before = log.read_bytes()
    out, _ = finish(collect(path, log))
    assert out == f"{log}: 0 inputs added\n"
    assert log.read_bytes() == before
    # What a kill would leave of another retry.
    part = tmp_path / "log.jsonl.part"
    part.write_bytes(lines[0])
    out, _ = finish(collect(path, log, "--retry-errors"))
    assert out == f"{log}: 3 inputs added, 2 of them with errors\n"
    assert without_times(log) == without_times(unbroken)
    assert not part.exists()


def test_a_collection_that_only_fails_is_stopped(tmp_path):
    text = PLAN.replace("{niah_single: 2, niah_multikey_1: 2}", "{niah_multiquery: 5}")
    log = tmp_path / "log.jsonl"
    process = collect(write_plan(tmp_path, text), log)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 2
    assert re.fullmatch(
        rf"collect: {re.escape(str(log))}: the first 3 inputs all failed, the last with InputError: "
        r"make_example: length=190 is too small for niah_multiquery; pass at least \d+; mend the cause and "
        r"run again with --retry-errors",
        err.splitlines()[-1],
    )
    assert "Traceback" not in err
    assert kv.read_log(log).inputs.height == 3
    assert group_is_gone(process.pid)


def test_an_interrupt_ends_all_processes_with_their_exit_code(tmp_path):
    log = tmp_path / "log.jsonl"
    process = collect(write_plan(tmp_path), log)
    wait_for(process, log.exists)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=100)
    assert process.returncode == 130
    assert err.endswith("interrupted; run the same command again to continue\n")
    assert "Traceback" not in err
    assert group_is_gone(process.pid)


def test_a_log_of_another_plan_is_refused(unbroken, tmp_path):
    plan = read_plan(write_plan(tmp_path, PLAN.replace("seed: 5", "seed: 6")))
    before = unbroken.read_bytes()
    message = r"log\.jsonl:1: was begun with settings\.seed=5, not 6; continue with the same settings"
    for retry_errors in (False, True):
        with pytest.raises(InputError, match=message):
            run_plan(plan, unbroken, retry_errors=retry_errors)
        assert unbroken.read_bytes() == before
    assert list(unbroken.parent.glob("log.jsonl.*")) == []


def test_a_compressed_log_is_refused(tmp_path):
    plan = read_plan(write_plan(tmp_path))
    with pytest.raises(InputError, match=r"run_plan: path='.*log.jsonl.gz' cannot be appended to; name a"):
        run_plan(plan, tmp_path / "log.jsonl.gz")
    assert list(tmp_path.iterdir()) == [tmp_path / "small.yaml"]


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
