"""The figures of the studies as they are drawn by default, on small logs of known truth."""

import math

import pytest

import kvstats as kv
from kvstats.log import InputRecord, RunRecord, log_from_records


def gate_log():
    """Return runs that a gate on D helps: tasks of low D lose what others keep."""
    records = []
    for place, (task, lost) in enumerate((("keys", 9), ("chain", 4), ("qa", 1))):
        for number in range(30):
            wave = math.sin(7 * number + place)
            drop = 0.04 + 0.02 * place + 0.01 * wave
            key = {"suite": "s", "model": "m", "task": task, "input_id": f"{number:02}"}
            layers = [0.5 + drop + 0.02 * math.sin(layer + wave) - drop * layer / 6 for layer in range(12)]
            records.append(InputRecord(**key, drop=drop, head_agreement_per_layer=layers))
            full = (number + place) % 10 < 9 - 2 * place
            records.append(
                RunRecord(**key, arm="full", budget=1.0, score=full, success=full, kept_fraction=1.0)
            )
            for budget in (0.125, 0.25, 0.5, 0.75):
                keeps = (7 * number + place) % 10 >= lost * (1 - budget) and (full or number == 9)
                records.append(
                    RunRecord(
                        **key, arm="plain", budget=budget, score=keeps, success=keeps, kept_fraction=budget
                    )
                )
    return kv.gate(log_from_records(records), tau=0.06, base="plain", name="gated")


def certificate_log():
    """Return runs whose certificate foretells induced failures, and one head in it best."""
    records = []
    for number in range(60):
        key = {"suite": "s", "model": "m", "task": "qa", "input_id": f"{number:02}"}
        full = number % 6 > 0
        records.append(RunRecord(**key, arm="full", budget=1.0, score=full, success=full))
        for budget in (0.25, 0.5, 0.75):
            wave = (math.sin(12.9898 * number + 78 * budget) + 1) / 2
            success = full and wave > 0.7 * (1 - budget)
            noise = [
                [(math.sin(3 * number + 5 * layer + 11 * head) + 1) / 2 for head in range(4)]
                for layer in range(6)
            ]
            noise[2][1] += 1.0 - wave
            records.append(
                RunRecord(
                    **key,
                    arm="poisson",
                    budget=budget,
                    score=success,
                    success=success,
                    signals={
                        "certificate": 1.8 - budget - wave + 0.3 * math.sin(number),
                        "logprob": -1.0 + 0.5 * full + 0.8 * math.sin(5 * number + budget),
                    },
                    certificate_per_head=noise,
                )
            )
    return log_from_records(records)


GATE, CERTIFICATES = gate_log(), certificate_log()

FIGURES = {
    "accuracy_against_budget": (GATE, {"arm": "gated", "baseline": "plain"}),
    "accuracy_against_kept": (GATE, {"arm": "gated", "baseline": "plain"}),
    "agreement_profiles": (GATE, {}),
    "budget_sweep": (CERTIFICATES, {"arm": "poisson"}),
    "delta_matrix": (GATE, {"arm": "gated", "baseline": "plain", "where": "task != 'qa' OR budget > 0.2"}),
    "drop_by_task": (GATE, {"tau": 0.06}),
    "gated_recomputation": (CERTIFICATES, {"arm": "poisson", "confidence": "logprob"}),
    "layer_head_map": (CERTIFICATES, {"arm": "poisson", "outcome": "induced_failure"}),
    "mixture_curve": (
        GATE,
        {"arm": "gated", "baseline": "plain", "tasks": ["keys"], "level": 0.2, "where": "budget < 1"},
    ),
    "operating_curve": (CERTIFICATES, {"arm": "poisson"}),
    "recovery_against_headroom": (GATE, {"arm": "plain"}),
    "recovery_histogram": (GATE, {"arm": "plain", "by": "task"}),
    "signal_panel": (CERTIFICATES, {"arm": "poisson"}),
    "tau_sensitivity": (GATE, {"base": "plain"}),
    "three_questions": (CERTIFICATES, {"arm": "poisson"}),
}


def test_every_figure_has_an_image():
    assert set(FIGURES) == set(kv.figures.__all__)


@pytest.mark.parametrize("name", FIGURES)
def test_named_figure(name, same_image):
    log, arguments = FIGURES[name]
    same_image(getattr(kv.figures, name)(log, **arguments), name)


def test_the_tolerance_is_below_what_other_data_change(same_image, monkeypatch):
    monkeypatch.delenv("KVSTATS_NEW_BASELINES", raising=False)
    log, arguments = FIGURES["accuracy_against_budget"]
    other = kv.figures.accuracy_against_budget(log, **arguments, where="task != 'qa'")
    with pytest.raises(AssertionError, match="RMS"):
        same_image(other, "accuracy_against_budget")
