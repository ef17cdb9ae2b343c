"""Strict YAML: nothing is guessed, and hostile files are refused."""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Literal

import msgspec
import pytest

from kvstats.decoding import decode
from kvstats.document import read_document
from kvstats.errors import InputError


@pytest.fixture
def read(tmp_path):
    def read_text(text):
        path = tmp_path / "a.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_document(path)

    return read_text


def test_values_are_what_they_look_like(read):
    document = read(
        """\
text: plain words, 'quotes' and budget = 0.25 AND task = 'x'
quoted: ["no", 'yes', "5e-2", '2026-11-29', "010", "", "~", "1"]
numbers: [0, -1, +7, 0.5, .5, 1., -2.5e-3, 1.0e+3]
truth: [true, false]
time: 2026-11-29T20:00:00Z
folded: >
  two
  lines
no: a key is a name
null: 0
1: one
"""
    )
    assert document.value == {
        "text": "plain words, 'quotes' and budget = 0.25 AND task = 'x'",
        "quoted": ["no", "yes", "5e-2", "2026-11-29", "010", "", "~", "1"],
        "numbers": [0, -1, 7, 0.5, 0.5, 1.0, -2.5e-3, 1e3],
        "truth": [True, False],
        "time": "2026-11-29T20:00:00Z",
        "folded": "two lines\n",
        "no": "a key is a name",
        "null": 0,
        "1": "one",
    }
    kinds = [type(number) for number in document.value["numbers"]]
    assert kinds == [int, int, int, float, float, float, float, float]


def test_each_value_has_its_line(read):
    document = read("a: 1\nb:\n  - x\n  - c: 2\n    d:\n      3\n")
    assert [document.line(place) for place in [("a",), ("b",), ("b", 0), ("b", 1), ("b", 1, "d")]] == [
        1,
        2,
        3,
        4,
        5,
    ]
    assert document.line(("b", 1, "missing", "deeper")) == 4
    assert document.line(("missing",)) == 1
    assert document.at(("b", 1, "c")).endswith("a.yaml:4")


def test_the_hash_is_that_of_the_bytes(read):
    content = b"\xef\xbb\xbfstudy: \xc3\xa9\r\n"
    document = read(content)
    assert document.sha256 == hashlib.sha256(content).hexdigest()
    assert document.value == {"study": "é"}


TRUTH = "may read as a truth value; write true or false, or quote it"
NUMBER = "a number in some versions of YAML and text in others; write a plain decimal number"


@pytest.mark.parametrize(
    ("texts", "fault"),
    [
        (["no", "Yes", "ON", "off", "True", "FALSE", "y", "N"], TRUTH),
        (["5e-2", "1e5", "12E03", "010", "0x1F", "0o7", "0b11", "1_000", "1_0.5", "1:30", "1:30.5"], NUMBER),
        ([".inf", "-.Inf", ".nan", "nan", "Infinity", "="], NUMBER),
        (
            ["9223372036854775808", "-9223372036854775808", "9" * 5000],
            "which is too large for a number; write a smaller one",
        ),
        (["1.0e+400"], "is 1.0e+400, which is too large for a number; write a smaller one"),
        (["2026-11-29"], 'is the bare date 2026-11-29; quote it if it is text: "2026-11-29"'),
        (["~", "null", "Null", ""], "is empty; give the value, or remove the key"),
    ],
)
def test_ambiguous_values_are_refused_with_line_and_place(read, texts, fault):
    for text in texts:
        with pytest.raises(InputError, match=rf"a\.yaml:3: x\[1\] .*{re.escape(fault)}"):
            read(f"x:\n- 0\n- {text}\n")


@pytest.mark.parametrize(
    ("text", "line", "fault"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "has the key 'a' again, first on line 1; keep one of them"),
        ("x:\n  a: 1\n  'a': 1\n", 3, "has the key 'a' again, first on line 2"),
        ("a: &x 1\nb: 2\n", 1, "has an anchor or alias; write the value out"),
        ("a: 1\nb: *x\n", 2, "has an anchor or alias"),
        ("a: 1\nb: &x {c: 1}\n", 2, "has an anchor or alias"),
        (
            "a: 1\nb: !!python/object:os.system x\n",
            2,
            "has the tag 'tag:yaml.org,2002:python/object:os.system'",
        ),
        ("a: !!str 5\n", 1, "has the tag 'tag:yaml.org,2002:str'; remove the tag"),
        ("a: !x {b: 1}\n", 1, "has the tag '!x'"),
        ("a: 1\n---\nb: 2\n", 2, "begins a second document; keep one document a file"),
        ("a:\n  <<: {b: 1}\n", 2, "has a merge key '<<'; write the values out"),
        ("? [a, b]\n: 1\n", 1, "has a key that is not plain text; use a name as the key"),
        (
            "a: 1\nb: c: d\n",
            2,
            "is not YAML (mapping values are not allowed in this context); correct the line",
        ),
        ("a: [1,\n", 2, "is not YAML (while parsing"),
        ("a: 1\n\tb: 2\n", 2, "is not YAML (while scanning a plain scalar, found a tab character"),
        ("a: 'x\n", 2, "is not YAML (while scanning a quoted scalar"),
        ("- a\n", 1, "is not a mapping of keys to values; write lines of 'key: value'"),
        ("just text\n", 1, "is not a mapping of keys to values"),
        ("", 1, "is not a mapping of keys to values"),
        (b"a: 1\nb: \xff\n", 2, "is not UTF-8; save the file as UTF-8"),
        ("a: " + "[" * 17 + "]" * 17, 1, "is nested more than 16 levels deep; nest less deeply"),
        ("a:\n" + "".join(" " * (2 * n) + "b:\n" for n in range(1, 20)), 17, "is nested more than 16 levels"),
    ],
)
def test_what_is_not_plain_yaml_is_refused_with_its_line(read, text, line, fault):
    with pytest.raises(InputError) as error:
        read(text)
    assert f"a.yaml:{line}: {fault}" in str(error.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a:\n\tb: 1\n", 2),
        ("a:\n  b: 1\n  \tc: 2\n", 3),
        ("a:\n\t- x\n", 2),
        ("\ta: 1\n", 1),
        ("a: >\n\tx\n", 2),
        ("a: '\u2028 x'\r\nb: 1\r\n\tc: 2\r\n", 4),
    ],
)
def test_a_tab_in_the_indentation_is_named(read, text, line):
    with pytest.raises(InputError) as error:
        read(text)
    assert f"a.yaml:{line}: is not YAML (" in str(error.value)
    assert str(error.value).endswith("); replace the tab: indentation is made of spaces")


def test_a_tab_elsewhere_is_not_blamed(read):
    with pytest.raises(InputError, match="correct the line"):
        read("a: 'b'\t: c: d\n")


@pytest.mark.parametrize("pair", ["[]", "{}"])
@pytest.mark.parametrize("depth", [1000, 100_000])
def test_deep_nesting_is_refused(read, pair, depth):
    inner = "a: " if pair == "{}" else ""
    with pytest.raises(InputError, match=r"a\.yaml:1: .*(nest)"):
        read("x: " + (pair[0] + inner) * depth + pair[1] * depth)


def test_an_alias_bomb_is_refused(read):
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20)]
    with pytest.raises(InputError, match=r"a\.yaml:1: has an anchor or alias"):
        read("\n".join(lines))


def test_size_is_limited(read):
    with pytest.raises(InputError, match=r"a\.yaml: has 1,048,577 bytes; write at most 1,048,576"):
        read("#" * ((1 << 20) + 1))
    with pytest.raises(InputError, match="is not a mapping"):
        read("#" * (1 << 20))


def test_control_characters_are_refused(read):
    with pytest.raises(InputError, match=r"a\.yaml: is not YAML \(.*\); save it as plain text"):
        read("a: \0\n")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("a: 1\n".encode("utf-16"), r"a\.yaml:1: is not UTF-8; save the file as UTF-8"),
        ("a: 1\n".encode("utf-16-le"), r"a\.yaml: is not YAML \(.*\); save it as plain text"),
        (b"\x1f\x8b\x08\x00\x00", r"a\.yaml:1: is not UTF-8"),
    ],
)
def test_other_encodings_and_binary_files_are_refused(read, content, fault):
    with pytest.raises(InputError, match=fault):
        read(content)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(
        InputError, match=r"none\.yaml: cannot be read \(No such file or directory\); check the path"
    ):
        read_document(tmp_path / "none.yaml")
    with pytest.raises(InputError, match=r"cannot be read \(Is a directory\)"):
        read_document(tmp_path)


class Circle(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="shape", tag="circle"):
    radius: float = 1.0

    def __post_init__(self):
        if self.radius > 9:
            raise InputError.argument("Circle", "radius", self.radius, "is above 9", "pass 9 - at `most`")


class Square(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="shape", tag="square"):
    side: float = 1.0
    tone: Literal["dark", "light"] = "dark"


class Drawing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    shapes: tuple[Circle | Square, ...] = ()
    counts: dict[str, Annotated[int, msgspec.Meta(ge=1)]] = {}
    two: Annotated[dict[str, int], msgspec.Meta(min_length=2)] | None = None
    code: Annotated[str, msgspec.Meta(pattern="^[a-f]+$")] = "a"
    named: dict[str, Circle | Square] = {}


def test_blocks_are_told_apart_by_their_tag(read):
    document = read("shapes:\n- {shape: circle, radius: 2}\n- {shape: square, tone: light}\n")
    assert decode(document, Drawing).shapes == (Circle(2.0), Square(tone="light"))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "shapes:\n- {shape: squire}\n",
            "2: shapes[0].shape is 'squire', which is unknown; did you mean 'squ",
        ),
        ("shapes:\n- {shape: 3}\n", "2: shapes[0].shape is 3: expected text, got a whole number; write text"),
        ("shapes:\n- {side: 3}\n", "2: shapes[0] has no key 'shape'; add it"),
        (
            "shapes:\n- shape: circle\n  radios: 1\n",
            "3: shapes[0] has the unknown key 'radios'; did you mean 'ra",
        ),
        (
            "shapes:\n- shape: square\n  radius: 1\n",
            "3: shapes[0] has the unknown key 'radius'; known: side, to",
        ),
        (
            "shapes:\n- shape: square\n  tone: lihgt\n",
            "3: shapes[0].tone is 'lihgt', which is unknown; did you",
        ),
        (
            "shapes:\n- shape: circle\n  radius: '1'\n",
            "3: shapes[0].radius is '1': expected a number, got text",
        ),
        ("shapes:\n- {shape: circle, radius: 10}\n", "2: Circle: radius=10.0 is above 9; pass 9 - at `most`"),
        ("shapes: circle\n", "1: shapes is 'circle': expected a list, got text"),
        ("counts:\n  a: 1\n  b: 0\n  c: 0\n", "3: counts.b is 0: expected a whole number >= 1; correct the"),
        (
            "named:\n  a:\n    shape: square\n    sid: 1\n",
            "4: named.a has the unknown key 'sid'; did you mean 's",
        ),
        ("two:\n  a: 1\n  b: x\n", "1: two is a mapping: expected a whole number, got text"),
        ("code: xyz\n", "1: code is 'xyz': expected text of another form; it must match ^[a-f]+$"),
    ],
)
def test_faults_of_any_format_are_named_with_line_and_remedy(read, text, fault):
    with pytest.raises(InputError) as error:
        decode(read(text), Drawing)
    assert f"a.yaml:{fault}" in str(error.value)


def test_the_remedy_for_text_of_another_form_can_be_given(read):
    with pytest.raises(InputError, match=r"of another form; use the letters a to f$"):
        decode(read("code: xyz\n"), Drawing, {"^[a-f]+$": "use the letters a to f"})


def test_a_hash_that_begins_like_a_binary_number_is_text(tmp_path):
    digest = "0bcec5be3674a83c27cb0bbf2cd34fa75a08d27f96cd1d0d87ab0b65f31d0099"
    path = tmp_path / "a.yaml"
    path.write_text(f"sha256: {digest}\n")
    assert read_document(path).value == {"sha256": digest}
