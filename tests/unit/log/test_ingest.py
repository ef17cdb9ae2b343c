"""Reading lines quickly gives what reading each of them exactly gives."""

from __future__ import annotations

import json
import math
import random
import struct
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvstats.errors import InputError
from kvstats.log import InputRecord, Log, ReplayRecord, RunRecord, StudyRecord, log_from_records, read_log
from kvstats.log import ingest as module
from kvstats.log.chunks import column_of
from kvstats.log.frames import INPUT_SCHEMA, REPLAY_SCHEMA, RUN_SCHEMA, STUDY_SCHEMA
from kvstats.log.ingest import read_file, read_line, read_line_slowly, read_lines
from kvstats.log.lines import Reject
from kvstats.log.write import encode_record

RUN = {"record": "run", "suite": "s", "model": "m", "task": "t", "input_id": "1", "arm": "full"}

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(max_size=8).filter(bool)
TIMES = st.datetimes(
    datetime(1000, 1, 1), datetime(3000, 1, 1), timezones=st.sampled_from([UTC, timezone(timedelta(hours=5))])
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | NUMBERS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
RUNS = st.builds(
    RunRecord,
    suite=TEXTS,
    model=TEXTS,
    task=TEXTS,
    input_id=TEXTS,
    arm=TEXTS,
    budget=st.none() | st.floats(0.001, 1),
    score=st.none() | NUMBERS,
    signals=st.dictionaries(st.sampled_from(["margin", 'a"b', "π", "x:"]), st.none() | NUMBERS),
    certificate_per_head=st.none() | st.lists(st.lists(NUMBERS, max_size=3), max_size=3),
    prediction=st.none() | st.text(),
    references=st.none() | st.lists(st.text(), max_size=3),
    seconds=st.dictionaries(st.text(max_size=3), NUMBERS, max_size=2),
    recorded_at=st.none() | TIMES,
    extra=st.dictionaries(st.text(max_size=3), JSON, max_size=2),
)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(
            RUNS, st.sampled_from(["own", "spaced", "indented", "repeated", "escaped", "cut", "typed"])
        ),
        max_size=5,
    )
)
def test_lines_give_the_records_of_the_exact_way(items):
    lines = []
    for number, (run, way) in enumerate(items, start=1):
        line = encode_record(run)
        fields = json.loads(line)
        changed = {
            "own": lambda line=line: line,
            "spaced": lambda fields=fields: json.dumps(fields).encode(),
            "indented": lambda fields=fields: json.dumps(fields, separators=("\t,", " : ")).encode(),
            "repeated": lambda line=line: line[:-1] + b',"score":1}',
            "escaped": lambda line=line: line[:-1] + rb',"sc\u006fre":1}',
            "cut": lambda line=line: line[: len(line) // 2],
            "typed": lambda fields=fields: json.dumps(fields | {"seed": 1.5, "new": [1]}).encode(),
        }
        lines.append((number, changed[way]() + b"\n"))
    found = read_lines(lines)
    expected = [read_line_slowly(line, number) for number, line in lines]
    for one, other in zip(found, expected, strict=True):
        assert type(one) is type(other)
        assert one == other
    assert [isinstance(record, Reject) for record in found] == [
        way in ("repeated", "escaped", "cut", "typed") for _, way in items
    ]


@pytest.mark.parametrize(
    "line",
    [
        '{"a":1,"score":1,"score":0}',
        '{"score" :1,"score":0}',
        '{"score"\\t:1,"score"\\r:0,"prediction":"\\\\":"}',
        '{"score":1,"sc\\u006fre":0}',
        '{"signals":{"a":1,"\\u0061":2}}',
        '{"extra":{"k":"x",":b":1,":b":2}}',
        '{"extra":{"k":[{"b":1,"b":2}]}}',
        '{"extra":{"k":{"b":{"c":1},"b":{"d":1}}}}',
        '{"suite":"other","score":0}',
    ],
)
def test_a_key_that_comes_twice_is_found_however_it_is_written(line):
    line = line.replace("\\t", "\t").replace("\\r", "\r").replace("\\\\", "\\")
    whole = (json.dumps(RUN)[:-1] + "," + line[1:]).encode()
    assert "comes twice" in read_line(whole, 1).error


def test_equal_keys_in_different_objects_are_no_fault():
    line = json.dumps(RUN | {"extra": {"score": 1, "b": [{"score": 2}]}, "prediction": '"score":'}).encode()
    assert read_line(line, 1) == read_line_slowly(line, 1)
    assert read_line(line, 1).extra == {"score": 1, "b": [{"score": 2}]}


def test_lines_of_this_library_are_not_read_one_by_one(monkeypatch, make_run, study, full_records, tmp_path):
    records = [study, *full_records, *(make_run(str(number), score=0.1 * number) for number in range(250))]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(encode_record(record) + b"\n" for record in records))
    alone = []
    monkeypatch.setattr(module, "read_line", lambda line, number: alone.append(number))
    assert list(read_file(path)) == records
    assert alone == []


def brute_force(records) -> Log:
    """Build the frames field by field, as Polars takes over lists of Python."""

    def frame(kind, schema, signals=()):
        chosen = [record for record in records if isinstance(record, kind)]
        columns = {}
        for name in schema:
            values = [getattr(record, name) for record in chosen]
            if name in ("versions", "settings", "seconds", "memory_bytes", "extra"):
                values = [msgspec.json.encode(v, order="sorted").decode() if v else None for v in values]
            columns[name] = values
        columns |= {name: [record.signals.get(name) for record in chosen] for name in signals}
        return pl.DataFrame(columns, schema={**schema, **dict.fromkeys(signals, pl.Float64())}, strict=True)

    def signals(kind):
        return tuple(sorted({name for r in records if isinstance(r, kind) for name in r.signals}))

    return Log(
        runs=frame(RunRecord, RUN_SCHEMA, signals(RunRecord)),
        inputs=frame(InputRecord, INPUT_SCHEMA, signals(InputRecord)),
        replays=frame(ReplayRecord, REPLAY_SCHEMA),
        studies=frame(StudyRecord, STUDY_SCHEMA),
        run_signals=signals(RunRecord),
        input_signals=signals(InputRecord),
    )


def assert_same_log(log: Log, other: Log) -> None:
    for name in ("runs", "inputs", "replays", "studies"):
        one, another = getattr(log, name), getattr(other, name)
        assert one.schema == another.schema
        assert one.equals(another), name
    assert (log.run_signals, log.input_signals) == (other.run_signals, other.input_signals)


@settings(deadline=None, max_examples=50)
@given(st.lists(RUNS, max_size=12), st.sampled_from([1, 2, 3, 100]), st.sampled_from([1, 2, 5, 1000]))
def test_columns_are_the_same_whatever_the_chunks(runs, waiting, rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kvstats.log.build.WAITING", waiting)
        patch.setattr("kvstats.log.chunks.MAX_ROWS", rows)
        assert_same_log(log_from_records(runs), brute_force(runs))


def test_records_of_all_kinds_in_many_chunks(monkeypatch, study, full_records, make_run):
    monkeypatch.setattr("kvstats.log.chunks.MAX_ROWS", 7)
    chance = random.Random(0)
    runs = [
        make_run(
            str(number % 30),
            seed=number % 4,
            recorded_at=chance.choice([None, datetime(2026, 1, 1, tzinfo=UTC)]),
            signals={"a": chance.random()} if number % 3 else {"b": None},
            references=chance.choice([None, [], ["x"], ["y", "z"]]),
        )
        for number in range(200)
    ]
    records = [study, *full_records, *runs, *full_records]
    chance.shuffle(records)
    assert_same_log(log_from_records(records), brute_force(records))


@st.composite
def lists_of_numbers(draw):
    """Lists of lists, or null, where those that are not empty have one shape, or where each has its own."""
    if draw(st.booleans()):
        rows, columns = draw(st.integers(1, 3)), draw(st.integers(1, 10))
        row = st.lists(NUMBERS, min_size=columns, max_size=columns)
        return draw(
            st.lists(st.none() | st.just([]) | st.lists(row, min_size=rows, max_size=rows), max_size=6)
        )
    return draw(st.lists(st.none() | st.lists(st.lists(NUMBERS, max_size=3), max_size=3)))


@settings(deadline=None)
@given(lists_of_numbers(), st.randoms(use_true_random=False), st.sampled_from([1, 3, 1000]))
def test_lists_become_columns_as_polars_makes_them(values, chance, items):
    dtype = pl.List(pl.List(pl.Float64))
    expected = pl.Series(values, dtype=dtype)
    order = pl.Series(chance.sample(range(len(values)), len(values)), dtype=pl.UInt32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kvstats.log.chunks.MAX_ITEMS", items)
        assert filled_column(dtype, values).series().equals(expected, check_dtypes=True)
        assert filled_column(dtype, values).sorted(order).equals(expected.gather(order), check_dtypes=True)


@given(
    st.sampled_from(
        [
            (pl.Float64(), NUMBERS),
            (pl.Int64(), st.integers(-(2**63), 2**63 - 1)),
            (pl.Datetime("us", "UTC"), TIMES),
            (pl.Boolean(), st.booleans()),
            (pl.String(), st.text()),
            (pl.List(pl.String), st.lists(st.text(), max_size=2)),
            (pl.List(pl.Float64), st.lists(st.none() | NUMBERS, min_size=2, max_size=2)),
        ]
    ).flatmap(lambda pair: st.tuples(st.just(pair[0]), st.lists(st.none() | pair[1], max_size=9))),
    st.randoms(use_true_random=False),
)
@settings(deadline=None)
def test_values_become_columns_as_polars_makes_them(column, chance):
    dtype, values = column
    expected = pl.Series(values, dtype=dtype)
    order = pl.Series(chance.sample(range(len(values)), len(values)), dtype=pl.UInt32)
    assert filled_column(dtype, values).series().equals(expected, check_dtypes=True)
    assert filled_column(dtype, values).sorted(order).equals(expected.gather(order), check_dtypes=True)


def filled_column(dtype, values):
    """Return a column to which values were added two by two."""
    column = column_of(dtype)
    for begin in range(0, len(values), 2):
        column.extend(values[begin : begin + 2])
    assert len(column) == len(values)
    return column


@pytest.mark.parametrize(("field", "value"), [("score", "1"), ("seed", 1.5), ("success", 1), ("arm", 2)])
def test_a_value_of_another_type_is_never_taken_over(make_run, field, value):
    run = msgspec.structs.replace(make_run("1"), **{field: value})
    with pytest.raises((TypeError, struct.error)):
        log_from_records([make_run("2"), run])


def test_fields_that_are_not_needed_are_read_but_not_kept(tmp_path, study, full_records):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(encode_record(record) + b"\n" for record in [study, *full_records]))
    whole = read_log(path)
    part = read_log(path, without=["prediction", "margin", "entropy", "certificate_per_head", "replays"])
    assert part.runs.schema == {n: d for n, d in whole.runs.schema.items() if n != "margin"}
    assert part.runs["prediction"].to_list() == part.runs["certificate_per_head"].to_list() == [None]
    others = [name for name in part.runs.columns if name not in ("prediction", "certificate_per_head")]
    assert part.runs.select(others).equals(whole.runs.select(others))
    assert (part.run_signals, part.input_signals) == (("certificate",), ("unknown",))
    assert (part.inputs.height, part.replays.height, part.studies.height) == (1, 0, 1)
    assert (
        read_log(path, without="signals").run_signals == read_log(path, without="signals").input_signals == ()
    )
    path.write_bytes(path.read_bytes() + b'{"record":"run","prediction":7}\n')
    with pytest.raises(InputError, match=r"a\.jsonl:5: breaks the contract of run records"):
        read_log(path, without=["prediction"])


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("arm", "without='arm' tells rows apart; leave it out"),
        ("predictoin", "is neither a field nor a signal of these logs; did you mean 'prediction'?"),
        ("Margin", "is neither a field nor a signal of these logs; did you mean 'margin'?"),
    ],
)
def test_a_field_that_cannot_be_left_out(tmp_path, study, full_records, name, fault):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(encode_record(record) + b"\n" for record in [study, *full_records]))
    with pytest.raises(InputError) as error:
        read_log(path, without=[name])
    assert fault in str(error.value)


def test_minus_infinity_and_unknown_fields_beside_plain_lines(tmp_path, study, make_run):
    path = tmp_path / "a.jsonl"
    strange = json.dumps(RUN | {"signals": {"logprob": -math.inf}, "temperature": 0.5})
    plain = encode_record(make_run("2", signals={"logprob": -1.0})).decode()
    path.write_text("\n".join([encode_record(study).decode(), strange, plain, "{", plain]))
    log = read_log(path, on_error="skip")
    assert sorted(log.runs["logprob"].to_list()) == [-math.inf, -1.0, -1.0]
    assert log.runs["extra"].drop_nulls().to_list() == ['{"temperature":0.5}']
    assert log.rejects["line"].to_list() == [4]
