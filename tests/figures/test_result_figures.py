"""Results and reports as they are drawn by default, on a small log of known truth."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

import kvstats as kv
from kvstats.log import log_from_records

TOY = Path(__file__).parents[1] / "golden" / "toy"


@pytest.fixture
def log(make_records):
    """Thirty inputs of each of three tasks; less is right the less is kept, and most of all in the first."""
    records = []
    for task, loss in (("keys", 24), ("qa", 12), ("code", 3)):
        scores = {
            "full": {1.0: [1.0] * 30},
            **{
                arm: {
                    budget: [float(i >= loss * (1 - budget) * worse) for i in range(30)]
                    for budget in (0.125, 0.25, 0.5, 0.75, 1.0)
                }
                for arm, worse in (("layer", 1.0), ("global", 1.2))
            },
        }
        drop = [0.002 * i + (0.05 if task == "keys" else 0.0) for i in range(30)]
        records += make_records(scores, task=task, drop=drop)
    return log_from_records(records)


def test_forest(log, same_image):
    same_image(kv.harm_rate(log, arm="layer", where="budget = 0.25", by="task").plot(), "forest")


def test_forest_of_two_columns_with_its_null_value(log, same_image):
    result = kv.delta(log, arm="layer", where="budget < 0.5", by=["task", "budget"])
    same_image(result.plot(), "forest_groups")


def test_lines(log, same_image):
    result = kv.accuracy(log, where="arm IN ('layer', 'global')", by=["arm", "budget"])
    same_image(result.plot(), "lines")


def test_lines_of_several_quantities(log, same_image):
    sweep = kv.gate_sweep(log, base="layer", where="budget = 0.25", quantities=["delta", "kept_fraction"])
    same_image(sweep.plot(), "lines_quantities")


def test_lines_without_interval_where_there_is_none(log, same_image):
    same_image(kv.delta(log, arm="layer", by=["task", "budget"]).plot(), "lines_undefined")


def test_bars(log, same_image):
    result = kv.harm_rate(log, arm="layer", where="budget = 0.25", by="task")
    same_image(result.plot(kind="bars"), "bars")


def test_undefined_rows_and_open_intervals(log, same_image):
    result = kv.harm_rate(log, arm="layer", where="budget = 0.25", by="task")
    frame = result.frame.with_columns(
        pl.Series("estimate", [None, 0.4, 0.1]),
        pl.Series("low", [None, None, -np.inf]),
        pl.Series("high", [None, None, 0.3]),
        pl.Series("status", ["no rows", "one cluster", "ok"]),
    )
    same_image(replace(result, frame=frame).plot(), "undefined")


def test_axes_of_the_caller(log, same_image):
    figure = Figure(figsize=(6, 2.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    forest = kv.harm_rate(log, arm="layer", where="budget = 0.25", by="task").plot(left)
    lines = kv.accuracy(log, where="arm IN ('layer', 'global')", by=["arm", "budget"]).plot(right)
    assert forest.figure is lines.figure is figure
    assert (forest.axes, lines.axes) == ((left,), (right,))
    assert figure.get_size_inches().tolist() == [6, 2.5]
    same_image(lines, "axes_of_the_caller")


def test_report(same_image):
    same_image(kv.verify(TOY / "preregistration.yaml").plot(), "report")


def test_a_missing_interval_is_another_image(log, same_image):
    result = kv.harm_rate(log, arm="layer", where="budget = 0.25", by="task")
    frame = result.frame.with_columns(pl.when(pl.int_range(3) > 0).then("low").alias("low"))
    with pytest.raises(AssertionError, match="RMS"):
        same_image(replace(result, frame=frame).plot(), "forest")
