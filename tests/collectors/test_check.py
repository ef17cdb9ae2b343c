"""Checking a log: comparison by comparison, and a released log as a user checks it."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from collectors.check import check_log, choose, repeated, survey
from collectors.cli import app
from collectors.comparison import compare_records
from collectors.config import read_plan
from collectors.failure import error_of, failed_block
from collectors.models import LoadedModel
from collectors.units import Unit
from kvstats.errors import InputError
from kvstats.log.records import InputRecord, ReplayRecord, RunRecord, StudyRecord
from kvstats.log.write import encode_record

ROOT = Path(__file__).parents[2]
RELEASED = ROOT / "notebooks" / "needles" / "smollm2-135m.jsonl.gz"
STUDY = ROOT / "notebooks" / "needles" / "study.yaml"
KEY = {"suite": "s", "model": "m", "task": "t", "input_id": "t-1-0000", "condition": "aware"}


def block() -> list[RunRecord | ReplayRecord | InputRecord]:
    return [
        RunRecord(
            **KEY, arm="full", budget=1.0, score=1.0, n_kept=90, prediction="a", signals={"margin": None}
        ),
        RunRecord(
            **KEY,
            arm="poisson",
            budget=0.5,
            score=0.0,
            n_kept=45,
            prediction="b",
            signals={"margin": None, "certificate": 20.0},
            certificate_per_head=[[1.0, 2.0], [3.0, 4.0]],
        ),
        ReplayRecord(
            **KEY,
            arm="poisson",
            design="poisson",
            budget=0.5,
            layer=0,
            head=0,
            step=0,
            variance_estimate=1.0,
            radius=1.0,
            true_error=0.5,
            delta=0.1,
        ),
        InputRecord(
            **KEY,
            context_tokens=90,
            prompt_hash="ab",
            drop=0.08,
            head_agreement_per_layer=[0.3, 0.2, 0.1],
            signals={"attention_entropy": 0.5},
        ),
    ]


def changed(place: int, **fields) -> list:
    records = block()
    records[place] = msgspec.structs.replace(records[place], **fields)
    return records


def faults(logged, found, tau=0.07) -> list[tuple[str, str, str, str]]:
    return [
        (item.verdict, item.quantity, item.logged, item.found)
        for item in compare_records(logged, found, tau).offenders
    ]


def test_a_block_equals_itself_in_every_quantity():
    found = compare_records(block(), block(), 0.07)
    assert (found.verdict, found.runs, found.offenders) == ("reproduced", 2, [])
    assert [(tally.quantity, tally.reproduced) for tally in found.tallies] == [
        *(("prompt length", 1), ("prompt", 1), ("drop", 1), ("gate", 1), ("head agreement", 1)),
        *(("attention_entropy", 1), ("prediction", 2), ("kept tokens", 2), ("score", 2)),
        *(("certificate", 1), ("certificate_per_head", 1)),
    ]
    assert {(tally.drifted, tally.different, tally.largest) for tally in found.tallies} == {(0, 0, 0.0)}


@pytest.mark.parametrize(
    ("place", "fields", "expected"),
    [
        (0, {"prediction": "c"}, ("different", "prediction", "'a'", "'c'")),
        (0, {"n_kept": 89}, ("different", "kept tokens", "90", "89")),
        (0, {"signals": {"margin": 0.1}}, ("different", "margin", "None", "0.1")),
        (1, {"score": 1.0}, ("different", "score", "0", "1")),
        (1, {"signals": {"certificate": 20.1}}, ("drifted", "certificate", "20", "20.1")),
        (1, {"signals": {"certificate": 22.0}}, ("different", "certificate", "20", "22")),
        (1, {"signals": {}}, ("different", "certificate", "20.0", "None")),
        (
            1,
            {"certificate_per_head": [[1.0, 2.0], [3.01, 4.0]]},
            ("drifted", "certificate_per_head", "3", "3.01"),
        ),
        (
            1,
            {"certificate_per_head": [[1.0, 2.0]]},
            ("different", "certificate_per_head", "4 numbers in 2 lists", "2 numbers in 1"),
        ),
        (
            1,
            {"certificate_per_head": None},
            ("different", "certificate_per_head", "[[1.0, 2.0], [3.0, 4.0]]", "None"),
        ),
        (1, {"arm": "h2o"}, ("different", "run", "logged", "not planned")),
        (3, {"context_tokens": 91}, ("different", "prompt length", "90", "91")),
        (3, {"prompt_hash": "ac"}, ("different", "prompt", "'ab'", "'ac'")),
        (3, {"drop": 0.081}, ("drifted", "drop", "0.08", "0.081")),
        (3, {"drop": 0.0699}, ("different", "drop", "0.08", "0.0699")),
        (3, {"drop": None}, ("different", "drop", "0.08", "None")),
        (3, {"head_agreement_per_layer": [0.3, 0.2, 0.101]}, ("drifted", "head agreement", "0.1", "0.101")),
        (3, {"signals": {"attention_entropy": 0.51}}, ("drifted", "attention_entropy", "0.5", "0.51")),
    ],
)
def test_what_came_out_otherwise_is_named(place, fields, expected):
    found = faults(block(), changed(place, **fields))
    verdict, _, logged, now = next(item for item in found if item[1] == expected[1])
    assert (verdict, logged) == (expected[0], expected[2])
    assert now.startswith(expected[3])


def test_the_gate_decision_is_compared_at_its_threshold():
    logged, found = block(), changed(3, drop=0.0801)
    assert faults(logged, found, tau=0.07) == [("drifted", "drop", "0.08", "0.0801")]
    assert faults(logged, found, tau=0.08005)[0] == ("different", "gate", "'closed'", "'open'")
    # Not below the threshold is open.
    assert not [item for item in faults(logged, found, tau=0.08) if item[1] == "gate"]


def test_a_repetition_that_fails_is_named_by_its_error():
    failed = [msgspec.structs.replace(run, error="RuntimeError: no") for run in block()[:2]]
    assert (
        faults(block(), [*failed, InputRecord(**KEY)])
        == [("different", "error", "None", "'RuntimeError: no'")] * 2
    )
    plan = read_plan(STUDY)
    unit = Unit("niah_single", 0, "aware")
    found = repeated(plan, LoadedModel(None, None, "m", None), unit)
    assert error_of(found).startswith("AttributeError: 'NoneType' object has no attribute")
    assert found[-1].input_id == unit.input_id(plan.seed)


def test_signals_that_are_recorded_since_then_are_passed_over():
    assert faults(block(), changed(0, signals={"margin": None, "new": 1.0})) == []


def test_runs_on_one_side_only_are_named():
    assert faults(block(), block()[1:]) == [("different", "run", "logged", "not planned")]
    assert faults(block()[1:], block()) == [("different", "run", "missing", "planned")]
    for logged, found in ((block(), block()[1:]), (block()[1:], block())):
        assert compare_records(logged, found, 0.07).verdict == "different"


def write_log(path: Path, settings: dict, records=()) -> Path:
    study = StudyRecord(
        schema_version=1,
        suite="s",
        model="m",
        dtype="float32",
        attention="sdpa",
        versions={"kvstats": "0.0.9"},
        host="x86_64",
        settings=settings,
        template_hash="0",
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    path.write_bytes(b"".join(encode_record(record) + b"\n" for record in (study, *records)))
    return path


def test_logs_that_cannot_be_checked_are_refused(tmp_path):
    plan = read_plan(STUDY)
    settings = msgspec.to_builtins(plan)
    unit = Unit("niah_single", 0, "aware")
    only_errors = write_log(tmp_path / "a.jsonl", settings, failed_block(plan, unit, "MemoryError"))
    with pytest.raises(
        InputError, match=r"a\.jsonl: holds none of its plan's inputs; pass a log that collect"
    ):
        check_log(only_errors)
    strange = write_log(tmp_path / "b.jsonl", {"engine": "other"})
    message = (
        r"b\.jsonl:1: has settings that are no plan \(.*\); check it with kvstats 0\.0\.9, which wrote it"
    )
    with pytest.raises(InputError, match=message):
        check_log(strange)
    twice = tmp_path / "c.jsonl"
    twice.write_bytes(strange.read_bytes() * 2)
    with pytest.raises(InputError, match=r"c\.jsonl: holds several collections; check the log of one"):
        check_log(twice)
    with pytest.raises(InputError, match=r"check_log: inputs=0 is below 1; run at least one input"):
        check_log(strange, inputs=0)
    with pytest.raises(InputError, match=r"d\.jsonl: cannot be read \(No such file or directory\)"):
        check_log(tmp_path / "d.jsonl")


def test_the_inputs_are_drawn_over_the_whole_log():
    study, done = survey(RELEASED)
    assert study.suite == "needles"
    assert len(done) == 380
    plan = read_plan(STUDY)
    drawn = choose(RELEASED, plan, done, 5, seed=0)
    assert drawn == choose(RELEASED, plan, done, 5, seed=0)
    assert drawn != choose(RELEASED, plan, done, 5, seed=1)
    assert len({unit.key(plan.seed) for unit in drawn}) == 5
    assert max(unit.index for unit in drawn) > 10
    assert len(choose(RELEASED, plan, done, 1000, seed=0)) == 380


def check(log: Path, *options: str) -> tuple[int, str, str]:
    """Check as the command does, in this process, which has its libraries loaded."""
    done = CliRunner().invoke(app, ["check", str(log), *options], catch_exceptions=False)
    return done.exit_code, done.stdout, done.stderr


def test_a_released_log_is_reproduced_and_a_tampered_one_is_not(tmp_path):
    with gzip.open(RELEASED, "rb") as file:
        lines = file.readlines()
    end = next(place for place, line in enumerate(lines, start=1) if line.startswith(b'{"record":"input"'))
    whole = tmp_path / "whole.jsonl"
    whole.write_bytes(b"".join(lines[:end]))
    code, out, err = check(whole)
    assert code == 0, out + err
    assert out.splitlines()[-1] == "reproduced: 1 inputs, 18 runs, gate at tau = 0.07"

    records = [json.loads(line) for line in lines[:end]]
    logged = records[-1]["drop"] + 0.2
    tau = round(logged - 0.1, 3)
    records[-1] |= {"drop": logged, "prompt_hash": "0" * 64}
    run = next(record for record in records if record.get("arm") == "random")
    run["prediction"] += "!"
    tampered = tmp_path / "tampered.jsonl.gz"
    with gzip.open(tampered, "wt") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
    code, out, err = check(tampered, "--tau", str(tau), "--json")
    assert code == 3, err
    found = json.loads(out)
    assert (found["verdict"], found["inputs"], found["runs"], found["tau"]) == ("different", 1, 18, tau)
    assert sorted(item["quantity"] for item in found["offenders"]) == ["drop", "gate", "prediction", "prompt"]
    tallies = {tally["quantity"]: tally for tally in found["tallies"]}
    assert tallies["prediction"]["reproduced"] == 17
    assert tallies["logprob"]["reproduced"] == 18
    assert tallies["certificate"]["reproduced"] == 2
    assert tallies["drop"] == {
        "quantity": "drop",
        "reproduced": 0,
        "drifted": 0,
        "different": 1,
        "largest": pytest.approx(0.2 / max(abs(logged), 0.1), rel=1e-3),
    }
