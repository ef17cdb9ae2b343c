"""The writer: strict, whole blocks, and continued after a kill."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import textwrap

import msgspec
import pytest

from kvstats.errors import InputError
from kvstats.log import LogWriter, RunRecord, read_log
from kvstats.log.write import encode_record


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("fields", "path"),
    [
        (lambda value: {"score": value}, "score"),
        (lambda value: {"signals": {"logprob": value}}, "signals.logprob"),
        (lambda value: {"certificate_per_head": [[0.0], [0.0, value]]}, "certificate_per_head[1][1]"),
        (lambda value: {"extra": {"a": [{"b": value}]}}, "extra.a[0].b"),
    ],
)
def test_numbers_that_json_lacks_are_refused_with_their_path(make_run, value, fields, path):
    with pytest.raises(
        InputError, match=re.escape(f"encode_record: {path}={value!r} is not finite; write None")
    ):
        encode_record(make_run(**fields(value)))


@pytest.mark.parametrize(
    ("fields", "fault"),
    [({"seed": 1.5}, "seed"), ({"budget": 2.0}, "budget"), ({"score": "1"}, "score")],
)
def test_fields_that_break_the_contract_are_refused(make_run, fields, fault):
    with pytest.raises(InputError, match=rf"encode_record: RunRecord: .*\$\.{fault}`; correct the field"):
        encode_record(make_run(**fields))


def test_a_numeric_id_is_refused():
    with pytest.raises(InputError, match=r"Expected `str`, got `int` - at `\$\.input_id`"):
        encode_record(RunRecord(suite="s", model="m", task="t", input_id=3, arm="full"))


def test_lines_are_json_objects_that_name_their_kind(tmp_path, study, full_records):
    with LogWriter(tmp_path / "new" / "a.jsonl", study) as writer:
        writer.append(full_records)
    lines = [json.loads(line) for line in (tmp_path / "new" / "a.jsonl").read_text().splitlines()]
    assert [line["record"] for line in lines] == ["study", "input", "run", "replay"]
    assert lines[1]["signals"] == {"entropy": 1.25, "unknown": None}
    assert os.listdir(tmp_path / "new") == ["a.jsonl"]


def test_a_faulty_record_leaves_the_file_as_it_was(tmp_path, study, make_run):
    with LogWriter(tmp_path / "a.jsonl", study) as writer:
        with pytest.raises(InputError, match="score=nan is not finite"):
            writer.append([make_run("1"), make_run("2", score=math.nan)])
        writer.append([make_run("3")])
    assert read_log(tmp_path / "a.jsonl").runs["input_id"].to_list() == ["3"]


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst"])
def test_nothing_is_appended_to_what_is_called_compressed(tmp_path, study, name):
    with pytest.raises(InputError, match=r"path='.*' names a compressed file, and what is appended is plain"):
        LogWriter(tmp_path / name, study)
    assert not (tmp_path / name).exists()


def test_records_are_on_the_disk_when_append_returns(tmp_path, study, make_run):
    with LogWriter(tmp_path / "a.jsonl", study) as writer:
        writer.append([make_run("1")])
        assert read_log(tmp_path / "a.jsonl").runs.height == 1


def test_an_existing_file_is_continued(tmp_path, study, make_run):
    for number in ("1", "2"):
        with LogWriter(tmp_path / "a.jsonl", study) as writer:
            writer.append([make_run(number)])
            assert writer.study == study
    log = read_log(tmp_path / "a.jsonl")
    assert log.runs["input_id"].to_list() == ["1", "2"]
    assert log.studies.height == 1


def test_the_time_of_the_first_start_is_kept(tmp_path, study):
    with LogWriter(tmp_path / "a.jsonl", study):
        pass
    later = msgspec.structs.replace(study, started_at=study.started_at.replace(year=2027))
    with LogWriter(tmp_path / "a.jsonl", later) as writer:
        assert writer.study.started_at == study.started_at


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_line_that_a_kill_cut_short_is_dropped(tmp_path, study, make_run, cut):
    path = tmp_path / "a.jsonl"
    with LogWriter(path, study) as writer:
        writer.append([make_run("1"), make_run("2")])
    path.write_bytes(path.read_bytes()[:-cut])
    if cut > 1:
        with pytest.raises(InputError, match=r"a\.jsonl:3: is not JSON"):
            read_log(path)
    with LogWriter(path, study) as writer:
        writer.append([make_run("3")])
    assert read_log(path).runs["input_id"].to_list() == ["1", "3"]


def test_a_long_cut_line_is_dropped(tmp_path, study, make_run):
    path = tmp_path / "a.jsonl"
    with LogWriter(path, study) as writer:
        writer.append([make_run("1")])
    with path.open("ab") as file:
        file.write(b'{"record":"run","prediction":"' + b"x" * 200_000)
    with LogWriter(path, study) as writer:
        writer.append([make_run("2")])
    assert read_log(path).runs["input_id"].to_list() == ["1", "2"]


def test_a_killed_process_loses_nothing_that_it_had_appended(tmp_path, study, make_run):
    path = tmp_path / "a.jsonl"
    with LogWriter(path, study) as writer:
        writer.append([make_run("0")])
    code = """
        import itertools, sys
        from kvstats.log import LogWriter, RunRecord
        from kvstats.log.records import StudyRecord
        import msgspec
        path = sys.argv[1]
        study = msgspec.json.decode(open(path, "rb").readline(), type=StudyRecord)
        with LogWriter(path, study) as writer:
            for number in itertools.count(1):
                key = dict(suite="s", model="m", task="t", input_id=f"{number:06}", arm="full")
                writer.append([RunRecord(**key, prediction="x" * 5000, seed=seed) for seed in range(3)])
                print(number, flush=True)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), path], stdout=subprocess.PIPE, text=True
    )
    with child:
        lines = [child.stdout.readline() for _ in range(20)]
        child.send_signal(signal.SIGKILL)
    appended = int(lines[-1])
    assert child.returncode == -signal.SIGKILL
    with LogWriter(path, study) as writer:
        writer.append([make_run("last")])
    runs = read_log(path).runs
    counts = dict(runs.group_by("input_id").len().rows())
    assert [counts[f"{number:06}"] for number in range(1, appended + 1)] == [3] * appended
    assert counts["last"] == 1


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"suite": "other"}, "suite='needles', not 'other'"),
        ({"model_revision": None}, "model_revision='abc', not None"),
        ({"settings": {"budgets": [0.5]}}, r"settings\.budgets=\[0\.25, 1\.0\], not \[0\.5\]"),
        ({"template_hash": "1f"}, "template_hash='0f', not '1f'"),
    ],
)
def test_other_settings_are_refused(tmp_path, study, changed, words):
    path = tmp_path / "a.jsonl"
    with LogWriter(path, study):
        pass
    before = path.read_bytes()
    with pytest.raises(
        InputError, match=rf"a\.jsonl:1: was begun with {words}; continue with the same settings"
    ):
        LogWriter(path, msgspec.structs.replace(study, **changed))
    assert path.read_bytes() == before


def test_a_file_that_is_no_log_is_not_touched(tmp_path, study):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"precious")
    with pytest.raises(InputError, match=r"a\.jsonl:1: is not a study record .*; move the file away"):
        LogWriter(path, study)
    assert path.read_bytes() == b"precious"


def test_another_version_is_refused(tmp_path, study):
    with pytest.raises(
        InputError, match=r"study\.schema_version=2 is not the version that this library writes, 1"
    ):
        LogWriter(tmp_path / "a.jsonl", msgspec.structs.replace(study, schema_version=2))
    assert os.listdir(tmp_path) == []
