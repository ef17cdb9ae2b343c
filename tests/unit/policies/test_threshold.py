import math
import re

import polars as pl
import pytest

from kvstats.errors import InputError
from kvstats.log import InputRecord, RunRecord, log_from_records
from kvstats.policies import Threshold, gate, without_pilot, z_threshold
from kvstats.policies.threshold import as_threshold

SCORES = {"full": {1.0: [1, 1, 0]}, "snapkv": {0.25: [0, 0, 1]}}


def entropy_log(models=("m",)):
    """Four inputs a model, with a drop and another signal."""
    records = []
    for model in models:
        for number in range(4):
            key = {"suite": "s", "model": model, "task": "t", "input_id": str(number)}
            records += [
                InputRecord(**key, drop=0.05 * number, signals={"entropy": 2.0 + number}),
                RunRecord(**key, arm="full", budget=1.0, score=1.0),
                RunRecord(**key, arm="snapkv", budget=0.25, score=0.0),
            ]
    return log_from_records(records)


def opened(log, name="gate"):
    return log.runs.filter(pl.col("arm") == name)["gate_open"].to_list()


def test_a_threshold_gates_as_its_number(make_log):
    log = make_log(SCORES, drop=[0.05, 0.10, 0.07])
    one, other = gate(log, tau=0.07, base="snapkv"), gate(log, tau=Threshold(0.07), base="snapkv")
    assert one.runs.equals(other.runs)


def test_a_threshold_of_another_signal_is_refused():
    message = (
        "gate: tau=Threshold(0.07 of 'drop', given) is a threshold of another signal than 'entropy': "
        "whatever rescales the signal must recalibrate tau; calibrate one with z_threshold, "
        "midpoint_threshold or risk_controlled_threshold, signal='entropy'"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        gate(entropy_log(), tau=Threshold(0.07), base="snapkv", signal="entropy")
    with pytest.raises(InputError, match="is a threshold of another signal than 'drop'"):
        gate(entropy_log(), tau=Threshold.given(3.0, signal="entropy"), base="snapkv")


def test_a_plain_number_for_a_signal_other_than_drop_is_refused_unless_it_is_stated():
    message = (
        "gate: tau=3.0 is a plain number, and 'entropy' is not on the scale of 'drop': a sweep that rescales "
        "D must recalibrate tau; calibrate one with z_threshold, midpoint_threshold or "
        "risk_controlled_threshold, or state it on purpose with Threshold.given(3.0, signal='entropy')"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        gate(entropy_log(), tau=3.0, base="snapkv", signal="entropy")
    stated = gate(entropy_log(), tau=Threshold.given(3.0, signal="entropy"), base="snapkv", signal="entropy")
    assert opened(stated) == [False, True, True, True]


def test_registrations_write_a_threshold_as_a_mapping():
    tau = {"value": 3.0, "signal": "entropy"}
    assert opened(gate(entropy_log(), tau=tau, base="snapkv", signal="entropy")) == [False, True, True, True]
    with pytest.raises(InputError, match=r"gate: tau=\{'value': 'x'\} is no threshold: Expected `float`"):
        gate(entropy_log(), tau={"value": "x"}, base="snapkv")
    with pytest.raises(InputError, match="is a threshold of another signal than 'entropy'"):
        gate(entropy_log(), tau={"value": 3.0}, base="snapkv", signal="entropy")


def test_a_calibrated_threshold_is_refused_on_another_model():
    log = entropy_log(("m", "n"))
    threshold = z_threshold(log, where="model = 'm'")
    message = "was calibrated on other inputs than those of model=n, which has a scale of its own; calibrate"
    with pytest.raises(InputError, match=message):
        gate(log, tau=threshold, base="snapkv")
    stated = gate(log, tau=Threshold.given(threshold.value), base="snapkv")
    assert len(opened(stated)) == 8


def test_rows_of_pilot_inputs_are_marked_and_can_be_left_out():
    log = entropy_log()
    threshold = z_threshold(log, where="input_id IN ('0', '2')")
    gated = gate(log, tau=threshold, base="snapkv")
    marks = gated.runs.select("arm", "in_pilot").rows()
    assert [mark for arm, mark in marks if arm == "gate"] == [True, False, True, False]
    assert {mark for arm, mark in marks if arm != "gate"} == {None}
    assert "in_pilot" not in gate(log, tau=0.07, base="snapkv").runs.columns
    rest = without_pilot(log, threshold)
    assert rest.inputs["input_id"].to_list() == ["1", "3"]
    assert rest.runs["input_id"].unique().sort().to_list() == ["1", "3"]
    assert without_pilot(log, Threshold(0.1)).runs.equals(log.runs)


def test_pilot_inputs_with_a_condition_are_left_out_in_that_condition_only():
    records = [
        InputRecord(suite="s", model="m", task="t", input_id=str(n), condition=condition, drop=0.1 * n)
        for n in range(3)
        for condition in ("aware", "stream")
    ]
    log = log_from_records(records)
    rest = without_pilot(log, z_threshold(log, where="condition = 'aware'"))
    assert rest.inputs["condition"].to_list() == ["stream"] * 3


@pytest.mark.parametrize(
    ("method", "words"),
    [("given", "none: the number was given"), ("z", "none about harm"), ("midpoint", "halfway between")],
)
def test_what_is_promised_is_said(method, words):
    assert words in Threshold(0.1, method=method).guarantee


def test_what_a_risk_controlled_threshold_promises():
    threshold = Threshold(
        0.1,
        method="risk_controlled",
        pilot=(("s", "m", "t", "1", None),),
        harm_level=0.05,
        confidence=0.9,
        harm_bound=0.04,
    )
    assert threshold.guarantee == (
        "with a confidence of at least 0.9 over the draw of 1 independent inputs, at most a share of 0.05 of "
        "the population that they were drawn from is harmed: inputs of the same tasks in the same "
        "proportions, with the same model, evictor and budgets"
    )
    assert repr(threshold).endswith("harm rate at most 0.04 with confidence 0.9, level 0.05)")


@pytest.mark.parametrize("value", [math.nan, "0.1", True, None])
def test_values_that_are_no_numbers_are_refused(value):
    with pytest.raises(InputError, match=r"Threshold: value=.* is not a number"):
        Threshold(value)
    with pytest.raises(InputError, match=r"f: tau=.* is not a number; pass the threshold of the signal"):
        as_threshold("f", value, "drop")


@pytest.mark.parametrize("signal", ["", None])
def test_signals_without_a_name_are_refused(signal):
    with pytest.raises(InputError, match=r"Threshold: signal=.* is no name"):
        Threshold(0.1, signal)
