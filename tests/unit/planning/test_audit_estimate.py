import itertools
import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

from kvstats.errors import InputError
from kvstats.planning import audit_estimate, plan_audit
from kvstats.planning.audit_interval import gamma_interval, most_hidden


@pytest.fixture
def runs():
    random = np.random.default_rng(4)
    risk = random.beta(0.5, 6, 300)
    return pl.DataFrame(
        {
            "task": random.choice(["code", "qa", "sum"], 300),
            "input_id": [f"{i:03}" for i in range(300)],
            "risk": risk,
            "harm": random.random(300) < risk,
            "points": random.normal(size=300),
        }
    )


def plan_of(runs, **options):
    return plan_audit(runs, **{"budget": 90, "seed": 5, "harm_probability": "risk", **options})


def hajek(y, pi):
    """Estimate and linearised Poisson variance, spelled out."""
    mean = (y / pi).sum() / (1 / pi).sum()
    return mean, (((1 - pi) / pi**2) * (y - mean) ** 2).sum() / (1 / pi).sum() ** 2


@pytest.mark.parametrize("estimator", ["hajek", "difference"])
def test_estimate_and_interval_by_hand(runs, estimator):
    plan = plan_of(runs)
    sample = plan.sample
    y, pi = sample["harm"].cast(float).to_numpy(), sample["inclusion_probability"].to_numpy()
    p = sample["risk"].to_numpy() if estimator == "difference" else 0.0
    shift = runs["risk"].mean() if estimator == "difference" else 0.0
    mean, variance = hajek(y - p, pi)
    row = audit_estimate(plan, sample, estimator=estimator).frame.row(0, named=True)
    assert row["estimate"] == pytest.approx(mean + shift)
    assert row["se"] == pytest.approx(math.sqrt(variance))
    assert row["df"] == (pi < 1).sum() - 1
    share, weights = mean + shift, 1 / pi / 300
    low = stats.gamma.ppf(0.025, share**2 / variance, scale=variance / share)
    more, spread = share + weights.mean(), variance + (weights**2).mean()
    high = stats.gamma.ppf(0.975, more**2 / spread, scale=spread / more)
    assert (row["low"], row["high"]) == pytest.approx((low, high))
    assert (row["n"], row["population"], row["status"]) == (sample.height, 300, "ok")


def test_outcomes_that_are_no_rate_get_a_t_interval(runs):
    plan = plan_of(runs)
    y, pi = (plan.sample[name].to_numpy() for name in ("points", "inclusion_probability"))
    mean, variance = hajek(y, pi)
    row = audit_estimate(plan, plan.sample, outcome="points", level=0.9).frame.row(0, named=True)
    half = stats.t.isf(0.05, row["df"]) * math.sqrt(variance)
    assert (row["low"], row["high"]) == pytest.approx((mean - half, mean + half))


def test_conditional_poisson_takes_the_sen_yates_grundy_variance(runs):
    plan = plan_of(runs, design="conditional_poisson")
    design = plan.sampling_design
    drawn = plan.frame["drawn"].to_numpy()
    pi = design.inclusion_probability[drawn]
    joint = design.joint_inclusion_probability[np.ix_(drawn, drawn)]
    y = plan.sample["harm"].cast(float).to_numpy()
    mean, _ = hajek(y, pi)
    z = (y - mean) / pi / (1 / pi).sum()
    variance = 0.0
    for i, j in itertools.combinations(range(y.size), 2):
        variance += (pi[i] * pi[j] - joint[i, j]) / joint[i, j] * (z[i] - z[j]) ** 2
    row = audit_estimate(plan, plan.sample).frame.row(0, named=True)
    assert row["n"] == 90
    assert row["se"] == pytest.approx(math.sqrt(variance))


@pytest.mark.parametrize("interval", ["gamma", "cautious"])
@pytest.mark.parametrize("estimator", ["hajek", "difference"])
@pytest.mark.parametrize("value", [False, True])
def test_no_event_or_nothing_else_never_gives_a_width_of_zero(runs, value, estimator, interval):
    plan = plan_of(runs)
    repeated = plan.sample.with_columns(harm=pl.lit(value))
    row = audit_estimate(plan, repeated, estimator=estimator, interval=interval).frame.row(0, named=True)
    assert row["status"] == "ok"
    assert 0 <= row["low"] <= row["estimate"] <= row["high"] <= 1
    assert row["high"] - row["low"] > 2 / 90
    if estimator == "hajek":
        assert row["estimate"] == float(value)
        assert row["se"] is None


def test_the_bound_without_events_is_the_most_that_can_hide(runs):
    plan = plan_of(runs)
    repeated = plan.sample.with_columns(harm=pl.lit(False))
    row = audit_estimate(plan, repeated).frame.row(0, named=True)
    pi = np.sort(plan.frame["inclusion_probability"].to_numpy())
    hidden = 0
    while np.prod(1 - pi[: hidden + 1]) >= 0.025:
        hidden += 1
    assert row["high"] == pytest.approx(hidden / 300)


def test_most_hidden_by_brute_force():
    pi = np.array([0.3, 0.9, 0.5, 1.0, 0.2])
    for tail in (0.01, 0.03, 0.1, 0.3, 0.6, 0.9):
        sizes = [
            size
            for size in range(6)
            for chosen in itertools.combinations(pi, size)
            if np.prod(1 - np.array(chosen)) >= tail
        ]
        assert most_hidden(pi, tail) == max(sizes)
    assert most_hidden(np.ones(4), 0.05) == 0


def test_gamma_interval_of_equal_weights_is_the_exact_one_of_a_poisson_count():
    low, high = gamma_interval(4 * 0.01, 4 * 0.01**2, 0.01, 0.01**2, 0.95)
    assert low == pytest.approx(0.01 * stats.chi2.ppf(0.025, 8) / 2)
    assert high == pytest.approx(0.01 * stats.chi2.ppf(0.975, 10) / 2)
    assert gamma_interval(0.9, 0.5, 0.5, 0.25, 0.95)[1] == 1.0


def test_the_cautious_interval_allows_for_the_largest_weight(runs):
    plan = plan_of(runs)
    row = audit_estimate(plan, plan.sample, interval="cautious").frame.row(0, named=True)
    weight = 1 / plan.frame["inclusion_probability"].min() / 300
    expected = gamma_interval(row["estimate"], row["se"] ** 2, weight, weight**2, 0.95)
    assert (row["low"], row["high"]) == pytest.approx(expected)
    assert row["high"] > audit_estimate(plan, plan.sample).frame["high"].item()


def test_floats_are_a_rate_only_where_they_show_it(runs):
    plan = plan_of(runs)
    truth = audit_estimate(plan, plan.sample).frame
    for kind in (pl.Float64, pl.Int8):
        assert audit_estimate(plan, plan.sample.with_columns(pl.col("harm").cast(kind))).frame.equals(truth)
    nothing = plan.sample.with_columns(harm=pl.lit(0.0))
    row = audit_estimate(plan, nothing).frame.row(0, named=True)
    assert (row["estimate"], row["low"], row["status"]) == (0.0, None, "zero variance")
    counted = audit_estimate(plan, nothing.with_columns(pl.col("harm").cast(pl.Int8))).frame
    assert counted["high"].item() > 0


def test_most_of_all_runs_mirrors_few(runs):
    plan = plan_of(runs)
    few = audit_estimate(plan, plan.sample).frame.row(0, named=True)
    most = audit_estimate(plan, plan.sample.with_columns(~pl.col("harm"))).frame.row(0, named=True)
    assert most["estimate"] == pytest.approx(1 - few["estimate"])
    assert (most["low"], most["high"]) == pytest.approx((1 - few["high"], 1 - few["low"]))


def test_by_columns(runs):
    plan = plan_of(runs)
    by_task = audit_estimate(plan, plan.sample, by="task").frame
    assert by_task["task"].to_list() == ["code", "qa", "sum"]
    assert by_task["population"].to_list() == runs.group_by("task").len().sort("task")["len"].to_list()
    for row in by_task.iter_rows(named=True):
        part = plan.sample.filter(task=row["task"])
        mean, variance = hajek(part["harm"].cast(float).to_numpy(), part["inclusion_probability"].to_numpy())
        assert row["estimate"] == pytest.approx(mean)
        assert row["se"] == pytest.approx(math.sqrt(variance))
    shifted = audit_estimate(plan, plan.sample, by=["task"], estimator="difference").frame
    for row in shifted.iter_rows(named=True):
        part = plan.sample.filter(task=row["task"])
        residual = (part["harm"].cast(float) - part["risk"]).to_numpy()
        mean, _ = hajek(residual, part["inclusion_probability"].to_numpy())
        anticipated = runs.filter(task=row["task"])["risk"].mean()
        assert row["estimate"] == pytest.approx(mean + anticipated)


def test_a_group_without_a_re_run(runs):
    lonely = runs.with_columns(
        task=pl.when(pl.col("risk") == pl.col("risk").min()).then(pl.lit("rare")).otherwise("task")
    )
    plan = plan_of(lonely)
    assert "rare" not in plan.sample["task"].to_list()
    row = audit_estimate(plan, plan.sample, by="task").frame.filter(task="rare").row(0, named=True)
    assert row == {
        "task": "rare",
        "estimate": None,
        "low": None,
        "high": None,
        "se": None,
        "df": None,
        "n": 0,
        "population": 1,
        "status": "no units",
    }


def test_a_census_has_no_width(runs):
    plan = plan_of(runs, budget=300)
    row = audit_estimate(plan, plan.sample).frame.row(0, named=True)
    assert row["estimate"] == row["low"] == row["high"] == pytest.approx(runs["harm"].mean())
    assert (row["se"], row["status"]) == (0.0, "census")


def small(outcomes, pi, drawn):
    """A plan of given probabilities and draws, with its outcomes."""
    frame = pl.DataFrame({"input_id": [str(i) for i in range(len(pi))], "y": outcomes})
    plan = plan_audit(frame, budget=2, seed=0)
    object.__setattr__(
        plan,
        "frame",
        frame.with_columns(
            pl.Series("inclusion_probability", pi, dtype=pl.Float64),
            pl.Series("drawn", drawn, dtype=pl.Boolean),
        ),
    )
    return audit_estimate(plan, plan.sample, outcome="y").frame.row(0, named=True)


def test_samples_that_cannot_tell():
    # Only certain runs were drawn, and they differ: the others may be anything.
    row = small([0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.2, 0.2], [True, True, False, False])
    assert (row["estimate"], row["low"], row["high"], row["status"]) == (
        0.5,
        None,
        None,
        "only certain units",
    )
    # One uncertain run.
    row = small([0.0, 0.5, 1.0], [0.2, 0.3, 0.1], [False, True, False])
    assert (row["estimate"], row["low"], row["status"]) == (0.5, None, "one unit")
    # Scores that are all alike are no rate.
    row = small([0.5, 0.5, 1.0], [0.2, 0.3, 0.1], [True, True, False])
    assert (row["estimate"], row["low"], row["status"]) == (0.5, None, "zero variance")
    row = small([0.5, 0.5, 1.0], [0.2, 0.3, 0.1], [False, False, False])
    assert (row["estimate"], row["n"], row["status"]) == (None, 0, "no units")


def test_harm_far_above_what_the_re_runs_show_leaves_the_range():
    # All anticipated, hardly any found: the difference estimate is below 0, and cut off there.
    runs = pl.DataFrame(
        {
            "input_id": [f"{i:02}" for i in range(60)],
            "risk": [0.02] * 30 + [0.98] * 30,
            "harm": [True] + [False] * 59,
        }
    )
    for seed in range(200):
        plan = plan_audit(runs, budget=20, seed=seed, harm_probability="risk", estimator="difference")
        row = audit_estimate(plan, plan.sample).frame.row(0, named=True)
        assert 0 <= row["low"] <= row["estimate"] <= row["high"] <= 1
        assert row["high"] > row["low"]


def test_rows_may_come_in_any_order_and_with_other_columns(runs):
    plan = plan_of(runs)
    shuffled = plan.sample.sample(fraction=1, shuffle=True, seed=2).select(
        "harm", "points", "input_id", "task"
    )
    assert audit_estimate(plan, shuffled).frame.equals(audit_estimate(plan, plan.sample).frame)


def test_it_shows_as_a_table(runs):
    found = audit_estimate(plan_of(runs), plan_of(runs).sample, by="task")
    assert repr(found).startswith("harm by audit, 95% interval\ntask ")
    assert "population" in repr(found)
    assert "<table" in found._repr_html_()


def test_bad_outcomes(runs):
    plan = plan_of(runs)
    good = plan.sample
    with pytest.raises(
        InputError, match=r"audit_estimate: 1 of \d+ drawn runs have no finite outcome, such as"
    ):
        audit_estimate(plan, good.slice(1))
    nulls = good.with_columns(harm=pl.when(pl.int_range(pl.len()) > 1).then("harm"))
    with pytest.raises(InputError, match=r"2 of \d+ drawn runs have no finite outcome"):
        audit_estimate(plan, nulls)
    with pytest.raises(InputError, match=r"rows of outcomes are of runs not drawn, such as"):
        audit_estimate(plan, runs)
    with pytest.raises(InputError, match="2 rows of outcomes share their key with another; keep one a run"):
        audit_estimate(plan, pl.concat([good, good.head(1)]))
    with pytest.raises(InputError, match="outcomes='input_id' is a column that they lack"):
        audit_estimate(plan, good.drop("input_id"))
    with pytest.raises(InputError, match="outcomes='hram' is a column that they lack; did you mean 'harm'"):
        audit_estimate(plan, good, outcome="hram")
    with pytest.raises(InputError, match="outcome='task' is a column of String; name a Boolean or numeric"):
        audit_estimate(plan, good, outcome="task")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"by": "tsk"}, "audit_estimate: by='tsk' is not a column of the plan; did you mean 'task'"),
        ({"estimator": "ht"}, "estimator='ht' is not known"),
        ({"interval": "wald"}, "interval='wald' is not known; known: cautious, gamma"),
        ({"level": 1.0}, "level=1.0 is not between 0 and 1"),
    ],
)
def test_bad_arguments(runs, change, message):
    plan = plan_of(runs)
    with pytest.raises(InputError, match=message):
        audit_estimate(plan, plan.sample, **change)


def test_the_difference_needs_a_signal(runs):
    plan = plan_audit(runs, budget=90, seed=0)
    with pytest.raises(
        InputError, match="estimator='difference' needs anticipated probabilities of harm, which"
    ):
        audit_estimate(plan, plan.sample, estimator="difference")
