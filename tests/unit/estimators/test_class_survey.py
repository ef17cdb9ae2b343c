"""Surveys of tasks: classes as `task_class` has them, and agreement by counting."""

import itertools

import numpy as np
import polars as pl
import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.log import InputRecord, RunRecord, log_from_records

# By task: share answered by the full cache, shares of these destroyed and of the others recovered, and D.
TASKS = {
    "bound": (0.9, 0.9, 0.0, 0.02),
    "mixed": (0.6, 0.7, 0.5, 0.02),
    "diluted": (0.6, 0.1, 0.5, 0.2),
    "robust": (0.9, 0.1, 0.0, 0.2),
    "other": (0.9, 0.1, 0.0, 0.02),
    "hopeless": (0.05, 0.5, 0.0, 0.2),
}
CLASSES = {
    "bound": "capacity-bound",
    "mixed": "mixed",
    "diluted": "dilution-prone",
    "robust": "evict-robust",
    "other": "evict-robust",
    "hopeless": "untestable",
}


def survey_log(tasks=TASKS, n=60, models=("m",), budgets=(0.25, 0.5)):
    """Make a log in which shares are exact; D is 0.05 or more on the share of inputs that its mean tells."""
    records = []
    for model, (task, (answered, destroyed, recovered, drop)) in itertools.product(models, tasks.items()):
        right = round(answered * n)
        for i in range(n):
            full = i < right
            kept = i >= round(destroyed * right) if full else i < right + round(recovered * (n - right))
            key = {"suite": "s", "model": model, "task": task, "input_id": f"{i:03}"}
            records.append(InputRecord(**key, drop=drop))
            records.append(RunRecord(**key, arm="full", budget=1.0, score=float(full), success=full))
            records += [
                RunRecord(**key, arm="snapkv", budget=budget, score=float(kept), success=kept)
                for budget in budgets
            ]
    return log_from_records(records)


@pytest.fixture(scope="module")
def log():
    return kv.gate(survey_log(), tau=0.05, base="snapkv", name="gated")


def test_classes_and_estimates_are_those_of_task_class(log):
    found = kv.class_survey(log, arm="snapkv", by="task")
    assert found.by == ("task", "quantity", "task_class", "certain")
    whole = kv.task_class(log, arm="snapkv", by="task")
    for row in whole.frame.iter_rows(named=True):
        rows = found.frame.filter(task=row["task"])
        assert rows["task_class"].unique().to_list() == [row["task_class"]] == [CLASSES[row["task"]]]
        assert rows["certain"].unique().to_list() == [row["certain"]]
        for quantity, estimate, low, high in rows.select("quantity", "estimate", "low", "high").rows():
            expected = tuple(row[f"{quantity}{suffix}"] for suffix in ("", "_low", "_high"))
            assert (estimate, low, high) == expected
    assert found.frame.height == 18


def test_thresholds_and_rows_are_passed_on(log):
    found = kv.class_survey(log, arm="snapkv", sensitive=0.05, where="task = 'robust'")
    assert found.by == ("quantity", "task_class", "certain")
    assert found.frame["task_class"].to_list() == ["capacity-bound"] * 3
    assert found.frame["n"].to_list() == [60, 60, 54]
    high = kv.class_survey(log, arm="snapkv", testable=0.95, where="task = 'robust'")
    assert high.frame["task_class"].unique().to_list() == ["untestable"]


def test_a_task_without_rows_has_no_class(log):
    found = kv.class_survey(log, arm="snapkv", where="task = 'none'")
    assert found.frame["task_class"].unique().to_list() == ["undefined"]
    assert found.frame["certain"].unique().to_list() == [False]
    assert found.frame["status"].unique().to_list() == ["no rows"]


def agreement_by_counting(log, tasks, tau):
    """Return the share of tasks with a class on which the gate does what the class asks for."""
    told = []
    for task in tasks:
        name = CLASSES[task]
        if name == "untestable":
            continue
        drops = log.inputs.filter(task=task)["drop"].to_list()
        evicts = np.mean([drop >= tau for drop in drops]) >= 0.5
        told.append(evicts == (name in ("dilution-prone", "evict-robust")))
    return np.mean(told), len(told)


@pytest.mark.parametrize("tau", [0.01, 0.05, 0.3])
def test_agreement_against_counting(tau):
    log = kv.gate(survey_log(), tau=tau, base="snapkv", name="gated")
    found = kv.class_agreement(log, arm="snapkv", gate="gated").frame.row(0, named=True)
    share, count = agreement_by_counting(log, TASKS, tau)
    assert (found["estimate"], found["n"], found["clusters"]) == (share, count, count)


def test_the_interval_is_that_of_a_share_of_tasks(log):
    found = kv.class_agreement(log, arm="snapkv", gate="gated", unit="task").frame.row(0, named=True)
    # Four of five tasks: Clopper-Pearson with its count shrunk to n - 1 degrees of freedom is Korn-Graubard.
    assert found["estimate"] == 0.8
    as_rows = log_from_records(
        [
            RunRecord(
                suite="s", model="m", task="t", input_id=str(i), arm="a", score=float(i > 0), success=i > 0
            )
            for i in range(5)
        ]
    )
    expected = kv.accuracy(as_rows, arm="a", outcome="success").frame.row(0, named=True)
    for column in ("estimate", "low", "high", "se", "df", "n", "clusters"):
        assert found[column] == pytest.approx(expected[column], abs=1e-12)
    wilson = kv.class_agreement(log, arm="snapkv", gate="gated", design=kv.Design(interval="wilson"))
    assert wilson.frame["low"].item() != found["low"]


def test_agreement_within_models():
    log = kv.gate(survey_log(models=("a", "b")), tau=0.05, base="snapkv", name="gated")
    found = kv.class_agreement(log, arm="snapkv", gate="gated", by="model").frame
    assert found.select("model", "estimate", "n").rows() == [("a", 0.8, 5), ("b", 0.8, 5)]
    pooled = kv.class_agreement(log, arm="snapkv", gate="gated", unit="task").frame
    assert pooled.select("estimate", "n").rows() == [(0.8, 5)]


def test_a_gate_open_on_half_of_a_task_evicts():
    tasks = {"robust": TASKS["robust"]}
    base = survey_log(tasks, n=40)
    for opened, expected in ((19, 0.0), (20, 1.0)):
        drops = [0.2 if i < opened else 0.0 for i in range(40)]
        log = base.with_inputs(base.inputs.with_columns(pl.Series("drop", drops)))
        gated = kv.gate(log, tau=0.05, base="snapkv", name="gated")
        found = kv.class_agreement(gated, arm="snapkv", gate="gated").frame
        assert found["estimate"].item() == expected


def test_degenerate_surveys(log):
    hopeless = kv.class_agreement(log, arm="snapkv", gate="gated", where="task = 'hopeless'").frame
    assert hopeless.select("estimate", "n", "status").rows() == [(None, 0, "no rows")]
    nothing = kv.class_agreement(log, arm="snapkv", gate="gated", where="task = 'none'").frame
    assert nothing.select("estimate", "n", "status").rows() == [(None, 0, "no rows")]
    single = kv.class_agreement(log, arm="snapkv", gate="gated", where="task = 'bound'").frame
    assert single.select("estimate", "n", "low", "high").rows()[0][:2] == (1.0, 1)
    assert single["status"].item() == "one cluster"


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"unit": ()}, r"class_agreement: unit=\(\) names no column; pass \('model', 'task'\)"),
        ({"unit": "tsak"}, "is not a column; did you mean 'task'"),
        ({"by": "suite"}, "class_agreement: by='suite' is no column of unit; pass one of model, task"),
        ({"gate": "snapkv"}, "class_agreement: gate_open is null in 720 of 720 rows"),
        ({"gate": "gatde"}, "'gatde' is not an arm of the log; did you mean 'gated'"),
        ({"arm": "none"}, "'none' is not an arm of the log"),
        ({"sensitive": 1.5}, r"sensitive=1\.5"),
        ({"design": kv.Design(strata="task")}, "has weights or strata, which tasks have not"),
        ({"design": kv.Design(weight="drop")}, "has weights or strata, which tasks have not"),
    ],
)
def test_wrong_arguments(log, arguments, fault):
    with pytest.raises(InputError, match=fault):
        kv.class_agreement(log, **{"arm": "snapkv", "gate": "gated", **arguments})


def test_a_gate_must_have_run_on_every_task(log):
    partial = log.with_runs(log.runs.filter((pl.col("arm") != "gated") | (pl.col("task") != "bound")))
    with pytest.raises(
        InputError, match=r"gate='gated' has no run on \(model=m, task=bound\); select the same"
    ):
        kv.class_agreement(partial, arm="snapkv", gate="gated")


def test_wrong_columns_of_a_survey(log):
    with pytest.raises(
        InputError, match="class_survey: by='quantity' has the name of a column of the survey"
    ):
        kv.class_survey(log, arm="snapkv", by=["task", "quantity"])
