import re

import numpy as np
import polars as pl
import pytest
from scipy import stats

from kvstats.errors import InputError
from kvstats.inference import Design, infer, samples_by
from kvstats.statistics import Mean

CLUSTER = Design(cluster="id")


def result_of(rows, by, design=CLUSTER):
    frame = pl.DataFrame(rows, schema=["arm", "task", "id", "y"], orient="row")
    samples = samples_by("mean", frame, by, design, lambda part: (Mean(part["y"].to_numpy()), "mean"))
    return infer("mean", samples, design, {name: frame.schema[name] for name in by})


def rows_of(arm, task, ids, seed, shift=0.0):
    y = np.random.default_rng(seed).normal(shift, size=len(ids))
    return [(arm, task, str(name), value) for name, value in zip(ids, y, strict=True)]


def test_within_the_other_columns_on_joint_clusters():
    rows = [
        *rows_of("a", "x", range(9), 1),
        *rows_of("b", "x", range(9), 2, 1.0),
        *rows_of("a", "y", range(100, 112), 3),
        *rows_of("b", "y", range(200, 220), 4),
    ]
    found = result_of(rows, ("arm", "task")).contrast(arm=("b", "a"))
    assert found.by == ("task",)
    assert found.null == 0
    assert found.frame["task"].to_list() == ["x", "y"]
    assert found.frame["clusters"].to_list() == [9, 32]
    values = {(arm, task): [r[3] for r in rows if r[:2] == (arm, task)] for arm in "ab" for task in "xy"}
    paired = stats.ttest_rel(values["b", "x"], values["a", "x"])
    welch = stats.ttest_ind(values["b", "y"], values["a", "y"], equal_var=False)
    bounds = found.frame.select("low", "high").rows()
    for test, expected in zip((paired, welch), bounds, strict=True):
        assert tuple(test.confidence_interval(0.95)) == pytest.approx(expected)
    assert found.p_value()["p_value"].to_list() == pytest.approx([paired.pvalue, welch.pvalue])


def test_the_bootstrap_gives_shared_clusters_the_same_count():
    y = np.random.default_rng(5).normal(size=30)
    rows = [("a", "x", str(i), v) for i, v in enumerate(y)] + [
        ("b", "x", str(i), v + 1) for i, v in enumerate(y)
    ]
    design = Design(cluster="id", interval="percentile")
    found = result_of(rows, ("arm",), design).contrast(arm=("b", "a")).frame
    assert found["estimate"].item() == pytest.approx(1)
    assert found["status"].item() == "zero variance"
    noisy = [(arm, task, name, v + (arm == "b") * 0.1 * (int(name) % 3)) for arm, task, name, v in rows]
    found = result_of(noisy, ("arm",), design).contrast(arm=("b", "a")).frame
    assert found["se"].item() < 0.5 * result_of(noisy, ("arm",), design).frame["se"].min()


def test_several_columns_make_one_pair_of_sides():
    rows = [
        row
        for seed, (arm, task) in enumerate([("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")])
        for row in rows_of(arm, task, range(8), seed)
    ]
    result = result_of(rows, ("arm", "task"))
    found = result.contrast(arm=("a", "b"), task=("x", "y")).frame
    means = dict(zip(result.frame.select("arm", "task").rows(), result.frame["estimate"], strict=True))
    assert found["estimate"].to_list() == pytest.approx([means["a", "x"] - means["b", "y"]])


def test_a_contrast_of_a_contrast():
    rows = [
        row
        for seed, (arm, task) in enumerate([("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")])
        for row in rows_of(arm, task, range(8), seed)
    ]
    y = {(arm, task): np.array([r[3] for r in rows if r[:2] == (arm, task)]) for arm in "ab" for task in "xy"}
    found = result_of(rows, ("arm", "task")).contrast(arm=("a", "b")).contrast(task=("x", "y")).frame
    test = stats.ttest_1samp((y["a", "x"] - y["b", "x"]) - (y["a", "y"] - y["b", "y"]), 0)
    assert found.select("low", "high").row(0) == pytest.approx(tuple(test.confidence_interval(0.95)))


def test_a_missing_side_has_no_rows():
    rows = [*rows_of("a", "x", range(5), 1), *rows_of("b", "x", range(5), 2), *rows_of("b", "w", range(5), 3)]
    found = result_of(rows, ("arm", "task")).contrast(arm=("a", "b")).frame
    assert found.select("task", "status").rows() == [("w", "no rows"), ("x", "ok")]
    assert found.row(0)[1:6] == (None,) * 5


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "Result.contrast: no column is named; pass one such as arm=('gate', 'plain')"),
        (
            {"arms": ("a", "b")},
            "arms=('a', 'b') is no by-column of this result; did you mean 'arm'?",
        ),
        ({"arm": ("a", "a")}, "arm=('a', 'a') is not a pair of different values; pass (first, second)"),
        ({"arm": "ab"}, "arm='ab' is not a pair of different values; pass (first, second)"),
        ({"arm": ("a",)}, "arm=('a',) is not a pair of different values; pass (first, second)"),
        ({"arm": ("a", "zz")}, "arm='zz' is not among the values of this result; known: a, b"),
    ],
)
def test_what_is_not_there_is_refused(columns, message):
    rows = [*rows_of("a", "x", range(5), 1), *rows_of("b", "x", range(5), 2)]
    with pytest.raises(InputError, match=re.escape(message)):
        result_of(rows, ("arm",)).contrast(**columns)


def test_a_result_without_by_has_nothing_to_contrast():
    with pytest.raises(InputError, match="is no by-column of this result; pass `by` to the estimator"):
        result_of(rows_of("a", "x", range(5), 1), ()).contrast(arm=("a", "b"))


def test_strata_are_kept_and_must_agree_between_the_sides():
    design = Design(cluster="id", strata="task")
    rows = [
        row
        for seed, (arm, task) in enumerate([("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")])
        for row in rows_of(
            arm, task, range(8 * (task == "y"), 8 + 8 * (task == "y")), seed, 5 * (task == "y")
        )
    ]
    found = result_of(rows, ("arm",), design).contrast(arm=("b", "a"))
    y = {(arm, task): np.array([r[3] for r in rows if r[:2] == (arm, task)]) for arm in "ab" for task in "xy"}
    variance = sum(stats.sem(y["b", task] - y["a", task]) ** 2 / 4 for task in "xy")
    assert found.frame.select("se", "df").row(0) == pytest.approx((np.sqrt(variance), 14))
    torn = Design(cluster="id", strata="arm")
    message = (
        "Result.contrast: design.strata puts the cluster ('0',) into the stratum ('b',) on the first side "
        "and ('a',) on the second; name columns that do not differ between the sides"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        result_of(rows, ("arm",), torn).contrast(arm=("b", "a"))


@pytest.mark.parametrize("interval", ["jackknife", "percentile", "basic", "bca", "studentized"])
def test_other_intervals_of_a_contrast_are_near_the_linear_one(interval):
    rows = [*rows_of("a", "x", range(60), 1), *rows_of("b", "x", range(30, 90), 2, 1.0)]
    linear, other = (
        result_of(rows, ("arm",), Design(cluster="id", interval=kind)).contrast(arm=("b", "a"))
        for kind in ("linear", interval)
    )
    width = linear.frame["high"].item() - linear.frame["low"].item()
    for bound in ("low", "high"):
        assert other.frame[bound].item() == pytest.approx(linear.frame[bound].item(), abs=0.1 * width)
    assert other.p_value()["p_value"].item() < 0.01
