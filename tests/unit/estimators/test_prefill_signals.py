import re

import numpy as np
import pytest
from scipy.stats import norm, spearmanr

from kvstats import Design, rank_correlation
from kvstats.errors import InputError
from kvstats.estimators.prefill_signals import task_order, task_separation
from kvstats.log import InputRecord, log_from_records

MEANS = {"mk3": 0.0, "qa": 0.8, "vt": 1.2, "fwe": 0.5}


def made(seed=0, n=25, models=("m",), means=None, **fields):
    rng = np.random.default_rng(seed)
    return log_from_records(
        [
            InputRecord(
                suite="s",
                model=model,
                task=task,
                input_id=f"{task}{i}",
                drop=float(np.tanh((mean + rng.normal()) / 4)),
                signals={"entropy": float(-mean + rng.normal()), **fields},
            )
            for model in models
            for task, mean in (means or MEANS).items()
            for i in range(n)
        ]
    )


def test_margin_by_signal_and_model():
    log = made(models=("m1", "m2"))
    result = task_separation(
        log, below=["mk3"], above=["qa", "vt"], leave_out=["fwe"], signals=["drop", "entropy"], by="model"
    )
    assert result.frame.select("model", "signal").rows() == [
        ("m1", "drop"),
        ("m1", "entropy"),
        ("m2", "drop"),
        ("m2", "entropy"),
    ]
    inputs = log.inputs.to_dicts()
    for row in result.frame.to_dicts():
        mean = {
            task: np.mean(
                [r[row["signal"]] for r in inputs if (r["model"], r["task"]) == (row["model"], task)]
            )
            for task in MEANS
        }
        assert row["estimate"] == pytest.approx(min(mean["qa"], mean["vt"]) - mean["mk3"])
        assert row["n"] == 75
    assert (result.frame["low"] < result.frame["estimate"]).all()


def test_the_whole_order():
    log = made(means={"a": 0.0, "b": 0.5, "c": 1.0})
    up = task_order(log, tasks=["a", "b", "c"], signals=["drop", "entropy"]).frame
    down = task_order(log, tasks=["c", "b", "a"], signals=["drop", "entropy"]).frame
    assert up["estimate"].to_list() == pytest.approx((1 - down["estimate"]).to_list())
    assert up["estimate"][0] > 0.5 > up["estimate"][1]


def test_correlation_with_the_drop():
    log = made()
    result = rank_correlation(log, x="entropy", y="drop", table="inputs").frame
    expected = spearmanr(log.inputs["entropy"], log.inputs["drop"]).statistic
    assert result["estimate"][0] == pytest.approx(expected)
    assert result["n"][0] == 100


def test_every_task_is_named():
    log = made()
    for call, message in (
        (lambda: task_separation(log, below=["mk3"], above=["qa", "vt"]), "leave the task 'fwe' unmentioned"),
        (lambda: task_order(log, tasks=["mk3", "qa", "vt"]), "leave the task 'fwe' unmentioned"),
        (
            lambda: task_separation(log, below=["mk3"], above=["mk3"]),
            "task_separation: above='mk3' is in below already; name each task once",
        ),
        (
            lambda: task_separation(log, below=["mk4"], above=["qa"]),
            "task_separation: below='mk4' is no task of the inputs; did you mean 'mk3'?",
        ),
        (
            lambda: task_separation(log, below=[], above=["qa"], leave_out=["mk3", "vt", "fwe"]),
            "task_separation: below=[] names no task",
        ),
        (
            lambda: task_order(log, tasks=["mk3"], leave_out=["qa", "vt", "fwe"]),
            "task_order: tasks=['mk3'] is no order; name two tasks or more",
        ),
        (
            lambda: task_order(log, tasks=list(MEANS), signals=["entropi"]),
            "task_order: signals='entropi' is not a numeric column of the inputs; did you mean 'entropy'?",
        ),
        (lambda: task_order(log, tasks=list(MEANS), signals="drop"), "is not a list of different columns"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            call()


def test_a_task_without_inputs_in_a_cell_is_refused():
    both = made(models=("m1",)).inputs.to_dicts() + made(models=("m2",), means={"mk3": 0.0}).inputs.to_dicts()
    log = log_from_records(
        [
            InputRecord(suite="s", model=r["model"], task=r["task"], input_id=r["input_id"], drop=r["drop"])
            for r in both
        ]
    )
    with pytest.raises(InputError, match=r"above='qa' has no input in a cell where other tasks have some"):
        task_separation(log, below=["mk3"], above=["qa", "vt"], leave_out=["fwe"], by="model")
    with pytest.raises(InputError, match=r"task_order: tasks='qa' has no input in a cell where other tasks"):
        task_order(log, tasks=["mk3", "qa", "vt", "fwe"], by="model")
    with pytest.raises(InputError, match=r"task_order: tasks='b' has no input in a cell where other tasks"):
        task_order(made(means={"a": 0.0, "b": 0.5}), tasks=["a", "b"], by="task")


def test_a_contrast_of_signals_names_their_column():
    found = task_order(made(), tasks=list(MEANS), signals=["drop", "entropy"], by="signal")
    assert found.by == ("signal",)
    assert found.contrast(signal=("drop", "entropy")).frame["estimate"][0] > 0
    with pytest.raises(InputError, match="task_order: by='signal' is a signal of the log, and the name of a"):
        task_order(made(signal=1.0), tasks=list(MEANS), by="signal")


def test_degenerate_inputs():
    log = made()
    nothing = task_separation(log, below=["mk3"], above=["qa"], where="drop > 5")
    assert nothing.frame.select("estimate", "status", "n").row(0) == (None, "no rows", 0)
    none = task_order(log, tasks=["mk3", "qa"], where="drop > 5")
    assert none.frame.select("estimate", "status", "n").row(0) == (None, "no rows", 0)
    alone = made(n=1, means={"mk3": 0.0, "qa": 1.0})
    single = task_separation(alone, below=["mk3"], above=["qa"]).frame
    assert single["low"][0] is None
    assert single["status"][0] == "one cluster of a class"
    missing = made(entropy=None)
    with pytest.raises(InputError, match="task_order: entropy is null in 100 of 100 rows"):
        task_order(missing, tasks=list(MEANS), signals=["entropy"])


@pytest.mark.slow
def test_intervals_hold_the_true_margin_and_concordance():
    means = {"a": 0.0, "b": 1.0, "c": 1.6}
    truth = np.mean([norm.cdf(d / np.sqrt(2)) for d in (1.0, 1.6, 0.6)])
    held = np.zeros(2)
    for seed in range(400):
        log = made(seed, n=20, means=means)
        inputs = log.inputs
        log = log.__class__(
            inputs=inputs.with_columns(raw=-inputs["entropy"]), input_signals=("entropy", "raw")
        )
        margin = task_separation(log, below=["a"], above=["b", "c"], signals=["raw"]).frame.row(0, named=True)
        order = task_order(log, tasks=list(means), signals=["raw"], design=Design()).frame.row(0, named=True)
        held += [margin["low"] <= 1.0 <= margin["high"], order["low"] <= truth <= order["high"]]
    assert (held / 400 > 0.92).all(), held / 400
    assert (held / 400 < 0.98).all(), held / 400
