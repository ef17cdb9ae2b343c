"""The reader: every line becomes a record, an error that names it, or a counted reject."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import random

import msgspec
import polars as pl
import pytest
import zstandard

from kvstats.errors import InputError
from kvstats.log import LogWriter, read_log
from kvstats.log.write import encode_record

KEY = '"record":"run","suite":"s","model":"m","task":"t","input_id":"1","arm":"full"'


@pytest.fixture
def write(tmp_path, study):
    """Write a log of a study record and raw lines, and return its path."""

    def write_lines(*lines: str | bytes, name: str = "a.jsonl"):
        encoded = [line if isinstance(line, bytes) else line.encode() for line in lines]
        content = b"".join(line + b"\n" for line in [encode_record(study), *encoded])
        path = tmp_path / name
        path.write_bytes(packed(content, name))
        return path

    return write_lines


def packed(content, name):
    """Compress content as the extension of a name says."""
    if name.endswith(".gz"):
        return gzip.compress(content, mtime=0)
    return zstandard.compress(content) if name.endswith(".zst") else content


def frames(log):
    return {name: getattr(log, name) for name in ("runs", "inputs", "replays", "studies", "rejects")}


def assert_same(first, second):
    assert repr(first) == repr(second)
    for name, frame in frames(first).items():
        assert frame.equals(frames(second)[name]), name


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst"])
def test_everything_comes_back(write, study, full_records, name):
    log = read_log(write(*map(encode_record, full_records), name=name))
    (run,) = log.runs.to_dicts()
    assert run == {
        **{
            field: getattr(full_records[1], field)
            for field in full_records[1].__struct_fields__
            if field != "signals"
        },
        "seconds": '{"decode":1.5}',
        "memory_bytes": '{"cache":1099511627776}',
        "extra": '{"page":[1,{"a":null}]}',
        "certificate": 0.125,
        "margin": None,
    }
    (row,) = log.inputs.to_dicts()
    fields = [field for field in full_records[0].__struct_fields__ if field != "signals"]
    assert row == {
        **{field: getattr(full_records[0], field) for field in fields},
        "extra": '{"page":3}',
        "entropy": 1.25,
        "unknown": None,
    }
    (cell,) = log.replays.to_dicts()
    assert cell == {**msgspec.structs.asdict(full_records[2]), "extra": '{"z":1}'}
    (begun,) = log.studies.to_dicts()
    assert begun == {
        **msgspec.structs.asdict(study),
        "versions": '{"torch":"2.13"}',
        "settings": '{"budgets":[0.25,1.0]}',
        "extra": '{"note":"a"}',
    }
    assert log.run_signals == ("certificate", "margin")
    assert log.input_signals == ("entropy", "unknown")


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst"])
def test_compression_is_known_by_content(write, tmp_path, make_run, name):
    path = write(encode_record(make_run()), name=name)
    assert read_log(path.rename(tmp_path / "b.jsonl")).runs.height == 1


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst"])
def test_members_that_follow_each_other_are_one_file(tmp_path, study, make_run, name):
    randomness = random.Random(0)
    lines = [encode_record(study), *(encode_record(make_run(f"{i:04}")) for i in range(3000))]
    content = b"\n".join(lines) + b"\n"
    # Members begin within lines too, some are empty, and one is larger than what is read at once.
    ends = [0, *sorted(randomness.randrange(len(content)) for _ in range(9)), len(content)]
    members = [content[begin:end] for begin, end in itertools.pairwise(ends)]
    path = tmp_path / name
    noise = randomness.randbytes(90_000).hex().encode()
    note = b'{"record":"run","suite":"s","model":"m","task":"t","input_id":"x","arm":"a","prediction":"'
    members += [b"", note + noise + b'"}\n', b""]
    path.write_bytes(b"".join(packed(member, name) for member in members))
    log = read_log(path)
    assert log.runs["input_id"].to_list() == [*(f"{i:04}" for i in range(3000)), "x"]
    assert log.runs["prediction"].to_list()[-1] == noise.decode()


def test_patterns_and_lists_of_files(write, tmp_path, make_run, monkeypatch):
    paths = [
        write(encode_record(make_run(str(i))), name=f"{i}.jsonl{'.gz' if i % 2 else ''}") for i in range(4)
    ]
    whole = read_log(f"{tmp_path}/*.jsonl*")
    assert whole.runs["input_id"].to_list() == ["0", "1", "2", "3"]
    assert_same(whole, read_log(paths[::-1]))
    assert_same(whole, read_log([f"{tmp_path}/*.jsonl", *paths, f"{tmp_path}/**/*.gz"]))
    monkeypatch.chdir(tmp_path)
    assert_same(whole, read_log(["*.jsonl*", paths[0]]))


def test_the_caller_is_told_of_each_file_and_nothing_is_printed(write, tmp_path, make_run, capfd):
    for name in ("a.jsonl", "b.jsonl.gz"):
        write(encode_record(make_run(name)), name=name)
    steps = []
    read_log(tmp_path, progress=lambda *step: steps.append(step))
    assert steps == [("reading a.jsonl", 0, 2), ("reading b.jsonl.gz", 1, 2)]
    assert capfd.readouterr() == ("", "")


def test_a_file_whose_name_looks_like_a_pattern(write, make_run):
    assert read_log(write(encode_record(make_run()), name="a[1].jsonl")).runs.height == 1


@pytest.mark.parametrize("seed", range(3))
def test_neither_the_order_of_lines_nor_of_files_matters(write, tmp_path, make_run, full_records, seed):
    records = [*full_records]
    for number in range(12):
        # Some of the same key, which only their outcome tells apart.
        records.append(make_run(str(number % 5), score=number / 12, budget=0.25 if number % 2 else None))
    whole = read_log(write(*map(encode_record, records)))
    shuffled = random.Random(seed).sample(records, len(records))
    parts = [
        write(*map(encode_record, shuffled[begin : begin + 5]), name=f"part{begin}.jsonl")
        for begin in (10, 0, 5)
    ]
    again = read_log(parts)
    for name in ("runs", "inputs", "replays"):
        assert getattr(whole, name).equals(getattr(again, name))


def test_unknown_fields_are_kept_under_extra(write):
    log = read_log(write("{" + KEY + ',"temperature":0.5,"extra":{"a":1},"tags":["x"]}'))
    assert json.loads(log.runs["extra"].item()) == {"a": 1, "temperature": 0.5, "tags": ["x"]}


def test_blank_lines_are_passed_over(write):
    log = read_log(write("", "   ", "{" + KEY + "}", "\t\r"))
    assert (log.runs.height, log.rejects.height) == (1, 0)


def test_keys_that_are_equal_in_different_objects_are_no_fault(write):
    log = read_log(write("{" + KEY + ',"extra":{"score":1},"score":0.5,"prediction":"\\"score\\": 1"}'))
    assert log.runs["score"].to_list() == [0.5]
    assert log.runs["prediction"].to_list() == ['"score": 1']


def test_minus_infinity_is_a_logprob(write):
    log = read_log(write("{" + KEY + ',"signals":{"logprob":-Infinity}}'))
    assert log.runs["logprob"].to_list() == [-float("inf")]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("{" + KEY + ',"score":NaN}', "is not JSON (NaN is not JSON)"),
        ("{" + KEY + ',"score":Infinity}', "is not JSON (Infinity is not JSON)"),
        ("{" + KEY + ',"signals":{"logprob":Infinity}}', "is not JSON (Infinity is not JSON)"),
        ("{" + KEY + ',"signals":{"logprob":NaN}}', "is not JSON (NaN is not JSON)"),
        ("{" + KEY + ',"score":1e999}', "is not JSON (1e999 is too large for a number)"),
        ("{" + KEY + ',"score":1,"score":0}', "is not JSON (the key 'score' comes twice)"),
        ("{" + KEY + ',"signals":{"a":1,"a":2}}', "is not JSON (the key 'a' comes twice)"),
        ("{" + KEY + ',"kept_fraction":1.5}', "breaks the contract of run records (Expected `float` <= 1.0"),
        ("{" + KEY + ',"score":-Infinity}', "has score=-Infinity, which only signals.logprob may be"),
        ("{" + KEY + ',"signals":{"margin":-Infinity}}', "has signals.margin=-Infinity"),
        ("{" + KEY + ',"extra":{"a":[-Infinity]}}', "has extra.a[0]=-Infinity"),
        (
            "{" + KEY.replace('"1"', "1") + "}",
            "breaks the contract of run records (Expected `str`, got `int` - at",
        ),
        ("{" + KEY + ',"n_kept":99999999999999999999}', "Expected `int` <= 9223372036854775807"),
        ("{" + KEY + ',"recorded_at":"2026-01-01T00:00:00"}', "breaks the contract of run records"),
        ("{" + KEY + ',"extra":{"a":1},"a":2}', "has 'a' both as a field and under extra"),
        ("{" + KEY + ',"prediction":"\\uD800"}', "is not JSON ("),
        (b"{" + KEY.encode() + b',"prediction":"\xff"}', "is not JSON ("),
        ("{" + KEY, "is not JSON ("),
        ("[1]", "is JSON, but a list and not an object"),
        ("7", "is JSON, but a int and not an object"),
        ('{"suite":"s"}', "has record=None, known: input, replay, run, study"),
        ('{"record":"runs"}', "has record='runs', did you mean 'run'?"),
        ('{"record":["run"]}', "has record=['run']"),
        (
            "{" + KEY + ',"extra":{"a":' + "[" * 100_000 + "]" * 100_000 + "}}",
            "is not JSON (maximum recursion",
        ),
    ],
)
def test_a_faulty_line_is_an_error_that_names_it_or_a_reject(write, line, fault):
    path = write("{" + KEY + ',"seed":1}', line, "{" + KEY + ',"seed":2}')
    with pytest.raises(InputError) as error:
        read_log(path)
    assert str(error.value).startswith(f"{path}:3: ")
    assert fault in str(error.value)
    assert str(error.value).endswith("; repair the line, or pass on_error='skip' to list it in log.rejects")
    log = read_log(path, on_error="skip")
    assert log.runs["seed"].to_list() == [1, 2]
    (reject,) = log.rejects.to_dicts()
    assert (reject["file"], reject["line"]) == (str(path), 3)
    assert fault in reject["error"]
    shown = line.encode() if isinstance(line, str) else line
    assert reject["text"] == shown[:200].decode(errors="replace")


def test_another_version_names_itself(write, study):
    later = encode_record(study).replace(b'"schema_version":1', b'"schema_version":2')
    with pytest.raises(
        InputError, match=r":2: has schema_version=2, this library reads 1; install the version"
    ):
        read_log(write(later))


@pytest.mark.parametrize("begin", ["", "\n", "  \n\n"])
def test_a_file_must_begin_with_its_study(tmp_path, begin):
    path = tmp_path / "a.jsonl"
    path.write_text(begin + "{" + KEY + "}\n")
    line = begin.count("\n") + 1
    with pytest.raises(InputError, match=rf"a\.jsonl:{line}: the first line is not a study record"):
        read_log(path)
    log = read_log(path, on_error="skip")
    assert (log.runs.height, log.rejects["line"].to_list()) == (1, [line])


@pytest.mark.parametrize("content", [b"", b"\n", gzip.compress(b"")])
def test_an_empty_file_is_an_error(tmp_path, content):
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(
        InputError, match=r"a\.jsonl:1: the file is empty; remove the file, or write its study record"
    ):
        read_log(path)
    assert read_log(path, on_error="skip").rejects["error"].to_list() == ["the file is empty"]


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst"])
def test_a_truncated_compressed_file_loses_only_its_end(write, make_run, name):
    randomness = random.Random(0)
    # More than a block of compressed data, of which the decompressor gives what it has.
    ids = [f"{i:04}" for i in range(3000)]
    lines = [encode_record(make_run(one, prediction=randomness.randbytes(100).hex())) for one in ids]
    path = write(*lines, name=name)
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(InputError, match=rf"{name}:\d+: the compressed data ends or breaks here"):
        read_log(path)
    log = read_log(path, on_error="skip")
    read = log.runs["input_id"].to_list()
    assert 500 < len(read) < 3000
    assert read == ids[: len(read)]
    assert log.rejects["line"].to_list()[-1] == len(read) + 2
    assert log.rejects["error"][-1].startswith("the compressed data ends or breaks here")


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst"])
def test_broken_compressed_data_is_an_error(write, make_run, name):
    path = write(*[encode_record(make_run(str(i))) for i in range(50)], name=name)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"{name}:\d+: "):
        read_log(path)


@pytest.mark.parametrize("path", [None, 3, b"a.jsonl", [None], [["a.jsonl"]]])
def test_what_is_no_path(path):
    with pytest.raises(InputError, match=r"read_log: path=.* is neither a path nor a list of them; pass one"):
        read_log(path)


def test_paths_may_come_one_by_one(write, tmp_path, make_run):
    write(encode_record(make_run()))
    assert read_log(tmp_path.glob("*.jsonl")).runs.height == 1


def test_a_missing_file_and_a_wrong_mode(tmp_path):
    with pytest.raises(InputError, match=r"read_log: path='.*none\*' matches no file; check the path"):
        read_log(f"{tmp_path}/none*")
    with pytest.raises(InputError, match=r"read_log: path=\[\] names no file; pass at least one"):
        read_log([])
    with pytest.raises(InputError, match="on_error='ignore' is unknown; pass 'raise' or 'skip'"):
        read_log(tmp_path, on_error="ignore")


@pytest.mark.skipif(not os.path.isfile("/proc/self/mem"), reason="needs a file that opens but does not read")
def test_a_file_that_cannot_be_read():
    with pytest.raises(
        InputError, match=r"/proc/self/mem: cannot be read \(Input/output error\); check the file"
    ):
        read_log("/proc/self/mem")


def test_a_log_without_runs(write):
    log = read_log(write())
    assert (log.runs.height, log.inputs.height, log.studies.height) == (0, 0, 1)
    assert log.runs.schema["score"] == pl.Float64


def test_reading_does_not_change_files(write, make_run):
    path = write(encode_record(make_run()))
    before = (path.read_bytes(), os.stat(path).st_mtime_ns)
    read_log(path)
    assert (path.read_bytes(), os.stat(path).st_mtime_ns) == before


def test_what_the_writer_writes_the_reader_reads(tmp_path, study, full_records):
    with LogWriter(tmp_path / "a.jsonl", study) as writer:
        writer.append(full_records)
    log = read_log(tmp_path / "a.jsonl")
    assert (log.runs.height, log.inputs.height, log.replays.height, log.rejects.height) == (1, 1, 1, 0)
