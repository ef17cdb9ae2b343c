"""Identities among estimators on any log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvstats.estimators import (
    accuracy,
    auc,
    delta,
    harm_rate,
    induced_failure_rate,
    kept_fraction,
    recovery_rate,
)
from kvstats.log import InputRecord, RunRecord, log_from_records
from kvstats.policies import gate
from kvstats.tables import paired

SCORES = st.sampled_from([0.0, 0.1 + 0.2, 0.3, 1.0])


@st.composite
def logs(draw):
    """Any scores of a full and an evicting arm at two budgets, with any drops."""
    records = []
    for number in range(draw(st.integers(1, 6))):
        key = {"suite": "s", "model": "m", "task": "qa", "input_id": str(number)}
        records.append(InputRecord(**key, drop=draw(st.floats(-0.2, 0.4))))
        for arm, budget in (("full", 1.0), ("a", 0.25), ("a", 0.5)):
            score, margin = draw(SCORES), draw(st.sampled_from([0.1, 0.2, 0.3]))
            records.append(
                RunRecord(
                    **key,
                    arm=arm,
                    budget=budget,
                    score=score,
                    success=score == 1,
                    kept_fraction=budget,
                    signals={"margin": margin},
                )
            )
    return log_from_records(records)


def value(result):
    return result.frame["estimate"].item()


@given(logs())
def test_harm_help_and_tie_make_one(log):
    pairs = paired(log, arm="a")
    ties = (pairs["difference"] == 0).mean()
    swapped = paired(log, arm="a")["help"].mean()
    assert value(harm_rate(log, arm="a")) + swapped + ties == pytest.approx(1)


@given(logs())
def test_delta_is_the_difference_of_accuracies(log):
    first, second = value(accuracy(log, arm="a")), value(accuracy(log, arm="full"))
    assert value(delta(log, arm="a")) == pytest.approx(first - second)
    contrast = accuracy(log, by="arm").contrast(arm=("a", "full"))
    assert value(contrast) == pytest.approx(first - second)


@given(logs())
def test_an_arm_against_itself_is_no_difference(log):
    assert value(harm_rate(log, arm="a", baseline="a")) == 0
    result = delta(log, arm="a", baseline="a")
    assert value(result) == 0
    assert result.frame["status"].item() in ("no discordant pairs", "one cluster")


@given(logs())
def test_negating_a_signal_turns_its_area_over(log):
    one, other = (value(auc(log, signal="margin", arm="a", higher=h)) for h in ("positive", "negative"))
    assert (one is None) == (other is None)
    assert one is None or one + other == pytest.approx(1)


@given(logs())
def test_recovery_is_the_share_of_inputs_that_gain(log):
    scores = {(row["input_id"], row["budget"]): row["score"] for row in log.runs.iter_rows(named=True)}
    inputs = {input_id for input_id, _ in scores}
    gains = [max(scores[i, 0.25], scores[i, 0.5]) > scores[i, 1.0] + 1e-9 for i in sorted(inputs)]
    assert value(recovery_rate(log, arm="a")) == pytest.approx(sum(gains) / len(gains))
    assert value(recovery_rate(log, arm="full")) is None


@given(logs(), st.floats(-0.3, 0.5))
def test_a_gate_lies_between_its_arms(log, tau):
    gated = gate(log, tau=tau, base="a")
    pairs = paired(gated, arm="gate", baseline="a")
    closed = pairs.filter(~pairs["gate_open"])
    assert (closed["drop"] < tau).all()
    assert pairs.filter(pairs["gate_open"])["difference"].to_list() == [0.0] * (pairs.height - closed.height)
    assert value(harm_rate(gated, arm="gate")) <= value(harm_rate(log, arm="a"))
    share = closed.height / pairs.height
    kept = value(kept_fraction(gated, arm="gate"))
    assert kept == pytest.approx(share + (1 - share) * (0.25 + 0.5) / 2)


@given(logs())
def test_induced_failures_are_harms_of_successes(log):
    induced = induced_failure_rate(log, arm="a").frame
    harmed = harm_rate(log, arm="a", where="baseline_success").frame
    assert induced.row(0) == harmed.row(0)
