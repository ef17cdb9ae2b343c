import re

import polars as pl
import pytest

from kvstats.errors import InputError
from kvstats.estimators import delta
from kvstats.log import InputRecord, RunRecord, log_from_records
from kvstats.policies import (
    gate,
    midpoint_gate,
    midpoint_threshold,
    risk_controlled_gate,
    risk_controlled_threshold,
    z_gate,
    z_threshold,
)


def study(models=("m", "n"), size=60):
    """Two tasks a model; the second model's drops are on twice the scale."""
    records = []
    for scale, model in enumerate(models, start=1):
        for task, mean in (("mk3", 0.04), ("vt", 0.12)):
            for number in range(size):
                key = {"suite": "s", "model": model, "task": task, "input_id": f"{number:03}"}
                records += [
                    InputRecord(**key, drop=scale * (mean + 0.0005 * (number % 20))),
                    RunRecord(**key, arm="full", budget=1.0, score=1.0),
                    RunRecord(**key, arm="a", budget=0.25, score=float(task == "vt")),
                ]
    return log_from_records(records)


def opened(log, name, model):
    rows = log.runs.filter((pl.col("arm") == name) & (pl.col("model") == model))
    return rows.select("task", "input_id", "gate_open", "in_pilot")


MIDPOINT = {"capacity_task": "mk3", "dilution_task": "vt"}


@pytest.mark.parametrize(
    ("policy", "threshold", "arguments"),
    [
        (z_gate, z_threshold, {"theta_z": -0.5, "pilot_size": 30, "seed": 4}),
        (midpoint_gate, midpoint_threshold, MIDPOINT),
        (risk_controlled_gate, risk_controlled_threshold, {"level": 0.1, "base": "a"}),
    ],
)
def test_each_model_is_gated_at_a_threshold_of_its_own(policy, threshold, arguments):
    log = study()
    found = policy(log, **({"base": "a"} | arguments), name="g")
    for model in ("m", "n"):
        alone = study().runs.filter(pl.col("model") == model)
        tau = threshold(log, where=f"model = '{model}'", **arguments)
        direct = gate(log.with_runs(alone), tau=tau, base="a", name="g")
        assert opened(found, "g", model).equals(opened(direct, "g", model))
        assert opened(found, "g", model)["in_pilot"].sum() == tau.pilot_size


def test_one_number_on_two_scales_is_wrong_for_one_of_them():
    gated = midpoint_gate(study(), base="a", **MIDPOINT)
    gains = delta(gated, arm="midpoint_gate", baseline="a", by="model").frame["estimate"].to_list()
    assert gains == [0.5, 0.5]
    fixed = delta(gate(study(), tau=0.08, base="a"), arm="gate", baseline="a", by="model").frame
    assert fixed["estimate"].to_list() == [0.5, 0.0]


def test_the_pilot_can_be_left_out_of_the_estimate():
    gated = midpoint_gate(study(), base="a", **MIDPOINT)
    found = delta(gated, arm="midpoint_gate", baseline="a", where="NOT in_pilot", by="model").frame
    assert found["n"].to_list() == [80, 80]


def test_faults_of_a_pilot_name_the_model():
    log = study()
    with pytest.raises(
        InputError, match=re.escape("z_gate: model=m: z_threshold: pilot_size=500 exceeds the")
    ):
        z_gate(log, base="a", pilot_size=500)
    with pytest.raises(InputError, match="midpoint_gate: name='a' is taken or empty"):
        midpoint_gate(log, base="a", name="a", **MIDPOINT)
    with pytest.raises(InputError, match="z_gate: base='b' is not an arm of the log"):
        z_gate(log, base="b")
