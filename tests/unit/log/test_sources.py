"""What a path names: files, patterns, folders, and files behind URLs."""

from __future__ import annotations

import gzip
import os
import re
import sys

import pytest
import zstandard

from kvstats.errors import InputError
from kvstats.log import read_log
from kvstats.log.sources import sources
from kvstats.log.write import encode_record

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def content(study, make_run):
    """Make the bytes of a log with one run for each id."""

    def lines(*ids: str) -> bytes:
        records = [study, *(make_run(one) for one in ids)]
        return b"".join(encode_record(record) + b"\n" for record in records)

    return lines


@pytest.fixture
def memory():
    """Give an empty file system in memory."""
    system = fsspec.filesystem("memory")
    yield system
    system.rm("/", recursive=True)


def ids(log):
    return log.runs["input_id"].to_list()


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_a_folder_is_read_with_those_below(tmp_path, content):
    put(tmp_path / "a.jsonl", content("1"))
    put(tmp_path / "deep/er/b.ndjson.gz", gzip.compress(content("2")))
    put(tmp_path / "deep/c.jsonl.zst", zstandard.compress(content("3")))
    put(tmp_path / "README.md", b"# Notes")
    put(tmp_path / "deep/config.yaml", b"a: 1")
    put(tmp_path / "a.jsonl.12.part", b"half a")
    put(tmp_path / ".cache/d.jsonl", b"not a log")
    put(tmp_path / ".e.jsonl", b"nor this")
    log = read_log(tmp_path)
    assert ids(log) == ["1", "2", "3"]
    assert log.files["file"].to_list() == [
        f"{tmp_path}/{name}" for name in ("a.jsonl", "deep/c.jsonl.zst", "deep/er/b.ndjson.gz")
    ]
    assert log.files.drop("file").rows() == [("kvstats", 2, 0)] * 3


def test_links_to_folders_are_followed_once(tmp_path, content):
    put(tmp_path / "logs/a.jsonl", content("1"))
    put(tmp_path / "elsewhere/b.jsonl", content("2"))
    (tmp_path / "logs/linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere/back").symlink_to(tmp_path / "logs")
    assert ids(read_log(tmp_path / "logs")) == ["1", "2"]


def test_a_thousand_files(tmp_path, content):
    for number in range(1000):
        put(tmp_path / f"{number % 10}/{number:04}.jsonl", content(f"{number:04}"))
    log = read_log(tmp_path)
    assert ids(log) == [f"{number:04}" for number in range(1000)]
    assert log.files.height == 1000


@pytest.mark.parametrize("name", ["notes.csv", "metrics.json", "other.jsonl"])
def test_a_file_of_a_folder_that_nobody_reads_is_an_error(tmp_path, content, name):
    put(tmp_path / "a.jsonl", content("1"))
    put(tmp_path / name, b'{"score": 1}\n')
    for path in (tmp_path, f"{tmp_path}/*", tmp_path / name):
        with pytest.raises(
            InputError,
            match=rf"{re.escape(name)}: is in no known format \(kvstats, .*\); pass the format if it is one "
            "of them.*, or a pattern that leaves the file out",
        ):
            read_log(path)


def test_the_seal_of_a_registration_beside_logs_is_no_log(tmp_path, content):
    put(tmp_path / "a.jsonl", content("1"))
    put(tmp_path / "plan.seal.json", b'{"hash": "0f"}\n')
    for path in (tmp_path, f"{tmp_path}/*"):
        assert ids(read_log(path)) == ["1"]
    with pytest.raises(InputError, match=r"plan\.seal\.json: is in no known format"):
        read_log(tmp_path / "plan.seal.json")
    (tmp_path / "a.jsonl").unlink()
    with pytest.raises(InputError, match=r"plan\.seal\.json: lies beside logs, and there are none"):
        read_log(tmp_path)


def test_lines_of_no_known_format_are_rejects_where_those_are_allowed(tmp_path):
    path = put(tmp_path / "a.jsonl", b'{"score": 1}\n{"score": 0}\n')
    log = read_log(path, on_error="skip")
    assert log.rejects["line"].to_list() == [1, 2]
    assert log.files.rows() == [(str(path), "kvstats", 0, 2)]


def test_a_folder_without_data(tmp_path):
    put(tmp_path / "README.md", b"")
    with pytest.raises(InputError, match=r"read_log: path='.*' is a folder without files of data; check the"):
        read_log(tmp_path)


def test_only_a_file_named_itself_is_chosen(tmp_path, content):
    path = put(tmp_path / "a.jsonl", content("1"))
    (named,) = sources(path, tmp_path)
    (matched,) = sources(f"{tmp_path}/*.jsonl", tmp_path)
    assert (named.chosen, matched.chosen) == (True, False)


def test_urls_of_files_patterns_and_folders(memory, content):
    memory.pipe("/logs/a.jsonl", content("1"))
    memory.pipe("/logs/deep/b.jsonl.gz", gzip.compress(content("2")))
    memory.pipe("/logs/deep/c.jsonl.zst", zstandard.compress(content("3")))
    memory.pipe("/logs/README.md", b"# Notes")
    memory.pipe("/logs/.cache/d.jsonl", b"not a log")
    assert ids(read_log("memory://logs/a.jsonl")) == ["1"]
    assert ids(read_log("memory://logs/deep/*.jsonl.*")) == ["2", "3"]
    log = read_log("memory://logs")
    assert ids(log) == ["1", "2", "3"]
    assert log.files["file"].to_list() == [
        "memory:///logs/a.jsonl",
        "memory:///logs/deep/b.jsonl.gz",
        "memory:///logs/deep/c.jsonl.zst",
    ]


def test_files_that_a_reader_looks_for_are_fetched_too(memory, tmp_path):
    for name in ("logs/a.jsonl", "logs/metrics.json", "logs/config.yaml", "logs/other.bin", "metrics.json"):
        memory.pipe(f"/{name}", b"{}")
    names = ("metrics.json", "config.*")
    for number, url in enumerate(("memory://logs/a.jsonl", "memory://logs/*.jsonl")):
        folder = tmp_path / str(number)
        (source,) = sources(url, folder, names)
        assert (source.name, source.file.read_bytes()) == ("memory:///logs/a.jsonl", b"{}")
        fetched = sorted(path.name for path in folder.rglob("*") if path.is_file())
        assert fetched == ["a.jsonl", "config.yaml", "metrics.json"]
        assert source.chosen == (number == 0)


def test_faults_behind_urls_name_the_url(memory, content):
    memory.pipe("/logs/a.jsonl", content("1") + b"half a li")
    with pytest.raises(InputError, match=r"^memory:///logs/a\.jsonl:3: is not JSON"):
        read_log("memory://logs/a.jsonl")
    log = read_log("memory://logs/a.jsonl", on_error="skip")
    assert log.rejects["file"].to_list() == ["memory:///logs/a.jsonl"]
    memory.pipe("/logs/b.csv", b"x,y\n1,2\n")
    with pytest.raises(InputError, match=r"^memory:///logs/b\.csv: is in no known format"):
        read_log("memory://logs/b.csv")


def test_urls_without_files(memory):
    memory.pipe("/logs/README.md", b"# Notes")
    for url in ("memory://none/*.jsonl", "memory://logs", "memory://none.jsonl"):
        with pytest.raises(InputError, match=r"read_log: path='memory://.*' matches no file; check the path"):
            read_log(url)


def test_a_file_system_that_fails(memory, monkeypatch, content):
    def fail(*_):
        raise PermissionError("no credentials")

    memory.pipe("/logs/a.jsonl", content("1"))
    monkeypatch.setattr(type(memory), "get_file", fail)
    with pytest.raises(
        InputError,
        match=r"^memory://logs/a\.jsonl: cannot be fetched \(PermissionError: no credentials\); check",
    ):
        read_log("memory://logs/a.jsonl")


def test_what_a_url_needs_is_named(monkeypatch):
    with pytest.raises(
        InputError, match=r"path='nowhere://a' cannot be opened \(Protocol not known: nowhere\)"
    ):
        read_log("nowhere://a")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(
        InputError,
        match=r"path='s3://a/b\.jsonl' is a URL, for which fsspec is not installed; pip install fsspec",
    ):
        read_log("s3://a/b.jsonl")


@pytest.mark.skipif(os.name == "nt", reason="names with a colon")
def test_a_file_whose_name_looks_like_a_url(tmp_path, content, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "s3:/a.jsonl", content("1"))
    assert ids(read_log("s3:/a.jsonl")) == ["1"]
