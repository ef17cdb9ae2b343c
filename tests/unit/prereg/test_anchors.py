"""Anchors: hashes, commits and time-stamps hold what they held, and nothing that was changed since."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kvstats.document import read_document
from kvstats.errors import InputError
from kvstats.prereg import amend, seal, verify
from kvstats.prereg.chain import chain_of
from kvstats.prereg.plan import load_plan
from kvstats.prereg.standing import registration_standing

STAMPED = Path(__file__).parent / "timestamp"
NO_CLIENT = importlib.util.find_spec("rfc3161_client") is None
needs_client = pytest.mark.skipif(NO_CLIENT, reason="needs the package rfc3161-client")


def standing(path, **anchors):
    return registration_standing(load_plan(path), **anchors)


@pytest.fixture
def commit(tmp_path, monkeypatch):
    """Commit everything in the folder of the registration, a day after the last time; return the id."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    environment = {
        "PATH": "/usr/bin:/bin:/usr/local/bin",
        "HOME": str(tmp_path),
        **{f"GIT_{who}_{what}": "a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }

    def git(*arguments, **variables):
        done = subprocess.run(
            ["git", "-C", tmp_path, *arguments],
            env={**environment, **variables},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    git("init", "--quiet")
    days = iter(range(1, 29))

    def call(*tag, date=None):
        date = date or f"2026-11-{next(days):02d}T10:00:00+02:00"
        git("add", "--all")
        git("commit", "--quiet", "--allow-empty", "-m", "x", GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date)
        for name in tag:
            git("tag", "-a", "-m", "x", name)
        return git("rev-parse", "HEAD")

    return call


def test_a_hash_of_the_file_or_of_the_frozen_part(register):
    path = register()
    document = read_document(path)
    for digest, covers in (
        (document.sha256, "the file"),
        (chain_of(document).frozen_sha256.upper(), "the frozen part"),
    ):
        found = standing(path, expect_sha256=digest)
        (anchor,) = found.facts.anchors
        assert (anchor.by, anchor.given, anchor.covers, anchor.time) == ("sha256", True, covers, None)
        assert anchor.reference == digest.lower()
        assert (found.findings, found.facts.anchored, found.facts.standing) == ((), True, "anchored")


def test_a_deviation_changes_the_file_and_not_the_frozen_part(register):
    path = register()
    document = read_document(path)
    path.write_text(path.read_text() + "deviations: [{at: 2026-11-01T00:00:00Z, text: x}]\n")
    assert standing(path, expect_sha256=chain_of(document).frozen_sha256).findings == ()
    (finding,) = standing(path, expect_sha256=document.sha256).findings
    assert finding.endswith(f"expected was {document.sha256}")


def test_the_first_commit_with_the_frozen_part_is_found(register, commit):
    path = register(("high < 0", "high < 1"))
    commit()
    path = register()
    second = commit()
    path.write_text("# A comment.\n" + path.read_text())
    commit()
    path.write_text("not: a registration\n")
    commit()
    register()
    path.write_text(path.read_text() + "# Another.\n")
    found = standing(path)
    (anchor,) = found.facts.anchors
    assert (anchor.by, anchor.given, anchor.covers) == ("git", False, "the frozen part")
    assert (anchor.time, anchor.reference) == ("2026-11-02T08:00:00Z", second)
    assert (found.findings, found.facts.anchored, found.facts.standing) == ((), False, "unanchored")
    assert standing(path, git=False).facts.anchors == ()


def test_a_plan_that_was_never_committed_has_no_commit(register, commit):
    register()
    assert standing(register()).facts.anchors == ()
    commit()
    assert standing(register(("high < 0", "high < 1"))).facts.anchors == ()


def test_a_commit_covers_the_amendments_that_it_has(register, commit):
    path = register()
    amend(path, "One.")
    first = commit()
    amend(path, "Two.", changes={"harm": {"supported": "high < 1"}})
    second = commit("v2")
    (found,) = standing(path).facts.anchors
    assert (found.reference, found.covers, found.amendments) == (first, "the frozen part and 1 amendment", 1)
    facts = standing(path, git=first).facts
    assert (facts.anchored, facts.standing) == (False, "anchored in part")
    facts = standing(path, git="v2").facts
    assert (facts.anchored, facts.anchors[0].covers) == (True, "the file")
    assert (facts.anchors[0].given, facts.anchors[0].reference) == (True, second)


def test_a_named_commit_that_has_another_plan_is_an_integrity_failure(toy, register, commit):
    path = register()
    seal(path)
    first = commit("registered")
    assert verify(path, git="registered").registration.standing == "sealed, anchored"
    (path.parent / "plan.seal.json").unlink()
    path = register(("high < 0", "high < 1"))
    seal(path)
    commit()
    assert verify(path).registration.standing == "sealed, unanchored"
    report = verify(path, git="registered")
    assert report.integrity == (
        f"git registered (commit {first}) does not hold the frozen part as it is now at this path",
    )
    assert (report.exit_code, report.claims[0].reason) == (3, "the registration is not the expected one")


def test_a_commit_may_have_the_seal_alone(register, commit, tmp_path):
    path = register()
    seal(path)
    text = path.read_text()
    path.unlink()
    named = commit()
    path.write_text(f"# A comment.\n{text}")
    (anchor,) = standing(path, git=named).facts.anchors
    assert (anchor.covers, anchor.amendments) == ("the frozen part", 0)
    (tmp_path / "plan.seal.json").unlink()
    (finding,) = standing(register(("high < 0", "high < 1")), git=named).findings
    assert finding == f"git {named} (commit {named}) does not hold the frozen part as it is now at this path"


@pytest.mark.parametrize("name", ["v7", "--all", "", "a b", "HEAD:plan.yaml"])
def test_a_name_that_is_no_commit_is_refused(register, commit, name):
    path = register()
    commit()
    with pytest.raises(
        InputError, match=f"verify: git='{name}' is no commit or tag of a git repository around"
    ):
        standing(path, git=name)


def test_without_git_nothing_is_found_and_nothing_fails(register, commit, monkeypatch):
    path = register()
    named = commit()
    monkeypatch.setenv("PATH", "/nowhere")
    assert (standing(path).facts.anchors, standing(path).findings) == ((), ())
    with pytest.raises(InputError, match="is no commit or tag"):
        standing(path, git=named)


def test_outside_of_a_work_tree_nothing_is_found(register):
    assert standing(register()).facts.anchors == ()
    with pytest.raises(InputError, match="verify: git='HEAD' is no commit or tag"):
        standing(register(), git="HEAD")


def test_an_anchor_may_be_later_than_the_first_record(toy, register, commit):
    path = register()
    commit("early", date="2026-10-31T22:00:00+00:00")
    commit("late", date="2026-11-01T00:00:01+00:00")
    report = verify(path)
    assert (report.registered_first, report.anchored_first) == (True, None)
    assert verify(path, expect_sha256=report.registration.sha256).anchored_first is None
    assert verify(path, git="early").anchored_first is True
    assert verify(path, git="late").anchored_first is False
    assert b'"anchored_first": false' in verify(path, git="late").to_json()


def test_a_named_commit_of_the_future_is_found(register, commit):
    path = register()
    named = commit(date="2090-01-01T00:00:00+00:00")
    assert standing(path).findings == ()
    found = standing(path, git=named)
    assert found.findings == (f"git {named} is of 2090-01-01T00:00:00Z, which lies in the future",)
    assert found.facts.anchored is False


def test_a_changed_byte_of_the_registration_is_found(register):
    path = register()
    content = path.read_bytes()
    document = read_document(path)
    frozen = chain_of(document).frozen_sha256
    outcomes = {"refused": 0, "found": 0}
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        try:
            plan = load_plan(path)
        except InputError:
            outcomes["refused"] += 1
            continue
        assert registration_standing(plan, expect_sha256=document.sha256, git=False).findings != ()
        assert registration_standing(plan, expect_sha256=frozen, git=False).findings != ()
        outcomes["found"] += 1
    assert all(outcomes.values())


@pytest.fixture
def stamped(tmp_path):
    return Path(shutil.copy(STAMPED / "plan.yaml", tmp_path))


@needs_client
@pytest.mark.parametrize(
    ("token", "covers", "serial"), [("file", "the file", 5), ("frozen", "the frozen part", 6)]
)
def test_a_time_stamp_of_the_file_or_of_the_frozen_part(stamped, token, covers, serial):
    found = standing(stamped, timestamp=STAMPED / f"{token}.tsr", timestamp_roots=STAMPED / "root.pem")
    (anchor,) = found.facts.anchors
    assert (anchor.by, anchor.given, anchor.covers) == ("timestamp", True, covers)
    assert (anchor.time, anchor.reference) == ("2026-11-30T00:04:45Z", f"serial {serial}")
    assert (found.findings, found.facts.standing) == ((), "anchored")


@needs_client
def test_a_time_stamp_of_the_frozen_part_bears_another_layout_and_no_other_value(stamped):
    stamped.write_text("# A comment.\n" + stamped.read_text())
    seal(stamped)
    anchors = {"timestamp": STAMPED / "frozen.tsr", "timestamp_roots": STAMPED / "root.pem"}
    assert standing(stamped, **anchors).facts.standing == "sealed, anchored"
    (stamped.parent / "plan.seal.json").unlink()
    stamped.write_text(stamped.read_text().replace("high < 0", "high < 1"))
    seal(stamped)
    digest = chain_of(read_document(STAMPED / "plan.yaml")).frozen_sha256
    found = standing(stamped, **anchors)
    assert found.findings == (
        f"frozen.tsr is a time-stamp of SHA-256 {digest}, which the registration does not have",
    )
    assert found.facts.standing == "sealed, unanchored"


@needs_client
def test_a_time_stamp_of_an_authority_that_is_not_trusted_is_found(stamped):
    found = standing(stamped, timestamp=STAMPED / "file.tsr", timestamp_roots=STAMPED / "other_root.pem")
    assert found.findings == ("file.tsr is not signed by an authority that is trusted",)
    assert (found.facts.anchors, found.facts.anchored) == ((), False)


@needs_client
def test_a_changed_byte_of_the_signature_is_found(stamped, tmp_path):
    token = bytearray((STAMPED / "file.tsr").read_bytes())
    token[-1] ^= 1
    (tmp_path / "a.tsr").write_bytes(token)
    found = standing(stamped, timestamp=tmp_path / "a.tsr", timestamp_roots=STAMPED / "root.pem")
    assert found.findings == ("a.tsr is not signed by an authority that is trusted",)


@needs_client
@pytest.mark.parametrize(
    ("token", "roots", "message"),
    [
        (
            "file.tsr",
            None,
            "needs the certificates of the authorities .*; pass a PEM file as timestamp_roots",
        ),
        ("none.tsr", "root.pem", r"none\.tsr' cannot be read \(No such file or directory\); check the path"),
        ("plan.yaml", "root.pem", r"plan\.yaml' is no time-stamp response \(.*\); pass the \.tsr file"),
        (
            "file.tsr",
            "plan.yaml",
            r"timestamp_roots='.*plan\.yaml' has no certificates \(.*; pass a PEM file",
        ),
        ("sha512.tsr", "root.pem", r"sha512\.tsr' is not of a SHA-256; request a token with -sha256"),
    ],
)
def test_what_cannot_be_used_as_a_time_stamp_is_refused(stamped, token, roots, message):
    with pytest.raises(InputError, match=message):
        standing(
            stamped, timestamp=STAMPED / token, timestamp_roots=None if roots is None else STAMPED / roots
        )


def test_without_its_package_a_time_stamp_is_refused(stamped, monkeypatch):
    monkeypatch.setitem(sys.modules, "rfc3161_client", None)
    with pytest.raises(
        InputError,
        match=r"timestamp='.*file\.tsr' needs the package rfc3161-client, .*; pip install 'kvstats\[seal\]'",
    ):
        standing(stamped, timestamp=STAMPED / "file.tsr", timestamp_roots=STAMPED / "root.pem")


def test_roots_without_a_time_stamp_are_refused(stamped):
    with pytest.raises(InputError, match="is without a token; pass timestamp too"):
        standing(stamped, timestamp_roots=STAMPED / "root.pem")
