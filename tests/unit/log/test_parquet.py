"""Writing whole logs: JSON lines plain and compressed, and Parquet."""

from __future__ import annotations

import gzip
import math

import polars as pl
import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.log import InputRecord, Log, log_from_records, read_log
from kvstats.log.parquet import SIGNALS, VERSION
from kvstats.log.write import encode_record

ENDINGS = [".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet"]


def assert_same_log(log: Log, other: Log) -> None:
    for name in ("runs", "inputs", "replays", "studies"):
        one, another = getattr(log, name), getattr(other, name)
        assert one.schema == another.schema
        assert one.equals(another), name
    assert (log.run_signals, log.input_signals) == (other.run_signals, other.input_signals)


@pytest.fixture
def log(study, full_records, make_run) -> Log:
    runs = [make_run(f"i{number}", signals={"margin": number / 3}, score=0.1 * number) for number in range(5)]
    return log_from_records([*full_records, study, *runs, make_run("none", references=[], prediction="")])


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_written_is_read_as_it_was(log, tmp_path, ending):
    log.write(tmp_path / f"a{ending}")
    assert_same_log(read_log(tmp_path / f"a{ending}"), log)
    assert [file.name for file in tmp_path.iterdir()] == [f"a{ending}"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_log_gives_the_same_bytes(study, full_records, make_run, tmp_path, ending):
    records = [study, *full_records, make_run("a"), make_run("b")]
    log_from_records(records).write(tmp_path / f"a{ending}")
    log_from_records(records[::-1]).write(tmp_path / f"b{ending}")
    assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_log_without_rows_is_not_written_since_it_could_not_be_read(tmp_path, ending):
    with pytest.raises(InputError, match=r"Log\.write: the log has no row; a file without any is an error"):
        Log().write(tmp_path / f"a{ending}")
    assert list(tmp_path.iterdir()) == []


def test_lines_are_the_records_in_canonical_order(study, full_records, make_run, tmp_path):
    records = [study, full_records[0], make_run("a"), full_records[1], full_records[2]]
    log_from_records(records[::-1]).write(tmp_path / "a.jsonl")
    lines = (tmp_path / "a.jsonl").read_bytes().splitlines()
    assert lines[:2] == [encode_record(study), encode_record(full_records[0])]
    assert lines[4] == encode_record(full_records[2])
    log_from_records(records).write(tmp_path / "a.jsonl.gz")
    assert gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes()).splitlines() == lines


@pytest.mark.parametrize("ending", ENDINGS)
def test_signals_that_are_never_known_stay_signals(study, make_run, tmp_path, ending):
    key = {"suite": "needles", "model": "smollm2", "task": "single", "input_id": "i1"}
    entropy = InputRecord(**key, signals={"entropy": None})
    log_from_records([study, entropy, make_run(signals={"margin": None})]).write(tmp_path / f"a{ending}")
    again = read_log(tmp_path / f"a{ending}")
    assert (again.run_signals, again.input_signals) == (("margin",), ("entropy",))


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_arm_that_was_never_run_is_not_written(make_log, study, tmp_path, ending):
    log = make_log({"full": {1.0: [1, 0]}, "evict": {0.5: [0, 0]}}, drop=[0.1, 0.0])
    gated = kv.gate(log, tau=0.05, base="evict", name="page")
    assert gated.virtual_arms == ("page",)
    with pytest.raises(
        InputError, match="the arm 'page' was added by a policy and never run; write the log that the policy"
    ):
        gated.write(tmp_path / f"a{ending}")
    assert not list(tmp_path.iterdir())
    gated.with_runs(log.runs).write(tmp_path / "a.parquet")


@pytest.mark.parametrize("name", ["a.csv", "a", "a.json", "parquet", "a.gz"])
def test_another_ending_is_an_error(log, tmp_path, name):
    with pytest.raises(InputError, match=r"Log\.write: path='.*' has no ending that says how to write; "):
        log.write(tmp_path / name)


def test_lines_need_a_study_and_finite_numbers(study, make_run, tmp_path):
    with pytest.raises(InputError, match=r"has no study record, with which .* begins; write \.parquet"):
        log_from_records([make_run()]).write(tmp_path / "a.jsonl")
    log = log_from_records([study, make_run(signals={"logprob": -math.inf})])
    with pytest.raises(InputError, match=r"logprob is infinite 1 times in RunRecord, which JSON cannot hold"):
        log.write(tmp_path / "a.jsonl.gz")
    log.write(tmp_path / "a.parquet")
    assert_same_log(read_log(tmp_path / "a.parquet"), log)


def test_columns_of_no_field_and_missing_ones_are_errors(log, tmp_path):
    with pytest.raises(InputError, match="the column 'mine' is no field of RunRecord; write the log as read"):
        log.with_runs(log.runs.with_columns(mine=1)).write(tmp_path / "a.parquet")
    with pytest.raises(InputError, match="the column 'success' is missing among RunRecord"):
        log.with_runs(log.runs.drop("success")).write(tmp_path / "a.parquet")


def test_a_failed_write_leaves_the_old_file(log, tmp_path):
    log.write(tmp_path / "a.jsonl")
    before = (tmp_path / "a.jsonl").read_bytes()
    broken = log.with_runs(log.runs.with_columns(kept_fraction=pl.lit(2.0)))
    with pytest.raises(InputError, match=r"Log\.write: .* breaks the contract"):
        broken.write(tmp_path / "a.jsonl")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("a.jsonl", before)]
    with pytest.raises(InputError, match=r"cannot be written \(No such file or directory\); check the path"):
        log.write(tmp_path / "none" / "a.jsonl")


def changed(path, **columns):
    """Write a Parquet file anew with other columns and the same metadata."""
    metadata = pl.read_parquet_metadata(path)
    pl.read_parquet(path).with_columns(**columns).write_parquet(
        path, metadata={name: metadata[name] for name in (VERSION, *SIGNALS.values())}
    )


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ({"record": pl.lit("runs")}, "has record='runs'"),
        ({"kept_fraction": pl.lit(1.5)}, "has kept_fraction=1.5, which is no field of study records"),
        (
            {"task": pl.when(pl.col("record") == "run").then(pl.lit("")).otherwise("task")},
            "breaks the contract",
        ),
        (
            {"score": pl.when(pl.col("record") == "run").then(math.nan)},
            "has score=nan, which is not finite",
        ),
        (
            {"seconds": pl.when(pl.col("record") == "run").then(pl.lit("{"))},
            "breaks the contract of run records",
        ),
        (
            {"head_agreement_per_layer": pl.when(pl.col("record") == "input").then([math.inf])},
            "has head_agreement_per_layer[0]=inf, which is not finite",
        ),
    ],
)
def test_a_faulty_row_is_an_error_that_names_it_or_a_reject(log, tmp_path, columns, fault):
    path = tmp_path / "a.parquet"
    log.write(path)
    changed(path, **columns)
    with pytest.raises(InputError) as error:
        read_log(path)
    assert fault in str(error.value)
    assert str(error.value).startswith(f"{path}:")
    again = read_log(path, on_error="skip")
    total = sum(frame.height for frame in (log.runs, log.inputs, log.replays, log.studies))
    kept = sum(frame.height for frame in (again.runs, again.inputs, again.replays, again.studies))
    assert again.rejects.height > 0
    assert kept + again.rejects.height == total


def test_a_table_of_other_columns_or_of_another_version_is_an_error(log, tmp_path):
    path = tmp_path / "a.parquet"
    log.write(path)
    changed(path, n_kept=pl.col("n_kept").cast(pl.Float64))
    with pytest.raises(InputError, match="the column 'n_kept' is Float64, not Int64; restore the file"):
        read_log(path)
    log.write(path)
    changed(path, mine=pl.lit(1))
    with pytest.raises(InputError, match="the column 'mine' is Int32, not a field of the contract"):
        read_log(path)
    pl.read_parquet(path).write_parquet(path, metadata={VERSION: "2"})
    with pytest.raises(InputError, match="has schema_version=2, this library reads 1; install the version"):
        read_log(path)
    pl.read_parquet(path).write_parquet(path, metadata={VERSION: "1"})
    with pytest.raises(InputError, match="does not say which signals it has; restore the file"):
        read_log(path)
