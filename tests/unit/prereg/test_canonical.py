"""Canonical JSON against the numbers and the text of RFC 8785."""

from __future__ import annotations

import hashlib
import json
import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvstats.prereg.canonical import canonical_json, sha256_of


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("4340000000000000", "9007199254740992"),
        ("4430000000000000", "295147905179352830000"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("444b1ae4d6e2ef4f", "999999999999999900000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("41b3de4355555557", "333333333.33333343"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
    ],
)
def test_numbers_are_written_as_in_appendix_b(bits, text):
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical_json(number) == text.encode()


def test_the_example_of_section_3_2_2():
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": '€$\x0f\nA\'B"\\\\"/',
        "literals": [None, True, False],
    }
    assert canonical_json(value).decode() == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_keys_are_in_the_order_of_section_3_2_3():
    keys = ["€", "\r", "\ufb33", "1", "\U0001f600", "\x80", "ö"]
    assert list(json.loads(canonical_json(dict.fromkeys(keys, 0)))) == [
        *["\r", "1", "\x80", "ö", "€", "\U0001f600", "\ufb33"]
    ]


def test_whole_numbers_keep_their_digits():
    assert canonical_json([2**53 + 1, 10**18 - 1]) == b"[9007199254740993,999999999999999999]"
    assert sha256_of(1.0) == sha256_of(1) == hashlib.sha256(b"1").hexdigest()


VALUES = st.recursive(
    st.text()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(VALUES)
def test_it_is_json_of_the_same_value(value):
    text = canonical_json(value)
    # As ECMAScript reads it: numbers are doubles.
    again = json.loads(text, parse_int=float)
    assert again == value
    assert canonical_json(again) == text


@settings(max_examples=50, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_neighbours_differ(number):
    after = math.nextafter(number, math.inf)
    if math.isfinite(after) and after != number:
        assert canonical_json(number) != canonical_json(after)
