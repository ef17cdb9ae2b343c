"""Release bundles: complete, verified elsewhere, and checked byte by byte."""

from __future__ import annotations

import shutil
import subprocess

import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.prereg.checksums import CHECKSUMS
from kvstats.prereg.seal import seal


@pytest.fixture
def study(register, write_log, make_records):
    """Return a sealed registration with its log."""
    records = make_records({"full": {1.0: [1] * 9 + [0]}, "evict": {0.5: [0] * 8 + [1, 0]}}, drop=[0.1] * 10)
    write_log(records)
    path = register(("study: toy", "study: toy\ndescription: A | toy."))
    seal(path)
    return path


def verdicts(report):
    return [(claim.id, claim.verdict, claim.rows) for claim in report.claims]


def test_a_bundle_gives_the_same_verdicts_elsewhere(study, tmp_path):
    released = kv.write_bundle(tmp_path / "release", study)
    assert released == tmp_path / "release" / "plan.yaml"
    names = sorted(file.relative_to(released.parent).as_posix() for file in released.parent.rglob("*.*"))
    logs = sorted(f"logs/{file.name}" for file in (tmp_path / "logs").iterdir())
    assert names == sorted(["README.md", "plan.seal.json", "plan.yaml", *logs])
    before = kv.verify(study, git=False)
    moved = shutil.move(released.parent, tmp_path / "elsewhere")
    shutil.rmtree(tmp_path / "logs")
    study.unlink()
    after = kv.verify(f"{moved}/plan.yaml", git=False)
    assert verdicts(after) == verdicts(before)
    assert (after.exit_code, after.integrity) == (0, ())
    done = subprocess.run(["sha256sum", "-c", CHECKSUMS], cwd=moved, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_readme_says_how_to_verify_and_what_each_field_is(study, tmp_path):
    text = kv.write_bundle(tmp_path / "release", study).with_name("README.md").read_text()
    assert text.startswith("# toy\n\nA | toy.\n")
    assert "kvstats verify plan.yaml" in text
    assert "### run: 20 records" in text
    assert "| n_prompt | Int64 | 0 | Tokens in the evictable cache, and how many of them were kept. |" in text
    assert "| drop | Float64 | 0 | D, the mean agreement of the early bin minus that of the late bin" in text
    assert "prediction" not in text


@pytest.mark.parametrize("name", ["README.md", "plan.seal.json", "logs"])
def test_a_changed_byte_is_named(study, tmp_path, name):
    released = kv.write_bundle(tmp_path / "release", study)
    file = released.with_name(name)
    if file.is_dir():
        (file,) = file.iterdir()
        content = file.read_bytes().replace(b'"score":1,', b'"score":0,', 1)
        assert content != file.read_bytes()
    else:
        content = file.read_bytes() + b"\n"
    file.write_bytes(content)
    report = kv.verify(released, git=False)
    assert report.exit_code == 3
    assert [claim.verdict for claim in report.claims] == ["invalid"]
    relative = file.relative_to(released.parent).as_posix()
    assert any(
        finding.startswith(f"{relative} has SHA-256 ") and CHECKSUMS in finding
        for finding in report.integrity
    )


def test_missing_and_added_files_are_named(study, tmp_path):
    released = kv.write_bundle(tmp_path / "release", study)
    (log,) = (released.parent / "logs").iterdir()
    shutil.copy(log, log.with_name("more.jsonl"))
    released.with_name("README.md").unlink()
    integrity = kv.verify(released, git=False).integrity
    assert f"README.md is in {CHECKSUMS}, but missing" in integrity
    assert f"logs/more.jsonl is among the data, but not in {CHECKSUMS}" in integrity


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("0" * 64 + "  ../secret", "leads out of the folder"),
        ("0" * 64 + "  /etc/hostname", "leads out of the folder"),
    ],
)
def test_checksums_of_files_elsewhere_are_not_made(study, tmp_path, line, fault):
    released = kv.write_bundle(tmp_path / "release", study)
    with released.with_name(CHECKSUMS).open("a") as file:
        file.write(line + "\n")
    assert any(fault in finding for finding in kv.verify(released, git=False).integrity)


@pytest.mark.parametrize("line", [b"abc  plan.yaml", b"", b"\xff", b"0" * 64 + b"  plan.yaml"])
def test_a_faulty_list_of_checksums_is_an_error(study, tmp_path, line):
    released = kv.write_bundle(tmp_path / "release", study)
    with released.with_name(CHECKSUMS).open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(InputError, match=r"SHA256SUMS:.* restore or remove"):
        kv.verify(released, git=False)


def test_nothing_is_released_that_is_not_whole(study, tmp_path):
    with pytest.raises(InputError, match=r"write_bundle: folder='.*' exists; name a new folder"):
        kv.write_bundle(tmp_path, study)
    with pytest.raises(InputError, match="lies in no folder"):
        kv.write_bundle(tmp_path / "a" / "b", study)
    (log,) = (tmp_path / "logs").iterdir()
    before = log.read_bytes()
    log.write_bytes(before + b"{\n")
    with pytest.raises(InputError, match=r"write_bundle: 1 line cannot be read: .*; correct it before"):
        kv.write_bundle(tmp_path / "release", study)
    log.write_bytes(before)
    study.write_text(study.read_text().replace("logs/*.jsonl", "README.md"))
    log.rename(tmp_path / "README.md")
    with pytest.raises(InputError, match=r"has data named README\.md, SHA256SUMS or as the registration"):
        kv.write_bundle(tmp_path / "release", study)
    assert not [file for file in tmp_path.iterdir() if "release" in file.name]
