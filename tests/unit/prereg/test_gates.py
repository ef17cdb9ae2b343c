"""Registrations name gates, their thresholds and what is asked of them."""

import pytest

from kvstats.errors import InputError
from kvstats.prereg import verify

BASE = """\
study: gates
registered_at: 2026-10-31T12:00:00Z
data:
  runs: [logs/*.jsonl]
policies:
  - policy: gate
    arguments: {tau: 0.035, base: evict}
claims:
  - id: gain
    statement: The gate gains.
    estimator: delta
    arguments: {arm: gate, baseline: evict}
    where: budget = 0.5 AND task = 'qa'
    supported: estimate > 0
"""


def rows(path):
    return verify(path).claims[0].rows


@pytest.mark.parametrize(
    "policy",
    [
        "gate\n    arguments: {tau: {value: 0.035}, base: evict}",
        "gate\n    arguments: {tau: {value: 0.035, signal: drop}, base: evict, signal: drop}",
        "z_gate\n    arguments: {base: evict, name: gate, pilot: task = 'qa', theta_z: -0.3}",
    ],
)
def test_thresholds_are_numbers_mappings_or_calibrated(register, toy, policy):
    plain = rows(register(base=BASE))
    old = "gate\n    arguments: {tau: 0.035, base: evict}"
    assert rows(register((old, policy), base=BASE)) == plain
    assert plain[0]["estimate"] == 0.4


@pytest.mark.parametrize(
    ("tau", "message"),
    [
        ("{value: x}", "tau={'value': 'x'} of gate: expected float"),
        ("{signal: drop}", "tau={'signal': 'drop'} of gate: object missing required field value"),
        ("{value: 0.1, signal: ''}", "threshold: signal='' is no name"),
        ("high", "tau='high' of gate: expected "),
    ],
)
def test_thresholds_that_are_none_are_refused(register, toy, tau, message):
    with pytest.raises(InputError, match=message):
        verify(register(("tau: 0.035", f"tau: {tau}"), base=BASE))


def test_a_threshold_of_another_signal_makes_no_arm(register, toy):
    (claim,) = verify(register(("tau: 0.035", "tau: {value: 0.1, signal: drop_interior}"), base=BASE)).claims
    assert claim.verdict == "undefined"
    assert "the arm 'gate' could not be added: policy 'gate': gate: tau=" in claim.reason
    assert "is a threshold of another signal than 'drop'" in claim.reason


@pytest.mark.parametrize(
    ("estimator", "arguments", "estimate"),
    [
        ("harm_ratio", "{arm: gate, reference: evict}", 0.0),
        ("gate_open_rate", "{arm: gate}", 0.6),
        ("sensitivity", "{arm: evict}", 0.4),
        ("prevalence", "{arm: evict, tau: 0.015}", 0.2),
        ("gate_sweep", "{base: evict, taus: [0.035], quantities: [delta]}", 0.4),
    ],
)
def test_estimators_of_gates_can_be_registered(register, toy, estimator, arguments, estimate):
    path = register(
        ("estimator: delta", f"estimator: {estimator}"),
        ("arguments: {arm: gate, baseline: evict}", f"arguments: {arguments}"),
        ("supported: estimate > 0", "supported: estimate >= 0"),
        base=BASE,
    )
    (claim,) = verify(path).claims
    assert claim.rows[0]["estimate"] == pytest.approx(estimate)
    assert claim.verdict == "supported"


def test_a_claim_on_what_only_the_fallback_gained_is_undefined(register, toy):
    path = register(
        ("estimator: delta", "estimator: gate_sweep"),
        ("{arm: gate, baseline: evict}", "{base: evict, taus: [1.0], quantities: [delta]}"),
        base=BASE,
    )
    (claim,) = verify(path).claims
    assert claim.rows[0]["status"] == "gate open on under 5%"
    assert claim.verdict == "undefined"


def test_rules_read_the_columns_of_a_sweep(register, toy):
    path = register(
        ("estimator: delta", "estimator: gate_sweep"),
        (
            "{arm: gate, baseline: evict}",
            "{base: evict, taus: [0.015, 0.035], quantities: [delta, gate_open]}",
        ),
        ("supported: estimate > 0", "supported: tau < 0.02 OR quantity = 'gate_open' OR estimate > 0.3"),
        base=BASE,
    )
    (claim,) = verify(path).claims
    assert claim.verdict == "supported"
    assert [(row["tau"], row["quantity"]) for row in claim.rows] == [
        (0.015, "delta"),
        (0.015, "gate_open"),
        (0.035, "delta"),
        (0.035, "gate_open"),
    ]


def test_rules_read_the_quantities_of_the_recovery_indicator(register, toy):
    path = register(
        ("estimator: delta", "estimator: recovery_indicator"),
        ("{arm: gate, baseline: evict}", "{arm: evict}"),
        ("budget = 0.5 AND task = 'qa'", "task = 'qa'"),
        ("supported: estimate > 0", "supported: quantity != 'identity' OR estimate = 1"),
        base=BASE,
    )
    (claim,) = verify(path).claims
    assert claim.verdict == "supported"
