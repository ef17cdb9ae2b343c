"""Signals made from logged head agreement."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.estimators.drop_signals import drop_name
from kvstats.log import InputRecord, RunRecord, log_from_records

NEEDLES = Path(__file__).parents[3] / "notebooks" / "needles" / "smollm2-135m.jsonl.gz"


def profile_log(model="m", n=6, layers=7, heads=4, seed=0, missing=()):
    """Draw a log whose agreement by layer is the mean of that by pair."""
    rng = np.random.default_rng(seed)
    records = []
    for number in range(n):
        pairs = rng.random((layers, heads * (heads - 1) // 2))
        known = number not in missing
        records.append(
            InputRecord(
                suite="s",
                model=model,
                task="qa" if number % 2 else "vt",
                input_id=str(number),
                head_agreement_per_layer=pairs.mean(axis=1).tolist() if known else None,
                head_agreement_interior_per_layer=rng.random(layers).tolist() if known else None,
                head_agreement_per_pair=pairs.tolist() if known else None,
                drop=0.1,
            )
        )
    return log_from_records(records)


def together(*logs):
    return kv.Log(inputs=pl.concat([log.inputs for log in logs]))


def thirds(row):
    size = len(row) // 3
    return sum(row[:size]) / size - sum(row[-size:]) / size


def test_the_default_definition_is_the_recorded_drop():
    log = kv.with_drop(kv.read_log(NEEDLES))
    log = kv.with_drop(log, profile="head_agreement_interior_per_layer")
    inputs = log.inputs
    assert inputs.height > 300
    for made, recorded in (("", "drop"), ("interior_", "drop_interior")):
        difference = (inputs[f"drop_{made}first_last_third"] - inputs[recorded]).abs()
        assert difference.null_count() == 0
        assert difference.max() < 1e-12


def test_each_definition_is_a_column_of_its_own():
    log = profile_log()
    for arguments in (
        {},
        {"share": 1 / 4},
        {"share": 0.5},
        {"share": 0.2},
        {"bins": "strict_thirds"},
        {"layers": 2},
        {"layers": 2, "share": 0.5},
        {"layers": "early", "share": 0.5},
        {"layers": [0, -1]},
        {"profile": "head_agreement_interior_per_layer"},
    ):
        log = kv.with_drop(log, **arguments)
    assert set(log.input_signals) == {
        "drop_first_last_third",
        "drop_first_last_quarter",
        "drop_first_last_half",
        "drop_first_last_0p2",
        "drop_strict_thirds",
        "drop_first_last_third_every_2",
        "drop_first_last_half_every_2",
        "drop_first_last_half_early",
        "drop_first_last_third_layers_0_m1",
        "drop_interior_first_last_third",
    }
    assert set(log.input_signals) < set(log.inputs.columns)
    profile = log.inputs["head_agreement_per_layer"].to_list()
    assert log.inputs["drop_first_last_third"].to_list() == pytest.approx([thirds(row) for row in profile])
    ends = [row[0] - row[-1] for row in profile]
    assert log.inputs["drop_first_last_third_layers_0_m1"].to_list() == pytest.approx(ends)
    every = [row[0] - row[6] for row in profile]
    assert log.inputs["drop_first_last_third_every_2"].to_list() == pytest.approx(every)
    assert log.inputs["drop"].to_list() == [0.1] * 6


def test_models_of_different_depth_have_bins_of_their_own():
    logs = [profile_log("a", layers=7), profile_log("b", layers=9, seed=1)]
    one, other = (kv.with_drop(log).inputs for log in logs)
    joint = kv.with_drop(together(*logs)).inputs
    column = "drop_first_last_third"
    assert joint.filter(model="a")[column].to_list() == one[column].to_list()
    assert joint.filter(model="b")[column].to_list() == other[column].to_list()


def test_inputs_without_a_profile_have_no_signal():
    log = profile_log(missing=(1, 2))
    for made in (kv.with_drop(log), kv.with_agreement_shape(log), kv.with_head_draws(log, pairs=2, draws=2)):
        for name in made.input_signals:
            null = {row[0] for row in made.inputs.filter(pl.col(name).is_null()).select("input_id").rows()}
            assert null == {"1", "2"}, name
    with pytest.raises(InputError, match="drop_first_last_third is null in 2 of 6 rows"):
        kv.mean_drop(kv.with_drop(log), column="drop_first_last_third")


@pytest.mark.parametrize("add", [kv.with_drop, kv.with_agreement_shape])
def test_what_cannot_be_made(add):
    log = profile_log()
    with pytest.raises(InputError, match=r"is null for every input; collect it, or use the recorded drop"):
        add(profile_log(missing=range(6)))
    with pytest.raises(InputError, match="is a column of the log already; use it, or leave it out"):
        add(add(log))
    with pytest.raises(InputError, match="profile='drop' is not known; known: head_agreement_interior_per"):
        add(log, profile="drop")
    with pytest.raises(InputError, match="12 input records share their key with another"):
        add(together(log, log))
    with pytest.raises(InputError, match="holds a number that is not finite"):
        add(kv.Log(inputs=log.inputs.with_columns(head_agreement_per_layer=[0.1, float("nan"), 0.2])))


def test_a_signal_of_a_run_has_not_its_name_taken():
    log = profile_log()
    key = {"suite": "s", "model": "m", "task": "vt", "input_id": "0"}
    runs = log_from_records([RunRecord(**key, arm="full", signals={"drop_strict_thirds": 1.0})])
    both = kv.Log(inputs=log.inputs, runs=runs.runs, run_signals=runs.run_signals)
    with pytest.raises(InputError, match="log='drop_strict_thirds' is a column of the log already"):
        kv.with_drop(both, bins="strict_thirds")


def test_faults_of_the_definition_come_before_any_column():
    for arguments, fault in (
        ({"bins": "half"}, "bins='half' is not known"),
        ({"share": "1/3"}, "share='1/3' is not in (0, 1/2]"),
        ({"layers": 0}, "layers=0 is no step of at least 1"),
        ({"layers": [0, 9]}, "one that a model of 7 layers has not"),
    ):
        with pytest.raises(InputError, match=re.escape(fault)):
            kv.with_drop(profile_log(), **arguments)


def test_names_tell_definitions_apart():
    cases = itertools.product(
        ("first_last", "strict_thirds"), (1 / 4, 1 / 3, 0.3), (None, 2, "early", [0, -1])
    )
    names = {}
    for bins, share, layers in cases:
        name = drop_name("f", bins, share, layers, "head_agreement_per_layer")
        # The share says nothing about strict thirds.
        definition = (bins, share if bins == "first_last" else None, str(layers))
        assert names.setdefault(name, definition) == definition
        assert re.fullmatch(r"[a-z0-9_]+", name)
    assert len(names) == 16


def test_a_rescaled_drop_needs_its_own_threshold():
    log = kv.with_drop(profile_log(), share=1 / 4)
    runs = [
        RunRecord(
            suite="s", model="m", task=row["task"], input_id=row["input_id"], arm=arm, budget=b, score=1.0
        )
        for row in log.inputs.iter_rows(named=True)
        for arm, b in (("full", 1.0), ("snapkv", 0.5))
    ]
    log = log.with_runs(log_from_records(runs).runs)
    signal = "drop_first_last_quarter"
    with pytest.raises(InputError, match="a sweep that rescales D must recalibrate tau"):
        kv.gate(log, tau=0.07, base="snapkv", signal=signal)
    gated = kv.gate(log, tau=kv.Threshold.given(0.0, signal=signal), base="snapkv", signal=signal).runs
    opened = dict(gated.filter(arm="gate").select("input_id", "gate_open").rows())
    assert opened == {row["input_id"]: row[signal] >= 0 for row in log.inputs.iter_rows(named=True)}


def test_the_shape_of_profiles():
    inputs = kv.with_agreement_shape(profile_log()).inputs
    for row in inputs.iter_rows(named=True):
        profile = row["head_agreement_per_layer"]
        assert row["late_plateau"] == pytest.approx(sum(profile[-2:]) / 2)
        assert row["decreasing_share"] == sum(b < a for a, b in itertools.pairwise(profile)) / 6
        assert row["agreement_slope"] == pytest.approx(np.polyfit(np.arange(7) / 6, profile, 1)[0])
    interior = kv.with_agreement_shape(profile_log(), profile="head_agreement_interior_per_layer")
    assert interior.input_signals[0] == "agreement_slope_interior"


def test_a_flat_profile_has_no_depth_correlation():
    key = {"suite": "s", "model": "m", "task": "qa", "input_id": "1"}
    log = log_from_records([InputRecord(**key, head_agreement_per_layer=[0.2, 0.2, 0.2])])
    (row,) = kv.with_agreement_shape(log).inputs.iter_rows(named=True)
    assert (row["depth_correlation"], row["late_plateau"], row["decreasing_share"]) == (None, 0.2, 0.0)


def test_all_pairs_of_heads_give_the_drop_itself():
    log = kv.with_head_draws(kv.with_drop(profile_log()), heads=4, draws=2)
    stem = "drop_first_last_third_heads_4"
    for name in (f"{stem}_draw_00", f"{stem}_draw_01", f"{stem}_mean"):
        assert log.inputs[name].to_list() == pytest.approx(log.inputs["drop_first_last_third"].to_list())
    assert log.inputs[f"{stem}_sd"].to_list() == pytest.approx([0.0] * 6, abs=1e-15)


def test_draws_of_pairs_their_mean_and_spread():
    log = kv.with_head_draws(profile_log(), pairs=2, draws=5, seed=3, bins="strict_thirds")
    stem = "drop_strict_thirds_pairs_2"
    draws = log.inputs.select(f"^{stem}_draw_.*$")
    assert draws.columns == [f"{stem}_draw_0{draw}" for draw in range(5)]
    for row, (drawn, mean, sd) in enumerate(
        zip(draws.rows(), log.inputs[f"{stem}_mean"], log.inputs[f"{stem}_sd"], strict=True)
    ):
        agreement = log.inputs["head_agreement_per_pair"].to_list()[row]
        possible = [
            sum(agreement[layer][a] + agreement[layer][b] for layer in (0, 1)) / 4
            - sum(agreement[layer][a] + agreement[layer][b] for layer in (4, 5, 6)) / 6
            for a, b in itertools.combinations(range(6), 2)
        ]
        for value in drawn:
            assert min(abs(value - other) for other in possible) < 1e-13
        assert mean == pytest.approx(np.mean(drawn))
        assert sd == pytest.approx(np.std(drawn, ddof=1))
    single = kv.with_head_draws(profile_log(), pairs=2, draws=1, seed=3, bins="strict_thirds")
    assert single.input_signals == (f"{stem}_draw_00", f"{stem}_mean")
    assert single.inputs[f"{stem}_draw_00"].to_list() == draws[f"{stem}_draw_00"].to_list()


def test_models_with_other_numbers_of_heads_draw_their_own():
    joint = kv.with_head_draws(together(profile_log("a"), profile_log("b", heads=5)), heads=3, draws=3)
    for model, heads in (("a", 4), ("b", 5)):
        alone = kv.with_head_draws(profile_log(model, heads=heads), heads=3, draws=3)
        signals = list(alone.input_signals)
        assert joint.inputs.filter(model=model).select(signals).equals(alone.inputs.select(signals))


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({}, "heads, pairs=(None, None) are both or neither given"),
        ({"heads": 3, "pairs": 3}, "are both or neither given"),
        ({"pairs": 7}, "pairs=7 is no whole number from 1 to 6"),
        ({"pairs": 2, "draws": 0}, "draws=0 is no whole number at least 1"),
        ({"pairs": 2, "draws": "3"}, "draws='3' is no whole number at least 1"),
        ({"pairs": 2, "bins": "x"}, "bins='x' is not known"),
    ],
)
def test_draws_that_cannot_be_made(arguments, fault):
    with pytest.raises(InputError, match=re.escape(fault)):
        kv.with_head_draws(profile_log(), **arguments)


def test_pairs_that_are_not_all_there():
    key = {"suite": "s", "model": "m", "task": "qa", "input_id": "1"}
    for agreement, fault in (
        ([[0.1], [0.2, 0.3, 0.4]], r"has layers of \[1, 3\] pairs for one input; record all pairs"),
        ([[0.1, 0.2], [0.2, 0.3]], r"n_pairs=2 is no H \(H - 1\) / 2"),
    ):
        log = log_from_records([InputRecord(**key, head_agreement_per_pair=agreement)])
        with pytest.raises(InputError, match=fault):
            kv.with_head_draws(log, pairs=1)


def test_the_mean_profile_by_task():
    log = profile_log()
    result = kv.agreement_profile(log, by="task")
    assert result.frame.columns[:2] == ["task", "layer"]
    assert result.frame.height == 2 * 7
    for row in result.frame.iter_rows(named=True):
        profiles = log.inputs.filter(task=row["task"])["head_agreement_per_layer"].to_list()
        values = [profile[row["layer"]] for profile in profiles]
        assert row["estimate"] == pytest.approx(np.mean(values))
        assert row["se"] == pytest.approx(np.std(values, ddof=1) / np.sqrt(3))
        assert (row["n"], row["clusters"], row["status"]) == (3, 3, "ok")


def test_the_profile_takes_a_selection_and_the_interior():
    log = profile_log()
    found = kv.agreement_profile(
        log, profile="head_agreement_interior_per_layer", where="task = 'qa'", design=kv.Design(level=0.9)
    ).frame["estimate"]
    rows = log.inputs.filter(task="qa")["head_agreement_interior_per_layer"].to_list()
    assert found.to_list() == pytest.approx(np.mean(rows, axis=0).tolist())


def test_profiles_that_cannot_be_pooled_or_are_not_there():
    joint = together(profile_log("a"), profile_log("b", layers=9))
    with pytest.raises(
        InputError,
        match="inputs of 7, 9 layers would be pooled, and their layers are not the same; select one model",
    ):
        kv.agreement_profile(joint)
    with pytest.raises(InputError, match="inputs of 7, 9 layers would be pooled"):
        kv.agreement_profile(joint, by="task")
    assert kv.agreement_profile(joint, by="model").frame.height == 16
    with pytest.raises(InputError, match="head_agreement_per_layer is null in 1 of 6 rows"):
        kv.agreement_profile(profile_log(missing=[0]))
    assert kv.agreement_profile(profile_log(), by="layer").by == ("layer",)
    with pytest.raises(InputError, match="profile='drop' is not known"):
        kv.agreement_profile(profile_log(), profile="drop")
    with pytest.raises(InputError, match="input records share their key"):
        kv.agreement_profile(together(joint, joint))


def test_profiles_of_one_input_and_of_none():
    frame = kv.agreement_profile(profile_log(n=1)).frame
    assert set(frame["status"]) == {"one cluster"}
    assert frame["low"].null_count() == 7
    assert kv.agreement_profile(profile_log(), where="task = 'none'").frame.height == 0
