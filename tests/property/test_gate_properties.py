"""Identities of gates, their thresholds and what is estimated of them, on any log."""

import math
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvstats.estimators import (
    accuracy,
    delta,
    gate_open_rate,
    gate_plateau,
    gate_sweep,
    harm_rate,
    harm_ratio,
    kept_fraction,
    prevalence,
    recovery_indicator,
    sensitivity,
)
from kvstats.log import InputRecord, RunRecord, log_from_records
from kvstats.policies import gate, harm_bounds, midpoint_threshold, z_threshold

DROPS = st.integers(-20, 40).map(lambda n: n / 100)
TAUS = st.integers(-25, 45).map(lambda n: n / 100)


@st.composite
def logs(draw, least=1):
    """Any successes of a full and an evicting arm at two budgets, with any drops."""
    records = []
    for number in range(draw(st.integers(least, 8))):
        key = {"suite": "s", "model": "m", "task": draw(st.sampled_from("cd")), "input_id": str(number)}
        records.append(InputRecord(**key, drop=draw(DROPS)))
        for arm, budget in (("full", 1.0), ("a", 0.25), ("a", 0.5)):
            success = draw(st.booleans())
            records.append(
                RunRecord(
                    **key, arm=arm, budget=budget, score=float(success), success=success, kept_fraction=budget
                )
            )
    return log_from_records(records)


def value(result):
    return result.frame["estimate"].item()


def swept(log, taus):
    frame = gate_sweep(log, base="a", taus=taus).frame
    return {
        (tau, quantity): estimate
        for tau, quantity, estimate in frame.select("tau", "quantity", "estimate").rows()
    }


@given(logs(), TAUS)
def test_a_sweep_is_the_gate_at_any_threshold(log, tau):
    found, gated = swept(log, [tau]), gate(log, tau=tau, base="a")
    assert found[tau, "delta"] == pytest.approx(value(delta(gated, arm="gate", baseline="a")))
    assert found[tau, "kept_fraction"] == pytest.approx(value(kept_fraction(gated, arm="gate")))
    assert found[tau, "gate_open"] == pytest.approx(value(gate_open_rate(gated, arm="gate")))


@given(logs(), st.lists(TAUS, min_size=2, max_size=5, unique=True))
def test_a_higher_threshold_closes_keeps_and_spares_more(log, taus):
    found = swept(log, taus)
    for low, high in zip(sorted(taus), sorted(taus)[1:], strict=False):
        assert found[high, "gate_open"] <= found[low, "gate_open"]
        assert found[high, "kept_fraction"] >= found[low, "kept_fraction"] - 1e-12
        if found[low, "false_open"] is not None:
            assert found[high, "false_open"] <= found[low, "false_open"]
            assert found[high, "false_closed"] >= found[low, "false_closed"]
            assert found[low, "false_open"] + found[low, "false_closed"] <= 1 + 1e-12


@given(logs())
def test_the_plateau_holds_the_best_threshold(log):
    sweep = gate_sweep(log, base="a", quantities=["delta"])
    for row in gate_plateau(sweep).frame.iter_rows(named=True):
        assert row["low_tau"] <= row["best_tau"] <= row["high_tau"]
        assert row["best_delta"] == pytest.approx(sweep.frame["estimate"].max())
        assert 1 <= row["as_good"] <= row["swept"] == sweep.frame.height


@given(logs(), TAUS)
def test_the_harm_ratio_times_the_reference_s_harm_is_the_arm_s(log, tau):
    gated = gate(log, tau=tau, base="a")
    own, reference = value(harm_rate(gated, arm="gate")), value(harm_rate(gated, arm="a"))
    ratio = value(harm_ratio(gated, arm="gate", reference="a"))
    assert (ratio is None) == (reference == 0)
    assert ratio is None or ratio * reference == pytest.approx(own)


@given(logs())
def test_the_mean_indicator_is_gains_minus_losses(log):
    found = dict(recovery_indicator(log, arm="a").frame.select("quantity", "estimate").rows())
    assert found["mean"] == pytest.approx(found["gained"] - found["lost"])
    assert found["gained"] + found["same"] + found["lost"] == pytest.approx(1)
    assert found["lost"] == pytest.approx(value(harm_rate(log, arm="a")))
    assert found["identity"] is None


@given(logs(), TAUS, TAUS)
def test_prevalence_grows_with_the_threshold_up_to_sensitivity_times_accuracy(log, one, other):
    low, high = sorted((one, other))
    assert value(prevalence(log, arm="a", tau=low)) <= value(prevalence(log, arm="a", tau=high))
    destroyed = value(sensitivity(log, arm="a"))
    everything = value(prevalence(log, arm="a", tau=math.inf))
    assert everything == pytest.approx((destroyed or 0) * value(accuracy(log, arm="full")))


@given(logs(least=2), st.integers(1, 8), st.integers(-4, 4))
def test_calibrated_gates_do_not_depend_on_the_scale_of_the_signal(log, scale, shift):
    # Powers of two keep the drops exact, so that ties stay ties.
    factor, offset = 2.0**scale, shift / 4
    scaled = replace(log, inputs=log.inputs.with_columns(drop=pl.col("drop") * factor + offset))
    if log.inputs["drop"].n_unique() > 1:
        one, other = z_threshold(log), z_threshold(scaled)
        assert other.value == pytest.approx(one.value * factor + offset)
        assert other.se == pytest.approx(one.se * factor)
    means = {task: log.inputs.filter(pl.col("task") == task)["drop"] for task in "cd"}
    if all(column.len() > 1 for column in means.values()) and means["c"].mean() < means["d"].mean() - 1e-6:
        tasks = {"capacity_task": "c", "dilution_task": "d", "pilot_size": None}
        one, other = midpoint_threshold(log, **tasks), midpoint_threshold(scaled, **tasks)
        assert other.value == pytest.approx(one.value * factor + offset)
        assert other.se == pytest.approx(one.se * factor)


@given(logs(), st.floats(0.05, 0.9), st.floats(0.05, 0.9), st.floats(0.05, 0.9))
def test_a_laxer_level_or_confidence_opens_the_gate_no_less(log, level, confidence, other):
    def loosest(level, confidence):
        table = harm_bounds(log, base="a", level=level, confidence=confidence, reduce="any")
        return table.filter("passes")["tau"].min()

    def no_looser(strict, lax):
        return strict is None or lax <= strict

    strict, lax = sorted((level, other))
    assert no_looser(loosest(strict, confidence), loosest(lax, confidence))
    lax, strict = sorted((confidence, other))
    assert no_looser(loosest(level, strict), loosest(level, lax))
