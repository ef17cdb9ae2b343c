import re

import numpy as np
import polars as pl
import pytest

from kvstats.errors import InputError
from kvstats.estimators import (
    accuracy,
    headroom,
    headroom_slope,
    recovery_decomposition,
    recovery_headroom_ratio,
    recovery_rate,
)
from kvstats.estimators.origin_fit import fit_through_origin, scaling_cells
from kvstats.inference import Design
from kvstats.log import log_from_records

CELLS = {
    "qa": ([1, 0, 0, 0, 1, 1], {0.25: [1, 1, 0, 0, 0, 1], 0.5: [1, 0, 1, 0, 0, 0]}),
    "vt": ([1, 1, 0, 1, 1, 0], {0.25: [0, 0, 0, 0, 0, 1], 0.5: [1, 1, 0, 0, 0, 1]}),
    "easy": ([1, 1, 1, 1, 1, 1], {0.25: [0, 0, 0, 0, 0, 1], 0.5: [1, 1, 0, 0, 0, 1]}),
}


def only(result):
    assert result.frame.height == 1
    return result.frame.row(0, named=True)


@pytest.fixture
def log(make_records):
    return log_from_records(
        [
            record
            for task, (full, evicted) in CELLS.items()
            for record in make_records({"full": {1.0: full}, "a": {**evicted, 1.0: full}}, task=task)
        ]
    )


def by_hand(task):
    full, evicted = CELLS[task]
    failed = [1 - y for y in full]
    solved = [max(values) for values in zip(*evicted.values(), strict=True)]
    recovered = [f * s for f, s in zip(failed, solved, strict=True)]
    return np.array(failed), np.array(solved), np.array(recovered)


def test_headroom_is_what_accuracy_leaves(log):
    left, right = headroom(log, by="task").frame, accuracy(log, arm="full", by="task").frame
    assert left["estimate"].to_list() == pytest.approx([1 - y for y in right["estimate"]])
    assert left["low"].to_list() == pytest.approx([1 - y for y in right["high"]])
    assert left["status"].to_list() == ["ok"] * 3


def test_headroom_knows_its_ceiling(make_log):
    log = make_log({"full": {1.0: [60.0, 80.0]}})
    assert only(headroom(log, ceiling=100.0))["estimate"] == pytest.approx(30)
    with pytest.raises(InputError, match=r"headroom: ceiling=1.0 is below score in 2 of 2 rows"):
        headroom(log)
    with pytest.raises(InputError, match=r"headroom: ceiling=inf is not a finite number"):
        headroom(log, ceiling=float("inf"))


def test_the_ratio_is_of_recovered_to_failed_inputs(log):
    frame = recovery_headroom_ratio(log, arm="a", by="task").frame
    for task in ("qa", "vt"):
        failed, _, recovered = by_hand(task)
        row = frame.filter(task=task).row(0, named=True)
        assert row["estimate"] == pytest.approx(recovered.sum() / failed.sum())
        assert row["n"] == failed.sum()
    assert frame["task"].to_list() == ["qa", "vt"]  # the full cache fails no easy input
    easy = recovery_headroom_ratio(log, arm="a", where="task = 'easy'")
    assert only(easy)["status"] == "no rows"
    pooled = only(recovery_headroom_ratio(log, arm="a"))["estimate"]
    rate, left = only(recovery_rate(log, arm="a"))["estimate"], only(headroom(log))["estimate"]
    assert pooled == pytest.approx(rate / left)


def test_the_ratio_is_a_rate_where_outcomes_are(make_log):
    log = make_log({"full": {1.0: [0.0] * 8 + [1.0] * 4}, "a": {0.5: [0.0] * 12}})
    row = only(recovery_headroom_ratio(log, arm="a"))
    assert (row["estimate"], row["low"], row["status"], row["n"]) == (0, 0, "ok", 8)
    assert 0.2 < row["high"] < 0.5
    partial = make_log({"full": {1.0: [0.5, 0.0, 1.0, 0.25]}, "a": {0.5: [0.6, 0.0, 1.0, 0.0]}})
    row = only(recovery_headroom_ratio(partial, arm="a"))
    assert row["estimate"] == pytest.approx(1 / 2.25)
    # A ratio of what is not below 0: its interval is on the log scale, and has no bound below 0 either.
    assert row["low"] > 0
    assert row["low"] * row["high"] == pytest.approx(row["estimate"] ** 2)


def test_the_baseline_has_one_outcome_for_each_input(make_log):
    log = make_log(
        {"full": {1.0: [1, 0]}, "b": {0.25: [1, 0], 0.5: [0, 0]}, "a": {0.25: [1, 0], 0.5: [0, 1]}}
    )
    for estimator, column in (
        (recovery_headroom_ratio, "baseline_score"),
        (headroom_slope, "baseline_score"),
        (recovery_decomposition, "baseline_success"),
    ):
        message = f"{estimator.__name__}: baseline='{column}' differs between runs of one input"
        with pytest.raises(InputError, match=message):
            estimator(log, arm="a", baseline="b")


def test_scores_must_lie_in_the_unit_interval(make_log):
    log = make_log({"full": {1.0: [2.0, 0.0]}, "a": {0.5: [1.0, 1.0]}})
    with pytest.raises(InputError, match=r"baseline='full' has scores outside \[0, 1\] in 1 of 2 pairs"):
        recovery_headroom_ratio(log, arm="a")


def test_the_slope_is_least_squares_through_the_origin(log):
    means = [(f.mean(), r.mean()) for f, _, r in map(by_hand, CELLS)]
    x, y = np.array(means).T
    expected = np.linalg.lstsq(x[:, None], y, rcond=None)[0][0]
    row = only(headroom_slope(log, arm="a"))
    assert row["estimate"] == pytest.approx(expected)
    assert (row["n"], row["clusters"]) == (18, 18)
    one = headroom_slope(log, arm="a", cells="task", by="model")
    assert only(one)["estimate"] == pytest.approx(expected)
    single = only(headroom_slope(log, arm="a", where="task = 'qa'"))
    assert single["estimate"] == pytest.approx(
        only(recovery_headroom_ratio(log, arm="a", where="task = 'qa'"))["estimate"]
    )
    assert only(headroom_slope(log, arm="a", where="task = 'easy'"))["status"] == "undefined"
    assert only(headroom_slope(log, arm="a", where="task = 'none'"))["status"] == "no rows"


def test_a_log_and_its_table_have_the_same_slope(log):
    cells = scaling_cells(log, arm="a", by=["model", "task"])
    assert cells["task"].to_list() == ["easy", "qa", "vt"]
    assert cells["ratio"].to_list() == [None, pytest.approx(2 / 3), pytest.approx(1 / 2)]
    assert cells["n"].to_list() == [6, 6, 6]
    fitted = only(fit_through_origin(cells).slope)
    assert fitted["estimate"] == pytest.approx(only(headroom_slope(log, arm="a"))["estimate"])
    assert (fitted["n"], fitted["clusters"]) == (3, 3)
    assert scaling_cells(log, arm="a", by=None).height == 1


def test_recovery_is_product_plus_covariance(log):
    for task in CELLS:
        frame = recovery_decomposition(log, arm="a", where=f"task = '{task}'").frame
        found = dict(frame.select("quantity", "estimate").iter_rows())
        failed, solved, recovered = by_hand(task)
        assert found["headroom"] == pytest.approx(failed.mean())
        assert found["compressed_success"] == pytest.approx(solved.mean())
        assert found["recovery"] == pytest.approx(recovered.mean())
        assert found["covariance"] == pytest.approx(np.cov(failed, solved, bias=True)[0, 1])
        assert found["recovery"] == pytest.approx(found["independent"] + found["covariance"])
        assert found["frechet_low"] == pytest.approx(max(0, failed.mean() + solved.mean() - 1))
        assert found["frechet_high"] == pytest.approx(min(failed.mean(), solved.mean()))
        assert found["frechet_low"] - 1e-12 <= found["recovery"] <= found["frechet_high"] + 1e-12


def test_its_recovery_is_the_recovery_rate(log):
    parts = recovery_decomposition(log, arm="a", by="task").frame.filter(quantity="recovery")
    rate = recovery_rate(log, arm="a", by="task").frame
    assert parts.drop("quantity").equals(rate)


def test_bounds_stay_in_their_range(log):
    frame = recovery_decomposition(log, arm="a", by="task").frame
    bounds = frame.filter(frame["quantity"].str.starts_with("frechet") & frame["low"].is_not_null())
    assert bounds.height >= 3
    assert bounds["low"].min() >= 0
    assert bounds["high"].max() <= 1


def test_unknown_successes_are_refused(make_records):
    log = log_from_records(
        [*make_records({"full": {1.0: [1, 1]}}, success=None), *make_records({"a": {0.5: [1, 0]}})]
    )
    with pytest.raises(InputError, match="recovery_decomposition: baseline_success is null in 2 of 2 rows"):
        recovery_decomposition(log, arm="a")


def test_columns_of_the_design_belong_to_inputs(log):
    with pytest.raises(InputError, match="headroom_slope: design='n_kept' differs between runs of one"):
        headroom_slope(log, arm="a", design=Design(weight="n_kept"))
    assert recovery_decomposition(log, arm="a", by=["quantity", "task"]).by == ("task", "quantity")


def test_cells_are_units_of_a_fit():
    x, y = np.array([0.2, 0.4, 0.5, 0.8]), np.array([0.1, 0.1, 0.2, 0.35])
    fit = fit_through_origin({"cell": list("abcd"), "x": x, "y": y}, x="x", y="y")
    slope = (x @ y) / (x @ x)
    without = [np.delete(x, i) @ np.delete(y, i) / (np.delete(x, i) @ np.delete(x, i)) for i in range(4)]
    row = only(fit.slope)
    assert row["estimate"] == pytest.approx(slope)
    assert row["df"] == 3
    assert row["se"] == pytest.approx(np.sqrt(3 / 4 * np.sum((without - np.mean(without)) ** 2)))
    assert fit.leave_one_out["slope_without"].to_list() == pytest.approx(without)
    assert fit.leave_one_out["cell"].to_list() == list("abcd")


def test_cells_of_one_model_may_hang_together():
    cells = {"model": ["a", "a", "b", "b"], "headroom": [0.2, 0.4, 0.5, 0.8], "rho": [0.1, 0.1, 0.2, 0.35]}
    assert only(fit_through_origin(cells, cluster="model").slope)["clusters"] == 2


@pytest.mark.parametrize(
    ("cells", "status"),
    [
        ({"headroom": [], "rho": []}, "no rows"),
        ({"headroom": [0.0, 0.0], "rho": [0.0, 0.0]}, "undefined"),
        ({"headroom": [0.5], "rho": [0.1]}, "one cluster"),
        ({"headroom": [0.5, 0.25], "rho": [0.25, 0.125]}, "zero variance"),
    ],
)
def test_fits_without_an_interval(cells, status):
    fit = fit_through_origin(pl.DataFrame(cells, schema={"headroom": pl.Float64, "rho": pl.Float64}))
    assert only(fit.slope)["status"] == status
    if status == "one cluster":
        assert fit.leave_one_out["slope_without"].to_list() == [None]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            {"headroom": [0.5], "rh": [0.1]},
            "fit_through_origin: cells='rho' is not a column of numbers",
        ),
        (
            {"headroom": [0.5, None], "rho": [0.1, 0.1]},
            "cells='headroom' is null or not finite in 1 of 2 cells",
        ),
        (
            {"headroom": [0.5, np.nan], "rho": [0.1, 0.1]},
            "cells='headroom' is null or not finite in 1 of 2 cells",
        ),
    ],
)
def test_cells_that_cannot_be_used_are_refused(cells, message):
    with pytest.raises(InputError, match=re.escape(message)):
        fit_through_origin(cells)
