"""Faults of logs that people in this field really met, each by its kind: what is read, what is refused."""

from __future__ import annotations

import itertools
import json

import polars as pl
import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.log import LogWriter, log_from_records, read_log
from kvstats.log.write import encode_record

KEY = {"record": "run", "suite": "s", "model": "m", "task": "t", "arm": "full"}


@pytest.fixture
def write(tmp_path, study):
    """Write a log of a study record and lines, given as text or as fields of a run, and return its path."""

    def lines(*given, name="a.jsonl", end="\n"):
        made = [
            one if isinstance(one, str) else json.dumps(KEY | {"input_id": str(number)} | one)
            for number, one in enumerate(given)
        ]
        path = tmp_path / name
        path.write_text("\n".join([encode_record(study).decode(), *made]) + end)
        return path

    return lines


def read_and_rejected(path):
    log = read_log(path, on_error="skip")
    lines = len([line for line in path.read_text().splitlines() if line.strip()])
    assert log.runs.height + log.inputs.height + log.studies.height + log.rejects.height == lines
    return log.runs["input_id"].to_list(), log.rejects["line"].to_list()


@pytest.mark.parametrize(
    "junk",
    [
        '{"record":"run","suite":"s","model":"m","task":"t","input_id":"9","arm":"full","score":NaN}',
        '{"record":"run","suite":"s","model":"m","task":"t","input_id":"9","arm":"full","score":Infinity}',
        "Traceback (most recent call last):",
        '{"record":"run","suite":"s"',
        "\x00\x00\x00",
        "null",
        '""',
        "}{",
    ],
    ids=["nan", "infinity", "text", "half a line", "zeros", "null", "empty text", "braces"],
)
def test_a_line_that_cannot_be_read_takes_no_other_line_with_it(write, junk):
    for place in range(3):
        rows: list = [{}, {}]
        rows.insert(place, junk)
        path = write(*rows)
        with pytest.raises(InputError, match=rf"a\.jsonl:{place + 2}: "):
            read_log(path)
        read, rejected = read_and_rejected(path)
        assert (len(read), rejected) == (2, [place + 2])


OPTIONAL = [
    {},
    {"references": []},
    {"references": ["a"]},
    {"references": None},
    {"certificate_per_head": [[0.5], []]},
    {"certificate_per_head": []},
    {"signals": {"margin": 1}},
    {"signals": {"margin": None, "logprob": -0.5}},
]
"""Fields that some rows have, some have empty, and some have not."""


@pytest.mark.parametrize("by", ["files", "lines"])
def test_an_optional_column_is_read_whatever_comes_first(write, by):
    rows = [{"input_id": str(number), **row} for number, row in enumerate(OPTIONAL)]
    orders = itertools.islice(itertools.permutations(rows), 0, None, 4_001)
    first = None
    for order in orders:
        if by == "lines":
            paths = [write(*order)]
        else:
            paths = [write(row, name=f"{number}.jsonl") for number, row in enumerate(order)]
        runs = read_log(paths).runs
        first = runs if first is None else first
        assert runs.equals(first)
    assert first is not None
    assert first["references"].to_list() == [None, [], ["a"], None, None, None, None, None]
    assert first["certificate_per_head"].to_list() == [None] * 4 + [[[0.5], []], [], None, None]
    assert first["margin"].to_list() == [None] * 6 + [1.0, None]


def test_an_empty_list_after_thousands_of_rows_is_an_empty_list(write):
    rows = [{"references": ["a"]}] * 3000 + [{"references": []}]
    log = read_log(write(*rows))
    assert log.runs["references"].list.len().value_counts(sort=True).rows() == [(1, 3000), (0, 1)]


@pytest.mark.parametrize("values", [(1, 0.5), (0.5, 1), (1, 1e300), (0, -0.0)])
def test_whole_numbers_and_fractions_in_one_column_are_numbers(write, values):
    log = read_log(write(*({"score": value, "signals": {"margin": value}} for value in values)))
    assert log.runs["score"].to_list() == log.runs["margin"].to_list() == [float(v) for v in values]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n_kept", 1.9),
        ("n_kept", 2.0),
        ("n_kept", 1e300),
        ("seed", 0.5),
        ("score", "0.5"),
        ("score", "N/A"),
        ("score", True),
        ("success", 1),
        ("success", "true"),
        ("prediction", 7),
        ("references", "a"),
        ("references", [1]),
        ("signals", {"margin": "N/A"}),
        ("signals", {"margin": [1.0]}),
        ("gate_open", 0),
    ],
)
def test_a_value_of_another_type_is_a_fault_and_never_converted(write, field, value):
    good = {"n_kept": 2, "score": 0.5}
    for rows, line in (([good, {field: value}], 3), ([{field: value}, good], 2)):
        path = write(*rows)
        with pytest.raises(
            InputError, match=rf"a\.jsonl:{line}: breaks the contract of run records \(Expected"
        ):
            read_log(path)
        assert read_and_rejected(path)[1] == [line]


def test_a_file_of_one_record_and_one_without_its_last_line_end(write):
    assert read_log(write({})).runs.height == 1
    assert read_log(write({}, {}, end="")).runs.height == 2


def test_ids_are_text_and_keep_every_digit(write):
    ids = [
        "1344800117571260417",
        "1344800117571260418",
        "0012",
        "12",
        "1e3",
        "1000",
        " 7",
        "7",
        "None",
        "NaN",
    ]
    log = read_log(write(*({"input_id": one} for one in ids)))
    assert sorted(log.runs["input_id"]) == sorted(ids)
    assert kv.match_inputs(log).counts["n_paired"].to_list() == [len(ids)]


@pytest.mark.parametrize("identity", [1344800117571260417, 12, 0.5, None, "", True, ["a"]])
def test_an_id_that_is_no_text_is_a_fault(write, identity):
    path = write({"input_id": identity}, {})
    with pytest.raises(InputError, match=r"a\.jsonl:2: breaks the contract of run records"):
        read_log(path)
    assert read_and_rejected(path) == (["1"], [2])


def test_runs_without_score_leave_no_denominator_in_silence(write):
    path = write({"score": 1.0}, {"error": "out of memory"}, {"score": 0.0})
    log = read_log(path)
    assert log.runs.select(pl.len(), pl.col("score").count(), pl.col("error").count()).row(0) == (3, 2, 1)
    with pytest.raises(InputError, match=r"score is null in 1 of 3 rows, such as .*input_id=1.*IS NOT NULL"):
        kv.accuracy(log)
    assert kv.accuracy(log, where="score IS NOT NULL").frame["n"].to_list() == [2]


def test_minus_infinity_is_read_as_a_logprob_and_never_written(write, tmp_path, study, make_run):
    line = json.dumps(KEY | {"input_id": "1", "signals": {"logprob": 0.5}}).replace("0.5", "-Infinity")
    assert read_log(write(line)).runs["logprob"].to_list() == [-float("inf")]
    with (
        LogWriter(tmp_path / "b.jsonl", study) as writer,
        pytest.raises(InputError, match=r"signals\.logprob=-inf is not finite; write None for undefined"),
    ):
        writer.append([make_run(signals={"logprob": -float("inf")})])
    assert (tmp_path / "b.jsonl").read_bytes() == encode_record(study) + b"\n"


def test_rows_that_come_twice_are_an_error_with_their_ids(write):
    rows = [{"score": 1.0, "input_id": one} for one in ("a", "b", "c", "d", "e", "a", "b", "c", "d")]
    log = read_log([write(*rows[:5]), write(*rows[5:], name="b.jsonl")])
    assert log.runs.height == 9
    for analyse in (kv.accuracy, kv.match_inputs):
        with pytest.raises(
            InputError, match=r"8 runs share their key with another, such as .*=a.*=b.*=c.*remove"
        ):
            analyse(log)


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("budget", 25, "<= 1.0"),
        ("budget", 0.0, "> 0.0"),
        ("budget", -0.5, "> 0.0"),
        ("budget_tokens", 12.5, "Expected `int | null`, got `float`"),
        ("kept_fraction", 1.00000012, "<= 1.0"),
        ("n_kept", -1, ">= 0"),
    ],
)
def test_budgets_in_other_units_are_faults(write, field, value, fault):
    with pytest.raises(InputError, match=r"a\.jsonl:2: breaks the contract") as error:
        read_log(write({field: value}))
    assert fault in str(error.value)


def test_a_near_twin_of_a_file_is_told_apart_by_name(write):
    write({}, name="cell.jsonl")
    write({}, name="cell (1).jsonl")
    log = read_log(write({"input_id": "7"}, name="cell_.jsonl").parent)
    assert [name.rpartition("/")[2] for name in log.files["file"]] == [
        "cell (1).jsonl",
        "cell.jsonl",
        "cell_.jsonl",
    ]
    assert log.files["records"].to_list() == [2, 2, 2]


def test_a_log_of_records_has_no_files(make_run):
    assert log_from_records([make_run()]).files.height == 0
