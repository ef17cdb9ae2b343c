import math
from datetime import UTC, datetime

import msgspec
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import kvstats as kv
from kvstats.errors import InputError
from kvstats.log import InputRecord, LogWriter, ReplayRecord, RunRecord, StudyRecord
from kvstats.planning import simulate_log

SMALL = {
    "seed": 5,
    "models": ["m1", "m2"],
    "tasks": ["t1", "t2"],
    "conditions": ["aware", "stream"],
    "arms": ["gate", "plain"],
    "budgets": [0.25, 0.5],
    "inputs": 30,
    "cells": 2,
    "missing": 0.2,
}
FRAMES = ("runs", "inputs", "replays", "studies")


def assert_same_log(one, other):
    for name in FRAMES:
        assert_frame_equal(getattr(one, name), getattr(other, name))
    assert one.run_signals == other.run_signals


def record_of(kind, row, signals=()):
    """The record that a row of a frame came from."""
    fields = {name: value for name, value in row.items() if value is not None and name not in signals}
    return kind(**fields, **({"signals": {name: row[name] for name in signals}} if signals else {}))


def test_a_log_goes_through_the_writer_and_the_reader_unchanged(tmp_path):
    log = simulate_log(**SMALL | {"models": ["m1"]}).log
    (study,) = log.studies.iter_rows(named=True)
    plain = {k: v for k, v in study.items() if v is not None and k not in ("settings", "versions")}
    settings = msgspec.json.decode(study["settings"])
    with LogWriter(tmp_path / "a.jsonl", StudyRecord(**plain, settings=settings, versions={})) as writer:
        writer.append([record_of(InputRecord, row) for row in log.inputs.iter_rows(named=True)])
        writer.append([record_of(RunRecord, row, log.run_signals) for row in log.runs.iter_rows(named=True)])
        writer.append([record_of(ReplayRecord, row) for row in log.replays.iter_rows(named=True)])
    again = kv.read_log(tmp_path / "a.jsonl")
    assert again.rejects.is_empty()
    assert_same_log(again, log)


def test_the_order_of_options_changes_nothing():
    backwards = {key: value[::-1] if isinstance(value, list) else value for key, value in SMALL.items()}
    signals = {"certificate": (0.7, 0.6), "margin": (0.3, 0.2)}
    one = simulate_log(**SMALL, signals=signals, harm={0.25: 0.2, 0.5: 0.1})
    other = simulate_log(**backwards, signals=dict(reversed(signals.items())), harm={0.5: 0.1, 0.25: 0.2})
    assert_same_log(one.log, other.log)
    assert_frame_equal(one.truth, other.truth)


def test_more_of_anything_leaves_the_other_rows_as_they_were():
    more = {
        "models": ["m1", "m2", "m3"],
        "tasks": ["t0", "t1", "t2"],
        "arms": ["gate", "plain", "quest"],
        "budgets": [0.25, 0.5, 0.75],
        "inputs": 40,
    }
    little = simulate_log(**SMALL).log
    much = simulate_log(**SMALL | more).log
    last = "000030"
    chosen = (
        pl.col("model").is_in(["m1", "m2"]) & pl.col("task").is_in(["t1", "t2"]) & (pl.col("input_id") < last)
    )
    assert_frame_equal(much.inputs.filter(chosen), little.inputs)
    arms = pl.col("arm").is_in(["full", "gate", "plain"]) & pl.col("budget").is_in([0.25, 0.5, 1.0])
    assert_frame_equal(much.runs.filter(chosen & arms), little.runs)
    assert_frame_equal(much.replays.filter(chosen & arms), little.replays)


def test_another_seed_gives_another_log():
    one, other = (simulate_log(**SMALL | {"seed": seed}).log for seed in (5, 6))
    assert not one.runs["certificate"].equals(other.runs["certificate"])


def test_missing_arms_take_all_budgets_and_cells_of_an_input_with_them():
    missing = {"full": 0.0, "gate": 0.5, "plain": 0.0}
    log = simulate_log(**SMALL | {"missing": missing, "inputs": 400}).log
    per_input = log.runs.group_by("model", "task", "condition", "input_id", "arm").len()
    assert set(per_input.filter(pl.col("arm") != "full")["len"]) == {2}
    counts = dict(log.runs.group_by("arm").len().iter_rows())
    assert counts["full"] == 8 * 400
    assert counts["plain"] == 2 * 8 * 400
    share = counts["gate"] / counts["plain"]
    assert abs(share - 0.5) < 4 * 0.5 / math.sqrt(8 * 400)
    assert log.replays.filter(arm="gate").height == 2 * counts["gate"]


def test_without_a_full_run_pairing_complains():
    made = simulate_log(seed=0, inputs=50, missing={"full": 0.3, "plain": 0.0})
    with pytest.raises(InputError, match=r"harm_rate: \d+ of 150 rows of arm 'plain' have no twin"):
        kv.harm_rate(made.log, arm="plain")


def test_what_full_runs_hold():
    runs = simulate_log(**SMALL | {"missing": 0.0}).log.runs
    full, others = runs.filter(arm="full"), runs.filter(pl.col("arm") != "full")
    assert full["certificate"].null_count() == full.height
    assert others["certificate"].null_count() == 0
    assert (others["certificate"] > 0).all()
    assert (runs["logprob"] < 0).all()
    assert set(full["kept_fraction"]) == {1.0}
    assert (runs["n_kept"] / runs["n_prompt"] == runs["kept_fraction"]).all()
    assert (runs["score"] == runs["success"].cast(float)).all()


def test_study_records_hold_the_scenario():
    studies = simulate_log(**SMALL, harm={0.25: 0.2, 0.5: 0.1}).log.studies
    assert studies["model"].to_list() == ["m1", "m2"]
    settings = msgspec.json.decode(studies["settings"][0])
    assert settings["harm"] == {"0.25": 0.2, "0.5": 0.1}
    assert settings["signals"] == {"certificate": [0.75, 0.5], "logprob": [0.4, 0.25]}
    assert studies["started_at"][0] == datetime(2000, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("correlation", [0.0, 0.3, 1.0])
def test_outcomes_of_an_input_have_the_correlation(correlation):
    runs = simulate_log(
        seed=11,
        conditions=["aware", "stream"],
        budgets=[0.25, 0.5],
        inputs=20_000,
        accuracy=0.7,
        harm=0.14,
        recovery=0.09,
        intraclass_correlation=correlation,
    ).log.runs
    wide = runs.pivot("arm", index=["condition", "input_id", "budget"], values="success")
    full = wide.filter(budget=1.0).pivot("condition", index="input_id", values="full")
    assert abs(full.select(pl.corr("aware", "stream")).item() - correlation) < 0.03
    success = full.filter("aware")["input_id"]
    plain = wide.filter(pl.col("input_id").is_in(success.implode()), condition="aware").pivot(
        "budget", index="input_id", values="plain"
    )
    assert abs(plain.select(pl.corr("0.25", "0.5")).item() - correlation) < 0.04


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": -1}, "simulate_log: seed=-1 is not a whole number of at least 0; pass one"),
        ({"seed": True}, "seed=True is not a whole number"),
        ({"inputs": 0}, "inputs=0 is not a whole number of at least 1"),
        ({"cells": 1.5}, "cells=1.5 is not a whole number of at least 0"),
        ({"suite": ""}, "suite='' is not a name"),
        ({"tasks": []}, r"tasks=\[\] is not a list of different names; pass at least one"),
        ({"tasks": "qa"}, "tasks='qa' is not a list of different names"),
        ({"models": ["a", "a"]}, "is not a list of different names"),
        ({"arms": ["full"]}, "arms='full' is the arm of the full cache"),
        ({"budgets": [0.5, 1.0]}, r"budgets=\[0.5, 1.0\] are not different kept fractions"),
        ({"budgets": []}, "are not different kept fractions"),
        ({"budgets": [0.5, 0.5]}, "are not different kept fractions"),
        ({"accuracy": 1.2}, r"accuracy=1.2 is not a share in \[0, 1\]; pass one such as 0.1"),
        ({"accuracy": math.nan}, "accuracy=nan is not a share"),
        ({"accuracy": {0.25: 0.1}}, "has keys that are not the names of exactly one dimension"),
        ({"harm": {0.25: 0.1}}, "harm={0.25: 0.1} has keys that are not the names"),
        ({"harm": 0.9}, "harm=0.9 is above the accuracy of the full cache, 0.8; only a run"),
        ({"recovery": 0.3}, "recovery=0.3 is above the share of failures of the full cache, 0.2"),
        ({"missing": {"plain": 0.1}}, "missing={'plain': 0.1} has keys"),
        ({"intraclass_correlation": 1.1}, r"intraclass_correlation=1.1 is not in \[0, 1\]"),
        ({"drop_separation": math.inf}, r"drop_separation=inf is not in \[-10, 10\]"),
        ({"coverage": 1.0}, "coverage=1.0 is not between 0 and 1"),
        ({"rank_correlation": -1.0}, "rank_correlation=-1.0 is not between -1 and 1"),
        ({"delta": 0.0}, "delta=0.0 is not between 0 and 1"),
        ({"signals": {"score": (0.6, 0.6)}}, "signals='score' cannot name a signal of runs"),
        ({"signals": {"drop": (0.6, 0.6)}}, "signals='drop' cannot name a signal of runs"),
        ({"signals": {"margin": 0.6}}, "signals={'margin': 0.6} is not a pair of areas"),
        ({"signals": {"margin": (0.6, 1.0)}}, "is not a pair of areas between 0 and 1"),
    ],
)
def test_options_out_of_range(change, message):
    with pytest.raises(InputError, match=message):
        simulate_log(**{"seed": 0, **change})


def test_names_that_two_dimensions_share_are_ambiguous_only_in_a_mapping():
    both = {"seed": 0, "models": ["a", "b"], "tasks": ["a", "b"], "inputs": 3}
    assert simulate_log(**both).log.runs.height == 4 * 3 * 4
    with pytest.raises(InputError, match="not the names of exactly one dimension"):
        simulate_log(**both, accuracy={"a": 0.5, "b": 0.6})


def test_rates_by_several_dimensions():
    made = simulate_log(
        seed=0,
        tasks=["qa", "code"],
        arms=["plain", "gate"],
        budgets=[0.25, 0.5],
        accuracy={"qa": 0.9, "code": 0.5},
        harm={"plain": {"qa": 0.3, "code": {0.25: 0.2, 0.5: 0.1}}, "gate": 0.0},
    )
    truth = made.truth.filter(estimator="harm_rate").select("task", "arm", "budget", "value")
    expected = [
        ("code", "gate", 0.25, 0.0),
        ("code", "gate", 0.5, 0.0),
        ("code", "plain", 0.25, 0.2),
        ("code", "plain", 0.5, 0.1),
        ("qa", "gate", 0.25, 0.0),
        ("qa", "gate", 0.5, 0.0),
        ("qa", "plain", 0.25, 0.3),
        ("qa", "plain", 0.5, 0.3),
    ]
    assert truth.rows() == expected


def test_repr():
    assert repr(simulate_log(seed=0, inputs=2)).startswith("SimulatedLog(Log: 8 runs of 2 inputs by 1 model")


def test_numbers_of_numpy_do_as_well():
    own = simulate_log(seed=3, inputs=5, budgets=[0.25, 0.5], harm={0.25: 0.2, 0.5: 0.1}, fragile=0.5)
    numpy = simulate_log(
        seed=np.int64(3),
        inputs=np.int32(5),
        budgets=list(np.array([0.25, 0.5])),
        harm={np.float64(0.25): np.float64(0.2), np.float64(0.5): 0.1},
        fragile=np.float32(0.5),
    )
    assert_same_log(own.log, numpy.log)


def test_draws_of_cells_are_distinct():
    made = simulate_log(seed=0, inputs=50, cells=3, intraclass_correlation=0.0)
    assert np.unique(made.log.replays["true_error"]).size == 3 * 50 * 3
