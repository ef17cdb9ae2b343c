"""Tables of a gating study that follow from printed figures, recomputed by the estimators.

What does not follow to the last digit: in table 1 six upper bounds are rounded up where they would round
down, and in table 7 the threshold 0.024 is the midpoint 0.0235.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import kvstats as kv
from kvstats.log import InputRecord, RunRecord, log_from_records

PUBLISHED = Path(__file__).parents[3] / "shared" / "published"

pytestmark = pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published tables are not here")

WILSON = kv.Design(interval="wilson")
HUNDREDTH, THOUSANDTH = 0.005 + 1e-9, 0.0005 + 1e-9
"""Half a unit of the last printed digit."""


def published(name):
    return pl.read_csv(PUBLISHED / f"page_{name}.csv")


@pytest.fixture(scope="module")
def recoveries():
    """A log of as many inputs and recoveries as table 1 counts; the context is the suite."""
    records = []
    for row in published("table01_recovery_rate").iter_rows(named=True):
        for number in range(row["n"]):
            key = {
                "suite": row["context"],
                "model": row["model"],
                "task": row["task"],
                "input_id": str(number),
            }
            recovered = float(number < row["recovered"])
            records += [
                RunRecord(**key, arm="full", budget=1.0, score=0.0),
                RunRecord(**key, arm="plain", budget=0.25, score=recovered),
            ]
    return log_from_records(records)


def test_table_1_has_the_recovery_rates_with_wilson_intervals(recoveries):
    by = ["task", "model", "suite"]
    found = kv.recovery_rate(recoveries, arm="plain", by=by, design=WILSON).frame
    joined = published("table01_recovery_rate").join(
        found, left_on=["task", "model", "context"], right_on=by, how="inner"
    )
    assert joined.height == found.height == 48
    outward = 0
    for row in joined.iter_rows(named=True):
        assert row["n"] == row["n_right"]
        assert row["estimate"] == pytest.approx(row["rho"], abs=HUNDREDTH)
        assert row["low"] == pytest.approx(row["wilson_low"], abs=HUNDREDTH)
        if row["wilson_high"] - row["high"] > HUNDREDTH:
            outward += 1
            assert row["wilson_high"] - row["high"] < 0.01
        else:
            assert row["high"] == pytest.approx(row["wilson_high"], abs=HUNDREDTH)
    assert outward == 6


def test_table_1_pooled_over_the_cells_of_the_hardest_needle(recoveries):
    design = kv.Design(interval="wilson", cluster=["suite", "model", "task", "input_id"])
    pooled = {"arm": "plain", "where": "task = 'niah_multikey_3'", "design": design}
    row = kv.recovery_rate(recoveries, **pooled).frame.row(0, named=True)
    assert (row["n"], row["clusters"], round(row["estimate"] * row["n"])) == (526, 526, 2)
    assert (round(row["low"], 3), round(row["high"], 3)) == (0.001, 0.014)


@pytest.mark.parametrize("row", range(4))
def test_table_7_has_thresholds_halfway_between_two_tasks(row):
    figures = published("table07_calibration").row(row, named=True)
    means = {"capacity": figures["mean_d_capacity"], "dilution": figures["mean_d_dilution"]}
    log = log_from_records(
        [
            InputRecord(suite="s", model="m", task=task, input_id=str(n), drop=mean + 0.001 * (-1) ** n)
            for task, mean in means.items()
            for n in range(20)
        ]
    )
    found = kv.midpoint_threshold(log, capacity_task="capacity", dilution_task="dilution")
    assert found.pilot_size == 40
    assert found.value == pytest.approx(figures["tau_calibrated"], abs=THOUSANDTH)


def test_table_12_averages_the_deltas_of_tasks():
    table = published("table12_delta_by_task")
    tasks = ("MK3", "VT", "FWE", "QA_1")
    log = log_from_records(
        [
            RunRecord(
                suite=row["evictor"],
                model=row["model"],
                task=task,
                input_id=str(n),
                arm=arm,
                budget=0.25,
                score=score,
            )
            for row in table.iter_rows(named=True)
            for task in tasks
            for n in range(2)
            for arm, score in (("plain", 0.0), ("gated", row[task]))
        ]
    )
    grand = []
    for column, where in (("all", None), ("no_mk3", "task != 'MK3'")):
        found = kv.delta(log, arm="gated", baseline="plain", where=where, by=["suite", "model"]).frame
        joined = table.join(found, left_on=["evictor", "model"], right_on=["suite", "model"])
        assert joined.height == 16
        assert (joined["estimate"] - joined[column]).abs().max() <= THOUSANDTH
        grand.append(kv.delta(log, arm="gated", baseline="plain", where=where).frame["estimate"].item())
    assert [round(mean, 3) for mean in grand] == [0.229, 0.045]
    assert round(table["open_non_mk3"].mean(), 3) == 0.894


@pytest.fixture(scope="module")
def harms():
    """A log of as many harmed runs as table 27 counts, those of the gate among those of plain eviction."""
    records = []
    for row in published("table27_harm_rate").iter_rows(named=True):
        for number in range(row["n"]):
            key = {"suite": "s", "model": "m", "task": row["task"], "input_id": f"{number:03}"}
            for arm in ("plain", "gated"):
                harmed = number < round(row[arm] * row["n"])
                records.append(RunRecord(**key, arm=arm, budget=row["budget"], score=float(not harmed)))
    full = [
        RunRecord(suite="s", model="m", task=task, input_id=f"{number:03}", arm="full", budget=1.0, score=1.0)
        for task in published("table27_harm_rate")["task"].unique()
        for number in range(500)
    ]
    return log_from_records([*records, *full])


def test_table_27_has_harm_rates_by_task_and_budget(harms):
    table = published("table27_harm_rate")
    for arm in ("plain", "gated"):
        found = kv.harm_rate(harms, arm=arm, by=["task", "budget"]).frame
        joined = table.join(found, on=["task", "budget"])
        assert joined.height == 16
        assert (joined["estimate"] - joined[arm]).abs().max() <= THOUSANDTH


def test_table_27_pooled_gives_the_share_of_harm_that_the_gate_leaves(harms):
    by_task = kv.harm_ratio(harms, arm="gated", reference="plain", by="task").frame
    found = {task: round(ratio, 3) for task, ratio in by_task.select("task", "estimate").rows()}
    assert found == {"niah_multikey_3": 0.034, "FWE": 0.551, "QA_1": 1.0, "VT": 0.984}
    pooled = kv.harm_ratio(harms, arm="gated", reference="plain").frame.row(0, named=True)
    assert round(pooled["estimate"], 3) == 0.355
    assert pooled["low"] < 0.355 < pooled["high"]
