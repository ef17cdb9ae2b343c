"""Tables with declared columns: key, arms, units, types, missing values, and rows that contradict others."""

from __future__ import annotations

import gzip
import json
import re

import polars as pl
import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.log.cells import BUDGET_UNITS, CellFault, budget_of, moment, real, text, texts, truth, whole

CONSTANTS = {"suite": "qa", "model": "llama", "task": "qa"}
NARROW = {"input_id": "id", "arm": "arm", "score": "score", "constants": CONSTANTS}
WIDE = {
    "input_id": "id",
    "constants": CONSTANTS,
    "arms": {"full": {"score": "full_score"}, "kivi4": {"score": "quant_score"}},
}


@pytest.fixture
def write(tmp_path):
    """Write text, compressed if its name says so, and return the path."""

    def write_text(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
        return path

    return write_text


def fails(message):
    return pytest.raises(InputError, match=re.escape(message))


def test_a_narrow_table(write):
    path = write("id,arm,score,note\n0012,none,1,\n0012,snap,0.25,late\n13,none,0,\n")
    log = kv.read_log(path, columns=kv.Columns(**NARROW, full_arm="none"))
    rows = log.runs.select("input_id", "arm", "score", "budget", "kept_fraction", "extra").rows()
    assert rows == [
        ("0012", "full", 1.0, 1.0, 1.0, None),
        ("0012", "snap", 0.25, None, None, '{"note":"late"}'),
        ("13", "full", 0.0, 1.0, 1.0, None),
    ]
    assert log.files.select("format", "records", "rejects").rows() == [("columns", 3, 0)]


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz", "table.tsv", "table.jsonl", "table.parquet"])
def test_all_kinds_of_files_give_the_same_log(write, name):
    rows = [
        {"id": "1", "arm": "full", "score": 1.0, "ok": True, "left": 480, "said": 'a, "b"\nc'},
        {"id": "2", "arm": "full", "score": 0.5, "ok": False, "left": 479, "said": "d"},
    ]
    frame = pl.DataFrame(rows)
    if name.endswith("parquet"):
        path = write("", name)
        frame.write_parquet(path)
    elif name.endswith("jsonl"):
        path = write("".join(json.dumps(row) + "\n" for row in rows), name)
    else:
        path = write(frame.write_csv(separator="\t" if "tsv" in name else ","), name)
    columns = kv.Columns(**NARROW, success="ok", n_kept="left", prediction="said")
    found = kv.read_log(path, columns=columns).runs.select(
        "input_id", "score", "success", "n_kept", "prediction"
    )
    assert found.rows() == [("1", 1.0, True, 480, 'a, "b"\nc'), ("2", 0.5, False, 479, "d")]


def test_a_wide_table_has_a_run_for_each_arm(write):
    log = kv.read_log(write("id,full_score,quant_score,bits\n1,1,0,4\n2,1,1,4\n"), columns=kv.Columns(**WIDE))
    assert log.runs.select("input_id", "arm", "budget", "score", "extra").rows() == [
        ("1", "full", 1.0, 1.0, None),
        ("1", "kivi4", None, 0.0, '{"bits":"4"}'),
        ("2", "full", 1.0, 1.0, None),
        ("2", "kivi4", None, 1.0, '{"bits":"4"}'),
    ]
    assert kv.paired(log, arm="kivi4")["harm"].to_list() == [True, False]


BESIDE = kv.Columns(
    input_id="id",
    arm="arm",
    success="ok",
    budget="removed",
    budget_unit="fraction_removed",
    seed="seed",
    arms={"full": {"success": "full_ok"}},
    constants=CONSTANTS,
)


def test_the_full_cache_beside_other_arms_is_one_run_of_its_input(write):
    path = write(
        "id,arm,ok,removed,seed,full_ok\n1,snap,0,0.5,0,1\n1,snap,1,0.9,0,1\n1,rand,0,0.5,0,1\n1,rand,1,0.5,1,1\n"
    )
    log = kv.read_log(path, columns=BESIDE)
    assert log.runs.select("arm", "budget", "seed", "score", "success").rows() == [
        ("full", 1.0, 0, 1.0, True),
        ("rand", 0.5, 0, 0.0, False),
        ("rand", 0.5, 1, 1.0, True),
        ("snap", 0.1, 0, 1.0, True),
        ("snap", 0.5, 0, 0.0, False),
    ]
    assert kv.paired(log, arm="rand").height == 2


def test_another_full_cache_of_the_same_input_is_an_error(write):
    path = write("id,arm,ok,removed,seed,full_ok\n1,snap,0,0.5,0,1\n1,snap,0,0.9,0,0\n")
    with fails(f"{path}:3: tells another full-cache run of '1' than line 2"):
        kv.read_log(path, columns=BESIDE)


def test_a_row_is_read_whole_or_not_at_all(write):
    path = write("id,arm,ok,removed,seed,full_ok\n1,snap,maybe,0.5,0,1\n1,snap,0,0.9,0,1\n")
    log = kv.read_log(path, columns=BESIDE, on_error="skip")
    # The full cache that the first row told is that of the second.
    assert log.runs["arm"].to_list() == ["full", "snap"]
    assert log.rejects.select("line", "error").rows() == [
        (
            2,
            "has ok='maybe', which is neither true or 1 nor false or 0 (declare it in na if it stands for a "
            "missing one)",
        )
    ]


def test_a_repeated_run_is_an_error_or_listed(write):
    path = write("id,arm,score\n1,full,1\n2,full,1\n1,full,0\n")
    columns = kv.Columns(**NARROW)
    with fails(f"{path}:4: repeats the run of line 2: input '1', arm 'full'; remove one of them"):
        kv.read_log(path, columns=columns)
    log = kv.read_log(path, columns=columns, on_duplicate="first")
    assert (log.runs["score"].to_list(), log.rejects["line"].to_list()) == ([1.0, 1.0], [4])


def test_labels_tell_what_the_table_lacks(write):
    path = write("id,score\n1,1\n", "cell.csv")
    columns = kv.Columns(input_id="id", score="score")
    log = kv.read_log(path, columns=columns, task="qa", arm="snap", budget=0.5, condition="aware")
    key = log.runs.select("suite", "model", "task", "arm", "budget", "condition").row(0)
    assert key == ("cell", "cell", "qa", "snap", 0.5, "aware")
    with fails("read_log: task=None is told by nothing in"):
        kv.read_log(path, columns=columns, arm="snap")
    with fails("read_log: model='m' is not needed"):
        kv.read_log(
            path,
            columns=kv.Columns(input_id="id", score="score", constants={**CONSTANTS, "arm": "a"}),
            model="m",
        )
    with fails("read_log: format='kvpress' is given beside columns"):
        kv.read_log(path, columns=columns, format="kvpress")


def test_inputs_with_d_can_be_gated(write):
    path = write(
        "id,arm,score,kept,drop,n\n1,full,1,1,0.1,500\n1,snap,0,0.5,0.1,500\n2,full,1,1,0.01,500\n2,snap,0,0.5,0.01,500\n"
    )
    columns = kv.Columns(**NARROW, budget="kept", budget_unit="fraction_kept", drop="drop", n_prompt="n")
    log = kv.read_log(path, columns=columns)
    assert log.inputs.select("input_id", "drop", "context_tokens").rows() == [
        ("1", 0.1, 500),
        ("2", 0.01, 500),
    ]
    gated = kv.gate(log, tau=0.05, base="snap", name="page").runs.filter(arm="page")
    assert gated.sort("input_id")["score"].to_list() == [0.0, 1.0]
    other = write("id,arm,score,kept,drop,n\n1,full,1,1,0.1,500\n1,snap,0,0.5,0.2,500\n")
    with fails(f"{other}:3: tells another input of '1' than line 2"):
        kv.read_log(other, columns=columns)


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({"id": "12.0"}, "has id='12.0', which looks like a whole number that some program took for a float"),
        ({"id": ""}, "has no input_id (column 'id')"),
        ({"arm": ""}, "has no arm (column 'arm')"),
        ({"score": "N/A"}, "has score='N/A', which is no number (declare it in na"),
        ({"score": "nan"}, "has score='nan', which is no number"),
        ({"score": "1e999"}, "has score='1e999', which is no finite number"),
        ({"kept": "0.5"}, "has kept='0.5', which is no whole number"),
        ({"kept": "-1"}, "breaks the contract of its records"),
        ({"kept": "479.0,9"}, "has 5 fields for 4 columns"),
        ({"ratio": "25"}, "has ratio='25' in unit fraction_kept, which is no fraction from 0 to 1"),
        ({"ratio": "0"}, "has ratio='0' in unit fraction_kept, so that nothing is kept"),
        ({"arm": "full", "ratio": "0.5"}, "has a budget of 0.5 for the full cache, which keeps all"),
    ],
)
def test_a_cell_of_another_type_is_an_error_with_its_line(write, row, fault):
    good = {
        "id": "1",
        "arm": "full",
        "score": "1",
        **{name: "1" for name in ("kept", "ratio") if name in row},
    }
    bad = {**good, "id": "2", **row}
    path = write("".join(",".join(cells) + "\n" for cells in (good, good.values(), bad.values())))
    given = {"n_kept": "kept" if "kept" in row else None}
    if "ratio" in row:
        given |= {"budget": "ratio", "budget_unit": "fraction_kept"}
    columns = kv.Columns(**NARROW, **given)
    with fails(f"{path}:3: {fault}"):
        kv.read_log(path, columns=columns)
    log = kv.read_log(path, columns=columns, on_error="skip")
    assert (log.runs.height, log.rejects["line"].to_list()) == (1, [3])


def test_missing_values_are_null_where_declared(write):
    path = write("id,arm,score,kept,said\n1,full,N/A,,\n2,full,-,7,N/A\n")
    columns = kv.Columns(**NARROW, n_kept="kept", prediction="said", na=("N/A", "-"))
    log = kv.read_log(path, columns=columns)
    # What a model answers is no missing value, whatever it says.
    assert log.runs.select("score", "n_kept", "prediction").rows() == [(None, None, ""), (None, 7, "N/A")]


def test_ids_keep_every_digit_and_numbers_their_value(write):
    big = 1344800117571260417
    rows = [{"id": big, "arm": "full", "score": 1}, {"id": big + 1, "arm": "full", "score": 0.5}]
    log = kv.read_log(
        write("".join(json.dumps(row) + "\n" for row in rows), "t.jsonl"), columns=kv.Columns(**NARROW)
    )
    assert log.runs.select("input_id", "score").rows() == [(str(big), 1.0), (str(big + 1), 0.5)]
    path = write('{"id":1.5,"arm":"full","score":1}\n', "t.jsonl")
    with fails(f"{path}:1: has id=1.5, which is a float and neither text nor a whole number"):
        kv.read_log(path, columns=kv.Columns(**NARROW))


@pytest.mark.parametrize(
    ("content", "name", "fault"),
    [
        (
            "id,arm,sore\n1,full,1\n",
            "t.csv",
            "has no column 'score', declared as score; did you mean 'sore'?",
        ),
        ("id,arm,score,id\n1,full,1,1\n", "t.csv", "has two columns 'id'"),
        ("id,arm,score\n", "t.csv", "1: the file has no row"),
        ("", "t.jsonl", "1: the file has no row"),
        ("id,arm,score\n1,full,1\n2,full,0.7", "t.csv", "3: is cut: the file ends in it"),
        ('id,arm,score\n"1,full,1\n', "t.csv", "2: is no row of CSV"),
        ('{"id":1,"arm":"full","score":NaN}\n', "t.jsonl", "1: is not JSON (NaN is not JSON)"),
        ('{"id":1,"arm":"full"}\n', "t.jsonl", "has no column 'score', declared as score; known: arm, id"),
        ("x", "t.parquet", "is not Parquet"),
        ("x", "t.txt", "is no table by its extension"),
    ],
)
def test_a_file_that_is_no_such_table_is_an_error(write, content, name, fault):
    with fails(fault):
        kv.read_log(write(content, name), columns=kv.Columns(**NARROW))


def test_success_from_a_threshold_and_score_from_success(write):
    columns = {"input_id": "id", "arm": "arm", "constants": CONSTANTS}
    path = write("id,arm,score\n1,full,0.99999994\n2,full,0.5\n")
    assert kv.read_log(path, columns=kv.Columns(**columns, score="score", success_at=1)).runs[
        "success"
    ].to_list() == [
        True,
        False,
    ]
    path = write("id,arm,ok\n1,full,True\n2,full,0\n")
    assert kv.read_log(path, columns=kv.Columns(**columns, success="ok")).runs["score"].to_list() == [
        1.0,
        0.0,
    ]


def test_signals_references_and_times(write):
    path = write("id,arm,score,margin,gold,at\n1,full,1,0.5,seven,2026-11-01T10:00:00Z\n2,full,1,,8,\n")
    columns = kv.Columns(**NARROW, signals=("margin",), references="gold", recorded_at="at")
    log = kv.read_log(path, columns=columns)
    assert log.run_signals == ("margin",)
    assert log.runs.select("margin", "references").rows() == [(0.5, ["seven"]), (None, ["8"])]
    assert log.runs["recorded_at"].dt.year().to_list() == [2026, None]


@pytest.mark.parametrize(
    ("unit", "value", "found"),
    [
        ("fraction_kept", 0.25, {"budget": 0.25}),
        ("fraction_kept", 0.99999994, {"budget": 1.0}),
        ("fraction_removed", "0.9", {"budget": 0.1}),
        ("fraction_removed", 0, {"budget": 1.0}),
        ("percent_kept", "12.5", {"budget": 0.125}),
        ("percent_removed", 90, {"budget": 0.1}),
        ("tokens", 512.0, {"budget_tokens": 512}),
    ],
)
def test_budgets_are_converted_by_their_unit(unit, value, found):
    assert unit in BUDGET_UNITS
    assert budget_of(value, unit) == found


@pytest.mark.parametrize(
    ("unit", "value", "fault"),
    [
        ("fraction_kept", 1.5, "which is no fraction from 0 to 1"),
        ("fraction_removed", 1.0, "so that nothing is kept"),
        ("percent_kept", 0.5, "which is under one percent, and may be a fraction"),
        ("percent_kept", 101, "which is no percentage from 0 to 100"),
        ("tokens", 0.5, "which is no whole number"),
    ],
)
def test_budgets_that_cannot_be_told_are_faults(unit, value, fault):
    with pytest.raises(CellFault, match=fault):
        budget_of(value, unit)


@pytest.mark.parametrize(
    ("conversion", "value"),
    [
        *((text, value) for value in (True, 1.0, None, ["a"])),
        *((texts, value) for value in ([1.5], {"a": 1}, None)),
        *((real, value) for value in ("", "1,5", "0x1", "١", float("inf"), float("nan"), 10**400, [1])),
        *((whole, value) for value in (1.9, True, "1.9", "1e3", 2.0**60, None)),
        *((moment, value) for value in ("2026-11-01", "9999-12-31T23:59:59-05:00", 0, None)),
        *((truth, value) for value in (2, "yes", 0.5, None, [])),
    ],
)
def test_values_of_other_types_are_faults(conversion, value):
    with pytest.raises(CellFault):
        conversion(value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input_id": ""}, "Columns: input_id='' is no name"),
        ({"score": 3}, "Columns: score=3 is no name"),
        ({"signals": "margin"}, "Columns: signals='margin' is no sequence of texts"),
        ({"budget": "b"}, "Columns: budget='b' has no unit; pass budget_unit, one of fraction_kept"),
        ({"budget_unit": "tokens"}, "Columns: budget_unit='tokens' is the unit of no column"),
        ({"budget": "b", "budget_unit": "percent"}, "is unknown; did you mean 'percent_"),
        ({"constants": {"modle": "m"}}, "has 'modle'; did you mean 'model'?"),
        ({"constants": {"arm": "a"}}, "has 'arm', which the column 'arm' tells"),
        ({"constants": {"model": 1.5}}, "has model=1.5, which is a float"),
        ({"constants": {"task": ""}}, "has task='', which is empty"),
        ({"constants": {"budget": 25}}, "has budget=25, which is no fraction from 0 to 1"),
        ({"arms": {"": {"score": "s"}}}, "Columns: arms='' is no name"),
        ({"arms": {"a": {}}}, "has no column of arm 'a'; pass its score"),
        ({"arms": {"a": {"scor": "s"}}}, "has 'scor' of arm 'a'; did you mean 'score'?"),
        ({"arms": {"a": {"score": ""}}}, "Columns: score='' is no name"),
        (
            {"arms": {"full": {"score": "s"}}, "full_arm": "fp16"},
            "names 'full' beside 'fp16' as the full cache",
        ),
        ({"arms": {"a": {"score": "s"}}, "arm": None}, "Columns: score='score' is a column of one arm"),
    ],
)
def test_declarations_that_cannot_be_meant_are_refused(change, message):
    with fails(message):
        kv.Columns(**{**NARROW, **change})


def test_a_table_without_declared_columns_says_how_to_declare_them(write):
    path = write("id,score\n1,1\n")
    with fails(f"{path}: is in no known format (kvstats, "):
        kv.read_log(path)
    with fails(", columns=kv.Columns(...) to say what its columns mean, or a pattern that"):
        kv.read_log(path)
    with fails("read_log: columns={'input_id': 'id'} is no Columns; pass kv.Columns(...)"):
        kv.read_log(path, columns={"input_id": "id"})


def test_a_row_whose_own_arm_is_one_of_the_others_is_an_error(write):
    path = write("id,arm,ok,removed,seed,full_ok\n1,full,1,0,0,1\n")
    with fails(f"{path}:2: has the arm 'full' twice"):
        kv.read_log(path, columns=BESIDE)
