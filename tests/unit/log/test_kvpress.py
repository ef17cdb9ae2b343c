"""Results folders of kvpress: rows, names, budgets, scores held against the printed ones, missing parts."""

from __future__ import annotations

import csv
import json
import re
import warnings

import msgspec
import pytest

from kvstats.errors import InputError
from kvstats.log import read_log
from kvstats.log.adapters import Labels, reader_of
from kvstats.log.adapters.kvpress import KVPRESS
from kvstats.log.adapters.kvpress_folder import kvpress_folder

COLUMNS = (
    "compression_ratio",
    "task",
    "answer",
    "predicted_answer",
    "question",
    "answer_prefix",
    "max_new_tokens",
)

ROWS = [
    ("cwe", "['mill' 'river']", "mill, then a wall", "Most common words?"),
    ("cwe", "['rope'\n 'lamp']", "a lamp and\na rope", "Most common words?"),
    ("qa_1", "[\"the mill's\" 'mill']", "At the old MILL", "Where was it?"),
    ("qa_1", "['1066']", "", "When was it?"),
    ("vt", "['AB' 'CD']", "A\nB, C\nD", "Which variables are 7?"),
]
SCORES = {"cwe": 75.0, "qa_1": 50.0, "vt": 100.0}

CONFIG = {
    "dataset": "ruler",
    "data_dir": 4096,
    "model": "tiny/Llama",
    "press_name": "knorm",
    "compression_ratio": 0.9,
    "fraction": 1.0,
    "max_new_tokens": None,
    "query_aware": False,
    "press_init_command": "KnormPress(compression_ratio=0.9)",
    "seed": 42,
}
NAME = "ruler__4096__tiny--Llama__knorm__0.90"


def printed(scores):
    return {task: {"string_match": score} for task, score in scores.items()}


@pytest.fixture
def folder(tmp_path):
    """Write a results folder, of which parts may be left out, and return its path."""

    def write(name=NAME, rows=ROWS, ratio="0.9", config=CONFIG, scores=SCORES, columns=COLUMNS, **changed):
        path = tmp_path / name
        path.mkdir(parents=True)
        if rows is not None:
            with (path / "predictions.csv").open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(columns)
                for task, answer, prediction, question in rows:
                    fields = dict.fromkeys(columns, "32") | {
                        "compression_ratio": ratio,
                        "task": task,
                        "answer": answer,
                        "predicted_answer": prediction,
                        "question": question,
                        "answer_prefix": "Answer:",
                    }
                    writer.writerow(fields[column] for column in columns)
        if config is not None:
            lines = [f"{key}: {json.dumps(value)}\n" for key, value in {**config, **changed}.items()]
            (path / "config.yaml").write_text("".join(lines))
        if scores is not None:
            (path / "metrics.json").write_text(json.dumps(printed(scores), indent=4))
        return path

    return write


def test_each_row_becomes_a_run(folder):
    path = folder()
    log = read_log(path)
    assert log.runs.equals(read_log(path / "predictions.csv").runs)
    assert (log.runs.height, log.inputs.height, log.rejects.height) == (5, 0, 0)
    for name, value in (
        ("suite", "ruler_4096"),
        ("model", "tiny/Llama"),
        ("arm", "knorm"),
        ("condition", "stream"),
        ("budget", 0.1),
        ("seed", 0),
        ("error", None),
    ):
        assert set(log.runs[name]) == {value}, name
    found = {(row["task"], row["prediction"]): row for row in log.runs.iter_rows(named=True)}
    expected = {
        ("cwe", "mill, then a wall"): (["mill", "river"], 0.5),
        ("cwe", "a lamp and\na rope"): (["rope", "lamp"], 1.0),
        ("qa_1", "At the old MILL"): (["the mill's", "mill"], 1.0),
        ("qa_1", ""): (["1066"], 0.0),
        # Control characters are taken out, so that AB and CD are found.
        ("vt", "A\nB, C\nD"): (["AB", "CD"], 1.0),
    }
    assert {key: (row["references"], row["score"]) for key, row in found.items()} == expected
    assert all(row["success"] == (row["score"] == 1.0) for row in found.values())
    assert json.loads(found["qa_1", ""]["extra"]) == {
        "folder": NAME,
        "config": {
            "press_init_command": CONFIG["press_init_command"],
            "compression_ratio": 0.9,
            "seed": 42,
            "fraction": 1.0,
        },
        "metric": "string_match_part",
        "threshold": 1.0,
        "question": "When was it?",
        "answer_prefix": "Answer:",
        "max_new_tokens": "32",
    }


def test_inputs_are_paired_by_content_whatever_order_rows_and_columns_have(folder):
    full = folder(
        "ruler__4096__tiny--Llama__no_press__0.00",
        rows=ROWS[::-1],
        ratio="0.0",
        columns=COLUMNS[::-1],
        press_name="no_press",
        compression_ratio=0.0,
    )
    log = read_log([folder(), full])
    assert set(log.runs.filter(arm="full")["budget"]) == {1.0}
    keys = [set(log.runs.filter(arm=arm).select("task", "input_id").rows()) for arm in ("full", "knorm")]
    assert keys[0] == keys[1]
    assert len(keys[0]) == 5


@pytest.mark.parametrize(
    ("ratio", "budget"), [("0.0", 1.0), ("0.25", 0.75), ("0.9", 0.1), ("0.875", 0.125), ("1e-1", 0.9)]
)
def test_the_fraction_removed_becomes_the_fraction_kept(folder, ratio, budget):
    assert set(read_log(folder(ratio=ratio)).runs["budget"]) == {budget}


@pytest.mark.parametrize(
    ("ratio", "fault"),
    [
        ("1.0", "has compression_ratio='1.0', so that nothing is kept"),
        ("50", "has compression_ratio='50', which is no fraction from 0 to 1"),
        ("-0.1", "has compression_ratio='-0.1', which is no fraction from 0 to 1"),
        ("", "has compression_ratio='', which is no number"),
        ("nan", "has compression_ratio='nan', which is no number"),
    ],
)
def test_what_is_no_fraction_removed_is_an_error(folder, ratio, fault):
    with pytest.raises(InputError, match=rf"predictions\.csv:2: {re.escape(fault)};"):
        read_log(folder(ratio=ratio))


def test_budgets_of_rows_without_a_ratio_are_given(folder):
    path = folder(columns=COLUMNS[1:])
    with pytest.raises(InputError, match=r":2: has no compression_ratio; pass budget, the fraction kept"):
        read_log(path)
    assert set(read_log(path, budget=0.25).runs["budget"]) == {0.25}
    with pytest.raises(InputError, match=r"has compression_ratio='0\.9', which keeps 0\.1, not budget=0\.25"):
        read_log(folder("other"), budget=0.25)


def test_what_a_press_came_to_is_the_budget_and_its_setting_is_kept(folder):
    log = read_log(folder(ratio="0.62"))
    assert set(log.runs["budget"]) == {0.38}
    assert json.loads(log.runs["extra"][0])["config"]["compression_ratio"] == 0.9


def test_a_full_cache_of_which_something_is_removed_is_an_error(folder):
    fault = r":2: keeps 0\.1 of the cache, and the full cache keeps all; repair the line"
    with pytest.raises(InputError, match=fault):
        read_log(folder(), arm="full")
    path = folder("none", press_name="no_press")
    with pytest.raises(InputError, match=fault):
        read_log(path)
    assert read_log(path, on_error="skip").rejects.height == 5
    assert set(read_log(folder("whole", press_name="no_press", ratio="0.0")).runs["budget"]) == {1.0}


def test_labels_go_before_configuration_and_configuration_before_the_name(folder):
    path = folder("ruler__8192__big--Llama__snapkv__0.50__query_aware")
    assert read_log(path).runs.select("suite", "model", "arm", "condition").unique().rows() == [
        ("ruler_4096", "tiny/Llama", "knorm", "stream")
    ]
    log = read_log(path, suite="s", model="m", arm="a", condition="c")
    assert log.runs.select("suite", "model", "arm", "condition").unique().rows() == [("s", "m", "a", "c")]


@pytest.mark.parametrize(
    ("changed", "suite", "condition"),
    [
        ({"query_aware": True}, "ruler_4096", "aware"),
        ({"data_dir": None}, "ruler", "stream"),
        ({"max_context_length": 2048}, "ruler_4096_max_context2048", "stream"),
        ({"needle_depth": 50}, "ruler_4096_needle_depth50", "stream"),
    ],
)
def test_suites_and_conditions(folder, changed, suite, condition):
    found = read_log(folder(**changed)).runs.select("suite", "condition").unique().rows()
    assert found == [(suite, condition)]


def test_older_configurations_name_the_condition_otherwise(folder):
    config = {key: value for key, value in CONFIG.items() if key != "query_aware"}
    assert set(read_log(folder("a", config=config)).runs["condition"]) == {None}
    assert set(read_log(folder("b", config=config, compress_questions=True)).runs["condition"]) == {"aware"}


def test_without_a_configuration_the_name_tells_and_there_is_a_warning(folder):
    name = "ruler__4096__tiny--Llama__knorm__0.90__fraction0.100__query_aware__max_context2048"
    with pytest.warns(UserWarning, match=r"has no config\.yaml, which is written last: the run may not have"):
        log = read_log(folder(name, config=None))
    columns = ["suite", "model", "arm", "condition", "budget"]
    expected = ("ruler_4096_max_context2048", "tiny/Llama", "knorm", "aware", 0.1)
    assert log.runs.select(columns).unique().rows() == [expected]
    assert set(log.runs["score"].is_null()) == {False}
    assert json.loads(log.runs["extra"][0])["findings"] == ["config missing"]


def test_a_name_that_tells_nothing_is_an_error(folder):
    path = folder("results", config=None)
    with (
        pytest.warns(UserWarning, match=r"has no config\.yaml"),
        pytest.raises(
            InputError, match=r"neither config\.yaml nor the folder's name tells the model; pass model="
        ),
    ):
        read_log(path)
    with pytest.warns(UserWarning, match=r"has no config\.yaml"):
        log = read_log(path, model="m", suite="ruler", arm="knorm")
    # Which data set it is nobody knows, and so not how it is scored.
    assert set(log.runs["error"]) == {"answers of the data set '' have no score here"}


@pytest.mark.parametrize("content", ["dataset: [", "- 1\n", ""])
def test_a_configuration_that_is_none_is_an_error(folder, content):
    path = folder()
    (path / "config.yaml").write_text(content)
    with pytest.raises(InputError, match=r"config\.yaml: (is no YAML|has no settings)"):
        read_log(path)


def test_scores_that_differ_from_the_printed_ones_are_a_warning_and_both_are_kept(folder):
    path = folder(scores={"cwe": 75.0, "qa_1": 51.0, "fwe": 10.0})
    with pytest.warns(UserWarning, match="tasks do not have the score") as caught:
        log = read_log(path)
    assert [str(one.message) for one in caught] == [
        f"{path}/predictions.csv: 3 of 4 tasks do not have the score of metrics.json: fwe printed 10, "
        "without a row; qa_1 printed 51, recomputed 50.00 from 2 rows; vt not printed, recomputed 100.00 "
        "from 1 row"
    ]
    both = {
        task: (extra.get("printed_score", ...), extra.get("recomputed_score", ...))
        for task, extra in zip(log.runs["task"], map(json.loads, log.runs["extra"]), strict=True)
    }
    assert both == {"cwe": (..., ...), "qa_1": (51.0, 50.0), "vt": (None, 100.0)}


@pytest.mark.parametrize(("score", "near"), [(66.67, True), (66.66, False), (66.68, False)])
def test_rounding_is_no_difference(folder, score, near):
    rows = [("cwe", f"['a' 'b' '{number}']", "a b", "Words?") for number in range(3)]
    path = folder(rows=rows, scores={"cwe": score})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_log(path)
    assert len(caught) == (not near)


def test_rows_that_cannot_be_used_are_named(folder):
    rows = [
        *ROWS[:2],
        ("vt", "['AB' ... 'CD']", "AB", "?"),
        ("vt", "[]", "AB", "?"),
        ("vt", "['AB' '']", "", "?"),
    ]
    path = folder(rows=rows, scores={"cwe": 75.0})
    # The second row has two lines.
    with pytest.raises(
        InputError, match=r"predictions\.csv:6: cannot be used \(.* is shortened: elements are left"
    ):
        read_log(path)
    log = read_log(path, on_error="skip")
    assert log.runs.height == 2
    assert log.rejects["line"].to_list() == [6, 7, 8]
    assert "string_match_all: references=[] is not a list" in log.rejects["error"][1]
    assert "holds an empty text" in log.rejects["error"][2]


def test_the_warning_says_that_rows_are_missing(folder):
    path = folder(rows=[*ROWS, ("vt", "['AB' ... 'CD']", "AB", "?")], scores=SCORES | {"vt": 75.0})
    with pytest.warns(UserWarning, match=r"recomputed 100\.00 from 1 row \(1 more cannot be used\)$"):
        read_log(path, on_error="skip")


def test_repeated_content_is_an_error_or_listed_and_the_score_is_that_of_all_rows(folder):
    rows = [*ROWS, ("cwe", "['mill' 'river']", "", "Most common words?")]
    path = folder(rows=rows, scores=SCORES | {"cwe": 50.0})
    with pytest.raises(InputError, match=r"predictions\.csv:11: repeats the content of line 2; remove one"):
        read_log(path)
    log = read_log(path, on_duplicate="first")
    assert (log.runs.height, log.rejects.height) == (5, 1)
    assert read_log(path, pair_by="position").runs.height == 6


def test_the_same_content_in_two_tasks_is_two_inputs(folder):
    rows = [("vt", "['AB']", "AB", "?"), ("vt_2", "['AB']", "AB", "?")]
    log = read_log(folder(rows=rows, scores={"vt": 100, "vt_2": 100}))
    assert log.runs.select("task", "input_id").n_unique() == 2


@pytest.mark.parametrize("column", ["id", "_id", "index"])
def test_ids_are_used_where_there_are_any_and_stay_text(folder, column):
    path = folder(columns=(*COLUMNS, column), rows=ROWS[:1], scores={"cwe": 50.0})
    text = (path / "predictions.csv").read_text().replace("32,32\n", "32,0012\n")
    (path / "predictions.csv").write_text(text)
    assert read_log(path).runs["input_id"].to_list() == ["0012"]
    assert len(read_log(path, pair_by="content").runs["input_id"][0]) == 64


def test_scores_alone_are_an_error_or_a_reject(folder):
    path = folder(rows=None)
    fault = r"metrics\.json:1: has scores by task only, and nothing can be paired without the rows behind"
    with pytest.raises(InputError, match=fault):
        read_log(path)
    with pytest.raises(InputError, match=fault):
        read_log(path, format="kvpress")
    log = read_log([path, folder("other")], on_error="skip")
    assert (log.runs.height, log.rejects.height) == (5, 1)
    assert [check for check, _ in kvpress_folder(path).findings] == ["aggregates only"]


@pytest.mark.parametrize("name", [f"{NAME}__1", f"{NAME}/1"])
def test_numbered_twins_are_told(folder, name):
    first = folder()
    path = folder(name)
    with pytest.warns(
        UserWarning, match=f"^{path}: has a number because {first} was there before it; read one of"
    ):
        twin = read_log(path / "predictions.csv")
    assert json.loads(twin.runs["extra"][0])["findings"] == ["numbered twin"]
    # The name of a numbered folder tells what that of the first does.
    (path / "config.yaml").unlink()
    assert kvpress_folder(path).told["compression_ratio"] == "0.90"
    assert (kvpress_folder(path).suite, kvpress_folder(path).arm) == ("ruler_4096", "knorm")


def test_folders_without_or_with_unreadable_scores_are_told(folder):
    with pytest.warns(UserWarning, match=r"has no metrics\.json to hold its rows against"):
        log = read_log(folder("a", scores=None))
    assert json.loads(log.runs["extra"][0])["findings"] == ["scores missing"]
    path = folder("b")
    (path / "metrics.json").write_text('{"cwe": {"string_match": NaN}}')
    with pytest.warns(UserWarning, match=r"metrics\.json: is not JSON \(NaN is not JSON\)"):
        assert read_log(path).runs.height == 5


@pytest.mark.parametrize(
    ("scores", "findings"),
    [
        ({"accuracy": 0.05, "total": 0}, ["accuracy is 0.05, of total=0"]),
        ({"knorm": {"accuracy": 0.05, "n_samples": 0}}, ["knorm: accuracy is 0.05, of n_samples=0"]),
        ({"accuracy": 0.0, "total": 0}, []),
        ({"accuracy": 0.05, "total": 20}, []),
    ],
)
def test_scores_of_no_samples_are_told(folder, scores, findings):
    path = folder(rows=None)
    (path / "metrics.json").write_text(json.dumps(scores))
    told = [text for check, text in kvpress_folder(path).findings if check == "scores of no samples"]
    assert told == [f"{path}/metrics.json: {finding}" for finding in findings]


def test_answers_of_other_data_sets_have_no_score(folder):
    rows = [("shortdep_qa", "A mill [1]", "a mill", "Where?")]
    log = read_log(folder(rows=rows, dataset="loogle", data_dir="shortdep_qa", scores={}))
    found = log.runs.select("suite", "task", "score", "success", "error").rows()
    error = "answers of the data set 'loogle' have no score here"
    assert found == [("loogle_shortdep_qa", "shortdep_qa", None, None, error)]
    assert log.runs["references"].to_list() == [["A mill [1]"]]


def test_fields_may_be_longer_than_the_limit_of_python(folder):
    long = "x" * 200_000
    before = csv.field_size_limit()
    log = read_log(folder(rows=[("vt", "['AB']", long, "?")], scores={"vt": 0.0}))
    assert log.runs["prediction"].to_list() == [long]
    assert csv.field_size_limit() == before


def test_other_files_of_the_same_name_are_not_recognised(tmp_path):
    for name, content in (("predictions.csv", "id,score\n1,2\n"), ("metrics.json", "{}")):
        (tmp_path / name).write_text(content)
        assert reader_of(tmp_path / name) is None


def test_a_file_cut_anywhere_is_an_error(folder):
    rows = [("vt", "['AB'\n 'CD']", "AB\n CD", "Which?")]
    path = folder(rows=rows, scores={"vt": 100.0}) / "predictions.csv"
    whole = path.read_bytes()
    assert read_log(path).runs.height == 1
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"predictions\.csv"):
            read_log(path)


def test_any_byte_that_changes_is_an_error_or_another_row(folder):
    path = folder(rows=[("vt", "['AB' 'CD']", "AB, CD", "Which?")]) / "predictions.csv"
    whole = path.read_bytes()
    for place in range(len(whole)):
        for byte in (b"\x00", b"\n", b'"', b",", b"\xff"):
            path.write_bytes(whole[:place] + byte + whole[place + 1 :])
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=r".* tasks do not have the score of metrics\.json")
                try:
                    found = list(KVPRESS.read(path, Labels()))
                except InputError:
                    continue
            assert msgspec.json.decode(msgspec.json.encode(found))


def test_rows_of_ruler_without_a_task_are_errors(folder):
    columns = tuple(name for name in COLUMNS if name != "task")
    with pytest.raises(InputError, match=r"predictions\.csv:2: has no task;"):
        read_log(folder(columns=columns))


def test_a_file_of_another_form_is_an_error(folder):
    path = folder() / "predictions.csv"
    path.write_text("task,answer\nvt,AB\n")
    with pytest.raises(
        InputError, match=r"predictions\.csv: has no column predicted_answer; pass the format"
    ):
        read_log(path, format="kvpress")
    path.write_text(",".join(COLUMNS) + "\n")
    with pytest.raises(InputError, match=r"predictions\.csv:1: is followed by no row; remove the file"):
        read_log(path)


def test_folders_are_read_together(folder, tmp_path):
    folder()
    folder("ruler__4096__tiny--Llama__snapkv__0.50", press_name="snapkv", ratio="0.5")
    log = read_log(tmp_path)
    assert log.runs.select("arm", "budget").unique().sort("arm").rows() == [("knorm", 0.1), ("snapkv", 0.5)]
