"""Formats that others add: which file is whose, what the caller says of it, and where inputs repeat."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import pytest

from kvstats.errors import InputError
from kvstats.log import RunRecord, adapters, read_log
from kvstats.log.adapters import READERS, Reader
from kvstats.log.adapters.identity import Identities
from kvstats.log.lines import Reject, json_object, numbered_lines, shown
from kvstats.log.write import encode_record

LABELS = {"suite": "s", "model": "m"}


def recognises(file, objects):
    return any("exam" in fields for fields in objects)


def read(file, labels):
    """Read lines of question, answer and mark; the file's name is the arm unless the caller says another."""
    ids = Identities(labels)
    for number, line in numbered_lines(file):
        fields = json_object(line, number)
        if isinstance(fields, Reject):
            yield fields
            continue
        content = {"question": fields["question"]}
        identity = ids.of(number, shown(line), own=fields.get("id"), content=content, within=fields["exam"])
        if isinstance(identity, Reject):
            yield identity
            continue
        yield RunRecord(
            suite=labels.suite,
            model=labels.model,
            task=fields["exam"],
            input_id=identity,
            arm=labels.arm or file.stem,
            budget=labels.budget,
            score=fields["mark"],
        )


TAKES = ("suite", "model", "arm", "budget", "pair_by")
EXAMS = Reader(
    "exams", recognises, read, takes=TAKES, requires=("suite", "model"), companions=("marks*.json", "of*.txt")
)


@pytest.fixture
def write(tmp_path):
    """Write rows of question, mark and perhaps id, and return the path."""

    def rows(name, *rows, exam="bar"):
        lines = [{"exam": exam, "question": q, "mark": mark, "id": one} for q, mark, one in rows]
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    return rows


@dataclass(frozen=True)
class Point:
    """An entry point whose object is at hand."""

    name: str
    found: object

    @property
    def value(self):
        return f"{self.name}_package:READER"

    def load(self):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.fixture
def install(monkeypatch):
    """Install readers, or what fails, by name."""

    def points(**found):
        made = [Point(name, one) for name, one in found.items()]
        monkeypatch.setattr(adapters, "entry_points", lambda group: made)
        adapters.installed.cache_clear()

    yield points
    monkeypatch.undo()
    adapters.installed.cache_clear()


def test_an_installed_reader_reads_what_it_recognises(install, write, tmp_path, study, make_run):
    install(exams=EXAMS)
    write("full.jsonl", ("a?", 1.0, 1), ("b?", 0.5, 2))
    own = tmp_path / "own.jsonl"
    own.write_bytes(b"".join(encode_record(record) + b"\n" for record in (study, make_run("x"))))
    log = read_log(tmp_path, **LABELS)
    assert log.runs.select("task", "input_id", "arm", "score").sort("input_id").rows() == [
        ("bar", "1", "full", 1.0),
        ("bar", "2", "full", 0.5),
        ("single", "x", "full", None),
    ]
    assert log.files["format"].to_list() == ["exams", "kvstats"]
    assert read_log(tmp_path / "full.jsonl", format="exams", **LABELS).runs.height == 2


def test_a_reader_can_be_passed(write):
    assert read_log(write("full.jsonl", ("a?", 1.0, 1)), format=EXAMS, **LABELS).runs["arm"].item() == "full"


def test_a_package_that_fails_leaves_other_formats_readable(install, write, tmp_path, study, make_run):
    install(
        broken=RuntimeError("no such thing"),
        exams=EXAMS,
        strange="no reader",
        page_release=READERS["page_release"],
    )
    path = write("full.jsonl", ("a?", 1.0, 1))
    assert read_log(path, **LABELS).runs.height == 1
    for name, fault in {
        "broken": "cannot be used: broken_package:READER fails with RuntimeError: no such thing; repair",
        "strange": "cannot be used: strange_package:READER is no Reader of this name",
    }.items():
        with pytest.raises(InputError, match=re.escape(f"read_log: format={name!r} {fault}")):
            read_log(path, format=name)
    with pytest.raises(InputError, match=r"format='exam' is unknown; did you mean 'exams'\?"):
        read_log(path, format="exam")
    other = tmp_path / "other.csv"
    other.write_text("x\n1\n")
    with pytest.raises(InputError) as error:
        read_log(other)
    assert "of those installed, broken_package:READER fails with RuntimeError: no such thing" in str(
        error.value
    )
    assert "page_release_package:READER has the name of another reader" in str(error.value)


def test_a_file_that_two_readers_recognise_is_not_guessed(install, write):
    install(exams=EXAMS, tests=Reader("tests", recognises, read))
    path = write("full.jsonl", ("a?", 1.0, 1))
    with pytest.raises(
        InputError, match="has the form of several formats; pass format='exams' or format='tests'"
    ):
        read_log(path)


def test_companions_of_a_file_are_passed_over_beside_it_only(install, write, tmp_path):
    install(exams=EXAMS)
    write("a/full.jsonl", ("a?", 1.0, 1))
    (tmp_path / "a/marks_all.json").write_text('{"mean": 1}')
    assert read_log(tmp_path, **LABELS).files.height == 1
    assert read_log(f"{tmp_path}/a/*", format="exams", **LABELS).files.height == 1
    with pytest.raises(InputError, match=r"marks_all\.json: is in no known format"):
        read_log(tmp_path / "a/marks_all.json")
    (tmp_path / "marks_all.json").write_text('{"mean": 1}')
    with pytest.raises(InputError, match=r"/marks_all\.json: is in no known format"):
        read_log(tmp_path, **LABELS)


def test_one_label_or_one_by_file_or_folder(write, tmp_path):
    for name in ("one/snapkv.jsonl", "one/full.jsonl", "two/full.jsonl"):
        write(name, ("a?", 1.0, 1))
    log = read_log(tmp_path, format=EXAMS, suite="s", model={"one": "m1", "two": "m2"}, budget=1)
    assert log.runs.select("suite", "model", "arm", "budget").rows() == [
        ("s", "m1", "full", 1.0),
        ("s", "m1", "snapkv", 1.0),
        ("s", "m2", "full", 1.0),
    ]
    named = read_log(f"{tmp_path}/one/*", format=EXAMS, **LABELS, budget={"snapkv": 0.5, "full": 1.0})
    assert named.runs.select("arm", "budget").rows() == [("full", 1.0), ("snapkv", 0.5)]


@pytest.mark.parametrize(
    ("labels", "fault"),
    [
        ({"model": "m"}, "suite=None is told by nothing in {path}, which has format exams; pass suite, or a"),
        ({**LABELS, "task": "t"}, "task='t' is not needed: the records carry it; leave it out"),
        ({**LABELS, "answer_filter": "x"}, "answer_filter='x' is not needed: the records carry it"),
        (
            {**LABELS, "arm": {"ful": "a"}},
            "names 'ful', which is no file that needs it among those read, nor a",
        ),
        (
            {**LABELS, "arm": {"one": "a", "full": "b"}},
            "names {path} twice, by 'one' and 'full'; name either",
        ),
        ({**LABELS, "arm": {}}, "arm={{}} lacks 'full'; name every file, or its folder"),
        ({**LABELS, "arm": ""}, "arm='' is not a name; pass text that is not empty"),
        ({**LABELS, "arm": {"full": None}}, "arm={{'full': None}} is not a name"),
        ({**LABELS, "budget": 25}, "budget=25 is no fraction kept; pass a number above 0 and up to 1"),
        ({**LABELS, "budget": {"full": True}}, "budget={{'full': True}} is no fraction kept"),
        ({**LABELS, "budget": float("nan")}, "budget=nan is no fraction kept"),
        ({**LABELS, "pair_by": "row"}, "pair_by='row' is unknown; pass 'key', 'content' or 'position'"),
    ],
)
def test_labels_that_cannot_be(write, labels, fault):
    path = write("one/full.jsonl", ("a?", 1.0, 1))
    with pytest.raises(InputError, match=re.escape("read_log: ")) as error:
        read_log(path, format=EXAMS, **labels)
    assert fault.format(path=path) in str(error.value)


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"arm": "a"}, "arm='a' is not needed: the records carry it; leave it out"),
        ({"pair_by": "content"}, "pair_by='content' is not needed: the records carry it; leave it out"),
        ({"on_duplicate": "first"}, "on_duplicate='first' is for other formats; leave it out"),
    ],
)
def test_logs_of_this_library_carry_all_that_can_be_said(tmp_path, study, given, fault):
    path = tmp_path / "a.jsonl"
    path.write_bytes(encode_record(study) + b"\n")
    with pytest.raises(InputError, match=re.escape(f"read_log: {fault}")):
        read_log(path, **given)


def test_inputs_are_paired_by_what_the_caller_says(write, tmp_path):
    full = write("full.jsonl", ("a?", 1.0, None), ("b?", 0.5, None))
    other = write("snapkv.jsonl", ("b?", 0.0, None), ("a?", 1.0, None))
    with pytest.raises(
        InputError, match=r"full\.jsonl:1: has no id to pair inputs by; pass pair_by='content'"
    ):
        read_log([full, other], format=EXAMS, **LABELS)

    def pairs(pair_by):
        runs = read_log([full, other], format=EXAMS, **LABELS, pair_by=pair_by).runs
        one, two = (runs.filter(arm=arm).select("input_id", "score") for arm in ("full", "snapkv"))
        return sorted(one.join(two, on="input_id", suffix="_other").drop("input_id").rows())

    assert pairs("content") == [(0.5, 0.0), (1.0, 1.0)]
    assert pairs("position") == [(0.5, 1.0), (1.0, 0.0)]
    assert pairs({"full": "content", "snapkv": "position"}) == []


def test_repeated_inputs_are_an_error_or_counted(write):
    path = write("full.jsonl", ("a?", 1.0, 1), ("b?", 0.5, 2), ("a?", 0.0, 1), ("a?", 1.0, 1))
    with pytest.raises(
        InputError, match=r"full\.jsonl:3: repeats the id '1' of line 1; remove one of them, or"
    ):
        read_log(path, format=EXAMS, **LABELS)
    log = read_log(path, format=EXAMS, **LABELS, on_duplicate="first")
    assert log.runs.select("input_id", "score").rows() == [("1", 1.0), ("2", 0.5)]
    assert log.rejects.select("line", "error").rows() == [(n, "repeats the id '1' of line 1") for n in (3, 4)]
    assert log.files.select("records", "rejects").row(0) == (2, 2)
    with path.open("a") as stream:
        stream.write("half a li")
    with pytest.raises(InputError, match=r"full\.jsonl:5: is not JSON"):
        read_log(path, format=EXAMS, **LABELS, on_duplicate="first")
    with pytest.raises(InputError, match="on_duplicate='keep' is unknown; pass 'raise' or 'first'"):
        read_log(path, format=EXAMS, **LABELS, on_duplicate="keep")


def test_a_reader_that_finds_nothing_says_so(write):
    path = write("empty.jsonl")
    with pytest.raises(InputError, match=r"empty\.jsonl:1: the file holds no row; remove the file"):
        read_log(path, format=EXAMS, **LABELS)
    log = read_log(path, format=EXAMS, **LABELS, on_error="skip")
    assert log.rejects.select("line", "error").row(0) == (1, "the file holds no row")
