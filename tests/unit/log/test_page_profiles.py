"""Profiles of a gating study, with and without ids."""

from __future__ import annotations

import json

import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.log import read_log

ROWS = [
    {"task": "vt", "T": 900 + i, "head_agreement_per_layer": [0.6 + i / 100, 0.5, 0.4, 0.3]} for i in range(4)
]


@pytest.fixture
def write(tmp_path):
    def write_rows(rows):
        path = tmp_path / "drops.jsonl"
        path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n")
        return path

    return write_rows


def test_each_row_is_an_input(write):
    log = read_log(write(["", *ROWS]))
    assert (log.runs.height, log.inputs.height) == (0, 4)
    assert log.inputs["input_id"].to_list() == ["line 2", "line 3", "line 4", "line 5"]
    assert log.inputs["context_tokens"].to_list() == [900, 901, 902, 903]
    assert set(log.inputs.select("suite", "model").rows()) == {("drops", "drops")}
    assert log.inputs["drop"].null_count() == 4
    drops = kv.with_drop(log).inputs["drop_first_last_third"].to_list()
    assert drops == pytest.approx([0.3, 0.31, 0.32, 0.33])
    assert kv.agreement_profile(log).frame["n"].to_list() == [4] * 4


def test_ids_and_other_columns_are_kept(write):
    rows = [{**row, "id": i, "drop": 0.25, "head_entropy": 1.5} for i, row in enumerate(ROWS)]
    log = read_log(write(rows), model="m", suite="s")
    assert log.inputs["input_id"].to_list() == ["0", "1", "2", "3"]
    assert set(log.inputs["drop"]) == {0.25}
    assert set(log.inputs["extra"]) == {'{"head_entropy":1.5}'}


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({"task": None}, "has no task"),
        ({"head_agreement_per_layer": None}, "has no head_agreement_per_layer"),
        ({"head_agreement_per_layer": ["a"]}, r"breaks the form of its rows \(Expected `float`, got `str`"),
        ({"T": -1}, r"breaks the form of its rows \(Expected `int` >= 0"),
        ({"id": 0.5}, "has id=0.5, which is neither text nor a whole number"),
        ({"id": 7}, "repeats task and id of line 1"),
    ],
)
def test_a_faulty_row_is_an_error_that_names_it_or_a_reject(write, row, fault):
    path = write([{**ROWS[0], "id": 7}, {**ROWS[1], **row}, *ROWS[2:]])
    with pytest.raises(InputError, match=rf"drops\.jsonl:2: {fault}"):
        read_log(path)
    log = read_log(path, on_error="skip")
    assert (log.inputs.height, log.rejects["line"].to_list()) == (3, [2])


def test_a_line_that_is_no_json_and_an_empty_file(write):
    # An interrupted write leaves such a line.
    path = write([*ROWS[:2], "\0\0\0", *ROWS[2:]])
    with pytest.raises(InputError, match=r"drops\.jsonl:3: is not JSON"):
        read_log(path)
    log = read_log(path, on_error="skip")
    assert (log.inputs.height, log.rejects.height) == (4, 1)
    with pytest.raises(InputError, match=r"drops\.jsonl:1: the file is empty; remove the file"):
        read_log(write([""]), format="page_profiles")
