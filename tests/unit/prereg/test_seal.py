"""Seals: the same for the same plan however it is written, and broken by anything else."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from kvstats.document import read_document
from kvstats.errors import InputError
from kvstats.prereg import amend, seal, verify
from kvstats.prereg.chain import chain_of

AT = datetime(2026, 10, 31, 12, 30, tzinfo=UTC)
LATER = AT + timedelta(hours=1)

REORDERED = """\
# The same plan, written otherwise.
claims:
  - {supported: "high < 0", where: budget = 0.50, arguments: {"arm": 'evict'},
     estimator: delta, statement: "Eviction harms.", id: harm}
deviations: []
data: {runs: ['logs/*.jsonl']}
registered_at: "2026-10-31T12:00:00Z"
"study": toy
"""


def frozen(path):
    return chain_of(read_document(path)).frozen_sha256


def verdict(report):
    (claim,) = report.claims
    return claim.verdict, claim.reason, report.exit_code


def test_a_seal_says_what_was_sealed(register, tmp_path):
    path = register()
    sealed = seal(path, at=AT)
    content = json.loads((tmp_path / "plan.seal.json").read_bytes())
    assert content == {
        "format": 1,
        "kvstats": sealed.kvstats,
        "registration": "plan.yaml",
        "sealed_at": "2026-10-31T12:30:00Z",
        "frozen_sha256": frozen(path),
        "file_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "amendments": [],
    }
    assert re.fullmatch(r"0\.\d+\.\d+.*", sealed.kvstats)
    assert {file.name for file in tmp_path.iterdir()} == {"plan.yaml", "plan.seal.json"}


def test_the_frozen_hash_is_that_of_a_canonical_form_that_anyone_can_write(register):
    content = {
        "claims": [
            {
                "arguments": {"arm": "evict"},
                "estimator": "delta",
                "id": "harm",
                "statement": "Eviction harms.",
                "supported": "high < 0",
                "where": "budget = 0.5",
            }
        ],
        "data": {"runs": ["logs/*.jsonl"]},
        "registered_at": "2026-10-31T12:00:00Z",
        "study": "toy",
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert frozen(register()) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("study: toy", "study: 'toy'  # a comment", True),
        ("study: toy\n", "\n\nstudy:   toy\n", True),
        ("{arm: evict}", '\n      "arm": "evict"', True),
        ("claims:\n", "deviations: [{at: 2026-11-01T00:00:00Z, text: x}]\nclaims:\n", True),
        ("claims:\n", "design: {level: 0.90}\nclaims:\n", False),
        ("high < 0", "high < 0.1", False),
        ("high < 0", "high <  0", False),
        ("study: toy", "study: toys", False),
        ("12:00:00Z", "12:00:01Z", False),
        ("evict}", "evict, baseline: full}", False),
    ],
)
def test_values_count_and_layout_does_not(register, old, new, same):
    before = frozen(register())
    assert (frozen(register((old, new))) == before) is same


@pytest.mark.parametrize(("first", "second"), [("0.9", "0.90"), ("0.9", "9.0e-1"), ("5", "5.0")])
def test_a_number_is_the_same_number(register, first, second):
    hashes = {
        frozen(register(("claims:\n", f"design: {{level: {text}}}\nclaims:\n"))) for text in (first, second)
    }
    assert len(hashes) == 1


def test_reordered_keys_leave_a_seal_intact(toy, register):
    digest = frozen(register())
    seal(register(), at=AT)
    path = register(base=REORDERED.replace("0.50", "0.5"))
    assert frozen(path) == digest
    report = verify(path)
    assert verdict(report) == ("supported", "high < 0 holds", 0)
    assert report.registration.standing == "sealed, unanchored"
    assert report.registration.seal.same_bytes is False
    assert verify(path, expect_sha256=digest).registration.standing == "sealed, anchored"


def test_a_sealed_registration_is_sealed_but_unanchored(toy, register):
    path = register()
    seal(path, at=AT)
    report = verify(path)
    facts = report.registration
    assert (facts.standing, facts.anchored, facts.anchors) == ("sealed, unanchored", False, ())
    assert (facts.seal.file, facts.seal.sealed_at) == ("plan.seal.json", "2026-10-31T12:30:00Z")
    assert (facts.seal.same_bytes, facts.seal.amendments) == (True, 0)
    assert repr(report).endswith("intact, sealed, unanchored")


def test_one_changed_threshold_breaks_the_seal(toy, register):
    sealed = seal(register(), at=AT)
    path = register(("high < 0", "high < 1"))
    report = verify(path)
    assert report.integrity == (
        f"the frozen part has SHA-256 {frozen(path)}, "
        f"plan.seal.json of 2026-10-31T12:30:00Z has {sealed.frozen_sha256}",
    )
    assert verdict(report) == ("invalid", "the registration is not intact", 3)
    assert report.data is None


def test_a_changed_plan_is_not_sealed_again(register, tmp_path):
    seal(register(), at=AT)
    before = (tmp_path / "plan.seal.json").read_bytes()
    with pytest.raises(
        InputError,
        match=r"plan\.yaml: the frozen part has SHA-256 \w+, plan\.seal\.json of 2026-10-31T12:30:00Z has "
        r"\w+; restore what was sealed, and write a changed plan as an amendment or as a new registration",
    ):
        seal(register(("high < 0", "high < 1")), at=LATER)
    assert (tmp_path / "plan.seal.json").read_bytes() == before


def test_a_seal_made_anew_hides_nothing_from_an_anchor(toy, register, tmp_path):
    path = register()
    published = [hashlib.sha256(path.read_bytes()).hexdigest(), seal(path, at=AT).frozen_sha256]
    (tmp_path / "plan.seal.json").unlink()
    path = register(("high < 0", "high < 1"))
    forged = seal(path, at=AT)
    assert verify(path).registration.standing == "sealed, unanchored"
    for digest in published:
        report = verify(path, expect_sha256=digest)
        assert report.integrity == (
            f"the registration has SHA-256 {forged.file_sha256}, expected was {digest}",
        )
        assert verdict(report) == ("invalid", "the registration is not the expected one", 3)
        assert report.registration.standing == "sealed, unanchored"


def test_sealing_again_keeps_the_time(register, tmp_path):
    path = register()
    sealed = seal(path, at=AT)
    assert seal(path, at=LATER) == sealed
    path.write_text(path.read_text() + "# a comment\n")
    again = seal(path, at=LATER)
    assert again.file_sha256 == hashlib.sha256(path.read_bytes()).hexdigest() != sealed.file_sha256
    assert (again.sealed_at, again.frozen_sha256) == (AT, sealed.frozen_sha256)


def test_a_plan_that_is_faulty_or_of_the_future_is_not_sealed(register, tmp_path):
    with pytest.raises(InputError, match=r"plan\.yaml:8: .*did you mean 'delta'"):
        seal(register(("estimator: delta", "estimator: delt")))
    with pytest.raises(
        InputError,
        match=r"registered_at is 2999-10-31T12:00:00Z, which lies in the future; correct it before",
    ):
        seal(register(("2026-10-31", "2999-10-31")))
    for at, fault in ((2025, "before the registration of 2026"), (2999, "which lies in the future")):
        with pytest.raises(InputError, match=rf"sealed_at in plan\.seal\.json is .*{fault}"):
            seal(register(), at=AT.replace(year=at))
    assert not (tmp_path / "plan.seal.json").exists()


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (
            {"sealed_at": "2999-01-01T00:00:00Z"},
            "sealed_at in plan.seal.json is 2999-01-01T00:00:00Z, which lies in the future",
        ),
        (
            {"sealed_at": "2026-10-31T11:00:00Z"},
            "sealed_at in plan.seal.json is 2026-10-31T11:00:00Z, before the registration of "
            "2026-10-31T12:00:00Z",
        ),
        (
            {"amendments": [{"sha256": "a" * 64, "sealed_at": "2026-10-31T12:30:00Z"}]},
            f"amendment 1 was removed: plan.seal.json has it with SHA-256 {'a' * 64}",
        ),
        (
            {"amendments": [{"sha256": "a" * 64, "sealed_at": "2999-10-31T12:30:00Z"}]},
            "sealed_at of amendment 1 in plan.seal.json is 2999-10-31T12:30:00Z, which lies in the future",
        ),
    ],
)
def test_a_seal_that_contradicts_is_found(toy, register, tmp_path, change, finding):
    path = register()
    seal(path, at=AT)
    file = tmp_path / "plan.seal.json"
    file.write_text(json.dumps(json.loads(file.read_bytes()) | change))
    report = verify(path)
    assert finding in report.integrity
    assert verdict(report) == ("invalid", "the registration is not intact", 3)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", r"is no seal \(Input data was truncated\); restore the file, or remove it"),
        (b"{}", r"is no seal \(Object missing required field `kvstats`\)"),
        (b'{"frozen": 1}', r"is no seal \(Object contains unknown field `frozen`\)"),
        (b'{"format": 2}', r"is no seal \(Invalid enum value 2"),
        (b"\xff\xfe", r"is no seal \("),
        (b"[" * 100_000, r"is no seal \("),
    ],
)
def test_a_file_that_is_no_seal_is_refused(register, tmp_path, content, fault):
    (tmp_path / "plan.seal.json").write_bytes(content)
    for check in (verify, seal):
        with pytest.raises(InputError, match=rf"plan\.seal\.json: {fault}"):
            check(register())


def test_a_folder_in_the_place_of_the_seal_is_refused(register, tmp_path):
    (tmp_path / "plan.seal.json").mkdir()
    with pytest.raises(
        InputError, match=r"plan\.seal\.json: cannot be read \(Is a directory\); check the file"
    ):
        verify(register())


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("2026-10-31", "2999-10-31", "registered_at is 2999-10-31T12:00:00Z, which lies in the future"),
        (
            "claims:\n",
            "deviations: [{at: 2999-11-01T00:00:00Z, text: x}]\nclaims:\n",
            "deviation 1 is of 2999-11-01T00:00:00Z, which lies in the future",
        ),
    ],
)
def test_a_clock_in_the_future_is_an_integrity_failure(toy, register, old, new, finding):
    report = verify(register((old, new)))
    assert report.integrity == (finding,)
    assert verdict(report) == ("invalid", "the registration is not intact", 3)


def test_amendments_are_added_to_a_seal(register):
    path = register()
    first = seal(path, at=AT)
    amend(path, "One.", at=LATER)
    second = seal(path, at=LATER)
    assert (second.frozen_sha256, second.sealed_at) == (first.frozen_sha256, AT)
    (sealed,) = second.amendments
    assert (sealed.sha256, sealed.sealed_at) == (chain_of(read_document(path)).links[1], LATER)
    amend(path, "Two.", at=LATER)
    assert seal(path).links == chain_of(read_document(path)).links
