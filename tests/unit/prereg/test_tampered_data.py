"""Data that are not what was registered are found, whatever was done to them."""

from __future__ import annotations

import gzip
import hashlib
import shutil

import pytest

from kvstats.prereg import verify

PLAN = """\
study: toy
registered_at: 2026-10-31T12:00:00Z
data: {runs: ["logs/*.jsonl*"], sha256: {HASHES}}
claims:
  - {id: harm, statement: a, estimator: delta, arguments: {arm: evict}, where: budget = 0.5,
     supported: high < 0}
"""


@pytest.fixture
def sealed(write_log, toy_records, register, tmp_path):
    """Write the toy log as two files, the second compressed, and a registration with their hashes."""
    half = len(toy_records) // 2
    write_log(toy_records[:half], "logs/a.jsonl")
    second = write_log(toy_records[half:], "logs/b.jsonl")
    (tmp_path / "logs" / "b.jsonl.gz").write_bytes(gzip.compress(second.read_bytes(), mtime=0))
    second.unlink()
    hashes = ", ".join(
        f"logs/{name}: '{hashlib.sha256((tmp_path / 'logs' / name).read_bytes()).hexdigest()}'"
        for name in ("a.jsonl", "b.jsonl.gz")
    )
    path = register(base=PLAN.replace("HASHES", hashes))
    assert verify(path).exit_code == 0
    return path


def one_byte(folder):
    content = (folder / "a.jsonl").read_bytes()
    (folder / "a.jsonl").write_bytes(content.replace(b'"score":0.0', b'"score":1.0', 1))


def one_compressed_byte(folder):
    content = bytearray((folder / "b.jsonl.gz").read_bytes())
    content[4] ^= 1  # The time in the header of the archive: the lines are the same.
    (folder / "b.jsonl.gz").write_bytes(content)


def a_blank_line(folder):
    with (folder / "a.jsonl").open("ab") as file:
        file.write(b"\n")


def swapped(folder):
    content = (folder / "a.jsonl").read_bytes()
    (folder / "a.jsonl").write_bytes((folder / "b.jsonl.gz").read_bytes())
    (folder / "b.jsonl.gz").write_bytes(content)


def renamed(folder):
    (folder / "a.jsonl").rename(folder / "c.jsonl")


def added(folder):
    shutil.copy(folder / "a.jsonl", folder / "c.jsonl")


def linked(folder):
    (folder / "c.jsonl").symlink_to(folder / "a.jsonl")


def removed(folder):
    (folder / "a.jsonl").unlink()


def cut_off(folder):
    content = (folder / "b.jsonl.gz").read_bytes()
    (folder / "b.jsonl.gz").write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize(
    ("tamper", "faults"),
    [
        (one_byte, ["logs/a.jsonl has SHA-256"]),
        (one_compressed_byte, ["logs/b.jsonl.gz has SHA-256"]),
        (a_blank_line, ["logs/a.jsonl has SHA-256"]),
        (swapped, ["logs/a.jsonl has SHA-256", "logs/b.jsonl.gz has SHA-256"]),
        (renamed, ["logs/a.jsonl is registered, but not among", "logs/c.jsonl is among the data, but not"]),
        (added, ["logs/c.jsonl is among the data, but not registered"]),
        (linked, ["logs/c.jsonl is among the data, but not registered"]),
        (removed, ["logs/a.jsonl is registered, but not among the data"]),
        (cut_off, ["logs/b.jsonl.gz has SHA-256", "1 line cannot be read: logs/b.jsonl.gz:"]),
    ],
)
def test_tampering_is_an_integrity_failure(sealed, tmp_path, tamper, faults):
    tamper(tmp_path / "logs")
    report = verify(sealed)
    assert len(report.integrity) == len(faults)
    assert all(finding.startswith(fault) for finding, fault in zip(report.integrity, faults, strict=True)), (
        report.integrity
    )
    assert [claim.verdict for claim in report.claims] == ["invalid"]
    assert report.claims[0].rows == ()
    assert (report.exit_code, report.intact) == (3, False)


def test_without_hashes_a_changed_byte_shows_in_the_listed_hash_only(toy, register, tmp_path):
    path = register()
    before = verify(path)
    one_byte(tmp_path / "logs")
    after = verify(path)
    assert (before.integrity, after.integrity) == ((), ())
    assert before.files[0].sha256 != after.files[0].sha256
