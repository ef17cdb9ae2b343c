"""Policies on a log with a run that ended in an error: it stays what it is, without a score."""

import polars as pl
import pytest

from kvstats.errors import InputError
from kvstats.estimators import accuracy
from kvstats.log import InputRecord, RunRecord, log_from_records
from kvstats.policies import Threshold, gate, input_oracle, recompute, z_threshold


def make(error: str | None = "OutOfMemoryError"):
    """Three inputs of two arms, of which the last failed, or has no signals for no reason that is told."""
    records = []
    for number, drop in enumerate((0.05, 0.10)):
        key = {"suite": "s", "model": "m", "task": "t", "input_id": str(number)}
        records += [
            InputRecord(**key, drop=drop),
            RunRecord(**key, arm="full", budget=1.0, score=1.0),
            RunRecord(**key, arm="poisson", budget=0.5, score=0.0, signals={"certificate": 1.0 + number}),
        ]
    key["input_id"] = "failed"
    records += [
        InputRecord(**key),
        RunRecord(**key, arm="full", budget=1.0, error=error),
        RunRecord(**key, arm="poisson", budget=0.5, error=error),
    ]
    return log_from_records(records)


def arm_of(log, name: str, *columns: str) -> list[tuple]:
    return log.runs.filter(pl.col("arm") == name).select("input_id", "score", "error", *columns).rows()


def test_the_gate_decides_nothing_on_a_failed_run():
    gated = gate(make(), tau=0.07, base="poisson")
    assert arm_of(gated, "gate", "gate_open") == [
        ("0", 1.0, None, False),
        ("1", 0.0, None, True),
        ("failed", None, "OutOfMemoryError", None),
    ]
    with pytest.raises(InputError, match=r"score is null in 1 of 3 rows.*where=\"score IS NOT NULL\""):
        accuracy(gated, where="arm = 'gate'")
    found = accuracy(gated, where="arm = 'gate' AND score IS NOT NULL")
    assert found.frame.select("estimate", "n").rows() == [(0.5, 2)]


def test_an_oracle_does_not_choose_for_a_failed_run():
    found = arm_of(input_oracle(make(), base="poisson"), "input_oracle", "gate_open")
    assert found == [
        ("0", 1.0, None, False),
        ("1", 1.0, None, False),
        ("failed", None, "OutOfMemoryError", None),
    ]
    with pytest.raises(InputError, match=r"input_oracle: score is null in 1 of 3 rows"):
        input_oracle(make(error=None), base="poisson")


@pytest.mark.parametrize(
    "policy",
    [
        lambda log: recompute(log, base="poisson", signal="certificate", share=0.5, name="p"),
        lambda log: recompute(log, base="poisson", signal="certificate", share=0.5, margin="whole", name="p"),
    ],
)
def test_a_failed_run_is_not_counted_among_those_that_are_ranked(policy):
    assert arm_of(policy(make()), "p", "rerun") == [
        ("0", 0.0, None, 0.0),
        ("1", 1.0, None, 1.0),
        ("failed", None, "OutOfMemoryError", 0.0),
    ]


def test_a_signal_that_is_missing_without_an_error_is_refused():
    log = make(error=None)
    with pytest.raises(InputError, match=r"gate: signal='drop' is null for 1 inputs.*or leave these out$"):
        gate(log, tau=0.07, base="poisson")
    with pytest.raises(InputError, match=r"certificate' is null for 1 of 3 rows of arm 'poisson'"):
        recompute(log, base="poisson", signal="certificate", share=0.5)


def test_a_calibration_names_the_condition_that_leaves_failed_inputs_out():
    with pytest.raises(InputError, match=r"leave these out with where=\"drop IS NOT NULL\"$"):
        z_threshold(make(), pilot_size=None)
    found = z_threshold(make(), pilot_size=None, where="drop IS NOT NULL")
    assert isinstance(found, Threshold)
