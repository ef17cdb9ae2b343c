"""Plans: every name and argument is checked before any data is opened, for there is none here."""

from __future__ import annotations

import pytest

from kvstats.errors import InputError
from kvstats.inference import Design
from kvstats.prereg.plan import load_plan

WHERE = "    where: budget = 0.5\n"
GUARD = """\
guards:
  - id: identity
    statement: All is well.
    estimator: delta
    arguments: {arm: evict}
    holds: estimate = 0
claims:
"""
POLICY = """\
policies:
  - policy: gate
    arguments: {tau: 0.07, base: evict}
claims:
"""


def test_a_plan_holds_everything_bound(register):
    plan = load_plan(
        register(
            ("claims:\n", "design: {cluster: [suite, task], level: 0.9, seed: 3}\nfamily: {}\n" + POLICY),
            (WHERE, "    by: task\n    contrast: {condition: [stream, aware]}\n"),
        )
    )
    assert plan.design == Design(cluster=("suite", "task"), level=0.9, seed=3)
    (claim,) = plan.claims
    assert claim.query.by == ("task", "condition")
    assert claim.query.row_columns == ("task",)
    assert claim.query.contrast == {"condition": ("stream", "aware")}
    assert (claim.in_family, claim.needs_p_value) == (True, True)
    assert plan.policies[0].step.arguments == {"tau": 0.07, "base": "evict"}


@pytest.mark.parametrize(
    ("field", "needs"),
    [
        ("null: 0", False),
        ("alternative: greater", True),
        ("killed: p_value > 0.5", True),
        ("killed: low > 0", False),
    ],
)
def test_when_a_p_value_is_needed(register, field, needs):
    (claim,) = load_plan(register((WHERE, f"    {field}\n"))).claims
    assert claim.needs_p_value is needs


@pytest.mark.parametrize(
    ("old", "new", "line", "fault"),
    [
        (
            "estimator: delta",
            "estimator: dleta",
            8,
            "claims[0].estimator is no estimator: 'dleta'; did you mean 'delt",
        ),
        (
            "estimator: delta",
            "estimator: __import__",
            8,
            "is no estimator: '__import__'; known: accuracy, a",
        ),
        ("{arm: evict}", "{arms: evict}", 9, "delta has no argument 'arms'; did you mean 'arm'?"),
        (
            "{arm: evict}",
            "{arm: evict, baselin: x}",
            9,
            "delta has no argument 'baselin'; did you mean 'baseline'?",
        ),
        ("{arm: evict}", "{arm: evict, log: x}", 9, "delta has no argument 'log'; 'log' stands beside"),
        (
            "{arm: evict}",
            "{arm: evict, by: task}",
            9,
            "delta has no argument 'by'; 'by' stands beside 'arguments'",
        ),
        ("{arm: evict}", "{baseline: full}", 6, "delta needs the argument 'arm'; add it to 'arguments'"),
        ("{arm: evict}", "{arm: 3}", 9, "arm=3 of delta: expected str, got int; correct the value"),
        ("{arm: evict}", "{arm: [evict]}", 9, "arm=['evict'] of delta: expected str, got array"),
        (
            "{arm: evict}",
            "{arm: no}",
            9,
            "claims[0].arguments.arm is no, which YAML may read as a truth value",
        ),
        ("budget = 0.5", "budget =", 10, "where='budget =' is no SQL expression ("),
        ("budget = 0.5", "budget > (SELECT 1)", 10, "where='budget > (SELECT 1)' has a subquery ('select')"),
        (WHERE, "    by: [task, task]\n", 10, "claims[0].by names a column twice; name each once"),
        (WHERE, "    contrast: {task: [a, a]}\n", 10, "claims[0].contrast compares 'a' with itself"),
        (
            "high < 0",
            "hgih < 0",
            11,
            "supported='hgih < 0' names the unknown column 'hgih'; did you mean 'high'?",
        ),
        ("high < 0", "task = 'a'", 11, "names the unknown column 'task'; results have it only when"),
        ("high < 0", "high < 0 AND task > 0", 11, "names the unknown column 'task'"),
        (
            "high < 0",
            "p_adjusted < 0.05",
            11,
            "names the unknown column 'p_adjusted'; only claims of a family",
        ),
        (WHERE, "    killed: low\n", 10, "killed='low' is not true or false but Float64"),
        (WHERE, "    by: task\n    killed: task > 0\n", 11, "killed='task > 0' cannot be computed"),
        (
            WHERE,
            "    contrast: {task: [a, b]}\n    killed: task = 'a'\n",
            11,
            "names the unknown column 'task'",
        ),
        (
            "claims:\n",
            "design: {level: 1.5}\nclaims:\n",
            5,
            "Design: level=1.5 is not between 0 and 1; pass a share",
        ),
        ("claims:\n", "design: {interval: wald}\nclaims:\n", 5, "Design: interval='wald' is not known; "),
        (
            "claims:\n",
            "family: {claims: [harms]}\nclaims:\n",
            5,
            "family.claims[0] is no claim: 'harms'; did you",
        ),
        ("claims:\n", "family: {claims: [harm, harm]}\nclaims:\n", 5, "family.claims[1] names 'harm' again"),
        ("claims:\n", GUARD.replace("identity", "harm"), 12, "claims[0].id is 'harm' again, first on line 6"),
        ("claims:\n", GUARD.replace("delta", "dleta"), 8, "guards[0].estimator is no estimator: 'dleta'"),
        (
            "claims:\n",
            GUARD.replace("estimate = 0", "estimat = 0"),
            10,
            "holds='estimat = 0' names the unknown",
        ),
        (
            "claims:\n",
            GUARD.replace("estimate = 0", "p_value > 0"),
            10,
            "the unknown column 'p_value'; only claims have it, not guards",
        ),
        (
            "claims:\n",
            POLICY.replace("gate", "gte"),
            6,
            "policies[0].policy is no policy: 'gte'; did you mean 'gate'",
        ),
        ("claims:\n", POLICY.replace("tau:", "thau:"), 7, "gate has no argument 'thau'; did you mean 'tau'?"),
        (
            "claims:\n",
            POLICY.replace("0.07", "'0.07'"),
            7,
            "tau='0.07' of gate: expected float | object, got",
        ),
        ("claims:\n", POLICY.replace(", base: evict", ""), 6, "gate needs the argument 'base'"),
        (
            "[logs/*.jsonl]",
            "[/etc/passwd]",
            4,
            "data.runs has '/etc/passwd', which is not below the folder of the",
        ),
        ("[logs/*.jsonl]", "[../x.jsonl]", 4, "data.runs has '../x.jsonl', which is not below the folder"),
        (
            "[logs/*.jsonl]",
            "[logs/../../x]",
            4,
            "data.runs has 'logs/../../x', which is not below the folder",
        ),
        ("[logs/*.jsonl]", '["~/x"]', 4, "data.runs has '~/x', which is not below the folder"),
        ("[logs/*.jsonl]", "['..\\x']", 4, "which is not below the folder of the registration"),
        ("[logs/*.jsonl]", "['C:/x']", 4, "which is not below the folder of the registration"),
        (
            "[logs/*.jsonl]",
            "[a.jsonl]\n  sha256: {../a.jsonl: " + "a" * 64 + "}",
            5,
            "data.sha256 has '../a.jsonl', which is not below the folder",
        ),
    ],
)
def test_faults_are_named_with_line_and_nearest_name(register, old, new, line, fault):
    path = register((old, new))
    with pytest.raises(InputError) as error:
        load_plan(path)
    assert f"plan.yaml:{line}: " in str(error.value)
    assert fault in str(error.value)


def test_ids_are_unique_among_claims(register):
    text = register().read_text()
    claim = text[text.index("  - id") :]
    with pytest.raises(
        InputError, match=r"plan\.yaml:12: claims\[1\]\.id is 'harm' again, first on line 6; give"
    ):
        load_plan(register(base=text + claim))


def test_an_estimator_without_arguments_says_so(register):
    path = register(("estimator: delta", "estimator: certificate_coverage"))
    with pytest.raises(
        InputError, match="certificate_coverage has no argument 'arm'; certificate_coverage takes none"
    ):
        load_plan(path)
