"""Identities of oracles, mixtures, batches and curves on any log."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvstats.estimators import (
    accuracy,
    accuracy_at_kept,
    batch_kept_fraction,
    best_accuracy,
    compression,
    delta,
    headroom_recovered,
    kept_fraction,
    memory_crossover,
    mixture_crossing,
    mixture_delta,
    recovery_decomposition,
)
from kvstats.estimators.origin_fit import fit_through_origin
from kvstats.log import InputRecord, RunRecord, log_from_records
from kvstats.policies import gate, input_oracle, task_oracle
from kvstats.statistics import CurveCrossing, crossed_draws

SCORES = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@st.composite
def logs(draw):
    """Any scores of a full and an evicting arm at two budgets in two tasks, with a gate and both oracles."""
    records = []
    for task in ("keys", "qa"):
        for number in range(draw(st.integers(1, 4))):
            key = {"suite": "s", "model": "m", "task": task, "input_id": str(number)}
            records.append(InputRecord(**key, drop=draw(st.sampled_from([0.05, 0.1]))))
            for arm, budget in (("full", 1.0), ("a", 0.25), ("a", 0.5)):
                score = draw(SCORES)
                fields = {"score": score, "success": score == 1, "kept_fraction": budget}
                records.append(RunRecord(**key, arm=arm, budget=budget, **fields))
    log = gate(log_from_records(records), tau=0.07, base="a")
    return input_oracle(task_oracle(log, base="a", protect_tasks=["keys"]), base="a")


def value(result):
    return result.frame["estimate"].item()


@given(logs())
def test_no_policy_on_both_arms_beats_the_input_oracle(log):
    best = value(accuracy(log, arm="input_oracle"))
    for arm in ("a", "gate", "task_oracle"):
        assert value(accuracy(log, arm=arm)) <= best + 1e-12
        share = value(headroom_recovered(log, arm=arm, baseline="a"))
        assert share is None or share <= 1 + 1e-12


@given(logs(), st.floats(0.01, 0.99))
def test_a_mixture_lies_between_its_groups_and_at_the_tasks_share_is_the_whole(log, share):
    call = {"arm": "gate", "baseline": "a", "tasks": ["keys"]}
    rest, mixed, own = mixture_delta(log, **call, shares=[0.0, share, 1.0]).frame["estimate"]
    assert min(rest, own) - 1e-12 <= mixed <= max(rest, own) + 1e-12
    rows = log.runs.filter(arm="a")
    of_keys = (rows["task"] == "keys").mean()
    whole = value(mixture_delta(log, **call, shares=[of_keys]))
    assert whole == pytest.approx(value(delta(log, arm="gate", baseline="a")), abs=1e-12)


@given(logs(), st.floats(-1, 1))
def test_at_the_crossing_the_mixture_has_the_level(log, level):
    call = {"arm": "gate", "baseline": "a", "tasks": ["keys"]}
    crossing = value(mixture_crossing(log, **call, level=level))
    if crossing is not None and 0 <= crossing <= 1:
        assert value(mixture_delta(log, **call, shares=[crossing])) == pytest.approx(level, abs=1e-9)


@given(logs(), st.integers(1, 40))
def test_larger_batches_keep_more_and_one_is_the_gate_itself(log, size):
    frame = batch_kept_fraction(log, arm="gate", batch=[size, size + 1]).frame
    first, second = frame["estimate"]
    assert first <= second + 1e-12 <= 1 + 1e-9
    kept = value(kept_fraction(log, arm="gate"))
    for draws in ("independent", "without_replacement"):
        single = value(batch_kept_fraction(log, arm="gate", batch=1, draws=draws))
        assert single == pytest.approx(kept)
    assert value(compression(log, arm="gate")) == pytest.approx(1 / kept)


@given(logs())
def test_the_chosen_budget_is_at_most_the_best_and_at_least_the_worst(log):
    by_budget = accuracy(log, arm="gate", by="budget").frame["estimate"]
    assert value(best_accuracy(log, arm="gate", folds=1)) == pytest.approx(by_budget.max())
    crossed = value(best_accuracy(log, arm="gate"))
    scores = log.runs.filter(arm="gate")["score"]
    assert scores.min() - 1e-12 <= crossed <= scores.max() + 1e-12


@given(logs(), st.floats(0.25, 0.5))
def test_a_curve_lies_between_its_points(log, kept):
    points = accuracy(log, arm="a", by="budget").frame["estimate"]
    read = value(accuracy_at_kept(log, arm="a", kept=[kept]))
    assert points.min() - 1e-9 <= read <= points.max() + 1e-9


@given(logs())
def test_a_crossing_has_the_same_outcome_on_both_sides(log):
    call = {"arm": "gate", "baseline": "a"}
    found = value(memory_crossover(log, **call))
    assert found == pytest.approx(value(memory_crossover(log, arm="a", baseline="gate"))) or found is None
    if found is not None:
        first, second = (value(accuracy_at_kept(log, arm=arm, kept=[found])) for arm in ("gate", "a"))
        assert first == pytest.approx(second, abs=1e-6)


@given(logs())
def test_recovery_is_within_its_bounds(log):
    found = dict(recovery_decomposition(log, arm="a").frame.select("quantity", "estimate").iter_rows())
    assert found["recovery"] == pytest.approx(found["independent"] + found["covariance"], abs=1e-12)
    assert found["frechet_low"] - 1e-12 <= found["recovery"] <= found["frechet_high"] + 1e-12


@given(st.lists(st.tuples(st.floats(0.01, 1), st.floats(0, 1)), min_size=2, max_size=8), st.floats(0.1, 5))
def test_a_slope_follows_the_units_of_the_rates(cells, factor):
    x, y = (list(column) for column in zip(*cells, strict=True))
    plain = value(fit_through_origin({"headroom": x, "rho": y}).slope)
    scaled = value(fit_through_origin({"headroom": x, "rho": [factor * v for v in y]}).slope)
    assert scaled == pytest.approx(factor * plain, abs=1e-12)
    fit = fit_through_origin({"headroom": x, "rho": y}).leave_one_out["slope_without"].drop_nulls()
    assert fit.min() - 1e-9 <= plain <= fit.max() + 1e-9


@given(st.integers(0, 10_000))
def test_crossings_do_not_depend_on_the_order_of_rows_or_on_repeats(seed):
    generator = np.random.default_rng(seed)
    y, kept = generator.random(24), generator.random(24)
    nodes = np.arange(24) % 6
    order = generator.permutation(24)
    first = CurveCrossing(y, kept, nodes, 3, 3).value(np.ones(24))
    second = CurveCrossing(y[order], kept[order], nodes[order], 3, 3).value(2 * np.ones(24))
    assert first == pytest.approx(second, nan_ok=True)


@given(st.integers(2, 5), st.integers(2, 6), st.integers(0, 1000))
def test_mean_squares_split_the_sum_of_squares(draws, inputs, seed):
    y = np.random.default_rng(seed).normal(size=(draws, inputs))
    found = crossed_draws(y)
    of_inputs = draws * np.sum((y.mean(axis=0) - y.mean()) ** 2)
    parts = found.between_df * found.between_square + found.within_df * found.within_square + of_inputs
    assert parts == pytest.approx(np.sum((y - y.mean()) ** 2))
