"""Attempts to have a claim confirmed by what was written or chosen after the data: each must show."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import zlib
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import polars as pl
import pytest

from kvstats.cli import main
from kvstats.document import parse_document
from kvstats.errors import InputError
from kvstats.expressions import check_expression
from kvstats.prereg import amend, seal, verify
from kvstats.prereg.plan import load_plan
from kvstats.prereg.rules import parse_rule

BEFORE, DATA = datetime(2026, 10, 30, tzinfo=UTC), datetime(2026, 11, 1, 6, tzinfo=UTC)
AFTER = datetime(2026, 11, 2, tzinfo=UTC)

GUARD = """\
guards:
  - {id: enough, statement: a, estimator: delta, arguments: {arm: evict}, where: budget = 0.5, holds: n > 50}
claims:
"""
SECOND = """\
  - {id: other, statement: b, estimator: delta, arguments: {arm: evict}, where: budget = 0.25, null: -0.5,
     supported: low > 0}
family: {method: holm, claims: [harm, other]}
"""


@pytest.fixture
def dated(write_log, toy_records):
    """Write the toy log with the time that a function of each record gives."""

    def write(time_of):
        records = [
            msgspec.structs.replace(record, recorded_at=time_of(record))
            if hasattr(record, "recorded_at")
            else record
            for record in toy_records
        ]
        return write_log(records)

    return write


def during(record):
    return DATA


def early_first(record):
    return BEFORE if record.task == "qa" and record.input_id == "i000" else DATA


def verdict(path, **options):
    return verify(path, **options).claims[0].verdict


def test_a_guard_that_was_amended_after_the_data_leaves_claims_exploratory(register, dated):
    dated(during)
    path = register(("claims:\n", GUARD))
    assert verify(path).exit_code == 3
    amend(path, "Too strict.", changes={"enough": {"holds": "n > 5"}}, at=AFTER)
    report = verify(path)
    assert (report.exit_code, report.claims[0].verdict) == (0, "exploratory")
    assert report.claims[0].evidence.registered_at == "2026-11-02T00:00:00Z"


def test_a_member_of_a_family_that_was_amended_after_the_data_leaves_the_others_exploratory(register, dated):
    dated(during)
    path = register()
    path.write_text(path.read_text() + SECOND)
    assert verdict(path) != "exploratory"
    amend(path, "Another null value.", changes={"other": {"null": 0.9}}, at=AFTER)
    assert [claim.verdict for claim in verify(path).claims] == ["exploratory"] * 2


@pytest.mark.parametrize("rule", ["exploratory", "exclude", "allow"])
@pytest.mark.parametrize("time", [DATA, None])
def test_rules_for_early_records_do_not_cover_amendments(register, dated, rule, time):
    dated(lambda record: time)
    evidence = f"evidence: {{before_registration: {rule}, without_time: {rule}}}\nclaims:\n"
    path = register(("claims:\n", evidence), ("high < 0", "high < -0.9"))
    assert verdict(path) == "not met"
    amend(path, "Too strict.", changes={"harm": {"supported": "high < 0"}}, at=AFTER)
    assert verdict(path) == "exploratory"


def test_an_aggregate_in_a_filter_does_not_hide_early_records(register, dated):
    dated(early_first)
    # Of 80 runs it selects one input, of the 60 pairs of the arm all.
    hiding = "budget = 0.5 AND (COUNT(score) < 70 OR input_id = 'i009')"
    report = verify(register(("budget = 0.5", f'"{hiding}"')))
    (claim,) = report.claims
    assert (claim.verdict, claim.rows[0]["n"]) == ("exploratory", 20)


def test_a_filter_on_the_name_full_does_not_hide_early_records(register, write_log, toy_records):
    records = [
        msgspec.structs.replace(
            record,
            recorded_at=early_first(record),
            arm={"full": "plain"}.get(record.arm, record.arm),
        )
        for record in toy_records
        if hasattr(record, "score")
    ]
    write_log(records)
    hiding = "arm = 'full' OR input_id = 'i009'"
    path = register(
        ("estimator: delta", "estimator: accuracy"),
        ("{arm: evict}", "{arm: full}"),
        ("budget = 0.5", f'"{hiding}"'),
        ("high < 0", "estimate > 0.5"),
    )
    (claim,) = verify(path).claims
    assert (claim.verdict, claim.rows[0]["n"]) == ("exploratory", 20)


def test_nan_satisfies_no_rule():
    rule = parse_rule("a:1", "supported", "low > 0.5", {"low": pl.Float64()})
    assert rule.values(pl.DataFrame({"low": [float("nan"), 1.0]})) == [None, True]


def test_a_file_has_one_hash(register):
    first, second = "0" * 64, "1" * 64
    hashes = f"[logs/*.jsonl]\n  sha256: {{logs/a.jsonl: '{first}', ./logs/a.jsonl: '{second}'}}"
    path = register(("[logs/*.jsonl]", hashes))
    with pytest.raises(
        InputError,
        match=r"plan\.yaml:5: data\.sha256 has '\./logs/a\.jsonl', which is the same file as 'logs/a",
    ):
        load_plan(path)


@pytest.mark.parametrize("hidden", ["\u200b", "\u2060", "\u00ad", "\u200e", "\U000e0041"])
def test_text_with_characters_that_are_not_seen_is_refused(hidden):
    with pytest.raises(InputError, match=r"a\.yaml:2: b has the hidden character"):
        parse_document(Path("a.yaml"), f"a: 1\nb: task = 'qa{hidden}'\n".encode())


def test_a_comment_that_turns_its_line_is_refused():
    with pytest.raises(InputError, match=r"a\.yaml:2: has the hidden character '\\u202e'; remove it"):
        parse_document(Path("a.yaml"), "a: 1\nb: 2 # \u202e3\n".encode())


def test_joiners_are_spelling_but_not_in_expressions():
    assert parse_document(Path("a.yaml"), "a: می\u200cخواهم".encode()).value == {"a": "می\u200cخواهم"}
    with pytest.raises(InputError, match="has the hidden character"):
        check_expression("a:1", "where", "task = 'q\u200ca'")


@pytest.mark.parametrize(
    ("sealed_at", "finding"),
    [
        ("2026-10-31T12:30:00Z", "is 2026-10-31T12:30:00Z, before sealed_at of 2026-10-31T14:00:00Z"),
        ("2026-10-31T14:30:00Z", "is 2026-10-31T14:30:00Z, before the amendment of 2026-10-31T15:00:00Z"),
    ],
)
def test_times_in_a_seal_are_in_order(register, dated, sealed_at, finding):
    dated(during)
    path = register()
    seal(path, at=datetime(2026, 10, 31, 14, tzinfo=UTC))
    amend(path, "x", at=datetime(2026, 10, 31, 15, tzinfo=UTC))
    seal(path, at=datetime(2026, 10, 31, 16, tzinfo=UTC))
    assert verify(path).exit_code == 0
    file = path.with_suffix(".seal.json")
    text = file.read_text()
    assert text.count("2026-10-31T16:00:00Z") == 1
    file.write_text(text.replace("2026-10-31T16:00:00Z", sealed_at))
    report = verify(path)
    assert report.integrity[0] == f"sealed_at of amendment 1 in plan.seal.json {finding}"
    assert report.exit_code == 3


def test_a_seal_has_each_key_once(register):
    path = register()
    seal(path)
    file = path.with_suffix(".seal.json")
    file.write_text(file.read_text().replace("{", '{"frozen_sha256": "' + "0" * 64 + '",', 1))
    with pytest.raises(
        InputError, match=r"plan\.seal\.json: is no seal \(the key 'frozen_sha256' comes twice\)"
    ):
        verify(path)


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+12:00", "9999-12-31T23:59:59-12:00"])
def test_times_that_have_no_date_in_utc_are_told(register, dated, time):
    year = int(time[:4])
    with pytest.raises(
        InputError, match=rf"plan\.yaml:2: registered_at is of the year {year}; write the time"
    ):
        load_plan(register(("2026-10-31T12:00:00Z", time)))
    path = register()
    seal(path)
    file = path.with_suffix(".seal.json")
    sealed = json.loads(file.read_text()) | {"sealed_at": time}
    file.write_text(json.dumps(sealed))
    with pytest.raises(InputError, match=rf"plan\.seal\.json: is no seal \(a time of the year {year}\)"):
        verify(path)
    file.unlink()
    log = dated(during)
    log.write_text(log.read_text().replace("2026-11-01T06:00:00Z", time, 1))
    report = verify(path)
    assert report.exit_code == 3
    assert report.integrity[0].endswith(
        f"1 line cannot be read: logs/a.jsonl:2 has recorded_at in the year {year}"
    )


@pytest.fixture
def git(tmp_path):
    """Run git in the folder of the registration, which is a repository."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        **{f"GIT_{who}_{what}": "a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }

    def call(*arguments, date="2026-10-31T13:00:00+00:00"):
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        done = subprocess.run(
            ["git", "-C", tmp_path, *arguments],
            env={**environment, **dates},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    call("init", "--quiet")

    def commit(**options):
        call("add", "plan.yaml")
        call("commit", "--quiet", "--allow-empty", "-m", "x", **options)
        return call("rev-parse", "HEAD")

    call.commit = commit
    return call


def test_a_commit_around_the_file_is_not_in_the_json(register, dated, git):
    dated(during)
    path = register()
    apart = verify(path)
    git.commit()
    within = verify(path)
    assert (apart.registration.anchors, len(within.registration.anchors)) == ((), 1)
    assert within.to_json() == apart.to_json() == verify(path, git=False).to_json()
    assert b'"by": "git"' in verify(path, git="HEAD").to_json()


def test_a_replaced_object_of_git_anchors_nothing(register, git):
    register(("high < 0", "high < -0.9"))
    published = git.commit()
    path = register()
    forged = git.commit()
    git("replace", published, forged)
    report = verify_unread(path, published)
    assert report == (
        f"git {published} (commit {published}) does not hold the frozen part as it is now at this path",
    )


@pytest.mark.parametrize("kind", ["tree", "blob"])
def test_a_forged_store_of_git_anchors_nothing(tmp_path, register, git, kind):
    register(("high < 0", "high < -0.9"))
    published = git.commit()
    path = register()
    forged = git.commit()
    ids = {"tree": "^{tree}", "blob": ":plan.yaml"}
    true, other = (git("rev-parse", commit + ids[kind]) for commit in (published, forged))
    content = subprocess.run(
        ["git", "-C", tmp_path, "cat-file", kind, other], capture_output=True, check=True
    ).stdout
    file = tmp_path / ".git" / "objects" / true[:2] / true[2:]
    file.chmod(0o644)
    file.write_bytes(zlib.compress(f"{kind} {len(content)}\0".encode() + content))
    report = verify_unread(path, published)
    assert report == (
        f"git {published} (commit {published}) does not hold the frozen part as it is now at this path",
    )


def verify_unread(path, commit):
    """Return what is wrong with a registration, whose data are never opened."""
    report = verify(path, git=commit)
    assert (report.registration.anchored, report.exit_code, report.data) == (False, 3, None)
    return report.integrity


def test_a_registration_below_the_top_of_a_repository_is_found(tmp_path, register, git):
    path = register()
    folder = tmp_path / "a b" / "ü"
    folder.mkdir(parents=True)
    moved = Path(shutil.move(path, folder))
    git("add", "--all")
    git("commit", "--quiet", "-m", "x")
    (anchor,) = load_standing(moved).anchors
    assert (anchor.covers, anchor.given) == ("the file", True)


def load_standing(path):
    from kvstats.prereg.standing import registration_standing

    return registration_standing(load_plan(path), git="HEAD").facts


def test_a_name_like_a_commit_is_no_commit(register, git):
    path = register()
    first = git.commit()
    second = git.commit()
    git("tag", first[:10], second)
    with pytest.raises(InputError, match=f"looks like the id of a commit, but is a name of commit {second}"):
        verify(path, git=first[:10])
    git("tag", "--delete", first[:10])
    with pytest.raises(InputError, match="matches no file"):
        verify(path, git=first[:10].upper())


def test_an_anchor_after_the_first_record_shows(register, dated, git, capsys):
    dated(during)
    path = register()
    git.commit(date="2026-11-03T00:00:00+00:00")
    report = verify(path, git="HEAD")
    assert repr(report).endswith("intact, anchored; ANCHORED AFTER ITS FIRST RECORD")
    assert '<p class="state fault">' in report.to_html()
    with pytest.raises(SystemExit) as end:
        main(["verify", str(path), "--git", "HEAD", "--strict"])
    assert end.value.code == 1
    assert "ANCHORED AFTER ITS FIRST RECORD" in capsys.readouterr().out


def test_an_anchor_of_the_plan_says_nothing_of_a_later_rule(register, dated, git):
    dated(during)
    path = register(("high < 0", "high < -0.9"))
    early = git.commit()
    assert verify(path, git=early).anchored_first is True
    amend(path, "x", changes={"harm": {"supported": "high < 0"}}, at=datetime(2026, 10, 31, 14, tzinfo=UTC))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    report = verify(path, git=early, expect_sha256=digest)
    assert (report.registration.standing, report.anchored_first) == ("anchored", None)


def test_a_report_on_some_claims_says_that_there_are_others(register, dated):
    dated(during)
    path = register()
    path.write_text(path.read_text() + SECOND)
    report = verify(path, only="harm")
    assert report.not_judged == ("other",)
    assert repr(report).startswith("Report: toy; 1 of 2 claims: 1 ")
    assert "1 of 2 claims" in report.to_html()
    assert "1 of 2 claims" in report.to_markdown()
    assert b'"not_judged": [\n    "other"\n  ]' in report.to_json()
    assert repr(verify(path)).startswith("Report: toy; 2 claims: ")
