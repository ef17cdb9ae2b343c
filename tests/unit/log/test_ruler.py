"""Answers of RULER: files by task, names in the path, ids, scores held against the summary."""

from __future__ import annotations

import gzip
import hashlib
import json

import pytest

from kvstats.errors import InputError
from kvstats.log import read_log


def row(index, pred, outputs, **others):
    return {
        "index": index,
        "pred": pred,
        "input": f"A long text {index}. What is the number?",
        "outputs": outputs,
        "others": {},
        "truncation": -1,
        "length": 4000,
    } | others


ROWS = [
    row(0, "12 and 34", ["12", "34"]),
    row(1, "12\x00and", ["12", "34"]),
    row(7, "", ["56"]),
]


@pytest.fixture
def write(tmp_path):
    """Write the answers of a task where RULER writes them, and return the file."""

    def write_rows(rows=ROWS, name="niah_multivalue.jsonl", folder="tiny-llama/synthetic/4096/pred"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        path = tmp_path / folder / name
        lines = [one if isinstance(one, str) else json.dumps(one) for one in rows]
        content = "".join(line + "\n" for line in lines).encode()
        path.write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)
        return path

    return write_rows


def summarise(path, tasks, scores, name="summary.csv"):
    lines = [
        ["0", *map(str, range(1, len(tasks) + 1))],
        ["Tasks", *tasks],
        ["Score", *scores],
        ["Nulls", "0/3"],
    ]
    (path.parent / name).write_text("".join(",".join(map(str, line)) + "\n" for line in lines))


@pytest.mark.parametrize(
    "name", ["niah_multivalue.jsonl", "niah_multivalue.jsonl.gz", "niah_multivalue-0.jsonl"]
)
def test_each_row_becomes_a_run(write, name):
    log = read_log(write(name=name), arm="full")
    assert (log.runs.height, log.inputs.height, log.rejects.height) == (3, 0, 0)
    columns = ["suite", "model", "task", "input_id", "arm", "budget", "score", "success", "prediction"]
    shared = ("ruler_4096", "tiny-llama", "niah_multivalue")
    assert log.runs.select(columns).rows() == [
        (*shared, "0", "full", 1.0, 1.0, True, "12 and 34"),
        (*shared, "1", "full", 1.0, 0.5, False, "12\x00and"),
        (*shared, "7", "full", 1.0, 0.0, False, ""),
    ]
    assert log.runs["references"].to_list() == [["12", "34"], ["12", "34"], ["56"]]
    assert json.loads(log.runs["extra"][0]) == {
        "metric": "string_match_all",
        "threshold": 1.0,
        "index": 0,
        "input_sha256": hashlib.sha256(ROWS[0]["input"].encode()).hexdigest(),
        "others": {},
        "truncation": -1,
        "length": 4000,
    }


def test_control_characters_are_line_breaks_and_questions_need_one_reference(write):
    rows = [row(0, "1\x002", ["12"]), row(1, "1\x002", ["1\n2", "9"]), row(2, "12", ["12", "9"])]
    assert read_log(write(rows), arm="full").runs["score"].to_list() == [0.0, 0.5, 0.5]
    assert read_log(write(rows, "qa_1.jsonl"), arm="full").runs["score"].to_list() == [0.0, 1.0, 1.0]


def test_labels_go_before_the_path(write):
    given = {"model": "m", "suite": "s", "task": "t", "arm": "snapkv", "condition": "aware"}
    log = read_log(write(), **given, budget=0.25)
    assert log.runs.select(*given, "budget").unique().rows() == [(*given.values(), 0.25)]


def test_elsewhere_the_model_must_be_given(write):
    path = write(folder="answers")
    with pytest.raises(InputError, match=r"^read_log: model=None is not told by the path .*; pass model$"):
        read_log(path, arm="full")
    assert set(read_log(path, arm="full", model="m").runs["suite"]) == {"ruler"}


def test_the_arm_must_be_given(write):
    with pytest.raises(InputError, match=r"^read_log: arm=None is told by nothing in .*\.jsonl"):
        read_log(write())


def test_ids_under_others_go_first_and_stay_text(write):
    rows = [row(0, "12", ["12"], others={"id": "0012"}), row(0, "12", ["12"], others={"id": 2**61 + 1})]
    log = read_log(write(rows), arm="full")
    assert log.runs["input_id"].to_list() == ["0012", "2305843009213693953"]


def test_inputs_are_paired_by_prompt_where_asked(write):
    full = write([row(5, "12", ["12"], input="A"), row(6, "34", ["34"], input="B")])
    other = write([row(0, "34", ["34"], input="B")], folder="tiny-llama/synthetic/4096/snapkv")
    log = read_log(
        [full, other], arm={"pred": "full", "snapkv": "snapkv"}, model="m", suite="s", pair_by="content"
    )
    twins = [set(log.runs.filter(arm=arm)["input_id"]) for arm in ("full", "snapkv")]
    assert len(twins[0]) == 2
    assert twins[1] < twins[0]


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (ROWS[0], "repeats the id '0' of line 1"),
        (row(None, "12", ["12"]), "has no id to pair inputs by"),
        (row(1.5, "12", ["12"]), "has id=1.5, which is neither text nor a whole number"),
        (row(9, 12, ["12"]), "has pred=12, which is not text"),
        (row(9, "12", []), "has no reference"),
        (row(9, "12", [""]), "cannot be scored"),
        (row(9, "12", [None]), "has outputs that are not texts"),
        ({"index": 9, "outputs": ["12"]}, "has no pred"),
        ({"index": 9, "pred": "12"}, "has no outputs"),
        ('{"index": 9, "pred": NaN}', "is not JSON"),
    ],
)
def test_rows_that_cannot_be_used_are_named(write, bad, fault):
    path = write([ROWS[0], bad, ROWS[1]])
    with pytest.raises(InputError, match=rf"niah_multivalue\.jsonl:2: {fault}"):
        read_log(path, arm="full")
    log = read_log(path, arm="full", on_error="skip", on_duplicate="first")
    assert (log.runs.height, log.rejects["line"].to_list()) == (2, [2])


def test_an_answer_that_failed_has_no_score(write):
    log = read_log(write([row(0, None, ["12"])]), arm="full")
    assert log.runs.select("score", "success", "error").rows() == [(None, None, "no prediction")]


@pytest.mark.parametrize("name", ["summary.csv", "summary-niah_multivalue.csv"])
def test_scores_are_held_against_the_summary(write, name):
    path = write()
    summarise(path, ["vt", "niah_multivalue"], [100.0, 50.0], name)
    log = read_log(path.parent, arm="full")
    assert "printed_score" not in json.loads(log.runs["extra"][0])
    summarise(path, ["vt", "niah_multivalue"], [100.0, 50.01], name)
    fault = f"^{path}: niah_multivalue printed 50.01, recomputed 50.00 from 3 rows, unlike {name}$"
    with pytest.warns(UserWarning, match=fault):
        log = read_log(path.parent, arm="full")
    extra = json.loads(log.runs["extra"][0])
    assert (extra["printed_score"], extra["recomputed_score"]) == (50.01, 50.0)


def test_parts_and_tasks_without_a_printed_score_are_held_against_nothing(write):
    path = write(ROWS[:1], "niah_multivalue-0.jsonl")
    summarise(path, ["niah_multivalue"], [50.0])
    assert read_log(path, arm="full").runs.height == 1
    assert read_log(write(name="vt.jsonl"), arm="full").runs.height == 3


def test_a_summary_without_a_number_is_told(write):
    path = write()
    summarise(path, ["niah_multivalue"], ["N/A"])
    with pytest.warns(
        UserWarning, match=r"summary\.csv: has the score 'N/A' for niah_multivalue, which is no"
    ):
        assert read_log(path, arm="full").runs.height == 3
