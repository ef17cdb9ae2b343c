"""Checks of keys: duplicates, twins, cells of the grid, and ids that mean several things."""

from __future__ import annotations

import msgspec
import polars as pl
import pytest

from kvstats.errors import InputError
from kvstats.log import InputRecord, RunRecord, log_from_records
from kvstats.log.audit import audit_log

KEY = {"suite": "s", "model": "m", "task": "qa"}
SCORES = {"full": {1.0: [1.0] * 4}, "evict": {0.5: [1.0, 0.0] * 2, 0.25: [0.0] * 4}}


def findings(records, **options):
    found = audit_log(log_from_records(records), **options).findings
    return {item.check: item for item in found if item.check != "no study record"}


def run(name, arm="full", **fields):
    return RunRecord(**(KEY | {"input_id": name, "arm": arm, "budget": 1.0, "score": 1.0} | fields))


def test_duplicates_of_each_kind_of_record(make_records):
    records = make_records(SCORES, drop=[0.1, 0.2, 0.3, 0.4], cells=[(0.1, 0.1)])
    again = [records[0], records[4], records[-1]]
    found = [f for f in audit_log(log_from_records([*records, *again])).findings if f.check == "duplicates"]
    assert [(item.severity, item.count, item.message) for item in found] == [
        ("error", 2, "2 runs share their key with another"),
        ("error", 2, "2 input records share their key with another"),
        ("error", 2, "2 replay cells share their key with another"),
    ]
    assert found[0].examples == ("suite=s, model=m, task=qa, input_id=i000, arm=full, budget=1.0, seed=0",)


def test_a_file_with_rows_twice_is_counted_with_ids():
    """234 rows where 200 are expected, 34 of them duplicates."""
    records = [run(f"{number:03}") for number in range(200)]
    found = findings([*records, *records[:34]])
    assert (found["duplicates"].severity, found["duplicates"].count) == ("error", 68)
    assert [text.split(", ")[3] for text in found["duplicates"].examples] == [
        *("input_id=000", "input_id=001", "input_id=002")
    ]


def test_two_methods_that_share_all_but_one_input():
    arms = [("full", range(200)), ("evict", [*range(1, 200), 999])]
    found = findings([run(str(number), arm, score=number % 2) for arm, names in arms for number in names])
    assert set(found) == {"missing twin", "partial cells", "clusters of one"}
    assert found["missing twin"].count == 1
    assert found["missing twin"].examples == ("suite=s, model=m, task=qa, input_id=999",)
    assert found["partial cells"].count == 2
    assert found["clusters of one"].message == "2 of 201 inputs have one run only"
    assert [text.split(", ")[2] for text in found["clusters of one"].examples] == [
        "input_id=0",
        "input_id=999",
    ]


def test_a_log_without_any_full_cache_has_no_twin(make_records):
    found = findings(make_records({"evict": {0.5: [1.0, 0.0], 0.25: [0.0, 0.0]}}))
    assert (found["missing twin"].severity, found["missing twin"].count) == ("warning", 4)
    assert "missing twin" not in findings(make_records({"plain": {1.0: [1.0, 1.0], 0.5: [0.0, 1.0]}}))


def test_a_twin_without_a_score_is_a_twin(make_records):
    assert set(findings(make_records({"full": {1.0: [None, 1.0]}, "evict": {0.5: [1.0, 1.0]}}))) == {
        "no score"
    }


def test_a_partial_cell_is_named_with_how_many_it_lacks(make_records):
    records = [r for r in make_records(SCORES) if not (r.budget == 0.25 and r.input_id in ("i001", "i003"))]
    found = findings(records)
    assert set(found) == {"partial cells"}
    assert (found["partial cells"].severity, found["partial cells"].count) == ("warning", 2)
    assert found["partial cells"].message == "2 runs of 12 expected are missing, in 1 cell"
    assert found["partial cells"].examples == (
        "suite=s, model=m, task=qa, arm=evict, budget=0.25, seed=0: 2 of 4 inputs missing",
    )


def test_a_condition_or_seed_that_others_have_is_expected(make_records):
    both = [*make_records(SCORES, condition="aware"), *make_records(SCORES, condition="stream")]
    short = [r for r in both if not (r.condition == "stream" and r.input_id == "i002")]
    assert findings(short)["partial cells"].count == 3
    again = [msgspec.structs.replace(r, seed=1) for r in make_records(SCORES)[4:8]]
    assert findings([*make_records(SCORES), *again]) == {}
    assert findings([*make_records(SCORES), *again[1:]])["partial cells"].count == 1


def test_budgets_in_tokens_count_only_where_there_is_no_fraction():
    rows = [run(name) for name in "12"]
    noted = [
        run(name, "a", budget=0.5, budget_tokens=tokens, score=0.0) for name, tokens in (("1", 7), ("2", 8))
    ]
    assert findings([*rows, *noted]) == {}
    alone = [msgspec.structs.replace(record, budget=None) for record in noted]
    assert findings([*rows, *alone])["partial cells"].count == 2


def test_a_task_without_a_cell_that_another_has_is_a_note(make_records):
    other = make_records({"full": {1.0: [1.0, 1.0]}, "evict": {0.5: [0.0, 1.0]}}, task="vt")
    found = findings([*make_records(SCORES), *other])
    assert set(found) == {"other cells than other tasks"}
    assert found["other cells than other tasks"].severity == "note"
    assert found["other cells than other tasks"].examples == (
        "suite=s, model=m, task=vt, arm=evict, budget=0.25, seed=0",
    )


def test_a_grid_says_what_is_expected(make_records):
    records = make_records(SCORES)
    grid = pl.DataFrame({"arm": ["evict", "evict", "full"], "budget": [0.5, 0.25, 1.0]})
    assert findings(records, grid=grid) == {}
    wider = pl.concat([grid, pl.DataFrame({"arm": ["evict"], "budget": [0.125]})])
    found = findings(records, grid=wider)["partial cells"]
    assert (found.count, found.message) == (4, "4 runs of 16 expected are missing, in 1 cell")
    assert found.examples == ("arm=evict, budget=0.125: 4 of 4 inputs missing",)
    barren = findings(records, grid=pl.DataFrame({"task": ["qa", "vt"]}))["partial cells"]
    assert (barren.count, barren.examples) == (1, ("task=vt",))


def test_a_grid_that_is_none_is_refused(make_log):
    log = make_log(SCORES)
    with pytest.raises(
        InputError, match="audit: grid='input_id' is no column of cells; name some of suite, model"
    ):
        log.audit(grid=pl.DataFrame({"input_id": ["1"]}))
    with pytest.raises(
        InputError, match=r"is no table of cells; pass a polars\.DataFrame with a row for each"
    ):
        log.audit(grid=pl.DataFrame({"arm": []}, schema={"arm": pl.String}))
    with pytest.raises(InputError, match="is no table of cells"):
        log.audit(grid={"arm": ["full"]})


def test_one_key_of_several_contents_is_an_error():
    found = findings(
        [run("1", references=["7"]), run("1", "evict", references=["8"]), run("2"), run("2", "evict")]
    )
    assert (found["reused id"].severity, found["reused id"].count) == ("error", 1)
    assert found["reused id"].message == "1 input with more than one references under the same key"
    assert found["reused id"].examples == ("suite=s, model=m, task=qa, input_id=1",)
    same = [run("1", references=["7", "8"]), run("1", "evict", references=["8", "7"])]
    assert "reused id" not in findings(same)
    assert "reused id" not in findings([run("1", references=["7"]), run("1", "evict")])


@pytest.mark.parametrize("name", ["doc_hash", "prompt_hash", "target_hash"])
def test_hashes_among_unknown_fields_tell_contents_apart(name):
    def records(one, other):
        return [run("1", extra={name: one}), run("1", "evict", extra={name: other})]

    assert findings(records("aa", "ab"))["reused id"].count == 1
    assert "reused id" not in findings(records("aa", "aa"))


def test_two_prompts_of_one_input_record():
    both = [InputRecord(**KEY, input_id="1", prompt_hash=text) for text in ("aa", "ab")]
    found = findings(both)
    assert found["reused id"].message == "1 input with more than one prompt hash under the same key"
    assert found["duplicates"].count == 2


def test_an_id_of_another_document_on_another_model_is_a_warning():
    def on(model, references):
        return RunRecord(
            **(KEY | {"model": model}), input_id="1", arm="full", budget=1.0, references=references
        )

    found = findings([on("m", ["7"]), on("n", ["8"])])["id reused across models or conditions"]
    assert (found.severity, found.count) == ("warning", 1)
    assert found.message == "1 id with other references on another model or condition"
    assert "id reused across models or conditions" not in findings([on("m", ["7"]), on("n", ["7"])])
    # A prompt is tokenised by each model in its own way.
    prompts = [InputRecord(**(KEY | {"model": name}), input_id="1", prompt_hash=name) for name in "mn"]
    assert findings(prompts) == {}


def test_a_prompt_that_is_longer_in_one_arm():
    found = findings(
        [run("1", n_prompt=100), run("1", "evict", n_prompt=101), run("2", n_prompt=90), run("2", "evict")]
    )
    assert found["prompt length differs between arms"].severity == "warning"
    assert found["prompt length differs between arms"].examples == ("suite=s, model=m, task=qa, input_id=1",)


def test_a_task_of_a_single_input_has_no_interval(make_records):
    found = findings(
        [
            *make_records(SCORES),
            *make_records({"full": {1.0: [1.0]}, "evict": {0.5: [1.0], 0.25: [0.0]}}, task="vt"),
        ]
    )
    assert (found["one cluster"].severity, found["one cluster"].count) == ("note", 1)
    assert found["one cluster"].examples == ("suite=s, model=m, task=vt",)
