"""Wide rows of a gating study: arms, inputs, units, and rows that contradict each other."""

from __future__ import annotations

import gzip
import json
import re
import warnings

import numpy as np
import polars as pl
import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.log import LogWriter, read_log
from kvstats.log.adapters import reader_of

BUDGETS = (1.0, 0.5, 0.25)


def release_rows(n_inputs=6, budgets=BUDGETS, tau=0.07, seed=1, uniform=False):
    """Draw rows as a gating study writes them: gated is plain where the gate is open, full where closed."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(n_inputs):
        drop, total = round(float(rng.uniform(0, 0.14)), 6), int(rng.integers(900, 1100))
        outcomes = {budget: bool(rng.random() < 0.3 + 0.6 * budget) for budget in budgets}
        for budget in budgets:
            gate_open, kept = drop >= tau, int(total * budget)
            row = {
                "id": number,
                "task": "qa" if number % 2 else "needle",
                "budget": budget,
                "T": total,
                "drop": drop,
                "gate_open": gate_open,
                "n_kept_plain": kept,
                "n_kept_gated": kept if gate_open else total,
                "correct_plain": outcomes[budget],
                "correct_gated": outcomes[budget] if gate_open else outcomes[max(budgets)],
            }
            if uniform:
                row |= {"n_kept_uniform": kept, "correct_uniform": bool(rng.random() < 0.5)}
            rows.append(row)
    return rows


@pytest.fixture
def write(tmp_path):
    """Write rows, or raw lines, and return the path."""

    def write_rows(rows, name="cell.jsonl"):
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        content = "".join(line + "\n" for line in lines).encode()
        path = tmp_path / name
        path.write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)
        return path

    return write_rows


def changed(rows, index, **columns):
    """Return the rows with columns of one of them changed; a value of `...` takes the column out."""
    row = {name: value for name, value in {**rows[index], **columns}.items() if value is not ...}
    return [*rows[:index], row, *rows[index + 1 :]]


@pytest.mark.parametrize("name", ["cell.jsonl", "cell.jsonl.gz"])
def test_each_arm_of_each_row_becomes_a_run(write, name):
    rows = release_rows(uniform=True)
    log = read_log(write(rows, name))
    assert (log.runs.height, log.inputs.height, log.rejects.height) == (3 * len(rows), 6, 0)
    expected = sorted(
        (
            row["task"],
            str(row["id"]),
            arm,
            row["budget"],
            float(row[f"correct_{arm}"]),
            row[f"correct_{arm}"],
            row["T"],
            row[f"n_kept_{arm}"],
            row["gate_open"] if arm == "gated" else None,
        )
        for row in rows
        for arm in ("gated", "plain", "uniform")
    )
    columns = ["task", "input_id", "arm", "budget", "score", "success", "n_prompt", "n_kept", "gate_open"]
    assert log.runs.select(columns).rows() == expected
    assert set(log.runs["model"]) == set(log.runs["suite"]) == {"cell"}
    assert log.runs["kept_fraction"].null_count() == log.runs.height
    assert log.runs["extra"].null_count() == log.runs.height
    of_inputs = sorted({(row["task"], str(row["id"]), row["T"], row["drop"]) for row in rows})
    assert log.inputs.select("task", "input_id", "context_tokens", "drop").rows() == of_inputs


def test_the_estimators_work_on_it(write):
    rows = release_rows(40)
    log = read_log(write(rows))
    evicting = [row for row in rows if row["budget"] < 1]
    full = {row["id"]: row["correct_plain"] for row in rows if row["budget"] == 1}
    difference = np.mean([float(row["correct_gated"]) - row["correct_plain"] for row in evicting])
    harm = np.mean([row["correct_plain"] < full[row["id"]] for row in evicting])
    found = kv.delta(log, arm="gated", baseline="plain", where="budget < 1").frame["estimate"].item()
    assert found == pytest.approx(difference, abs=1e-12)
    assert kv.harm_rate(log, arm="plain", where="budget < 1").frame["estimate"].item() == pytest.approx(harm)
    kept = kv.kept_fraction(log, arm="gated", where="budget < 1").frame["estimate"].item()
    assert kept == pytest.approx(np.mean([row["n_kept_gated"] / row["T"] for row in evicting]), abs=1e-12)


def test_the_gate_at_the_executed_threshold_is_the_executed_arm(write):
    log = kv.gate(read_log(write(release_rows(30))), tau=0.07, base="plain", name="again")
    columns = ["task", "input_id", "budget", "score", "success", "n_kept", "gate_open"]
    executed, again = (log.runs.filter(arm=arm).select(columns) for arm in ("gated", "again"))
    assert executed.equals(again)


def test_neither_the_order_of_rows_nor_of_columns_matters(write):
    rows = release_rows()
    one = read_log(write(rows))
    backwards = [dict(reversed(row.items())) for row in reversed(rows)]
    other = read_log(write(backwards))
    assert one.runs.equals(other.runs)
    assert one.inputs.equals(other.inputs)


def test_of_rows_that_come_twice_the_first_can_be_kept(write):
    rows = release_rows()
    log = read_log(write([*rows, rows[0], rows[3]]), on_duplicate="first")
    assert log.runs.equals(read_log(write(rows)).runs)
    assert log.rejects["line"].to_list() == [len(rows) + 1, len(rows) + 2]


def test_files_read_together_stay_apart_unless_they_are_named(write):
    paths = [write(release_rows(seed=seed), f"gated_{name}.jsonl") for seed, name in ((1, "m1"), (2, "m2"))]
    assert set(read_log(paths).runs.select("model", "suite").rows()) == {("gated_m1",) * 2, ("gated_m2",) * 2}
    named = read_log(paths, model={"gated_m1": "one", "gated_m2": "two"}, suite="4k")
    assert set(named.runs.select("model", "suite").rows()) == {("one", "4k"), ("two", "4k")}
    assert set(named.inputs.select("model", "suite").rows()) == {("one", "4k"), ("two", "4k")}


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        (
            {"model": {"cel": "m"}},
            "names 'cel', which is no file that needs it among those read, nor a folder",
        ),
        ({"suite": {}}, "read_log: suite={} lacks 'cell'; name every file"),
        ({"model": ""}, "model='' is not a name; pass text that is not empty"),
        ({"model": {"cell": 7}}, "is not a name; pass text that is not empty"),
    ],
)
def test_names_that_do_not_fit_the_files(write, names, fault):
    with pytest.raises(InputError, match=re.escape(fault)):
        read_log(write(release_rows()), **names)


def test_logs_of_this_library_carry_their_names(tmp_path, study, make_run):
    with LogWriter(tmp_path / "a.jsonl", study) as writer:
        writer.append([make_run()])
    with pytest.raises(InputError, match="model='m' is not needed: the records carry it; leave it out"):
        read_log(tmp_path / "a.jsonl", model="m")


def test_the_format_is_told_by_content_and_can_be_forced(write, tmp_path, study, make_run):
    wide = write(release_rows())
    assert reader_of(wide).name == "page_release"
    with LogWriter(tmp_path / "gated_4k.jsonl", study) as writer:
        writer.append([make_run(extra={"task": 1, "budget": 1, "correct_plain": 1})])
    assert reader_of(tmp_path / "gated_4k.jsonl") is None
    both = read_log([wide, tmp_path / "gated_4k.jsonl"])
    assert set(both.runs["model"]) == {"cell", "smollm2"}
    assert read_log(wide, format="page_release").runs.equals(read_log(wide).runs)
    with pytest.raises(InputError, match=r"cell\.jsonl:1: has record=None"):
        read_log(wide, format="kvstats")
    with pytest.raises(InputError, match=r"format='page_releas' is unknown; did you mean 'page_release'\?"):
        read_log(wide, format="page_releas")


def test_a_broken_first_line_does_not_hide_the_format(write):
    path = write(["{", *release_rows()])
    with pytest.raises(InputError, match=r"cell\.jsonl:1: is not JSON"):
        read_log(path)
    log = read_log(path, on_error="skip")
    assert (log.runs.height, log.rejects["line"].to_list()) == (36, [1])


def test_an_empty_file_of_a_forced_format(write):
    with pytest.raises(InputError, match=r"cell\.jsonl:1: the file is empty; remove the file"):
        read_log(write([]), format="page_release")


def test_a_truncated_file_loses_only_its_end(write):
    path = write(release_rows(300), "cell.jsonl.gz")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match="the compressed data ends or breaks here"):
        read_log(path)
    log = read_log(path, on_error="skip")
    assert 0 < log.runs.height < 1800
    assert log.rejects.height >= 1


def test_budgets_in_tokens_have_no_fraction(write):
    rows = [
        {"id": i, "task": "t", "budget": b, "T": 1000, "drop": 0.05, "gate_open": False, "tau": 0.07}
        | {"correct_plain": True, "correct_gated": True, "n_kept_plain": 6 * b, "n_kept_gated": 6 * 1010}
        for i in range(3)
        for b in (128, 256.0)
    ]
    log = read_log(write(rows))
    assert log.runs["budget"].null_count() == log.runs["n_kept"].null_count() == log.runs.height
    assert set(log.runs["budget_tokens"]) == {128, 256}
    assert log.runs["kept_fraction"].null_count() == log.runs.height
    gated = log.runs.filter(arm="gated", budget_tokens=128)["extra"][0]
    assert json.loads(gated) == {"n_kept_gated": 6060, "tau": 0.07}
    assert json.loads(log.runs.filter(arm="plain")["extra"][0]) == {"n_kept_plain": 768}
    frame = kv.delta(log, arm="gated", baseline="plain", by="budget_tokens").frame
    assert frame["estimate"].to_list() == [0.0, 0.0]
    with pytest.raises(InputError, match="baseline='full' is not an arm of the log, nor has it an arm"):
        kv.harm_rate(log, arm="plain")


def test_counts_of_tokens_within_the_prompt_stay(write):
    row = {"id": 0, "task": "t", "budget": 128, "T": 1000, "n_kept_plain": 130, "correct_plain": True}
    log = read_log(write([row]))
    assert log.runs.select("n_kept", "extra").rows() == [(130, None)]


def test_other_columns_are_kept_or_have_their_place(write):
    row = {
        "id": "0012",
        "task": "t",
        "budget": 0.5,
        "correct_plain": True,
        "gold": ["a", "b"],
        "answers": [1],
    }
    row |= {"pred_plain": "c", "kept_plain": 0.49, "seed": 7, "note": {"x": None}}
    (run,) = read_log(write([row])).runs.iter_rows(named=True)
    assert (run["input_id"], run["references"], run["prediction"]) == ("0012", ["a", "b"], "c")
    assert (run["kept_fraction"], run["n_kept"], run["n_prompt"]) == (0.49, None, None)
    assert json.loads(run["extra"]) == {"answers": [1], "seed": 7, "note": {"x": None}}
    (run,) = read_log(write([{**row, "gold": None, "answers": "a"}])).runs.iter_rows(named=True)
    assert (run["references"], json.loads(run["extra"])["gold"]) == (["a"], None)


def test_large_ids_keep_every_digit(write):
    rows = [
        {"id": 1344800117571260417 + i, "task": "t", "budget": 0.5, "correct_plain": True} for i in range(3)
    ]
    assert read_log(write(rows)).runs["input_id"].to_list() == [str(row["id"]) for row in rows]


def test_fractions_of_full_marks(write):
    scores = [0.99999994, 0.5, 1e-9, 1, 0, None, False]
    rows = [{"id": i, "task": "t", "budget": 0.5, "correct_plain": score} for i, score in enumerate(scores)]
    runs = read_log(write(rows)).runs
    assert runs["score"].to_list() == [1.0, 0.5, 0.0, 1.0, 0.0, None, 0.0]
    assert runs["success"].to_list() == [True, False, False, True, False, None, False]


def test_a_budget_and_a_kept_fraction_that_mean_one(write):
    row = {"id": 0, "task": "t", "budget": 0.99999994, "correct_plain": True, "kept_plain": 1.00000012}
    log = read_log(write([row]))
    assert log.runs.select("budget", "kept_fraction").rows() == [(1.0, 1.0)]


def test_what_a_gated_arm_kept_follows_from_its_gate(write):
    def row(number, gate_open, **more):
        return {
            "id": number,
            "task": "t",
            "budget": 0.5,
            "T": 10,
            "gate_open": gate_open,
            "correct_plain": True,
            "correct_gated": True,
            "kept_plain": 0.4,
            "n_kept_plain": 4,
        } | more

    rows = [row(0, True), row(1, False), row(2, None), row(3, False, kept_gated=0.9)]
    gated = read_log(write(rows)).runs.filter(arm="gated")
    assert gated["n_kept"].to_list() == [4, 10, None, None]
    assert gated["kept_fraction"].to_list() == [0.4, 1.0, None, 0.9]


def test_a_gate_without_a_gated_arm_is_kept(write):
    row = {"id": 0, "task": "t", "budget": 0.5, "drop": 0.05, "gate_open": False, "tau": 0.07}
    log = read_log(write([row | {"correct_plain": True, "correct_full": True}]))
    assert log.runs["gate_open"].to_list() == [None, None]
    (plain,) = log.runs.filter(arm="plain")["extra"]
    assert json.loads(plain) == {"gate_open": False, "tau": 0.07}


def test_a_full_cache_that_keeps_less_is_a_fault(write):
    row = {"id": 0, "task": "t", "budget": 0.5, "correct_plain": True, "correct_full": True}
    assert read_log(write([row | {"kept_full": 1.0}])).runs.height == 2
    with pytest.raises(InputError, match=r"has kept_full=0\.98, and the full cache keeps all"):
        read_log(write([row | {"kept_full": 0.98}]))


def test_a_full_cache_repeated_in_each_row_is_one_run(write):
    rows = [
        {
            "id": 0,
            "task": "t",
            "budget": b,
            "T": 100,
            "correct_full": True,
            "pred_full": "x",
            "gate_open": False,
        }
        | {"correct_plain_a": b > 0.2, "correct_gated_a": True, "n_kept_a": 50.0, "drop": 0.01}
        for b in (0.5, 0.125)
    ]
    log = read_log(write(rows))
    (full,) = log.runs.filter(arm="full").iter_rows(named=True)
    assert (full["budget"], full["n_kept"], full["kept_fraction"]) == (1.0, 100, 1.0)
    assert (full["score"], full["prediction"], full["extra"]) == (1.0, "x", None)
    assert log.runs.filter(arm="gated_a")["gate_open"].to_list() == [False, False]
    assert kv.harm_rate(log, arm="plain_a").frame["estimate"].item() == 0.5
    other = changed(rows, 1, correct_full=False)
    with pytest.raises(InputError, match=r":2: has another full-cache run for its input than line 1"):
        read_log(write(other))


ROWS = release_rows()
CLOSED = next(i for i, row in enumerate(ROWS) if not row["gate_open"] and i > 2)


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ({"id": ...}, "has no id: which rows are of one input is never told by their order"),
        ({"task": None}, "has no task"),
        ({"budget": ...}, "has no budget"),
        ({"correct_plain": ..., "correct_gated": ...}, "has no column correct_<arm>"),
        ({"id": 3.0}, "has id=3.0, which is neither text nor a whole number"),
        ({"id": True}, "has id=True, which is neither"),
        ({"budget": "0.5"}, "has budget='0.5', which is no number"),
        ({"budget": True}, "has budget=True, which is no number"),
        ({"budget": 0}, "breaks the form of its rows (Expected `float` > 0.0"),
        ({"budget": 1.5}, "has budget=1.5, neither a fraction kept nor a whole number of tokens"),
        ({"budget": 128}, "has a budget that is a number of tokens, line 1 one that is a fraction"),
        ({"correct_plain": 87.5}, "breaks the form of its rows (Expected `float` <= 1.0 - at `$.arms"),
        ({"correct_plain": "yes"}, "breaks the form of its rows (Expected `float | null`, got `str`"),
        ({"n_kept_plain": -1}, "breaks the form of its rows (Expected `int` >= 0"),
        ({"n_kept_plain": 9999}, "has n_kept_plain=9999 of T="),
        ({"drop": 1.5}, "breaks the form of its rows (Expected `float` <= 1.0"),
        ({"gold": [1]}, "breaks the form of its rows (Expected `str`, got `int`"),
        ({"drop": 0.0123}, "has drop=0.0123 for the input that has "),
        ({"T": 9}, "has n_kept_plain="),
        ({"T": 5000}, "has T=5000 for the input that has "),
        ({"budget": ROWS[CLOSED - 1]["budget"]}, "repeats task, id and budget of line "),
        ({"gate_open": True}, "has gate_open=true at drop="),
    ],
)
def test_a_faulty_row_is_an_error_that_names_it_or_a_reject(write, columns, fault):
    index = next(i for i, row in enumerate(ROWS) if not row["gate_open"] and row["budget"] == 0.5)
    if "budget" in columns and columns["budget"] == ROWS[CLOSED - 1]["budget"]:
        columns = {"budget": ROWS[index - 1]["budget"]}
    path = write(changed(ROWS, index, **columns))
    with pytest.raises(InputError) as error:
        read_log(path)
    assert str(error.value).startswith(f"{path}:{index + 1}: {fault}")
    remedy = (
        "remove one of them, or pass on_duplicate='first'" if "repeats" in fault else "repair the line, or"
    )
    assert f"; {remedy}" in str(error.value)
    log = read_log(path, on_error="skip")
    assert log.runs.height == 2 * (len(ROWS) - 1)
    assert log.rejects.select("file", "line").rows() == [(str(path), index + 1)]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_is_no_number_is_refused_in_any_column(write, number):
    row = json.dumps({**ROWS[0], "note": "?"}).replace('"?"', number)
    with pytest.raises(InputError, match=rf":1: is not JSON \({number} is"):
        read_log(write([row]), format="page_release")


def test_the_gate_must_follow_the_tau_of_its_row(write):
    rows = [{**row, "tau": 0.07} for row in ROWS]
    log = read_log(write(rows))
    taus = {json.loads(text)["tau"] for text in log.runs.filter(arm="gated")["extra"]}
    assert taus == {0.07}
    flipped = [{**row, "gate_open": not row["gate_open"]} for row in rows]
    with pytest.raises(
        InputError, match=r":1: has gate_open=.* at drop=.*, but the gate is open from tau=0\.07"
    ):
        read_log(write(flipped))


def test_an_input_at_the_threshold_passes_the_gate(write):
    row = {"id": 0, "task": "t", "budget": 0.5, "drop": 0.07, "tau": 0.07, "correct_gated": True}
    assert read_log(write([{**row, "gate_open": True}])).runs["gate_open"].to_list() == [True]
    with pytest.raises(InputError, match=r":1: has gate_open=false at drop=0\.07, but the gate is open from"):
        read_log(write([{**row, "gate_open": False}]))


def test_two_taus_in_one_file_are_a_fault(write):
    rows = changed([{**row, "tau": 0.07} for row in ROWS], 4, tau=0.04)
    with pytest.raises(InputError, match=r":5: has tau=0\.04, line 1 has 0\.07"):
        read_log(write(rows))


def test_two_taus_are_found_where_no_row_names_its_own(write):
    at = {0.04: release_rows(tau=0.04, n_inputs=40), 0.09: release_rows(tau=0.09, n_inputs=40, seed=2)}
    other = [{**row, "id": row["id"] + 100} for row in at[0.09]]
    with pytest.raises(InputError, match=r"so that no tau makes both"):
        read_log(write([*at[0.04], *other]))
    with pytest.raises(InputError, match=r"so that no tau makes both"):
        read_log(write([*other, *at[0.04]]))


def test_rows_without_a_gate_or_a_drop_are_read(write):
    rows = [
        {k: v for k, v in row.items() if k not in ("drop", "gate_open", "correct_gated", "n_kept_gated")}
        for row in ROWS
    ]
    log = read_log(write(rows))
    assert set(log.runs["arm"]) == {"plain"}
    assert log.inputs["drop"].null_count() == log.inputs.height


def test_a_percentage_is_no_number_of_tokens(write):
    row = {"id": 0, "task": "t", "budget": 25, "T": 1000, "n_kept_plain": 250, "correct_plain": True}
    with pytest.raises(
        InputError, match=r":1: has budget=25, which is a percentage by n_kept_plain=250, T=1000"
    ):
        read_log(write([row]))
    assert read_log(write([{**row, "n_kept_plain": 25}])).runs["budget_tokens"].to_list() == [25]


def test_a_budget_that_may_be_per_cent_needs_a_count(write):
    row = {"id": 0, "task": "t", "T": 1000, "correct_plain": True, "correct_gated": True}
    for budget in (2, 50, 100):
        fault = (
            rf":1: has budget={budget}, and no count of kept tokens tells whether it is tokens or per cent"
        )
        with pytest.raises(InputError, match=fault):
            read_log(write([row | {"budget": budget, "n_kept_gated": 1000}]))
    assert set(read_log(write([row | {"budget": 101}])).runs["budget_tokens"]) == {101}


def test_two_arms_that_are_one_are_read_with_a_warning(write):
    rows = release_rows(30, uniform=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_log(write(rows))
    # At budget 1 every arm is the full cache.
    same = [{**row, "correct_uniform": row["correct_plain"]} if row["budget"] < 1 else row for row in rows]
    path = write(same)
    with pytest.warns(
        UserWarning, match="the arms 'plain' and 'uniform' agree on all 60 evicting rows; check"
    ):
        log = read_log(path)
    assert log.runs.height == 3 * len(rows)


@pytest.mark.parametrize("case", ["few rows", "one outcome", "other predictions", "one budget"])
def test_arms_that_may_agree_by_chance_give_no_warning(write, case):
    rows = release_rows(9 if case == "few rows" else 30)
    budgets = 1.0 if case == "one budget" else 0.0
    same = [
        {**row, "correct_uniform": row["correct_plain"], "pred_plain": "a", "pred_uniform": "a"}
        for row in rows
        if row["budget"] >= budgets
    ]
    if case == "one outcome":
        same = [{**row, "correct_plain": False, "correct_uniform": False} for row in same]
    if case == "other predictions":
        same[1]["pred_uniform"] = "b"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_log(write(same)).runs.height == 3 * len(same)


def test_a_log_of_runs_has_a_column_for_the_gate(write, make_run, study, tmp_path):
    with LogWriter(tmp_path / "a.jsonl", study) as writer:
        writer.append([make_run("1", gate_open=True), make_run("2")])
    runs = read_log(tmp_path / "a.jsonl").runs
    assert runs.schema["gate_open"] == pl.Boolean
    assert runs["gate_open"].to_list() == [True, None]


def test_a_stub_beside_its_cell_is_found_when_both_bear_one_name(write):
    rows = release_rows()
    paths = [write(rows, "gated_16k.jsonl"), write(rows[:9], "gated_16k_.jsonl")]
    apart = kv.accuracy(read_log(paths), where="arm = 'plain'", by="model").frame
    assert apart["n"].to_list() == [18, 9]
    pooled = read_log(paths, model="m", suite="16k")
    with pytest.raises(InputError, match="36 runs share their key with another"):
        kv.accuracy(pooled, where="arm = 'plain'")


def test_the_warning_points_at_the_caller(write):
    rows = [{**row, "correct_uniform": row["correct_plain"]} for row in release_rows(30)]
    with pytest.warns(UserWarning, match="agree on all 60") as caught:
        read_log(write(rows))
    assert caught[0].filename == __file__
