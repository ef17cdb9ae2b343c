"""Oracles, memory and scaling as claims of a registration."""

import yaml

import kvstats as kv

PLAN = """\
study: toy
registered_at: 2026-10-31T12:00:00Z
data:
  runs: [logs/*.jsonl]
policies:
  - policy: gate
    arguments: {tau: 0.02, base: evict}
  - policy: task_oracle
    arguments: {base: evict, protect_tasks: [qa]}
  - policy: input_oracle
    arguments: {base: evict}
claims:
  - id: gap
    statement: The gate is no better than the label.
    estimator: delta
    arguments: {arm: gate, baseline: task_oracle}
    where: budget < 1
    supported: estimate < 0
  - id: share
    statement: The gate recovers part of the oracle's gain.
    estimator: headroom_recovered
    arguments: {arm: gate, baseline: evict}
    where: budget < 1
    supported: estimate > 0.1 AND estimate < 1
  - id: batches
    statement: In a batch of four inputs less is saved.
    estimator: batch_kept_fraction
    arguments: {arm: gate, batch: [1, 4]}
    where: budget = 0.25
    contrast: {batch: [4, 1]}
    supported: estimate > 0
  - id: mixture
    statement: It gains where half of the inputs ask for keys.
    estimator: mixture_delta
    arguments: {arm: gate, baseline: evict, tasks: [qa], shares: [0.5]}
    supported: share = 0.5 AND estimate > 0
  - id: best
    statement: At its best budget the gate is as good.
    estimator: best_accuracy
    where: budget < 1 AND arm IN ('gate', 'evict')
    by: arm
    contrast: {arm: [gate, evict]}
    supported: estimate > -0.2
  - id: matched
    statement: At matched memory the gate is ahead.
    estimator: accuracy_at_kept
    arguments: {kept: [0.4]}
    where: arm IN ('gate', 'evict')
    by: arm
    contrast: {arm: [gate, evict]}
    supported: estimate > -1
"""


def test_claims_about_oracles_and_memory_are_judged(register, toy):
    report = kv.verify(register(base=PLAN))
    assert {claim.id: claim.verdict for claim in report.claims} == dict.fromkeys(
        ("gap", "share", "batches", "mixture", "best", "matched"), "supported"
    )


def test_a_claim_of_a_band_is_judged(register, toy):
    (band,) = kv.ratio_bands({"task": ["qa"], "headroom": [0.5], "rho": [0.1]})
    plan = yaml.safe_load(PLAN)
    plan["claims"] = [band.claim("band", arm="evict")]
    report = kv.verify(register(base=yaml.safe_dump(plan)))
    # The full cache fails no input of this log: nothing can be judged.
    assert report.claims[0].verdict == "undefined"
