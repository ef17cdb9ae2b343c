"""Hostile registrations: refused with a clear error at once, and nothing outside their folder is read."""

import json
import os
import resource
import time
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvstats.document import Document, parse_document
from kvstats.errors import InputError
from kvstats.expressions import check_expression
from kvstats.log import RunRecord
from kvstats.prereg import verify
from kvstats.prereg.plan import load_plan

MIB = 1 << 20
SECONDS = 2.0
MEMORY = 100 * MIB


@pytest.fixture
def refused(tmp_path):
    """Write a file, and return the error that it is refused with: soon, short, and without much memory."""

    def refuse(content):
        path = tmp_path / "plan.yaml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()
        with pytest.raises(InputError) as error:
            load_plan(path)
        assert time.process_time() - start < SECONDS
        assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MEMORY
        text = str(error.value)
        assert len(text) < 5000
        return text.removeprefix(f"{path}:")

    return refuse


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(f'*{before}' for _ in range(9))}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (
            "a: " + "[" * 500_000,
            "1: is not YAML (while increasing flow level, exceeded maximum nesting depth)",
        ),
        ("a: " + "{a: " * 200_000, "1: is nested more than 16 levels deep; nest less deeply"),
        ("a:\n" + "- " * 500_000, "2: is nested more than 16 levels deep"),
        ("\n".join(" " * i + "a:" for i in range(1200)), "17: is nested more than 16 levels deep"),
        ("? " * 500_000, "1: is nested more than 16 levels deep"),
        (BOMB, "1: has an anchor or alias; write the value out"),
        ("a: 1\nb:\n  <<: *x\n", "3: has an anchor or alias"),
        ("a: 1\nb:\n  <<: {c: 1}\n", "3: has a merge key '<<'; write the values out"),
        ("#" + "x" * 10 * MIB, " has 10,485,761 bytes; write at most 1,048,576"),
        ("a: [" + "1," * 500_000 + "1]", "1: has more than 20,000 keys and values; write a shorter file"),
        ("".join(f"k{i:06}: 1\n" for i in range(90_000)), "10000: has more than 20,000 keys and values"),
        ('"' + "k" * 1001 + '": 1\n', "1: has a key of 1,001 characters; write at most 1,000"),
        (
            "a: 1\n!!python/object/apply:os.system ['true']: 1\n",
            "2: has the tag 'tag:yaml.org,2002:python/object/",
        ),
        ("a: !!python/name:os.system ''\n", "1: has the tag 'tag:yaml.org,2002:python/name:os.system'"),
        ("a: !!binary aGk=\n", "1: has the tag 'tag:yaml.org,2002:binary'; remove the tag"),
        ("a: 1\n---\nb: 2\n", "2: begins a second document; keep one document a file"),
        (b"a: b\x00c\n", " is not YAML (unacceptable character #x0000"),
        ('a: 1\nb: "c\\0d"\n', "2: b has the hidden character '\\x00'; remove it"),
        ('a: 1\n"b\\0": 1\n', "2: has the hidden character '\\x00' in a key; remove it"),
        ('a: "\\e[31m"\n', "1: a has the hidden character '\\x1b'; remove it"),
        ("a: b \u202e 0 > c\n", "1: a has the hidden character '\\u202e'; remove it"),
        ('a: "\\ud800"\n', "1: is not YAML (while parsing a quoted scalar, found invalid Unicode character"),
        ("a: b\n".encode("utf-16"), "1: is not UTF-8; save the file as UTF-8"),
        ("a: " + "9" * 500_000, "1: a is 99999999999999999999999999999999999999999999999999...999"),
        ("a: 9223372036854775808\n", "1: a is 9223372036854775808, which is too large for a number"),
        ("a: " + "9" * 500_000 + ".0", "1: a is 9999999999999999999999999999999999999999999999999"),
        ("a: 1.0e+999\n", "1: a is 1.0e+999, which is too large for a number"),
        ("a: .inf\n", "1: a is .inf, which is a number in some versions of YAML"),
        ("a: no\n", "1: a is no, which YAML may read as a truth value; write true or false, or quote it"),
        ("a: 5e-2\n", "1: a is 5e-2, which is a number in some versions of YAML and text in others"),
        ("a: 2026-11-29\n", "1: a is the bare date 2026-11-29"),
        ("a: 0o17\n", "1: a is 0o17, which is a number in some versions"),
        ("a: 12:30:45\n", "1: a is 12:30:45, which is a number in some versions"),
        ("a: 1\nb: 2\na: 3\n", "3: has the key 'a' again, first on line 1; keep one of them"),
        ("study: a\nclaims:\n- id: a\n  id: b\n", "4: has the key 'id' again, first on line 3"),
        ("", "1: is not a mapping of keys to values"),
        ("- a\n", "1: is not a mapping of keys to values"),
    ],
)
def test_hostile_yaml(refused, content, fault):
    assert refused(content).startswith(fault)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (
            "study: toy",
            "study: toy\nstduy: 1",
            "2: the file has the unknown key 'stduy'; did you mean 'study'?",
        ),
        ("study: toy", "study: toy\n" + "k" * 900 + ": 1", "2: the file has the unknown key 'kkkkkkk"),
        ("study: toy", "study: " + "x" * 900_000, "1: study is 'xxxxxx"),
        ("estimator: delta", "estimator: " + "d" * 15_000, "8: claims[0].estimator is no estimator: 'dddd"),
        ("estimator: delta", "estimator: __import__", "8: claims[0].estimator is no estimator: '__import__'"),
        (
            "{arm: evict}",
            "{arm: evict, log: x}",
            "9: delta has no argument 'log'; 'log' stands beside 'arguments', not in it",
        ),
        ("{arm: evict}", "{arm: [evict]}", "9: arm=['evict'] of delta: expected str, got array"),
        (
            "study: toy",
            "study: toy\ndesign: {n_resamples: 99999999999}",
            "2: design.n_resamples is 99999999999",
        ),
        ("study: toy", "study: toy\ndesign: {level: 1.5}", "2: Design: level=1.5 is not between 0 and 1"),
        ("study: toy", "study: toy\nplanned: {inputs: 1}", "2: planned.inputs is 1"),
    ],
)
def test_hostile_values(refused, register, old, new, fault):
    text = register((old, new)).read_text()
    found = refused(text)
    assert found.startswith(fault)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "//etc/passwd",
        "../plan.yaml",
        "logs/../../plan.yaml",
        "./../plan.yaml",
        "..",
        "~/plan.yaml",
        "~root/plan.yaml",
        "C:/plan.yaml",
        "file:///etc/passwd",
        "https://example.org/a.jsonl",
        "\\\\\\\\host\\\\share",
        "logs\\\\..\\\\..\\\\plan.yaml",
    ],
)
@pytest.mark.parametrize("field", ["runs: [%s]", "{runs: [a.jsonl], sha256: {%s: %s}}"])
def test_paths_out_of_the_folder(refused, register, path, field):
    quoted = f'"{path}"'
    if field.startswith("runs"):
        text = register(("runs: [logs/*.jsonl]", field % quoted)).read_text()
    else:
        data = field % (quoted, "0" * 63 + "a")
        text = register(("data:\n  runs: [logs/*.jsonl]", f"data: {data}")).read_text()
    found = refused(text)
    assert "which is not below the folder of the registration; write a path relative to it" in found
    assert found.startswith(("3:", "4:"))


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ('"a\\0.jsonl"', "4: data.runs[0] has the hidden character '\\x00'"),
        ("'**/**/**/**/*.jsonl'", "4: data.runs has '**/**/**/**/*.jsonl', where '**' is not alone"),
        ("'logs/**.jsonl'", "4: data.runs has 'logs/**.jsonl', where '**' is not alone"),
        ("n" * 256, "4: data.runs has a path of 256 characters; write a shorter one"),
        ("/".join("n" * 200 for _ in range(6)), "4: data.runs has a path of 1,205 characters"),
        ("''", "4: data.runs[0] is '': expected text of length >= 1"),
    ],
)
def test_hostile_patterns(refused, register, path, fault):
    assert refused(register(("logs/*.jsonl", path)).read_text()).startswith(fault)


def test_links_that_go_round_are_not_followed(register, toy, tmp_path):
    for name in ("first", "second", "third"):
        (tmp_path / "logs" / name).symlink_to(tmp_path / "logs")
    (tmp_path / "logs" / "self.jsonl").symlink_to(tmp_path / "logs" / "self.jsonl")
    (tmp_path / "logs" / ".hidden.jsonl").write_text("no log")
    os.mkfifo(tmp_path / "logs" / "pipe.jsonl")
    start = time.process_time()
    report = verify(register(("logs/*.jsonl", "'**/*.jsonl'")))
    assert time.process_time() - start < SECONDS
    assert report.data.files == 1


@pytest.mark.parametrize("name", ["link.jsonl", "folder/a.jsonl", "folder/*.jsonl"])
def test_links_out_of_the_folder(register, toy, tmp_path, tmp_path_factory, name):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "a.jsonl").write_bytes(toy.read_bytes())
    (tmp_path / "logs" / "link.jsonl").symlink_to(outside / "a.jsonl")
    (tmp_path / "logs" / "folder").symlink_to(outside)
    with pytest.raises(
        InputError, match=r"plan\.yaml:4: '.*a?\.jsonl' leads out of the folder of the registr"
    ):
        verify(register(("logs/*.jsonl", f"'logs/{name}'")))


@pytest.mark.parametrize(
    "path", ["/dev/zero", "/dev/stdin", "fifo", "folder", "loop", "missing", "a\0b", "n" * 300]
)
def test_a_registration_that_is_no_file(path, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    if path == "/dev/stdin" and os.path.isfile(path):
        pytest.skip("the standard input is a file")
    with pytest.raises(InputError, match=r"cannot be read \(.*\); check the path"):
        load_plan(path if path.startswith("/") else f"{tmp_path}/{path}")


HOSTILE_SQL = [
    ("EXISTS (SELECT * FROM read_csv('{file}'))", "has a subquery"),
    ("low > (SELECT 1)", "has a subquery"),
    ("low IN (TABLE read_parquet)", "has a subquery"),
    ("read_csv('{file}') > low", "is no SQL expression"),
    ("low > 0; DROP TABLE t", "has ';'"),
    ("low > 0 -- x", "has '--'"),
    ("RPAD(status, 1000000000, 'b') = 'a'", "calls 'RPAD', which is not admitted"),
    ("lpad (status, 1000000000, 'b') = 'a'", "calls 'lpad', which is not admitted"),
    ("\"rpad\"(status, 1000000000, 'b') = 'a'", "calls a function in quotes, which is not admitted"),
    (
        "REPLACE(REPLACE(status, 'o', 'oooooooooo'), 'o', 'oooooooooo') = 'a'",
        "calls 'REPLACE', which is not admi",
    ),
    ("UNNEST(low) > 0", "calls 'UNNEST', which is not admitted"),
    ("random() > low", "is no SQL expression"),
    ("now() > low", "asks the clock"),
    ("pg_sleep(9) > low", "is no SQL expression"),
    ("COLUMNS('.*') > 0", "has several values"),
    ("__import__('os') > low", "is no SQL expression"),
    ("low > 0" + " AND low > 0" * 200, "has 2,407 characters; an expression has at most 2,000"),
    ("(" * 900 + "low > 0" + ")" * 900, "is no SQL expression"),
    ("NOT " * 400 + "low > 0", "is no SQL expression"),
]


@pytest.mark.parametrize(("text", "fault"), HOSTILE_SQL)
@pytest.mark.parametrize("field", ["supported", "killed", "holds", "where"])
def test_hostile_sql(register, tmp_path, text, fault, field):
    text = text.replace("{file}", f"{tmp_path}/none.csv")
    quoted = json.dumps(text)
    if field == "holds":
        guard = f"guards:\n- {{id: g, statement: s, estimator: kept_fraction, holds: {quoted}}}\n"
        path = register(("claims:\n", f"{guard}claims:\n"))
    elif field == "where":
        path = register(("where: budget = 0.5", f"where: {quoted}"))
    else:
        killed = "" if field == "supported" else "    supported: low > 0\n"
        path = register(("    supported: high < 0\n", f"{killed}    {field}: {quoted}\n"))
    start = time.process_time()
    with pytest.raises(InputError) as error:
        load_plan(path)
    assert time.process_time() - start < SECONDS
    assert fault in str(error.value)
    assert "plan.yaml:" in str(error.value)


def test_a_pattern_beyond_the_engine_leaves_its_claim_undefined(register, toy):
    path = register(("budget = 0.5", "task ~ '((((a{1,100}){1,100}){1,100}){1,100})'"))
    claim = verify(path).claims[0]
    assert claim.verdict == "undefined"
    assert "delta: where=" in claim.reason
    assert "cannot be computed (regex error: Compiled regex exceeds size limit" in claim.reason


def test_statements_are_shown_and_not_obeyed(register, write_log, tmp_path):
    key = {"suite": "s", "model": "<script>", "task": "t", "input_id": "'; DROP"}
    at = datetime(2026, 11, 2, tzinfo=UTC)
    write_log(
        [
            RunRecord(**key, arm="full", score=1.0, recorded_at=at),
            RunRecord(**key, arm="evict", budget=0.5, score=0.0, recorded_at=at),
        ]
    )
    report = verify(
        register(("Eviction harms.", "'{0.__class__} %s ${HOME} <b>'"), ("high < 0", "estimate < 0"))
    )
    assert report.claims[0].statement == "{0.__class__} %s ${HOME} <b>"


def outcome(read, *arguments):
    """Return what is read, or the words of the one error that may be raised."""
    try:
        return read(*arguments)
    except InputError as error:
        return str(error)


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_read_or_refused(content):
    found = outcome(parse_document, Path("plan.yaml"), content)
    assert isinstance(found, Document) or found.startswith("plan.yaml:")


@given(st.text(alphabet="low high>=<0.1()'\"ANDORNOT,*-+/%\\E[]{}|~", max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_is_an_expression_or_refused(text):
    found = outcome(check_expression, "plan.yaml:1", "where", text)
    assert isinstance(found, pl.Expr) or found.startswith("plan.yaml:1: where")
