"""The closed forms against simulated logs and against brute force."""

import math

import numpy as np
import polars as pl
import pytest

import kvstats as kv
from kvstats.planning import simulate_log
from kvstats.planning.truth import any_event, separation, truth_of


@pytest.mark.parametrize("correlation", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("chances", [[0.3], [0.1, 0.4, 0.2], [0.0, 1.0], [0.25, 0.25]])
def test_any_event_against_numerical_integration(chances, correlation):
    u = (np.arange(200_000) + 0.5) / 200_000
    shared = math.sqrt(correlation)
    none = np.prod([shared * (u >= q) + (1 - shared) * (1 - q) for q in chances], axis=0)
    assert abs(any_event(chances, correlation) - (1 - none.mean())) < 1e-5


def test_separation_inverts_the_area_of_two_normal_classes():
    for area in (0.2, 0.5, 0.9):
        assert abs(0.5 * math.erfc(-separation(area) / 2) - area) < 1e-12


@pytest.fixture(scope="module")
def made():
    return simulate_log(
        seed=21,
        tasks=["qa", "code"],
        arms=["plain", "gate"],
        budgets=[0.25, 0.5],
        inputs=4000,
        accuracy={"qa": 0.85, "code": 0.4},
        harm={0.25: 0.2, 0.5: 0.08},
        recovery={"plain": 0.03, "gate": 0.1},
        intraclass_correlation=0.4,
        cells=2,
        drop_separation=2.0,
    )


def estimated(log, row):
    """The result of the estimator that a row of the truth names, within the row's task, arm and budget."""
    place = {name: row[name] for name in ("task", "arm", "budget") if row[name] is not None}
    where = " AND ".join(f"{k} = {v!r}" for k, v in place.items() if k != "arm") or None
    name = row["estimator"]
    arguments = {"arm": row["arm"]} if row["arm"] else {}
    if name == "auc":
        arguments |= {"signal": row["signal"], "outcome": row["outcome"]}
    if name in ("certificate_coverage", "rank_correlation"):
        arguments = {}
        where = "arm = 'plain'"
    return getattr(kv, name)(log, where=where, **arguments).frame.row(0, named=True)


def test_every_estimator_recovers_its_truth(made):
    scores = []
    for row in made.truth.iter_rows(named=True):
        cell = estimated(made.log, row)
        if row["estimator"] == "kept_fraction":
            assert cell["estimate"] == row["value"]
        else:
            scores.append((cell["estimate"] - row["value"]) / cell["se"])
    assert len(scores) == 2 * (2 + 2 * 2 * 9 + 2) + 2
    # The standardised errors of about 80 correlated estimates: none is out of the ordinary.
    assert max(map(abs, scores)) < 4
    assert abs(np.mean(scores)) < 0.8
    assert 0.6 < np.std(scores) < 1.5


def test_truths_without_meaning_are_left_out():
    made = simulate_log(seed=0, inputs=5, accuracy=0.0, harm=0.0, recovery=0.5)
    assert set(made.truth["estimator"]) == {
        "accuracy",
        "kept_fraction",
        "harm_rate",
        "delta",
        "auc",
        "mean_drop",
        "recovery_rate",
    }
    assert made.truth.filter(estimator="auc", outcome="induced_failure").is_empty()
    perfect = simulate_log(seed=0, inputs=5, accuracy=1.0, harm=0.0, recovery=0.0)
    assert perfect.truth.filter(estimator="auc").is_empty()
    assert perfect.truth.filter(pl.col("estimator") == "recovery_rate")["value"].to_list() == [0.0]


def test_a_drop_without_correlation_says_nothing():
    made = simulate_log(seed=0, inputs=5, intraclass_correlation=0.0, drop_separation=3.0)
    areas = made.truth.filter(signal="drop", outcome="induced_failure")["value"]
    assert areas.to_list() == pytest.approx([0.5] * 3)


def test_the_truth_is_that_of_the_scenario_alone():
    assert truth_of.__module__ == "kvstats.planning.truth"
    one, other = (simulate_log(seed=seed, inputs=seed).truth for seed in (1, 2))
    assert one.equals(other)
