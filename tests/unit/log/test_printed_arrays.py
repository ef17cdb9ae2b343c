"""Lists of texts as numpy and Python print them, and what is none."""

from __future__ import annotations

import re

import pytest

from kvstats.errors import InputError
from kvstats.log.adapters.printed_arrays import parse_printed_array


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("['7']", ["7"]),
        ("['a' 'b'\n 'c']", ["a", "b", "c"]),
        ("['a' 'b'\r\n 'c']", ["a", "b", "c"]),
        ("['a', \"b\"]", ["a", "b"]),
        (
            r"""["it's" '5\'9" tall' 'back\\slash' 'two\nlines']""",
            ["it's", "5'9\" tall", "back\\slash", "two\nlines"],
        ),
        (r"['\xa0' '\u2028' '\U000e0001']", ["\xa0", "\u2028", "\U000e0001"]),
        ("['[' ']' ',' '']", ["[", "]", ",", ""]),
        ("[]", []),
        ("[ 'a'  'b' ]", ["a", "b"]),
    ],
)
def test_what_is_printed_is_read(text, expected):
    assert parse_printed_array(text) == expected


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "does not stand in brackets"),
        ("[", "does not stand in brackets"),
        ("'a'", "does not stand in brackets"),
        ("['a' 'b'", "does not stand in brackets"),
        ("['a' ... 'z']", "is shortened: elements are left out at ..."),
        ("['a' ..., 'z']", "is shortened"),
        ("[1 2]", "has an element that is no text: 1 2"),
        ("[nan]", "has an element that is no text: nan"),
        ("[['a']\n ['b']]", "has an element that is no text: ['a']"),
        ("[b'a']", "has an element that is no text: b'a'"),
        ("['a''b']", "does not go on or end behind 'a'"),
        ("['a'x]", "does not go on or end behind 'a'"),
        ("['a',]", "does not go on or end behind 'a'"),
        ("['a',, 'b']", "has an element that is no text: , 'b'"),
        ("[, 'a']", "has an element that is no text: , 'a'"),
        ("['a]", "has an element that is no text: 'a"),
        (r"['\q']", r"has an element that is no text: '\q'"),
        (r"['\ud800']", r"has an element that is no text: '\ud800'"),
        ("['\x00']", "has an element that is no text: '\x00'"),
        (r"['\Uffffffff']", r"has an element that is no text: '\Uffffff"),
        ("['a\nb']", "has an element that is no text: 'a\nb'"),
    ],
)
def test_what_is_no_printed_array_is_an_error(text, fault):
    with pytest.raises(InputError, match=f"^parse_printed_array: text=.* {re.escape(fault)}"):
        parse_printed_array(text)


def test_long_texts_are_shown_in_part():
    with pytest.raises(InputError, match=r"^parse_printed_array: text='\[1{59}\.\.\.' has an element"):
        parse_printed_array("[" + "1" * 100 + "]")
