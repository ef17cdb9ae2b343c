"""What all estimators share: population, split, weights, and how they refuse."""

import re

import polars as pl
import pytest

from kvstats.errors import InputError
from kvstats.estimators import (
    accuracy,
    auc,
    certificate_coverage,
    delta,
    harm_rate,
    induced_failure_rate,
    kept_fraction,
    mean_drop,
    rank_correlation,
    recovery_rate,
)
from kvstats.inference import Design
from kvstats.log import log_from_records

PAIRED = (harm_rate, induced_failure_rate, recovery_rate, delta)
CALLS = [
    *((function, {"arm": "a"}) for function in (*PAIRED, accuracy, kept_fraction)),
    (mean_drop, {}),
    (auc, {"arm": "a", "signal": "margin"}),
    (certificate_coverage, {}),
    (rank_correlation, {}),
    (rank_correlation, {"table": "runs", "x": "margin", "y": "score", "where": "arm = 'a'"}),
]
IDS = [f"{function.__name__}-{number}" for number, (function, _) in enumerate(CALLS)]


@pytest.fixture
def log(make_records):
    def task(name, shift):
        return make_records(
            {
                "full": {1.0: [1, 1, 0, 1, 1, 1]},
                "a": {0.25: [0, 1, 1, 0, 1, 0], 0.5: [1, 1, 0, 0, 1, 1]},
            },
            drop=[0.05 + 0.01 * (i + shift) for i in range(6)],
            signals={"margin": [0.3, 0.1, 0.4, 0.1 + shift, 0.5, 0.9]},
            cells=[(0.3, 0.2), (0.2, 0.3), (0.5, 0.1), (0.4, 0.2), (0.1 + shift, 0.05), (0.2, 0.1)],
            task=name,
        )

    return log_from_records([*task("qa", 0), *task("vt", 1)])


@pytest.mark.parametrize(("function", "arguments"), CALLS, ids=IDS)
def test_by_gives_what_where_gives(log, function, arguments):
    whole = function(log, **arguments, by="task")
    assert whole.by == ("task",)
    assert whole.frame["task"].to_list() == ["qa", "vt"]
    for task in ("qa", "vt"):
        condition = f"task = '{task}'"
        if "where" in arguments:
            condition += f" AND {arguments['where']}"
        one = function(log, **(arguments | {"where": condition}))
        assert one.by == ()
        assert one.frame.row(0) == whole.frame.filter(task=task).row(0)[1:]
        # Every input keeps the same fractions, so that their mean has no variance.
        assert one.frame["status"].item() == ("zero variance" if function is kept_fraction else "ok")


@pytest.mark.parametrize(("function", "arguments"), CALLS, ids=IDS)
def test_no_rows_are_null_with_a_status(log, function, arguments):
    found = function(log, **(arguments | {"where": "task = 'none'"})).frame
    assert found.rows() == [(None, None, None, None, None, 0, 0, "no rows")]
    assert function(log, **(arguments | {"where": "task = 'none'", "by": "task"})).frame.height == 0


@pytest.mark.parametrize(("function", "arguments"), CALLS, ids=IDS)
def test_unknown_names_are_answered_with_the_nearest(log, function, arguments):
    name = function.__name__
    with pytest.raises(
        InputError, match=re.escape(f"{name}: by='tsk' is not a column; did you mean 'task'?")
    ):
        function(log, **arguments, by="tsk")
    with pytest.raises(InputError, match=f"{name}: where='tsk = 1' names the unknown column 'tsk'"):
        function(log, **(arguments | {"where": "tsk = 1"}))
    with pytest.raises(InputError, match=f"{name}: by=\\['task', 'task'\\] names a column twice"):
        function(log, **arguments, by=["task", "task"])
    with pytest.raises(InputError, match=f"{name}: design.cluster='inptid' is not a column"):
        function(log, **arguments, design=Design(cluster="inptid"))
    with pytest.raises(InputError, match=f"{name}: design.weight='wt' is not a column"):
        function(log, **arguments, design=Design(weight="wt"))


@pytest.mark.parametrize("function", [*PAIRED, accuracy, kept_fraction])
def test_unknown_arms_are_answered_with_the_nearest(log, function):
    with pytest.raises(
        InputError, match=f"{function.__name__}: arm='fulll' is not an arm of the log; did you"
    ):
        function(log, arm="fulll")


@pytest.mark.parametrize("function", PAIRED)
def test_messages_about_pairs_name_the_estimator(log, function):
    alone = log.with_runs(log.runs.filter((pl.col("arm") != "full") | (pl.col("task") == "qa")))
    with pytest.raises(InputError, match=f"{function.__name__}: 12 of 24 rows of arm 'a' have no twin"):
        function(alone, arm="a")


@pytest.mark.parametrize("function", [accuracy, kept_fraction])
def test_arms_are_never_pooled(log, function):
    message = (
        f"{function.__name__}: the rows differ in arm (a, full), and pooling them estimates nothing; "
        "pass by='arm', or select one"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        function(log)
    with pytest.raises(InputError, match=re.escape(message)):
        function(log, by="task")
    by_arm = function(log, by=["task", "arm"]).frame
    assert by_arm.select("task", "arm").rows() == [("qa", "a"), ("qa", "full"), ("vt", "a"), ("vt", "full")]
    named, selected = function(log, arm="a").frame, function(log, where="arm = 'a'").frame
    assert named.equals(selected)


def test_runs_are_clustered_by_input_across_models(make_records):
    scores = {"a": {0.25: [0, 1, 1, 0], 0.5: [1, 1, 0, 0]}}
    log = log_from_records([*make_records(scores), *make_records(scores, model="other", condition="aware")])
    frame = accuracy(log).frame
    assert frame.select("n", "clusters").row(0) == (16, 4)
    by_model = accuracy(log, design=Design(cluster=["model", "input_id"])).frame
    assert by_model["clusters"].item() == 8


def test_weights_weigh_rows_and_zero_leaves_them_out(make_log):
    log = make_log({"a": {0.5: [1, 1, 0, 1]}}, signals={"w": [1.0, 2.0, 5.0, 0.0]})
    frame = accuracy(log, design=Design(weight="w")).frame
    assert frame.select("estimate", "n", "clusters").row(0) == (3 / 8, 3, 3)


def test_the_log_order_does_not_matter(make_records):
    records = make_records(
        {"full": {1.0: [1, 1, 0, 1]}, "a": {0.5: [0, 1, 1, 1]}}, signals={"margin": [0.1, 0.4, 0.2, 0.3]}
    )
    design = Design(interval="percentile")
    one, other = (log_from_records(r) for r in (records, records[::-1]))
    assert delta(one, arm="a", design=design).frame.equals(delta(other, arm="a", design=design).frame)


def test_a_by_column_with_the_name_of_a_figure_is_refused(make_log):
    log = make_log({"a": {0.5: [1, 0]}}, signals={"low": [1.0, 2.0]})
    with pytest.raises(
        InputError, match="accuracy: by='low' is the name of a column of every result; rename"
    ):
        accuracy(log, by="low")
