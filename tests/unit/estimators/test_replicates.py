import re

import numpy as np
import polars as pl
import pytest
from scipy import stats

from kvstats.errors import InputError
from kvstats.estimators import accuracy, delta
from kvstats.estimators.draws import draw_variance
from kvstats.estimators.replicates import replicate_spread
from kvstats.inference import adjust
from kvstats.log import RunRecord, log_from_records

SEEDS = {"a": (0.454, 0.398, 0.486), "b": (0.738, 0.747, 0.729)}
TABLE = {
    "model": ["a"] * 3 + ["b"] * 3,
    "seed": [1, 2, 3] * 2,
    "delta": [*SEEDS["a"], *SEEDS["b"]],
}


def test_figures_are_summarised_cell_by_cell():
    found = replicate_spread(TABLE, value="delta", by="model")
    for (model, values), row, mean in zip(
        SEEDS.items(), found.spread.iter_rows(named=True), found.mean.frame.iter_rows(named=True), strict=True
    ):
        assert (row["model"], row["n"]) == (model, 3)
        assert row["mean"] == pytest.approx(np.mean(values))
        assert row["sd"] == pytest.approx(np.std(values, ddof=1))
        assert row["range"] == pytest.approx(max(values) - min(values))
        assert (row["lowest"], row["highest"]) == (min(values), max(values))
        interval = stats.ttest_1samp(values, 0).confidence_interval()
        assert (mean["low"], mean["high"]) == pytest.approx(tuple(interval))


def random_log(make_records, draws=3, inputs=8):
    generator = np.random.default_rng(5)
    return log_from_records(
        [
            record
            for seed in range(draws)
            for record in make_records(
                {"random": {b: generator.random(inputs).tolist() for b in (0.25, 0.5)}}, seed=seed
            )
        ]
    )


def test_a_result_knows_its_cells(make_records):
    log = random_log(make_records)
    result = accuracy(log, by=["task", "seed"])
    found = replicate_spread(result)
    assert found.mean.by == ("task",)
    assert found.spread["mean"].item() == pytest.approx(result.frame["estimate"].mean())


def test_one_replicate_has_no_spread():
    found = replicate_spread({"seed": [1], "estimate": [0.5]})
    assert found.spread["sd"].item() is None
    assert found.mean.frame["status"].item() == "one cluster"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"value": "delt"},
            "cells='delt' is not a column of numbers; did you mean 'delta'?",
        ),
        (
            {"value": "delta", "over": "seeds"},
            "over='seeds' is not a column; did you mean 'seed'",
        ),
        ({"value": "delta"}, "replicate_spread: over='seed' names a replicate twice in one cell"),
        (
            {"value": "delta", "by": ["model", "seed"]},
            "by=['model', 'seed'] names the replicates",
        ),
        ({"value": "delta", "by": "models"}, "replicate_spread: by='models' is not a column"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        replicate_spread(TABLE, **arguments)


def test_tests_of_many_cells_are_adjusted_together(make_records):
    records = [
        *make_records({"plain": {0.5: [0] * 9 + [1]}, "gate": {0.5: [1] * 9 + [0]}}, task="keys"),
        *make_records({"plain": {0.5: [0, 1, 0, 1]}, "gate": {0.5: [1, 1, 0, 0]}}, task="qa"),
    ]
    result = delta(log_from_records(records), arm="gate", baseline="plain", by="task")
    p = result.p_value()["p_value"].to_list()
    assert adjust(p).tolist() == pytest.approx([2 * p[0], p[1]])


def frame_of(log, **arguments):
    return {
        row["quantity"]: row
        for row in draw_variance(log, arm="random", **arguments).frame.iter_rows(named=True)
    }


def test_draws_that_share_their_inputs_are_crossed(make_records):
    log = random_log(make_records)
    found = frame_of(log)
    table = log.runs.group_by("seed", "input_id").agg(pl.col("score").mean()).sort("seed", "input_id")
    y = table["score"].to_numpy().reshape(3, 8)
    rest = y - y.mean(0) - y.mean(1, keepdims=True) + y.mean()
    within = (rest**2).sum() / (2 * 7)
    between = (8 * y.mean(1).var(ddof=1) - within) / 8
    assert found["within"]["estimate"] == pytest.approx(within)
    assert found["between"]["estimate"] == pytest.approx(max(between, 0))
    assert (found["within"]["layout"], found["within"]["draws"], found["within"]["inputs"]) == (
        "crossed",
        3,
        8,
    )
    low, high = found["within"]["low"], found["within"]["high"]
    assert (low, high) == pytest.approx([14 * within / stats.chi2.ppf(q, 14) for q in (0.975, 0.025)])


def test_draws_with_inputs_of_their_own_are_nested(make_records):
    generator = np.random.default_rng(1)
    records, values = [], []
    for seed in range(4):
        y = (generator.random(6) + seed).tolist()
        values.append(y)
        kept = make_records({"random": {0.5: [0.0] * 6 * seed + y}}, seed=seed)
        records += kept[6 * seed :]
    found = frame_of(log_from_records(records))
    anova = stats.f_oneway(*values)
    within = np.mean([np.var(y, ddof=1) for y in values])
    assert found["within"]["layout"] == "nested"
    assert found["within"]["estimate"] == pytest.approx(within)
    between = (anova.statistic - 1) * within / 6
    assert found["between"]["estimate"] == pytest.approx(between)
    assert found["share_between"]["estimate"] == pytest.approx(between / (between + within))
    assert found["between"]["low"] < between < found["between"]["high"]
    assert (
        0
        < found["share_between"]["low"]
        < found["share_between"]["estimate"]
        < found["share_between"]["high"]
        < 1
    )


def test_differences_to_an_arm_can_be_split(make_records):
    levels = [0.2 * number for number in range(4)]
    records = make_records({"full": {1.0: levels}})
    for seed in range(3):
        records += make_records({"random": {0.5: [0.1 * seed + level for level in levels]}}, seed=seed)
    found = frame_of(log_from_records(records), baseline="full")
    # Nothing is left within draws once each input's own level is taken off.
    assert (found["within"]["estimate"], found["within"]["status"]) == (0, "zero variance")
    assert found["between"]["estimate"] == pytest.approx(np.var([0, 0.1, 0.2], ddof=1))
    assert (found["share_between"]["estimate"], found["share_between"]["low"]) == (1, None)
    same = frame_of(
        log_from_records(
            make_records({"random": {0.5: levels}})
            + records[:4]
            + make_records({"random": {0.5: levels}}, seed=1)
        ),
        baseline="full",
    )
    assert [same[name]["estimate"] for name in ("between", "within", "share_between")] == [0, 0, None]


def test_draws_that_differ_less_than_chance(make_records):
    log = log_from_records(
        [
            record
            for seed, y in enumerate(([0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]))
            for record in make_records({"random": {0.5: y}}, seed=seed)
        ]
    )
    found = frame_of(log)
    assert (found["between"]["estimate"], found["between"]["status"]) == (0, "negative, set to 0")
    assert found["share_between"]["estimate"] == 0


def test_there_must_be_something_to_split(make_log, make_records):
    assert frame_of(make_log({"random": {0.5: [1, 0]}}))["within"]["status"] == "one draw"
    one = log_from_records([r for s in (0, 1) for r in make_records({"random": {0.5: [s]}}, seed=s)])
    assert frame_of(one)["between"]["status"] == "one input"
    assert draw_variance(one, arm="random", by="task").frame.columns[0] == "task"


def test_inputs_in_some_draws_only_are_refused(make_records):
    log = log_from_records(
        [
            *make_records({"random": {0.5: [1, 0, 1]}}, seed=0),
            *make_records({"random": {0.5: [1, 0]}}, seed=1),
        ]
    )
    message = "draw_variance: draw='seed' has 2 of 3 inputs in 2 values and others in 1; select inputs"
    with pytest.raises(InputError, match=re.escape(message)):
        draw_variance(log, arm="random")
    with pytest.raises(InputError, match="draw_variance: draw='seeds' is not a column; did you mean 'seed'"):
        draw_variance(log, arm="random", draw="seeds")
    with pytest.raises(InputError, match=r"draw_variance: level=1\.5 is not between 0 and 1"):
        draw_variance(log, arm="random", level=1.5)


def test_draws_are_compared_at_the_same_budgets():
    def made(grids):
        return log_from_records(
            [
                RunRecord(
                    suite="s",
                    model="m",
                    task="qa",
                    input_id=str(i),
                    arm="random",
                    budget=budget,
                    seed=seed,
                    score=budget + 0.01 * (i + seed),
                )
                for seed, grid in enumerate(grids)
                for i in range(4)
                for budget in grid
            ]
        )

    log = made([(0.25, 0.5), (0.5,)])
    with pytest.raises(InputError, match="draw_variance: budgets differ between inputs or draws, and means"):
        draw_variance(log, arm="random")
    with pytest.raises(InputError, match="draw_variance: budgets differ between inputs or draws, and means"):
        draw_variance(log, arm="random", by="task")
    alike = draw_variance(log, arm="random", where="budget = 0.5").frame
    assert alike["draws"].to_list() == [2, 2, 2]
    assert draw_variance(made([(0.5, 0.25), (0.25, 0.5)]), arm="random").frame["draws"][0] == 2
