import math

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from kvstats.errors import InputError
from kvstats.planning import plan_audit
from kvstats.statistics.allocation import proportional_inclusion

RISK = np.concatenate([np.full(60, 0.01), np.linspace(0.02, 0.4, 40)])


@pytest.fixture
def runs():
    return pl.DataFrame(
        {
            "task": ["b", "a"] * 50,
            "input_id": [f"{i:03}" for i in range(100)],
            "risk": RISK,
            "lost": RISK * 2,
            "text": ["x"] * 100,
        }
    )


@pytest.mark.parametrize("estimator", ["hajek", "difference"])
def test_probabilities_are_proportional_to_the_anticipated_spread(runs, estimator):
    plan = plan_audit(runs, budget=30, seed=0, harm_probability="risk", estimator=estimator, floor=0.01)
    p = plan.frame["risk"].to_numpy()
    pi = plan.frame["inclusion_probability"].to_numpy()
    centre = RISK.mean()
    # E (y - centre)^2 of y = 1 with probability p, spelled out; for the difference, E (y - p)^2.
    square = p * (1 - centre) ** 2 + (1 - p) * centre**2 if estimator == "hajek" else p * (1 - p)
    inner = pi < 1
    ratio = pi[inner] / np.sqrt(square[inner])
    assert ratio == pytest.approx(np.full(inner.sum(), ratio[0]))
    assert pi.sum() == pytest.approx(30)
    assert plan.anticipated_se == pytest.approx(math.sqrt((square * (1 / pi - 1)).sum()) / 100)
    plain = p * (1 - centre) ** 2 + (1 - p) * centre**2
    assert plan.simple_random_se == pytest.approx(math.sqrt(plain.sum() * (1 / 0.3 - 1)) / 100)
    assert plan.worth == pytest.approx((plan.simple_random_se / plan.anticipated_se) ** 2)
    assert plan.worth > 1


@pytest.mark.parametrize("floor", [0.1, 0.25, 1.0])
@pytest.mark.parametrize("budget", [20, 100, 160])
def test_the_floor_bounds_the_variance_whatever_the_outcomes(floor, budget):
    size = 200
    frame = pl.DataFrame({"input_id": [f"{i:03}" for i in range(size)], "s": [1.0] * 160 + [0.0] * 40})
    plan = plan_audit(frame, budget=budget, seed=0, spread="s", floor=floor)
    pi, share = plan.frame["inclusion_probability"].to_numpy(), budget / size
    bound = (1 - floor * share) / (floor * (1 - share))
    random = np.random.default_rng(5)
    worst = np.where(np.arange(size) < 160, 0.0, 1.0)  # all that varies is where the signal sees nothing
    for outcome in (worst, 1 - worst, *random.standard_normal((20, size))):
        ratio = ((1 - pi) / pi * outcome**2).sum() / ((1 - share) / share * outcome**2).sum()
        assert ratio <= bound * (1 + 1e-9)
        if outcome is worst:
            assert ratio == pytest.approx(bound)
    assert bound == pytest.approx(1.0) if floor == 1 else bound > 1 / floor


def test_the_floor_bounds_the_probabilities(runs):
    pi = plan_audit(runs, budget=20, seed=0, harm_probability="risk").frame["inclusion_probability"]
    assert pi.min() >= 0.25 * 0.2 - 1e-12
    equal = plan_audit(runs, budget=20, seed=0, harm_probability="risk", floor=1.0)
    assert equal.frame["inclusion_probability"].to_numpy() == pytest.approx(0.2)
    assert equal.worth == pytest.approx(1)


def test_without_a_signal_all_runs_are_as_likely(runs):
    plan = plan_audit(runs, budget=20, seed=0)
    assert plan.frame["inclusion_probability"].to_numpy() == pytest.approx(0.2)
    assert plan.harm_probability is None


def test_a_spread_of_ones_own(runs):
    plan = plan_audit(runs, budget=20, seed=0, spread="lost", floor=0.1)
    lost = plan.frame["lost"].to_numpy()
    expected = proportional_inclusion(lost, 20.0, floor=0.02)
    assert plan.frame["inclusion_probability"].to_numpy() == pytest.approx(expected)


def test_the_order_of_rows_does_not_matter_and_the_seed_does(runs):
    one = plan_audit(runs, budget=30, seed=3, harm_probability="risk")
    shuffled = plan_audit(
        runs.sample(fraction=1, shuffle=True, seed=1), budget=30, seed=3, harm_probability="risk"
    )
    assert_frame_equal(one.frame, shuffled.frame)
    other = plan_audit(runs, budget=30, seed=4, harm_probability="risk")
    assert not one.frame["drawn"].equals(other.frame["drawn"])
    assert_frame_equal(one.frame.drop("drawn"), other.frame.drop("drawn"))


@pytest.mark.parametrize("design", ["poisson", "conditional_poisson"])
def test_the_drawn_runs(runs, design):
    sizes = []
    for seed in range(30):
        plan = plan_audit(runs, budget=30, seed=seed, harm_probability="risk", design=design)
        assert plan.sample.columns == [*runs.columns, "inclusion_probability"]
        assert plan.sample.height == plan.frame["drawn"].sum()
        sizes.append(plan.sample.height)
    assert abs(np.mean(sizes) - 30) < 4
    assert (np.ptp(sizes) > 0) == (design == "poisson")


def test_all_runs(runs):
    plan = plan_audit(runs, budget=100, seed=0, harm_probability="risk")
    assert plan.sample.height == 100
    assert plan.anticipated_se == 0
    assert math.isnan(plan.worth)


def test_keys(runs):
    assert plan_audit(runs, budget=9, seed=0).key == ("task", "input_id")
    assert plan_audit(runs, budget=9, seed=0, key=["input_id"]).key == ("input_id",)
    null = runs.with_columns(condition=pl.lit(None, dtype=pl.String))
    assert plan_audit(null, budget=9, seed=0).key == ("task", "input_id", "condition")


def test_repr(runs):
    plan = plan_audit(runs, budget=30, seed=0, harm_probability="risk", design="conditional_poisson")
    text = repr(plan)
    assert text.startswith(
        "AuditPlan: 30 of 100 runs to repeat (conditional_poisson, for the hajek estimator)"
    )
    assert f"anticipated se {plan.anticipated_se:.3g}" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budget": 1}, "plan_audit: budget=1 is not a whole number from 2 to the 100 runs"),
        ({"budget": 101}, "budget=101 is not a whole number from 2 to the 100 runs"),
        ({"budget": 30.0}, "budget=30.0 is not a whole number"),
        ({"seed": -1}, "seed=-1 is not a whole number of at least 0"),
        ({"estimator": "hayek"}, "estimator='hayek' is not known; did you mean 'hajek'"),
        ({"design": "systematic"}, "design='systematic' is not known"),
        ({"floor": 0.0}, "floor=0.0 leaves runs that are never drawn"),
        ({"floor": 1.5}, r"floor=1.5 is not in \[0, 1\]"),
        ({"estimator": "difference"}, "estimator='difference' needs anticipated probabilities of harm"),
        ({"harm_probability": "rsk"}, "harm_probability='rsk' is not a numeric column; did you mean 'risk'"),
        ({"harm_probability": "text"}, "harm_probability='text' is not a numeric column"),
        ({"spread": "text"}, "spread='text' is not a numeric column"),
        ({"key": ["task"]}, r"key=\['task'\] does not tell apart 100 of 100 runs"),
        ({"key": ["inputid"]}, "key='inputid' is not a column; did you mean 'input_id'"),
        ({"key": []}, "is empty"),
    ],
)
def test_bad_input(runs, change, message):
    with pytest.raises(InputError, match=message):
        plan_audit(runs, **{"budget": 30, "seed": 0, **change})


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -0.1, 1.1])
def test_bad_probabilities(runs, value):
    bad = runs.with_columns(risk=pl.when(pl.col("input_id") == "007").then(pl.lit(value)).otherwise("risk"))
    with pytest.raises(
        InputError, match=r"harm_probability='risk' has 1 of 100 rows that are null, not finite"
    ):
        plan_audit(bad, budget=30, seed=0, harm_probability="risk")


def test_frames_that_cannot_be_planned(runs):
    with pytest.raises(
        InputError, match="key=None is empty, and the runs have none of the log's key columns"
    ):
        plan_audit(runs.select("risk"), budget=3, seed=0)
    with pytest.raises(InputError, match="runs='drawn' is a column that a plan adds"):
        plan_audit(runs.with_columns(drawn=True), budget=3, seed=0)
    with pytest.raises(InputError, match="from 2 to the 0 runs"):
        plan_audit(runs.clear(), budget=3, seed=0)
