"""Linting: what weakens a claim, and the power that it has, held against the plans of `kvstats.planning`."""

import json

import numpy as np
import pytest
from scipy import stats

from kvstats.errors import InputError
from kvstats.planning import auc_power, difference_power, rate_power
from kvstats.prereg.comparison import Comparison, comparison_of, two_sided_limit
from kvstats.prereg.lint import lint
from kvstats.prereg.plan import load_plan
from kvstats.prereg.power import claim_power, planned_sample

DELTA = "    estimator: delta\n    arguments: {arm: evict}\n"
RULE = "    supported: high < 0\n"
AUC = "    estimator: auc\n    arguments: {signal: drop, outcome: failure, arm: evict}\n"
HARM = "    estimator: harm_rate\n    arguments: {arm: evict}\n"
PLANNED = "planned: {inputs: 120, rows_per_input: 2, intraclass_correlation: 0.5, discordance: 0.25}\n"


@pytest.fixture
def told(register):
    """Return the power of the one claim of a registration with pieces of it replaced."""

    def tell(rule, planned="", estimator=DELTA, own="", more=""):
        text = [
            ("study: toy\n", f"study: toy\n{planned}{more}"),
            (DELTA, estimator),
            (RULE, f"    supported: {rule}\n{own}"),
        ]
        plan = load_plan(register(*text))
        return claim_power(plan, plan.claims[0])

    return tell


@pytest.fixture
def warned(register):
    """Return the warnings of the registration and of its first claim."""

    def warn(*replacements):
        found = lint(register(*replacements))
        return found.warnings, found.claims[0].warnings

    return warn


def test_a_difference_is_planned_at_half_the_error_of_the_interval(told):
    sample = {"inputs": 120, "rows_per_input": 2, "intraclass_correlation": 0.5, "discordance": 0.25}
    for rule, sign in (("low > 0", 1), ("high < 0", -1)):
        found = told(rule, PLANNED, own=f"    planned: {{effect: {0.1 * sign}}}\n")
        side = "greater" if sign > 0 else "less"
        least = difference_power(**sample, power=0.8, level=0.975, alternative=side)
        assert found.smallest_effect == pytest.approx(least.difference, abs=1e-9)
        at = difference_power(**sample, difference=0.1 * sign, level=0.975, alternative=side)
        assert found.power == pytest.approx(at.power, abs=1e-12)
        assert found.text.startswith(
            f"{at.power:.0%} at the planned effect {0.1 * sign:g}; a true value of at "
        )
    both = told("low > 0 OR high < 0", PLANNED)
    assert both.smallest_effect == pytest.approx(difference_power(**sample, power=0.8).difference, abs=1e-9)
    assert both.text.startswith(f"a true value {both.smallest_effect:.3g} above 0 is found with 80% power")


def test_beyond_a_limit_the_variance_is_that_of_the_difference_itself(told):
    found = told("low > -0.05", PLANNED, own="    planned: {effect: 0.02}\n")
    # By hand: K = 120 inputs of 2 pairs, design effect 1.5, variance 0.25 - 0.02 ** 2, shift 0.07.
    se = np.sqrt((0.25 - 0.02**2) * 1.5 / 240)
    critical = stats.t.ppf(0.975, 119)
    assert found.power == pytest.approx(stats.nct.sf(critical, 119, 0.07 / se), abs=1e-9)
    effect = found.smallest_effect
    se = np.sqrt((0.25 - effect**2) * 1.5 / 240)
    assert stats.nct.sf(critical, 119, (effect + 0.05) / se) == pytest.approx(0.8, abs=1e-6)


def test_simulated_power_of_a_rule_on_a_difference(told):
    found = told(
        "low > 0.05", "planned: {inputs: 150, discordance: 0.3}\n", own="    planned: {effect: 0.15}\n"
    )
    rng = np.random.default_rng(1)
    # Differences of -1, 0 and 1 with mean 0.15, of which 0.3 are not 0.
    drawn = rng.choice([-1.0, 0.0, 1.0], p=[0.075, 0.7, 0.225], size=(20_000, 150))
    low = drawn.mean(1) - stats.t.ppf(0.975, 149) * drawn.std(1, ddof=1) / np.sqrt(150)
    assert np.mean(low > 0.05) == pytest.approx(found.power, abs=0.02)


def test_areas_and_rates(told):
    planned = "planned: {inputs: 200, prevalence: 0.3}\n"
    found = told("low > 0.6", planned, AUC, "    planned: {effect: 0.75}\n")
    one_sided = {"inputs": 200, "prevalence": 0.3, "null": 0.6, "level": 0.975, "alternative": "greater"}
    assert found.smallest_effect == pytest.approx(auc_power(**one_sided, power=0.8).auc)
    assert found.power == pytest.approx(auc_power(**one_sided, auc=0.75).power)
    found = told("high < 0.1", planned, HARM, "    planned: {effect: 0.02}\n")
    assert found.smallest_effect == rate_power(inputs=200, power=0.8, limit=0.1).rate
    assert found.power == rate_power(inputs=200, rate=0.02, limit=0.1).power
    found = told("low >= 0.1", planned, HARM, "    planned: {effect: 0.3}\n")
    assert found.power == rate_power(inputs=200, rate=0.3, limit=0.1, alternative="greater").power
    found = told("low > 0.1 OR high < 0.1", planned, HARM, "    planned: {effect: 0.02}\n")
    assert found.power == rate_power(inputs=200, rate=0.02, limit=0.1).power
    success = "    estimator: accuracy\n    arguments: {arm: evict, outcome: success}\n"
    assert (
        told("high < 0.1", planned, success).smallest_effect
        == rate_power(inputs=200, power=0.8, limit=0.1).rate
    )


def test_a_family_is_planned_for_at_its_worst(register):
    second = "  - id: second\n    statement: The same.\n" + DELTA + RULE
    plan = load_plan(
        register(
            ("study: toy\n", f"study: toy\n{PLANNED}family: {{method: holm, level: 0.05}}\n"),
            (RULE, RULE + second),
        )
    )
    found = claim_power(plan, plan.claims[0])
    assert found.level == 0.975
    alone = difference_power(
        inputs=120,
        rows_per_input=2,
        intraclass_correlation=0.5,
        discordance=0.25,
        power=0.8,
        level=(1 + 0.975) / 2,
        alternative="less",
    )
    assert found.smallest_effect == pytest.approx(alone.difference, abs=1e-9)


@pytest.mark.parametrize(
    ("rule", "planned", "estimator", "own", "text"),
    [
        ("low > 0", "", DELTA, "", "planned.discordance, the share of pairs that differ, is not given"),
        ("low > 0.5", "", AUC, "", "planned.prevalence, the share of rows with the outcome, is not given"),
        ("high < 0.1", "", HARM, "", "planned.inputs is not given"),
        ("estimate > 0", PLANNED, DELTA, "", "the rule is not one comparison of an end of the interval"),
        ("low < 0", PLANNED, DELTA, "", "the rule is not one comparison of an end of the interval"),
        ("low > 0 AND estimate > 0.1", PLANNED, DELTA, "", "the rule is not one comparison of an end"),
        (
            "low > 0",
            PLANNED,
            DELTA,
            "    by: [model]\n    contrast: {model: [a, b]}\n",
            "a contrast of two rows is",
        ),
        ("low > 0", PLANNED, "    estimator: mean_drop\n", "", "there is no plan for mean_drop"),
        (
            "low > 0",
            PLANNED,
            "    estimator: accuracy\n    arguments: {arm: evict}\n",
            "",
            "there is no plan for acc",
        ),
    ],
)
def test_what_cannot_be_told_is_said(told, rule, planned, estimator, own, text):
    found = told(rule, planned, estimator, own)
    assert found.text.startswith(f"cannot be told: {text}")
    assert (found.told, found.smallest_effect, found.power) == (False, None, None)


def test_plans_without_a_solution_say_so(told):
    found = told("low > 0", "planned: {inputs: 3, discordance: 0.1}\n", own="    planned: {effect: 0.05}\n")
    assert found.smallest_effect is None
    assert "no effect is found with 80% power" in found.text
    assert found.power < 0.1
    found = told("low > 0", PLANNED, own="    planned: {effect: -0.1}\n")
    assert found.text.endswith("; the planned effect -0.1 is not beyond the limit 0")
    assert found.power is None
    found = told("low > 0", PLANNED, own="    planned: {effect: 0.4}\n")
    assert found.text.endswith(
        "; the planned effect 0.4 cannot be (planned: effect=0.4 is beyond the discordance of 0.25; "
        "correct either)"
    )


def test_a_claims_own_figures_stand_before_those_of_the_registration(register):
    plan = load_plan(
        register(
            ("study: toy\n", f"study: toy\n{PLANNED}"),
            (RULE, f"{RULE}    planned: {{inputs: 40, effect: -0.2}}\n"),
        )
    )
    merged = planned_sample(plan, plan.claims[0])
    assert (merged.inputs, merged.rows_per_input, merged.discordance, merged.effect) == (40, 2, 0.25, -0.2)


@pytest.mark.parametrize(
    ("block", "fault"),
    [
        ("planned: {inputs: 1}", "planned.inputs is 1: expected a whole number >= 2; correct the value"),
        ("planned: {discordance: 0}", "planned.discordance is 0"),
        ("planned: {prevalence: 1}", "planned.prevalence is 1"),
        ("planned: {intraclass_correlation: 1.5}", "planned.intraclass_correlation is 1.5"),
        ("planned: {inptus: 9}", "planned has the unknown key 'inptus'; did you mean 'inputs'?"),
    ],
)
def test_planned_figures_are_checked(register, block, fault):
    with pytest.raises(InputError) as error:
        lint(register(("study: toy\n", f"study: toy\n{block}\n")))
    assert f"plan.yaml:2: {fault}" in str(error.value)


def test_a_registration_without_weaknesses_has_no_warnings(warned):
    assert warned(
        ("study: toy\n", "study: toy\nstopping_rule: When all are run.\n"),
        (RULE, f"{RULE}    killed: low >= 0\n"),
    ) == ((), ())


def test_warnings_about_the_whole(warned):
    general, _ = warned((RULE, f"{RULE}  - id: second\n    statement: The same.\n{DELTA}{RULE}"))
    assert general == (
        "2 claims and no family: the more there are, the likelier is it that one is supported by chance; "
        "add 'family'",
        "no stopping rule: when the collection ends is open; add 'stopping_rule'",
    )


@pytest.mark.parametrize(
    ("replacements", "warning"),
    [
        ([], "no rule kills it: nothing that is found can count against it; add 'killed'"),
        (
            [(RULE, "    supported: estimate < 0\n    killed: low > 0\n")],
            "supported='estimate < 0' reads no end of the interval: near its limit",
        ),
        ([(RULE, f"{RULE}    killed: estimate > 0\n")], "killed='estimate > 0' reads no end of the interval"),
        (
            [(RULE, f"{RULE}    killed: low > 0\n    null: 0\n"), ("study: toy", "study: toy\nfamily: {}")],
            "supported='high < 0' is one-sided and its p-value two-sided; add 'alternative: less'",
        ),
        (
            [
                (
                    RULE,
                    "    supported: low > 0.05\n    killed: high < 0\n"
                    "    null: 0\n    alternative: greater\n",
                )
            ],
            "supported='low > 0.05' is about 0.05 and its p-value about 0; make 'null' the same",
        ),
        (
            [(RULE, f"{RULE}    killed: low > 0\n    by: [model, task]\n")],
            "every row by model, task must satisfy its rule, and one of many may fail by chance",
        ),
        (
            [(RULE, f"{RULE}    killed: low > 0\n    by: [input_id]\n")],
            "every row by input_id must satisfy its rule",
        ),
        (
            [
                (RULE, f"{RULE}    killed: low > 0\n"),
                ("budget = 0.5", "budget = 0.5 AND baseline_success AND score < 1"),
            ],
            "where='budget = 0.5 AND baseline_success AND score < 1' selects by the outcome (base",
        ),
        (
            [(RULE, f"{RULE}    killed: low > 0\n"), ("budget = 0.5", "budgt = 0.5 AND certificate > 1")],
            "where='budgt = 0.5 AND certificate > 1' reads 'budgt', which can only be a signal; did you mean "
            "'budget'?",
        ),
    ],
)
def test_what_weakens_a_claim(warned, replacements, warning):
    _, own = warned(*replacements)
    assert len(own) == 1
    assert own[0].startswith(warning)


@pytest.mark.parametrize(
    "more",
    [
        "    by: [model, task]\n    quantifier: {at_least: 2}\n",
        "    by: [task]\n",
        "    null: 0\n    alternative: less\n",
    ],
)
def test_what_is_sound_is_left_alone(warned, more):
    assert warned((RULE, f"{RULE}    killed: low > 0\n{more}"))[1] == ()


def test_errors_are_those_of_verification(register):
    with pytest.raises(InputError, match=r"plan\.yaml:8: .*'dleta'.*; did you mean 'delta'\?"):
        lint(register(("estimator: delta", "estimator: dleta")))


def test_no_data_is_needed_and_the_facts_of_the_file_are_given(register):
    path = register()
    found = lint(path).to_dict()
    assert json.loads(json.dumps(found)) == found | {
        "warnings": list(found["warnings"]),
        "claims": [{**claim, "warnings": list(claim["warnings"])} for claim in found["claims"]],
    }
    assert (found["file"], found["study"]) == ("plan.yaml", "toy")
    assert found["sha256"] == load_plan(path).document.sha256
    assert found["claims"][0]["line"] == 6


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("low > 0", Comparison("low", ">", 0.0)),
        (" high<=-.5 ", Comparison("high", "<=", -0.5)),
        ("1e-3 <= p_value", Comparison("p_value", ">=", 0.001)),
        ("estimate = 0", Comparison("estimate", "==", 0.0)),
        ("0 == estimate", Comparison("estimate", "==", 0.0)),
        ("(low > 0)", None),
        ("low > high", None),
        ("NOT low > 0", None),
        ("low > 0 OR high < 0", None),
        ("low <> 0", None),
        ("low > 1/2", None),
    ],
)
def test_single_comparisons(rule, found):
    assert comparison_of(rule) == found


def test_two_sided_rules():
    assert two_sided_limit("high < 0.5 or 0.5 < low") == 0.5
    for rule in (
        "low > 0 AND high < 0",
        "low > 0 OR low < 0",
        "low < 0 OR high > 0",
        "low > 0",
        "a OR b OR c",
    ):
        assert two_sided_limit(rule) is None
