"""The evidence: which files it is, and whether they are intact."""

from __future__ import annotations

import gzip
import hashlib
import shutil

import pytest

from kvstats.errors import InputError
from kvstats.prereg.data import DataCounts
from kvstats.prereg.evidence import read_evidence
from kvstats.prereg.plan import load_plan

FIRST = "2026-11-01T00:00:00Z"


@pytest.fixture
def evidence(register):
    """Read the evidence of the base registration with other lines under data."""

    def read(data="runs: [logs/*.jsonl]", folder=None):
        plan = load_plan(register(("runs: [logs/*.jsonl]", data)))
        return read_evidence(plan.document, plan.registration, folder)

    return read


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_counts(toy, evidence):
    found = evidence()
    assert found.counts == DataCounts(
        files=1, runs=80, inputs=20, replays=10, rejects=0, hashed=False, first_record=FIRST
    )
    assert found.findings == ()
    assert found.log.runs.height == 80


def test_several_patterns_read_each_file_once(toy_records, write_log, evidence):
    half = len(toy_records) // 2
    write_log(toy_records[:half], "logs/a.jsonl")
    plain = write_log(toy_records[half:], "logs/deep/b.jsonl")
    (plain.parent / "b.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    found = evidence("runs: [logs/a.jsonl, 'logs/**/*.jsonl*', './logs/a.jsonl', 'logs/*.jsonl']")
    assert found.counts == DataCounts(
        files=2, runs=80, inputs=20, replays=10, rejects=0, hashed=False, first_record=FIRST
    )


def test_another_folder(toy, evidence, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    shutil.move(tmp_path / "logs", elsewhere / "logs")
    with pytest.raises(
        InputError, match=r"plan\.yaml:4: 'logs/\*\.jsonl' matches no file in .*; check the path"
    ):
        evidence()
    assert evidence(folder=elsewhere).counts.runs == 80
    with pytest.raises(InputError, match=r"verify: data='.*none' is no folder; check the path"):
        evidence(folder=tmp_path / "none")


def test_each_pattern_must_match(toy, evidence):
    with pytest.raises(InputError, match=r"plan\.yaml:4: 'more/\*' matches no file"):
        evidence("runs: ['logs/*.jsonl', 'more/*']")


@pytest.mark.parametrize("pattern", ["logs/link.jsonl", "logs/l*.jsonl", "linked/*.jsonl"])
def test_a_link_out_of_the_folder_is_refused(toy, evidence, tmp_path, tmp_path_factory, pattern):
    outside = tmp_path_factory.mktemp("outside") / "a.jsonl"
    shutil.copy(toy, outside)
    (tmp_path / "logs" / "link.jsonl").symlink_to(outside)
    (tmp_path / "linked").symlink_to(outside.parent)
    with pytest.raises(
        InputError, match=r"plan\.yaml:4: '.*jsonl' leads out of the folder of the registration; put"
    ):
        evidence(f"runs: ['{pattern}']")


def test_a_link_within_the_folder_is_one_file(toy, evidence, tmp_path):
    (tmp_path / "logs" / "b.jsonl").symlink_to(toy)
    assert evidence().counts.runs == 80


def test_registered_hashes(toy, evidence):
    intact = f"runs: [logs/*.jsonl]\n  sha256:\n    ./logs/a.jsonl: {digest(toy)}"
    assert evidence(intact).findings == ()
    content = toy.read_bytes()
    changed = content.replace(b'"score":0.0', b'"score":1.0', 1)
    assert changed != content
    toy.write_bytes(changed)
    assert evidence(intact).findings == (
        f"logs/a.jsonl has SHA-256 {digest(toy)}, registered was {hashlib.sha256(content).hexdigest()}",
    )


def test_files_that_were_added_or_are_missing(toy, evidence, tmp_path):
    intact = f"runs: [logs/*.jsonl]\n  sha256:\n    logs/a.jsonl: {digest(toy)}\n    logs/c.jsonl: {'a' * 64}"
    shutil.copy(toy, tmp_path / "logs" / "b.jsonl")
    assert evidence(intact).findings == (
        "logs/b.jsonl is among the data, but not registered",
        "logs/c.jsonl is registered, but not among the data",
    )


def test_unreadable_lines_are_a_finding(toy, evidence):
    with toy.open("ab") as file:
        file.write(b"oops\n" * 5)
    found = evidence()
    count = len(toy.read_bytes().splitlines())
    assert found.counts.rejects == 5
    (finding,) = found.findings
    assert finding.startswith(f"5 lines cannot be read: logs/a.jsonl:{count - 4} is not JSON (")
    assert finding.count("logs/a.jsonl:") == 3
