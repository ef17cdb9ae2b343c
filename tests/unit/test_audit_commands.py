"""The command that audits: what it prints, its exit codes, and that verification refuses what it found."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from kvstats.cli import main
from kvstats.log import LogWriter, RunRecord, StudyRecord
from kvstats.prereg import verify

TIME = datetime(2026, 1, 2, tzinfo=UTC)
KEY = {"suite": "s", "model": "m", "task": "t"}
STUDY = StudyRecord(
    schema_version=1,
    suite="s",
    model="m",
    dtype="float32",
    attention="sdpa",
    versions={},
    host="x86_64",
    settings={},
    template_hash="0",
    started_at=TIME,
)
PLAN = """
study: toy
registered_at: {at}
data: {{runs: ["*.jsonl"]}}
claims:
  - id: harm
    statement: Eviction harms.
    estimator: delta
    arguments: {{arm: evict}}
    supported: high < 0
"""


@pytest.fixture
def run(capsys):
    """Run the command in this process; return exit code, stdout and stderr."""

    def call(*arguments):
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return end.value.code or 0, out, err

    return call


def runs(size=8):
    return [
        RunRecord(
            **KEY,
            input_id=str(number),
            arm=arm,
            budget=budget,
            score=1.0 if arm == "full" else float(number > 5),
            n_prompt=100,
            references=[str(number)],
            recorded_at=TIME,
        )
        for number in range(size)
        for arm, budget in (("full", 1.0), ("evict", 0.5))
    ]


@pytest.fixture
def write(tmp_path):
    def write(records, name="a.jsonl") -> Path:
        (tmp_path / name).unlink(missing_ok=True)
        with LogWriter(tmp_path / name, STUDY) as log:
            log.append(records)
        return tmp_path / name

    return write


def changed(records, place, **fields):
    return [
        msgspec.structs.replace(record, **fields) if number == place else record
        for number, record in enumerate(records)
    ]


def test_nothing_found(run, write):
    code, out, err = run("audit", write(runs()))
    assert (code, err) == (0, "")
    assert out == "audit, nothing found; 16 runs: 16 scored, 0 with an error, 0 not scored\n"


def test_notes_alone_are_no_failure(run, write):
    code, out, _ = run("audit", write(runs(1)))
    assert code == 0
    assert "\nnote: one cluster: 1 task with a single input\n  would bias: there is no interval" in out


def test_warnings_and_errors_have_their_codes(run, write):
    code, out, err = run("audit", write(runs()[1:]))
    assert (code, err) == (1, "")
    assert "\nwarning: missing twin: 1 run of inputs that the full cache was not run on\n" in out
    assert "\n  such as suite=s, model=m, task=t, input_id=0\n" in out
    records = runs()
    code, out, _ = run("audit", write([*records, records[0]], "b.jsonl"))
    assert code == 3
    assert out.splitlines()[2] == "error: duplicates: 2 runs share their key with another"


def test_lines_that_cannot_be_read_are_findings_and_files_that_cannot_are_not(run, write, tmp_path):
    path = write(runs())
    path.write_bytes(path.read_bytes() + b'{"score": NaN}\n')
    code, out, err = run("audit", path)
    assert (code, err) == (3, "")
    assert "error: unreadable lines: 1 line could not be read" in out
    code, out, err = run("audit", tmp_path / "none.jsonl")
    assert (code, out) == (2, "")
    assert "matches no file" in err
    assert run("audit")[0] == 2


def test_as_json(run, write):
    code, out, _ = run("audit", write(runs()[1:]), "--json")
    assert code == 1
    content = json.loads(out)
    assert (content["n_total"], content["n_scored"], content["n_error"]) == (15, 15, 0)
    assert [(item["check"], item["severity"], item["count"]) for item in content["findings"]] == [
        *(("missing twin", "warning", 1), ("partial cells", "warning", 1), ("clusters of one", "note", 1))
    ]
    assert all(item["bias"] for item in content["findings"])


def test_against_a_reference(run, write):
    path = write(runs())
    assert run("audit", path, "--reference", path)[0] == 0
    longer = [msgspec.structs.replace(record, n_prompt=101) for record in runs()]
    code, out, _ = run("audit", write(longer, "b.jsonl"), "--reference", path)
    assert code == 3
    assert (
        "error: prompt length drift: prompt length of the run is not the reference's in 16 runs of 16" in out
    )


def test_against_a_registration(run, write, tmp_path):
    path, plan = write(runs()), tmp_path / "plan.yaml"
    plan.write_text(PLAN.format(at="2026-01-01T12:00:00Z"))
    assert run("audit", path, "--registration", plan)[0] == 0
    plan.write_text(PLAN.format(at="2026-01-02T12:00:00Z"))
    code, out, _ = run("audit", path, "--registration", plan)
    assert code == 3
    assert "error: older than the registration: 16 records from before 2026-01-02T12:00:00+00:00" in out
    plan.write_text("study: [")
    code, out, err = run("audit", path, "--registration", plan)
    assert (code, out) == (2, "")
    assert "plan.yaml:" in err


def test_folders_are_looked_through(run, write, tmp_path):
    write(runs())
    (tmp_path / "INVALID").mkdir()
    write([], "INVALID/b.jsonl")
    code, out, _ = run("audit", tmp_path)
    assert code == 1
    assert "warning: name of a bad file" in out


def test_the_help_tells_the_exit_codes(run):
    code, out, _ = run("audit", "--help")
    assert code == 0
    for text in ("0  nothing found, or notes only", "1  warnings", "2  wrong usage", "3  errors"):
        assert text in out


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN.format(at="2026-01-01T12:00:00Z"))
    return path


def test_verification_refuses_a_key_of_several_contents(write, plan):
    write(runs())
    assert [claim.verdict for claim in verify(plan).claims] == ["supported"]
    write(changed(runs(), 3, references=["other"]))
    report = verify(plan)
    assert [claim.verdict for claim in report.claims] == ["invalid"]
    assert report.exit_code == 3
    assert report.integrity == (
        "1 input with more than one references under the same key, such as "
        "suite=s, model=m, task=t, input_id=1",
    )
    assert [finding.check for finding in report.audit] == ["reused id"]


def test_verification_refuses_a_full_cache_that_was_compressed(write, plan):
    full = [index for index, run in enumerate(runs()) if run.arm == "full"]
    write(changed(runs(), full[0], budget=0.5))
    report = verify(plan)
    assert [claim.verdict for claim in report.claims] == ["invalid"]
    assert report.integrity[0].startswith("1 run of the full cache kept a part of it only, such as suite=s")


def test_verification_tells_of_warnings_and_of_names_below_the_folder(write, plan):
    write(runs())
    write([RunRecord(**KEY, input_id="9", arm="full", score=1.0, references=["9"])], "a_2.jsonl")
    report = verify(plan)
    assert [claim.verdict for claim in report.claims] == ["supported"]
    found = {finding.check: finding for finding in report.audit}
    assert found["numbered twin"].examples == ("a_2 beside a",)
    assert "partial cells" in found
    assert str(plan.parent) not in report.to_json().decode()
