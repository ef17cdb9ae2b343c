"""The registrations of the gating study that ship: on its printed figures, and on logs of known truth."""

import csv
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import kvstats as kv
from kvstats.log import InputRecord, RunRecord
from kvstats.planning import ratio_bands
from kvstats.prereg import verify
from kvstats.prereg.plan import load_plan
from kvstats.prereg.template import example_text, new_registration
from kvstats.prereg.verdict import decide

PUBLISHED = Path(__file__).parents[3].parent / "shared" / "published"
NAMES = ("gating_definition", "gating_32k", "adaptive_budget", "prevalence_survey")

# Table 1: count of recovered inputs, and inputs, of each model; 16K.
VT_16K = [(0.19, 0.13, 0.28), (0.05, 0.02, 0.11), (0.03, 0.01, 0.17), (0.32, 0.21, 0.46)]
FWE_16K = [(0.04, 0.02, 0.10), (0.32, 0.24, 0.42), (0.20, 0.10, 0.37), (0.22, 0.13, 0.35)]
MK3_POOLED = [(2 / 526, 0.001, 0.014)]

# Table 21: accuracy of the full cache, recovery rate, and its Wilson interval at 32K.
PRINTED_32K = {
    "VT": (0.81, 0.14, 0.085, 0.221),
    "FWE": (0.49, 0.05, 0.022, 0.112),
    "MK3": (0.14, 0.04, 0.016, 0.098),
}


@pytest.fixture
def plans(tmp_path):
    found = {}
    for name in NAMES:
        (tmp_path / f"{name}.yaml").write_text(example_text(name))
        plan = load_plan(tmp_path / f"{name}.yaml")
        found[name] = {claim.claim.id: claim for claim in plan.claims}
    return found


def verdict_on(rows, plan, **fields):
    """Return what the rules of a claim say of rows of (estimate, low, high)."""
    frame = pl.DataFrame(
        [
            {"estimate": e, "low": low, "high": high, "n": 100, "status": "ok", **fields}
            for e, low, high in rows
        ],
        schema_overrides={"estimate": pl.Float64, "low": pl.Float64, "high": pl.Float64},
    )
    return decide(
        labels=[str(row) for row in rows],
        statuses=["ok"] * len(rows),
        supported=(plan.supported.text, plan.supported.values(frame)),
        killed=None if plan.killed is None else (plan.killed.text, plan.killed.values(frame)),
        quantifier=plan.claim.quantifier,
        family=None,
    ).verdict


def test_the_definitional_line_on_the_printed_rates(plans):
    claims = plans["gating_definition"]
    assert verdict_on(VT_16K, claims["variable_tracking"]) == "supported"
    assert verdict_on(VT_16K, claims["variable_tracking_surely"]) == "supported"
    assert verdict_on(FWE_16K, claims["word_frequencies"]) == "supported"
    assert verdict_on(MK3_POOLED, claims["capacity_bound"]) == "supported"
    # With one model fewer on the line the count is not reached, and no model is surely below it.
    assert (
        verdict_on([VT_16K[0], *VT_16K[2:], (0.03, 0.01, 0.17)], claims["variable_tracking"])
        == "inconclusive"
    )
    assert verdict_on([(0.01, 0.0, 0.04)] * 3 + VT_16K[:1], claims["variable_tracking"]) == "killed"


@pytest.mark.parametrize(
    ("claim", "printed", "expected"),
    [
        ("VT", "VT", "killed"),
        ("VT_above", "VT", "supported"),
        ("FWE", "FWE", "supported"),
        ("MK3", "MK3", "killed"),
        ("MK3_overlap", "MK3", "supported"),
    ],
)
def test_the_predictions_for_32k_on_the_printed_figures(plans, claim, printed, expected):
    accuracy, *rates = PRINTED_32K[printed]
    rows = [tuple(rate / (1 - accuracy) for rate in rates)]
    assert verdict_on(rows, plans["gating_32k"][claim]) == expected


def test_the_predicted_ratios_are_those_of_the_printed_cells(plans):
    if not PUBLISHED.is_dir():
        pytest.skip("the published tables are not here")
    bands = {band.group: band for band in ratio_bands(pl.read_csv(PUBLISHED / "page_table25_scaling.csv"))}
    for claim, task in (("VT", "VT"), ("FWE", "FWE"), ("MK3", "niah_multikey_3")):
        written = bands[task].claim(claim, arm="snapkv", where="suite = '32k'")
        registered = plans["gating_32k"][claim]
        assert registered.query.estimator == written["estimator"]
        rows = [(x, None, None) for x in (bands[task].low, bands[task].high)]
        assert verdict_on(rows, registered) == "supported"
        assert verdict_on([(bands[task].high + 1e-12, None, None)], registered) == "killed"
        if bands[task].low > 0:
            assert verdict_on([(bands[task].low - 1e-12, None, None)], registered) == "killed"
            assert written["supported"] == registered.claim.supported


def test_the_printed_figures_are_the_published_ones():
    if not PUBLISHED.is_dir():
        pytest.skip("the published tables are not here")
    with (PUBLISHED / "page_table21_prereg_32k.csv").open() as stream:
        for row in csv.DictReader(stream):
            name = {"niah_multikey_3": "MK3"}.get(row["task"], row["task"])
            figures = tuple(float(row[c]) for c in ("full_accuracy", "rho", "wilson_low", "wilson_high"))
            assert PRINTED_32K[name] == figures
    with (PUBLISHED / "page_table01_recovery_rate.csv").open() as stream:
        rows = [row for row in csv.DictReader(stream) if row["context"] == "16K"]
    for task, printed in (("VT", VT_16K), ("FWE", FWE_16K)):
        found = [r for r in rows if r["task"] == task]
        assert printed == [tuple(float(r[c]) for c in ("rho", "wilson_low", "wilson_high")) for r in found]


def test_the_survey_and_the_head_to_head_on_figures(plans):
    claims = plans["adaptive_budget"]
    assert verdict_on([(0.16, 0.1, 0.25)], claims["P1"]) == "supported"
    assert verdict_on([(0.22, 0.15, 0.3)], claims["P1"]) == "inconclusive"
    assert verdict_on([(0.3, 0.2, 0.4)], claims["P1"]) == "killed"
    assert verdict_on([(0.5, 0.4, 0.6), (0.3, 0.2, 0.4)], claims["P2"]) == "supported"
    assert verdict_on([(0.5, 0.4, 0.6), (0.29, 0.2, 0.4)], claims["P2"]) == "inconclusive"
    assert verdict_on([(0.5, 0.4, 0.6), (0.1, 0.0, 0.2)], claims["P2"]) == "killed"
    # One of a hundred answers may be lost in a row, two may not.
    assert verdict_on([(0.0, None, None), (-0.01, -0.03, 0.01)], claims["P3"]) == "supported"
    assert verdict_on([(0.0, None, None), (-0.02, -0.05, 0.01)], claims["P3"]) == "inconclusive"
    assert verdict_on([(0.3, 0.2, 0.4), (-0.2, -0.3, -0.1)], claims["P3"]) == "killed"
    claims = plans["prevalence_survey"]
    assert verdict_on([(0.12, 0.1, 0.15)], claims["prevalence"]) == "supported"
    assert verdict_on([(0.14, 0.12, 0.16)], claims["prevalence"]) == "inconclusive"
    assert verdict_on([(0.2, 0.17, 0.23)], claims["prevalence"]) == "killed"
    for name, certain, expected in (
        ("capacity-bound", False, "supported"),
        ("mixed", False, "inconclusive"),
        ("mixed", True, "killed"),
    ):
        found = verdict_on(
            [(0.5, 0.4, 0.6)] * 3, claims["retrieval_is_capacity_bound"], task_class=name, certain=certain
        )
        assert found == expected
    assert verdict_on([(0.7, 0.4, 0.9)], claims["the_gate_agrees_with_the_class"]) == "supported"
    assert verdict_on([(0.3, 0.1, 0.5)], claims["the_gate_agrees_with_the_class"]) == "killed"


def records(rng, tasks, arm, budgets, *, suite="s", model="m", n=100, mean_drop=None):
    """Make runs of tasks: by task the chances to be answered, to be lost, and to be recovered."""
    made = []
    for task, (answered, lost, recovered) in tasks.items():
        for i in range(n):
            key = {"suite": suite, "model": model, "task": task, "input_id": f"{i:03}"}
            full = bool(rng.random() < answered)
            kept = bool(rng.random() >= lost) if full else bool(rng.random() < recovered)
            if mean_drop is not None:
                made.append(InputRecord(**key, drop=float(mean_drop[task] + 0.01 * rng.normal())))
            made.append(RunRecord(**key, arm="full", budget=1.0, score=float(full), success=full))
            made += [
                RunRecord(**key, arm=arm, budget=budget, score=float(kept), success=kept)
                for budget in budgets
            ]
    return made


def found_in(folder, name):
    path = folder / f"{name}.yaml"
    new_registration(
        path, example=name, now=kv.read_log([str(folder / "a.jsonl")]).studies["started_at"].min()
    )
    return {claim.id: claim.verdict for claim in verify(path).claims}


def test_the_definitional_line_runs_on_a_log(tmp_path, write_log):
    rng = np.random.default_rng(3)
    made = []
    for number, model in enumerate("abcd"):
        on_line = 0.5 if number < 3 else 0.0
        tasks = {"VT": (0.6, 0.1, on_line), "FWE": (0.6, 0.1, 0.0), "niah_multikey_3": (0.9, 0.9, 0.0)}
        made += records(rng, tasks, "snapkv", (0.25,), suite="16k", model=model)
    write_log(made, "a.jsonl")
    assert found_in(tmp_path, "gating_definition") == {
        "variable_tracking": "supported",
        "variable_tracking_surely": "supported",
        "word_frequencies": "killed",
        "capacity_bound": "supported",
    }


def test_the_predictions_for_32k_run_on_a_log(tmp_path, write_log):
    rng = np.random.default_rng(4)
    tasks = {"VT": (0.5, 0.1, 0.9), "FWE": (0.4, 0.1, 0.25), "niah_multikey_3": (0.2, 0.9, 0.0)}
    write_log(records(rng, tasks, "snapkv", (0.25,), suite="32k"), "a.jsonl")
    assert found_in(tmp_path, "gating_32k") == {
        "VT": "killed",
        "VT_above": "supported",
        "FWE": "supported",
        "MK3": "supported",
        "MK3_overlap": "supported",
    }


def test_the_head_to_head_runs_on_a_log(tmp_path, write_log):
    rng = np.random.default_rng(5)
    tasks = {"niah_multikey_3": (0.95, 0.95, 0.0), "qa": (0.8, 0.1, 0.1)}
    budgets = (0.0625, 0.125, 0.5)
    drop = {"niah_multikey_3": 0.02, "qa": 0.2}
    write_log(records(rng, tasks, "adakv", budgets, mean_drop=drop), "a.jsonl")
    assert found_in(tmp_path, "adaptive_budget") == {"P1": "supported", "P2": "supported", "P3": "supported"}
    # Where the drop says the opposite the gate saves nothing, and what eviction recovers elsewhere is lost.
    tasks["qa"] = (0.6, 0.0, 0.9)
    write_log(
        records(rng, tasks, "adakv", budgets, mean_drop={"niah_multikey_3": 0.2, "qa": 0.02}), "a.jsonl"
    )
    (tmp_path / "adaptive_budget.yaml").unlink()
    assert found_in(tmp_path, "adaptive_budget") == {"P1": "supported", "P2": "killed", "P3": "killed"}


def test_the_survey_runs_on_a_log(tmp_path, write_log):
    rng = np.random.default_rng(6)
    tasks = {
        "retrieval": (0.9, 0.9, 0.0),
        "tracking": (0.6, 0.02, 0.6),
        "questions": (0.9, 0.02, 0.0),
        **{f"other{i}": (0.9, 0.02, 0.0) for i in range(5)},
    }
    drop = {task: 0.02 if task == "retrieval" else 0.2 for task in tasks}
    write_log(records(rng, tasks, "snapkv", (0.125, 0.5), mean_drop=drop), "a.jsonl")
    assert found_in(tmp_path, "prevalence_survey") == {
        "prevalence": "supported",
        "retrieval_is_capacity_bound": "supported",
        "tracking_is_dilution_prone": "supported",
        "questions_are_robust": "supported",
        "the_gate_agrees_with_the_class": "supported",
    }
    tasks |= {"retrieval": (0.9, 0.1, 0.0), "questions": (0.9, 0.9, 0.0)}
    drop = dict.fromkeys(tasks, 0.2)
    drop |= {"retrieval": 0.2, "questions": 0.02, **{f"other{i}": 0.02 for i in range(5)}}
    write_log(records(rng, tasks, "snapkv", (0.125, 0.5), mean_drop=drop), "a.jsonl")
    (tmp_path / "prevalence_survey.yaml").unlink()
    found = found_in(tmp_path, "prevalence_survey")
    assert found["retrieval_is_capacity_bound"] == "killed"
    assert found["questions_are_robust"] == "killed"
    assert found["the_gate_agrees_with_the_class"] == "killed"
