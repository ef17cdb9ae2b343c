"""Verification end to end: verdicts, guards, families, integrity, and the same bytes whatever the order."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import subprocess
import sys

import pytest
from scipy import stats

import kvstats.estimators as estimators
from kvstats.errors import InputError
from kvstats.inference import Design
from kvstats.log import read_log
from kvstats.prereg import verify

WHERE = "    where: budget = 0.5\n"
RULE = "    supported: high < 0\n"
GUARD = """\
guards:
  - id: identity
    statement: At budget 1 nothing changes.
    estimator: delta
    arguments: {arm: evict}
    where: budget = 1.0
    by: task
    holds: estimate = 0
claims:
"""

POLICY = """\
policies:
  - policy: gate
    arguments: {tau: 0.07, base: evict}
claims:
"""


SECOND = """\
  - {id: second, statement: a, estimator: delta, arguments: {arm: evict}, where: budget = 0.5,
     supported: high < 0}
"""


def rule(*lines):
    return (RULE, "".join(f"    {line}\n" for line in lines))


def verdicts(report):
    return {claim.id: claim.verdict for claim in report.claims}


def only_claim(report):
    (claim,) = report.claims
    return claim


def test_the_numbers_are_those_of_the_estimator(toy, register):
    report = verify(
        register(("claims:\n", "design: {level: 0.9}\nclaims:\n"), rule("by: task", "supported: high < 0"))
    )
    claim = only_claim(report)
    result = estimators.delta(
        read_log(toy), arm="evict", where="budget = 0.5", by="task", design=Design(level=0.9)
    )
    expected = result.frame.join(result.p_value(), on="task").to_dicts()
    told = [{**row, "p_adjusted": None, "verdict": "not met"} for row in expected[:1]]
    told += [{**row, "p_adjusted": None, "verdict": "supported"} for row in expected[1:]]
    assert told == [dict(row) for row in claim.rows]
    assert [row["estimate"] for row in claim.rows] == pytest.approx([-0.1, -0.4])
    assert report.exit_code == 0


@pytest.mark.parametrize(
    ("lines", "verdict", "fired"),
    [
        (["supported: high < 0"], "supported", "supported"),
        (["supported: low > 0", "killed: high < 0"], "killed", "killed"),
        (["supported: low > 0", "killed: estimate > 0"], "inconclusive", None),
        (["supported: low > 0"], "not met", None),
        (["by: task", "supported: estimate < -0.2"], "not met", None),
        (["by: task", "supported: estimate < -0.2", "quantifier: any"], "supported", "supported"),
        (["by: task", "supported: estimate < 0", "quantifier: {at_least: 2}"], "supported", "supported"),
        (["by: task", "supported: estimate < 0", "quantifier: {at_least: 3}"], "not met", None),
        (
            ["by: task", "supported: SUM(CASE WHEN estimate < -0.2 THEN 1 ELSE 0 END) = 1"],
            "supported",
            "supported",
        ),
        (["supported: p_value < 0.05", "alternative: less"], "supported", "supported"),
        (["supported: p_value < 0.05", "alternative: greater"], "not met", None),
        (["supported: p_value < 0.05", "null: -0.25"], "not met", None),
        (
            ["contrast: {task: [qa, code]}", "supported: high < 0.2 AND estimate < 0"],
            "supported",
            "supported",
        ),
    ],
)
def test_each_verdict(toy, register, lines, verdict, fired):
    claim = only_claim(verify(register(rule(*lines))))
    assert (claim.verdict, claim.fired) == (verdict, fired)


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("budget = 0.5 AND task = 'qa' AND input_id = 'i000'", "status 'one cluster'"),
        ("budget = 0.5 AND input_id = 'none'", "status 'no rows'"),
    ],
)
def test_what_has_no_interval_is_undefined(toy, register, where, reason):
    claim = only_claim(verify(register(("budget = 0.5", where))))
    assert (claim.verdict, claim.fired) == ("undefined", None)
    assert claim.reason.startswith(reason)


def test_no_rows_with_by_is_undefined(toy, register):
    claim = only_claim(
        verify(register(("budget = 0.5", "budget = 7"), rule("by: task", "supported: high < 0")))
    )
    assert (claim.verdict, claim.reason, claim.rows) == ("undefined", "the result has no rows", ())


def test_identical_series_support_nothing_and_have_p_1(toy, register):
    path = register(("budget = 0.5", "budget = 1.0"), rule("supported: high < 0 OR p_value < 0.5"))
    claim = only_claim(verify(path))
    assert claim.verdict == "not met"
    assert (claim.rows[0]["status"], claim.rows[0]["p_value"]) == ("no discordant pairs", 1.0)


def test_the_p_value_is_against_the_registered_null(toy, register):
    claim = only_claim(verify(register(rule("supported: high < 0", "null: -0.1", "alternative: less"))))
    row = claim.rows[0]
    assert row["p_value"] == pytest.approx(stats.t.cdf((row["estimate"] + 0.1) / row["se"], row["df"]))


def test_a_guard_that_holds(toy, register):
    report = verify(register(("claims:\n", GUARD)))
    (guard,) = report.guards
    assert (guard.holds, guard.reason) == (True, "estimate = 0 holds in 2 of 2 rows")
    assert [row["task"] for row in guard.rows] == ["code", "qa"]
    assert (verdicts(report), report.exit_code) == ({"harm": "supported"}, 0)


def test_a_guard_that_fails_makes_every_claim_invalid(toy, register):
    report = verify(register(("claims:\n", GUARD.replace("budget = 1.0", "budget = 0.5"))))
    (guard,) = report.guards
    assert guard.holds is False
    assert guard.reason == ("estimate = 0 holds in 0 of 2 rows; estimate -0.1, status 'ok' in task=code")
    claim = only_claim(report)
    assert (claim.verdict, claim.reason, claim.rows) == ("invalid", "guard failed: identity", ())
    assert (report.exit_code, report.intact) == (3, False)


@pytest.mark.parametrize(("where", "holds"), [("budget = 7", False), ("budget = 1.0", True)])
def test_a_guard_needs_rows(toy, register, where, holds):
    report = verify(register(("claims:\n", GUARD.replace("budget = 1.0", where))))
    assert report.guards[0].holds is holds


@pytest.mark.parametrize(
    ("expected", "failing", "reason"),
    [
        ("{runs: 80, inputs: 20, replays: 10}", None, None),
        ("{runs: 81}", "data.expected.runs", "the logs have 80 runs"),
        ("{inputs: 19, runs: 80}", "data.expected.inputs", "the logs have 20 inputs"),
        ("{replays: 0}", "data.expected.replays", "the logs have 10 replays"),
    ],
)
def test_expected_counts_are_guards(toy, register, expected, failing, reason):
    report = verify(register(("[logs/*.jsonl]", f"[logs/*.jsonl]\n  expected: {expected}")))
    failed = [guard for guard in report.guards if not guard.holds]
    if failing is None:
        assert (failed, verdicts(report)) == ([], {"harm": "supported"})
        assert [guard.id for guard in report.guards] == [
            f"data.expected.{n}" for n in ("runs", "inputs", "replays")
        ]
    else:
        assert [(guard.id, guard.reason) for guard in failed] == [(failing, reason)]
        assert verdicts(report) == {"harm": "invalid"}
        assert report.exit_code == 3


def test_a_policy_is_an_arm(toy, register):
    path = register(
        ("claims:\n", POLICY),
        ("{arm: evict}", "{arm: gate, baseline: evict}"),
        ("budget = 0.5", "budget = 0.5 AND task = 'qa'"),
        (RULE, "    supported: estimate = 0.4\n"),
    )
    report = verify(path)
    assert verdicts(report) == {"harm": "supported"}
    arguments = {"tau": 0.07, "base": "evict"}
    assert report.policies == ({"policy": "gate", "arguments": arguments, "error": None},)
    assert report.data.runs == 80


FAMILY = """\
study: toy
registered_at: 2026-10-31T12:00:00Z
data: {runs: [logs/*.jsonl]}
family: {method: METHOD, level: LEVEL, claims: [strong, weak, rows]}
claims:
  - {id: strong, statement: a, estimator: delta, arguments: {arm: evict},
     where: "budget = 0.25 AND task = 'qa'", supported: high < 0}
  - {id: weak, statement: b, estimator: delta, arguments: {arm: evict},
     where: "budget = 0.5 AND task = 'qa'", supported: high < 0.1, killed: low > 0}
  - {id: rows, statement: c, estimator: delta, arguments: {arm: evict}, where: budget = 0.5, by: task,
     quantifier: any, supported: high < 0.1 AND p_adjusted < 0.5}
  - {id: alone, statement: d, estimator: delta, arguments: {arm: evict}, supported: high < 0}
"""


def family(register, method, level):
    return register(base=FAMILY.replace("METHOD", method).replace("LEVEL", str(level)))


def test_a_family_adjusts_the_p_values_of_its_claims(toy, register):
    report = verify(family(register, "holm", 0.1))
    claims = {claim.id: claim for claim in report.claims}
    p_strong, p_weak = (claims[name].rows[0]["p_value"] for name in ("strong", "weak"))
    p_rows = 2 * min(row["p_value"] for row in claims["rows"].rows)
    assert p_strong < p_weak < p_rows
    assert claims["strong"].rows[0]["p_adjusted"] == pytest.approx(3 * p_strong)
    assert claims["weak"].rows[0]["p_adjusted"] == pytest.approx(2 * p_weak)
    shared = max(2 * p_weak, p_rows)
    assert [row["p_adjusted"] for row in claims["rows"].rows] == pytest.approx([shared, shared])
    assert claims["alone"].rows[0]["p_adjusted"] is None
    assert [claim.in_family for claim in report.claims] == [True, True, True, False]
    assert report.family == {"method": "holm", "level": 0.1, "claims": ["strong", "weak", "rows"]}


def test_an_adjusted_p_value_above_the_level_takes_the_support_away(toy, register):
    assert verdicts(verify(family(register, "none", 0.1)))["weak"] == "supported"
    report = verify(family(register, "bonferroni", 0.05))
    claims = {claim.id: claim for claim in report.claims}
    assert (claims["strong"].verdict, claims["weak"].verdict) == ("supported", "inconclusive")
    assert "but the adjusted p-value" in claims["weak"].reason
    assert claims["weak"].reason.endswith("is above the family's level 0.05")


def test_each_row_has_a_verdict_of_its_own(toy, register):
    lines = [
        "by: task",
        "quantifier: any",
        "supported: estimate < -0.2",
        "killed: estimate > -0.2 AND low < 0",
    ]
    claim = only_claim(verify(register(rule(*lines))))
    assert [(row["task"], row["verdict"]) for row in claim.rows] == [("code", "killed"), ("qa", "supported")]
    assert claim.verdict == "supported"


def test_no_row_is_supported_where_the_family_takes_the_support_away(toy, register):
    rows = {c.id: [row["verdict"] for row in c.rows] for c in verify(family(register, "none", 0.1)).claims}
    assert rows["rows"] == ["not met", "supported"]
    rows = {
        c.id: [row["verdict"] for row in c.rows] for c in verify(family(register, "bonferroni", 0.05)).claims
    }
    assert rows == {
        "strong": ["supported"],
        "weak": ["inconclusive"],
        "rows": ["not met", "not met"],
        "alone": ["supported"],
    }


def test_rules_show_the_values_that_they_saw(toy, register):
    lines = ["by: task", "supported: MAX(estimate) < 0 AND low < 1", "killed: p_value > 0.5 AND task = 'qa'"]
    claim = only_claim(verify(register(rule(*lines))))
    supported, killed = claim.rules
    assert (supported.field, supported.text, supported.holds) == (
        "supported",
        "MAX(estimate) < 0 AND low < 1",
        (True, True),
    )
    assert supported.saw == tuple({name: row[name] for name in ("estimate", "low")} for row in claim.rows)
    assert (killed.field, killed.holds) == ("killed", (False, False))
    assert killed.saw == tuple({name: row[name] for name in ("p_value", "task")} for row in claim.rows)


def test_only_keeps_the_whole_family(toy, register):
    path = family(register, "bonferroni", 0.05)
    whole = {claim.id: claim for claim in verify(path).claims}
    for only in ("weak", ["alone", "weak"]):
        report = verify(path, only=only)
        assert [claim.id for claim in report.claims] == (["weak"] if only == "weak" else ["weak", "alone"])
        assert all(claim == whole[claim.id] for claim in report.claims)


def test_only_must_name_claims(toy, register):
    with pytest.raises(
        InputError, match="verify: only='harms' is no claim of the registration; did you mean 'harm'"
    ):
        verify(register(), only=["harms"])
    with pytest.raises(InputError, match=r"verify: only=\[\] names no claim"):
        verify(register(), only=[])


def test_a_family_needs_null_values(toy, register):
    path = register(
        ("claims:\n", "family: {}\nclaims:\n"),
        ("estimator: delta", "estimator: accuracy"),
        rule("supported: low > 0"),
    )
    fault = (
        r"plan\.yaml:7: claim 'harm': needs a p-value, and accuracy has no null value of its own; give 'null'"
    )
    with pytest.raises(InputError, match=fault):
        verify(path)
    path.write_text(path.read_text() + "    null: 0.5\n")
    assert only_claim(verify(path)).rows[0]["p_adjusted"] is not None


@pytest.mark.parametrize(
    ("old", "new", "faults"),
    [
        ("{arm: evict}", "{arm: evct}", ("delta: arm='evct' is not an arm of the log", "'evict'?")),
        ("budget = 0.5", "budgt = 0.5", ("delta: ", "'budgt'; did you mean 'budget'?")),
        (WHERE, "    by: tsk\n", ("delta: by='tsk' ", "did you mean 'task'?")),
        (WHERE, "    contrast: {task: [qa, x]}\n", ("Result.contrast: task='x'", "qa")),
        ("{arm: evict}", "{arm: evict, outcome: scor}", ("delta: outcome='scor'", "'score'")),
    ],
)
def test_what_the_data_refuse_is_undefined_and_the_rest_is_judged(toy, register, old, new, faults):
    path = register((old, new))
    path.write_text(path.read_text() + SECOND)
    report = verify(path)
    assert verdicts(report) == {"harm": "undefined", "second": "supported"}
    claim = report.claims[0]
    assert (claim.rows, claim.fired, claim.error) == ((), None, claim.reason)
    assert claim.reason.startswith("cannot be asked of these logs: ")
    assert all(fault in claim.reason for fault in faults), claim.reason
    assert (report.exit_code, report.intact) == (2, True)
    assert verify(path, only="second").exit_code == 0


def test_a_guard_that_the_data_refuse_does_not_hold(toy, register):
    report = verify(register(("claims:\n", GUARD.replace("evict", "evct"))))
    assert report.guards[0].holds is False
    assert report.guards[0].reason.startswith(
        "cannot be asked of these logs: delta: arm='evct' is not an arm of the log"
    )
    assert (verdicts(report), report.exit_code) == ({"harm": "invalid"}, 3)


def test_the_expected_hash_anchors_the_registration(toy, register):
    path = register()
    report = verify(path)
    assert report.registration.anchored is False
    anchored = verify(path, expect_sha256=report.registration.sha256.upper())
    assert anchored.registration.anchored is True
    assert anchored.claims == report.claims


def test_one_changed_threshold_is_found_and_no_data_opened(register):
    digest = hashlib.sha256(register().read_bytes()).hexdigest()
    report = verify(register(("high < 0", "high < 1")), expect_sha256=digest)
    assert report.integrity == (
        f"the registration has SHA-256 {report.registration.sha256}, expected was {digest}",
    )
    claim = only_claim(report)
    assert (claim.verdict, claim.reason) == ("invalid", "the registration is not the expected one")
    assert (report.data, report.exit_code, report.registration.anchored) == (None, 3, False)


def test_guards_are_not_evaluated_on_changed_data(toy, register):
    listed = f"[logs/*.jsonl]\n  sha256: {{logs/a.jsonl: {'a' * 64}}}"
    report = verify(register(("[logs/*.jsonl]", listed), ("claims:\n", GUARD)))
    assert [(guard.holds, guard.reason) for guard in report.guards] == [(None, "not evaluated")]
    assert only_claim(report).reason == "the data are not intact"
    assert (report.exit_code, report.data.runs) == (3, 80)


@pytest.mark.parametrize("faulty", ["abc", "g" * 64, "a" * 63])
def test_an_expected_hash_must_be_one(register, faulty):
    with pytest.raises(
        InputError, match=f"verify: expect_sha256='{faulty}' is no SHA-256; pass its 64 hexadecimal"
    ):
        verify(register(), expect_sha256=faulty)


BROAD = """\
study: toy
registered_at: 2026-10-31T12:00:00Z
data: {runs: ["logs/**/*.jsonl*"], expected: {runs: 80}}
design: {interval: percentile, n_resamples: 200, seed: 5}
policies:
  - {policy: gate, arguments: {tau: 0.07, base: evict}}
guards:
  - {id: identity, statement: a, estimator: delta, arguments: {arm: evict}, where: budget = 1.0, by: [task],
     holds: estimate = 0}
family: {claims: [gain, ranks]}
claims:
  - {id: gain, statement: b, estimator: delta, arguments: {arm: gate, baseline: evict}, by: [task, budget],
     quantifier: any, supported: low > 0}
  - {id: ranks, statement: c, estimator: rank_correlation, supported: low > 0.3}
  - {id: signal, statement: d, estimator: auc, arguments: {arm: evict, signal: margin, higher: negative},
     where: task = 'qa', supported: low > 0.5}
  - {id: apart, statement: e, estimator: harm_rate, arguments: {arm: evict}, contrast: {task: [qa, code]},
     supported: low > 0}
  - {id: levels, statement: f, estimator: accuracy, by: [arm, budget], supported: estimate > 0.05}
"""


def comparable(report):
    """Return the report as JSON, without the files: their hashes differ."""
    content = json.loads(report.to_json())
    assert content.pop("files")
    return json.dumps(content)


def test_the_bytes_do_not_depend_on_the_order_of_rows_and_files(toy_records, write_log, register, tmp_path):
    path = register(base=BROAD)
    write_log(toy_records)
    expected = comparable(verify(path))
    for seed in range(3):
        shuffled = random.Random(seed).sample(toy_records, len(toy_records))
        write_log(shuffled)
        assert comparable(verify(path)) == expected
    second = write_log(shuffled[:37], "logs/z/b.jsonl")
    (second.parent / "b.jsonl.gz").write_bytes(gzip.compress(second.read_bytes()))
    second.unlink()
    write_log(shuffled[37:])
    report = verify(path)
    assert report.data.files == 2
    assert comparable(report) == expected.replace('"files": 1', '"files": 2')


def test_the_bytes_do_not_depend_on_threads_nor_on_the_folder(toy, register, tmp_path, monkeypatch):
    path = register(base=BROAD)
    code = "import sys, kvstats.prereg as p; sys.stdout.buffer.write(p.verify(sys.argv[1]).to_json())"
    output = subprocess.run(
        [sys.executable, "-c", code, path],
        cwd="/",
        env={**os.environ, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        check=True,
    ).stdout
    monkeypatch.chdir(tmp_path)
    assert verify(path.name).to_json() == output
    assert json.loads(output)["registration"]["file"] == "plan.yaml"
    assert str(tmp_path).encode() not in output


def test_the_order_of_claims_does_not_change_them(toy, register):
    lines = BROAD.splitlines(keepends=True)
    begin = lines.index("claims:\n") + 1
    claims = "".join(lines[begin:]).split("  - ")[1:]
    expected = {claim.id: claim for claim in verify(register(base=BROAD)).claims}
    for order in (claims[::-1], claims[2:] + claims[:2]):
        report = verify(register(base="".join(lines[:begin]) + "".join(f"  - {claim}" for claim in order)))
        assert {claim.id: claim for claim in report.claims} == expected
