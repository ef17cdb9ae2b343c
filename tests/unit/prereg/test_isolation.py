"""What the logs refuse concerns nothing but what asks for it."""

from __future__ import annotations

import pytest

from kvstats.prereg import verify

PLAN = """\
study: toy
registered_at: 2026-10-31T12:00:00Z
data: {runs: [logs/*.jsonl]}
policies:
  - {policy: random_gate, arguments: {base: evict, share: 0.5, to_budget: 0.75, name: larger}}
  - {policy: gate, arguments: {tau: 0.07, base: larger, name: stacked}}
  - {policy: gate, arguments: {tau: 0.07, base: evict}}
GUARDSclaims:
  - {id: plain, statement: a, estimator: delta, arguments: {arm: evict}, where: budget = 0.5,
     supported: high < 0}
  - {id: gated, statement: b, estimator: delta, arguments: {arm: gate}, where: budget = 0.5,
     supported: high < 1}
  - {id: larger, statement: c, estimator: delta, arguments: {arm: larger}, supported: high < 0}
  - {id: stacked, statement: d, estimator: delta, arguments: {arm: gate, baseline: stacked},
     supported: high < 0}
  - {id: levels, statement: e, estimator: accuracy, by: [arm, budget], supported: estimate >= 0}
  - {id: full, statement: f, estimator: accuracy, where: arm = 'full', supported: estimate >= 0}
  - {id: literal, statement: g, estimator: accuracy, where: "arm IN ('full', 'larger')", by: arm,
     supported: estimate >= 0}
  - {id: cells, statement: h, estimator: certificate_coverage, supported: low > 0.5}
"""

MISSING = (
    "cannot be asked of these logs: the arm 'larger' could not be added: policy 'random_gate': "
    "random_gate: to_budget=0.75 "
)


def plan(register, guards=""):
    return register(base=PLAN.replace("GUARDS", guards))


def test_a_policy_that_fails_leaves_undefined_what_uses_its_arm(toy, register):
    report = verify(plan(register))
    found = {claim.id: claim for claim in report.claims}
    assert {name: claim.verdict for name, claim in found.items()} == {
        "plain": "supported",
        "gated": "supported",
        "larger": "undefined",
        "stacked": "undefined",
        "levels": "undefined",
        "full": "supported",
        "literal": "undefined",
        "cells": "supported",
    }
    for name in ("larger", "levels", "literal"):
        assert found[name].reason.startswith(MISSING), name
    assert found["stacked"].reason.startswith(
        "cannot be asked of these logs: the arm 'stacked' could not be added: the arm 'larger' could not be"
    )
    assert [step["error"] is None for step in report.policies] == [False, False, True]
    assert (report.exit_code, report.intact) == (2, True)


def test_one_claim_can_be_judged_on_a_log_without_what_others_need(toy, register):
    report = verify(plan(register), only="gated")
    assert (report.claims[0].verdict, report.exit_code) == ("supported", 0)


def test_the_order_of_policies_without_faults_is_kept(toy, register):
    report = verify(plan(register), only="plain")
    assert [step["policy"] for step in report.policies] == ["random_gate", "gate", "gate"]


@pytest.mark.parametrize(("arm", "holds"), [("larger", False), ("evict", True)])
def test_a_guard_without_its_arm_does_not_hold(toy, register, arm, holds):
    guard = (
        "guards:\n  - {id: identity, statement: a, estimator: delta, arguments: {arm: "
        + arm
        + "}, where: budget = 1.0, holds: estimate = 0}\n"
    )
    report = verify(plan(register, guard), only="plain")
    assert report.guards[0].holds is holds
    assert report.claims[0].verdict == ("supported" if holds else "invalid")
    if not holds:
        assert report.guards[0].reason.startswith(MISSING)


def test_a_refused_member_of_a_family_counts_against_the_others(toy, register):
    text = PLAN.replace("GUARDS", "family: {method: bonferroni, claims: [plain, larger]}\n")
    report = verify(register(base=text), only="plain")
    row = report.claims[0].rows[0]
    assert row["p_adjusted"] == pytest.approx(2 * row["p_value"])


@pytest.mark.parametrize("where", ["arm < 3", "arm ~ '(('"])
def test_a_faulty_filter_is_its_own_fault(toy, register, where):
    path = register(base=PLAN.replace("GUARDS", "").replace("where: arm = 'full'", f'where: "{where}"'))
    claim = verify(path, only="full").claims[0]
    assert claim.verdict == "undefined"
    assert claim.reason.startswith("cannot be asked of these logs: accuracy: where=")
