"""What tells the inputs of a file apart."""

from __future__ import annotations

import hashlib
import json

import pytest

from kvstats.log.adapters.identity import Identities, content_hash, id_text
from kvstats.log.adapters.reader import Labels
from kvstats.log.lines import Reject


@pytest.mark.parametrize(
    ("own", "text"),
    [
        ("0012", "0012"),
        (1344800117571260417, "1344800117571260417"),
        (1344800117571260418, "1344800117571260418"),
        (2**70, "1180591620717411303424"),
        (0, "0"),
        (" a ", " a "),
    ],
)
def test_ids_keep_every_digit(own, text):
    assert Identities(Labels()).of(1, "", own=own) == text


@pytest.mark.parametrize("own", [1.0, True, "", [1], {"a": 1}])
def test_what_is_no_id_is_a_fault(own):
    reject = Identities(Labels()).of(7, "the line", own=own)
    assert (reject.line, reject.text, reject.duplicate) == (7, "the line", False)
    assert reject.error == f"has id={own!r}, which is neither text nor a whole number"
    assert id_text(own) is None


def test_a_row_without_id_says_what_would_do():
    reject = Identities(Labels()).of(1, "", content={"question": "?"}, own=None)
    assert reject == Reject(
        1, "has no id to pair inputs by", "", "pass pair_by='content' or pair_by='position'"
    )


def test_content_is_hashed_whatever_the_order_of_keys():
    content = {"question": "wer?", "answers": ["ü", "b"], "length": 7}
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    expected = hashlib.sha256(canonical.encode()).hexdigest()
    assert content_hash(content) == content_hash(dict(reversed(content.items()))) == expected
    assert Identities(Labels(pair_by="content")).of(1, "", content=content, own="7") == expected
    assert content_hash({"answers": ["ab"]}) != content_hash({"answers": ["a", "b"]})


@pytest.mark.parametrize("content", [None, {}])
def test_without_content_nothing_can_be_hashed(content):
    reject = Identities(Labels(pair_by="content")).of(1, "", content=content, own="7")
    assert reject.error == "has nothing but its answer, so that no content tells its input"
    assert reject.remedy == "pass pair_by='position'"


def test_a_place_is_the_same_in_files_of_two_arms():
    one, other = Identities(Labels(pair_by="position")), Identities(Labels(pair_by="position"))
    assert one.of(12, "", own="a") == other.of(12, "", own="b") == "line 12"
    # Rows of CSV have as many lines as their fields; the place is that of the row.
    assert one.of(40, "", position=13) == "line 13"


@pytest.mark.parametrize(
    ("labels", "fault"),
    [
        (Labels(), "repeats the id 'a' of line 3"),
        (Labels(pair_by="content"), "repeats the content of line 3"),
        (Labels(pair_by="position"), "repeats the place of line 3"),
    ],
)
def test_an_input_that_comes_again_names_the_line_before(labels, fault):
    ids = Identities(labels)
    row = {"own": "a", "content": {"q": 1}, "position": 1}
    assert isinstance(ids.of(3, "", **row), str)
    for line in (5, 9):
        reject = ids.of(line, "again", **row)
        assert (reject.line, reject.error, reject.text, reject.duplicate) == (line, fault, "again", True)
        assert reject.remedy == (
            "remove one of them, or pass on_duplicate='first' to list the later in log.rejects"
        )
    assert isinstance(ids.of(10, "", **row, within=("task", 2)), str)
