"""Amendments: appended and chained, applied where they change a rule, found out where they were changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kvstats.document import read_document
from kvstats.errors import InputError
from kvstats.prereg import amend, seal, verify
from kvstats.prereg.canonical import sha256_of
from kvstats.prereg.chain import chain_of
from kvstats.prereg.plan import load_plan

AT = datetime(2026, 10, 31, 13, tzinfo=UTC)
HOUR = timedelta(hours=1)
IMPOSSIBLE = {"harm": {"supported": "high < -1", "killed": "high >= -1"}}


@pytest.fixture
def amended(register):
    """Return a registration with two amendments."""
    path = register()
    amend(path, "The margin is wider.", changes=IMPOSSIBLE, at=AT)
    amend(path, "A typing error: 'quote', # and ü\n", at=AT + HOUR)
    return path


def fault(report):
    (claim,) = report.claims
    assert (claim.verdict, claim.reason) == ("invalid", "the registration is not intact")
    assert report.exit_code == 3
    return report.integrity[0]


def test_an_amendment_is_appended_to_the_very_bytes(register):
    path = register()
    before = path.read_bytes()
    amendment = amend(path, "Why: it's so.", changes={"harm": {"null": -1e-7, "by": ["task"]}}, at=AT)
    frozen = chain_of(read_document(path)).frozen_sha256
    assert path.read_bytes() == (
        before
        + f"""\
amendments:
  - at: "2026-10-31T13:00:00Z"
    text: "Why: it's so."
    changes: {{"harm": {{"null": -0.0000001, "by": ["task"]}}}}
    previous_sha256: "{frozen}"
""".encode()
    )
    assert amendment.previous_sha256 == frozen
    assert (amendment.at, amendment.text) == (AT, "Why: it's so.")


def test_each_amendment_holds_the_hash_of_what_stands_before_it(amended):
    document = read_document(amended)
    first, second = document.value["amendments"]
    chain = chain_of(document)
    frozen = {name: value for name, value in document.value.items() if name != "amendments"}
    assert chain.links == (sha256_of(frozen), sha256_of(first), sha256_of(second))
    assert (first["previous_sha256"], second["previous_sha256"]) == chain.links[:2]
    assert (chain.findings, second["text"]) == ((), "A typing error: 'quote', # and ü\n")


def test_a_change_is_what_is_judged_and_is_reported(toy, register, amended):
    report = verify(amended)
    (claim,) = report.claims
    assert (claim.supported, claim.killed) == ("high < -1", "high >= -1")
    assert claim.verdict == "killed"
    assert [entry["changes"] for entry in report.amendments] == [IMPOSSIBLE, {}]
    assert [entry["at"] for entry in report.amendments] == ["2026-10-31T13:00:00Z", "2026-10-31T14:00:00Z"]
    assert tuple(entry["sha256"] for entry in report.amendments) == chain_of(read_document(amended)).links[1:]


def test_the_last_change_is_the_last(register):
    path = register()
    for rule in ("high < 1", "high < 2"):
        amend(path, "Once more.", changes={"harm": {"supported": rule}}, at=AT)
    assert load_plan(path).claims[0].claim.supported == "high < 2"


def test_guards_can_be_changed(register):
    guard = (
        "guards: [{id: g, statement: a, estimator: delta, arguments: {arm: evict}, holds: estimate = 0}]\n"
    )
    path = register(("claims:\n", f"{guard}claims:\n"))
    amend(path, "A margin.", changes={"g": {"holds": "estimate > -0.1"}}, at=AT)
    assert load_plan(path).guards[0].guard.holds == "estimate > -0.1"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"harms": {"null": 0}},
            r"amendments\[0\]\.changes\.harms is no claim or guard; did you mean 'harm'",
        ),
        ({"harm": {"id": "x"}}, r"amendments\[0\]\.changes\.harm changes the id; keep the id"),
        ({"harm": {}}, r"amendments\[0\]\.changes\.harm is a mapping: expected a mapping of length >= 1"),
        (
            {"harm": {"suported": "x"}},
            r"claims\[0\] has the unknown key 'suported'; did you mean 'supported'",
        ),
        ({"harm": {"supported": "hig < 0"}}, r"did you mean 'high'"),
        ({"harm": {"null": "0"}}, r"claims\[0\]\.null is '0': expected a number, got text"),
        ({"harm": {"arguments": {"arm": "evict", "outcom": "x"}}}, r"did you mean 'outcome'"),
        ({"harm": {"killed": None}}, r"cannot be appended .*amendments\[0\]\.changes\.harm\.killed is empty"),
    ],
)
def test_a_faulty_change_is_refused_with_the_amendments_line_and_nothing_is_written(
    register, changes, message
):
    path = register()
    before = path.read_bytes()
    with pytest.raises(InputError, match=message) as error:
        amend(path, "Why.", changes=changes, at=AT)
    assert path.read_bytes() == before
    if None not in changes.get("harm", {}).values():
        line = int(str(error.value).removeprefix(f"{path}:").split(":")[0])
        assert line > len(before.splitlines())


def test_what_is_no_value_of_a_registration_is_refused(register):
    with pytest.raises(InputError, match=r"amend: changes=.*2026.* is no value of a registration; pass text"):
        amend(register(), "Why.", changes={"harm": {"null": AT}}, at=AT)
    with pytest.raises(InputError, match="an amendment cannot be appended"):
        amend(register(), "Why.", changes={"harm": {"null": float("nan")}}, at=AT)
    with pytest.raises(InputError, match=r"amendments\[0\]\.text is ''"):
        amend(register(), "", at=AT)


@pytest.mark.parametrize("act", [seal, lambda path, at: amend(path, "Why.", at=at)])
def test_a_time_has_a_zone(register, act):
    with pytest.raises(InputError, match=r"(seal|amend): at=.* has no zone; pass one such as datetime.now"):
        act(register(), at=AT.replace(tzinfo=None))


def test_the_file_may_lack_its_last_line_end_and_have_a_list_of_its_own_layout(register):
    path = register()
    amend(path, "One.", at=AT)
    text = path.read_text()
    head, tail = text.split("amendments:\n")
    for layout in (
        text.rstrip("\n"),
        head + "amendments:\n" + "\n".join(line[2:] for line in tail.splitlines()),
    ):
        path.write_text(layout)
        amend(path, "Two.", at=AT)
        assert [entry.text for entry in load_plan(path).registration.amendments] == ["One.", "Two."]
        assert chain_of(read_document(path)).findings == ()


@pytest.mark.parametrize("layout", ["last", "flow"])
def test_amendments_that_are_not_last_or_in_brackets_are_left_alone(register, layout):
    path = register()
    amend(path, "One.", at=AT)
    text = path.read_text()
    if layout == "last":
        text += "deviations: []\n"
    else:
        entry = read_document(path).value["amendments"][0]
        text = text.split("amendments:")[0] + (
            f"amendments: [{{at: {entry['at']}, text: One., previous_sha256: {entry['previous_sha256']}}}]\n"
        )
    path.write_text(text)
    with pytest.raises(InputError, match=r"cannot be appended to the end .*; make 'amendments' its last key"):
        amend(path, "Two.", at=AT)
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("The margin is wider.", "The margin is wide.", "amendment 2 was written after SHA-256"),
        ("high < -1", "high < -0.1", "amendment 2 was written after SHA-256"),
        ("high < 0\n", "high < 0.1\n", "amendment 1 was written after SHA-256"),
        ("study: toy", "study: toys", "amendment 1 was written after SHA-256"),
    ],
)
def test_a_rewritten_history_breaks_the_chain(toy, amended, old, new, finding):
    text = amended.read_text()
    assert text.count(old) == 1
    amended.write_text(text.replace(old, new))
    report = verify(amended)
    assert fault(report).startswith(finding)
    assert report.data is None
    for act in (seal, lambda path: amend(path, "Three.")):
        with pytest.raises(InputError, match=rf"{finding} .* before it is (sealed|amended)"):
            act(amended)


def test_a_removed_amendment_breaks_the_chain(toy, amended):
    lines = amended.read_text().splitlines(keepends=True)
    first = lines.index("amendments:\n") + 1
    amended.write_text("".join(lines[:first] + lines[first + 4 :]))
    assert fault(verify(amended)).startswith("amendment 1 was written after SHA-256")


def test_amendments_in_another_order_break_the_chain(toy, amended):
    lines = amended.read_text().splitlines(keepends=True)
    first = lines.index("amendments:\n") + 1
    amended.write_text("".join(lines[:first] + lines[first + 4 :] + lines[first : first + 4]))
    assert fault(verify(amended)).startswith("amendment 1 was written after SHA-256")


def test_the_last_amendment_is_held_by_the_seal(toy, amended):
    links = seal(amended).links
    text = amended.read_text()
    amended.write_text(text.replace("A typing error", "A typing mistake"))
    rewritten = chain_of(read_document(amended)).links[2]
    assert fault(verify(amended)) == (
        f"amendment 2 was rewritten: it has SHA-256 {rewritten}, plan.seal.json has {links[2]}"
    )
    amended.write_text("".join(text.splitlines(keepends=True)[:-3]))
    assert fault(verify(amended)) == f"amendment 2 was removed: plan.seal.json has it with SHA-256 {links[2]}"
    amended.write_text(text)
    assert verify(amended).integrity == ()


def test_an_amendment_that_was_not_sealed_is_no_fault(toy, amended):
    seal(amended)
    amend(amended, "Three.")
    report = verify(amended)
    assert report.integrity == ()
    assert (report.registration.seal.amendments, len(report.amendments)) == (2, 3)


def test_a_chain_made_anew_with_its_seal_hides_nothing_from_an_anchor(toy, register, amended, tmp_path):
    published = chain_of(read_document(amended)).links[2]
    assert verify(amended, expect_sha256=published).registration.anchored is True
    path = register()
    amend(path, "The margin is wider.", changes={"harm": {"supported": "high < 1"}}, at=AT)
    amend(path, "A typing error: 'quote', # and ü\n", at=AT + HOUR)
    seal(path)
    assert verify(path).integrity == ()
    report = verify(path, expect_sha256=published)
    assert report.exit_code == 3
    assert report.integrity[0].endswith(f"expected was {published}")


@pytest.mark.parametrize("link", [0, 1, 2])
def test_an_anchor_that_lacks_a_changed_rule_anchors_in_part(toy, amended, link):
    links = chain_of(read_document(amended)).links
    facts = verify(amended, expect_sha256=links[link]).registration
    assert facts.anchors[0].amendments == link
    assert facts.anchored is (link > 0)
    assert facts.standing == ("anchored" if link else "anchored in part")


def test_times_of_amendments_are_in_order_and_past(toy, register):
    path = register()
    with pytest.raises(
        InputError, match=r"amendment 1 is of 2026-10-31T11:00:00Z, before the registration of"
    ):
        amend(path, "Too early.", at=AT - 2 * HOUR)
    amend(path, "One.", at=AT)
    with pytest.raises(
        InputError, match=r"amendment 2 is of 2026-10-31T12:30:00Z, before amendment 1 of 2026"
    ):
        amend(path, "Two.", at=AT - HOUR / 2)
    with pytest.raises(InputError, match="which lies in the future; give the time when it was written"):
        amend(path, "In the future.", at=datetime(2999, 1, 1, tzinfo=UTC))
    amend(path, "Two.", at=AT)
    head, tail = path.read_text().rsplit("2026-10-31T13", 1)
    path.write_text(f"{head}2999-01-01T00{tail}")
    assert fault(verify(path)) == "amendment 2 is of 2999-01-01T00:00:00Z, which lies in the future"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{at: 2026-11-01T00:00:00Z, text: x}", r"amendments\[0\] has no key 'previous_sha256'; add it"),
        ("{at: 2026-11-01T00:00:00, text: x, previous_sha256: HASH}", "write a time with its zone"),
        ("{at: 2026-11-01T00:00:00Z, text: x, previous_sha256: abc}", "write the 64 hexadecimal digits"),
        ("{at: 2026-11-01T00:00:00Z, txt: x, previous_sha256: HASH}", "did you mean 'text'"),
    ],
)
def test_amendments_are_decoded_strictly(register, entry, message):
    text = f"amendments: [{entry.replace('HASH', 'a' * 64)}]\nclaims:\n"
    with pytest.raises(InputError, match=message):
        load_plan(register(("claims:\n", text)))
