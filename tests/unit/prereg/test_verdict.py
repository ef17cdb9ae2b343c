"""The logic of verdicts, against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kvstats.prereg.schema import AtLeast
from kvstats.prereg.verdict import Decision, combined_p_value, decide, explored, quantified

QUANTIFIERS = ["all", "any", AtLeast(1), AtLeast(2), AtLeast(3)]


def completed(values):
    """Every way in which undefined values could have come out."""
    return itertools.product(*[(True, False) if value is None else (value,) for value in values])


def satisfied(values, quantifier):
    if quantifier == "all":
        return all(values)
    return any(values) if quantifier == "any" else sum(values) >= quantifier.at_least


@pytest.mark.parametrize("quantifier", QUANTIFIERS)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_a_quantified_rule_is_defined_when_undefined_rows_cannot_turn_it(quantifier, size):
    for values in itertools.product((True, False, None), repeat=size):
        outcomes = {satisfied(complete, quantifier) for complete in completed(values)}
        expected = outcomes.pop() if len(outcomes) == 1 else None
        if quantifier == "all" and None in values:
            expected = None
        assert quantified(values, quantifier) is expected, values


@pytest.mark.parametrize("quantifier", QUANTIFIERS)
def test_nothing_holds_of_no_rows(quantifier):
    assert quantified([], quantifier) is None
    assert combined_p_value([], quantifier) is None


def test_combined_p_values():
    p_values = [0.04, 0.01, None, 0.02]
    assert combined_p_value(p_values, "all") == 1.0
    assert combined_p_value(p_values, "any") == 4 * 0.01
    assert combined_p_value(p_values, AtLeast(2)) == 3 * 0.02
    assert combined_p_value(p_values, AtLeast(3)) == 2 * 0.04
    assert combined_p_value(p_values, AtLeast(5)) is None
    assert combined_p_value([0.5, 0.6], "any") == 1.0
    assert combined_p_value([0.3], "all") == 0.3
    assert combined_p_value([None, None], "any") is None


@pytest.mark.parametrize("true_effects", [0, 1, 2])
def test_a_combined_p_value_keeps_its_level_when_too_few_rows_have_an_effect(true_effects):
    # Fewer than three effects, the strongest possible: three are claimed in at most 5% of studies.
    generator = np.random.default_rng(7)
    p_values = generator.uniform(size=(4000, 4))
    p_values[:, :true_effects] = 0.0
    rejected = np.mean([combined_p_value(row, AtLeast(3)) <= 0.05 for row in p_values.tolist()])
    assert rejected <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 4000)


def judge(supported, killed=None, quantifier="all", statuses=None, family=None):
    return decide(
        labels=[f"row={number}" for number in range(len(supported))],
        statuses=statuses or ["ok"] * len(supported),
        supported=("low > 0", supported),
        killed=None if killed is None else ("high < 0", killed),
        quantifier=quantifier,
        family=family,
    )


@pytest.mark.parametrize(
    ("decision", "verdict", "rule", "reason"),
    [
        (judge([True]), "supported", "supported", "low > 0 holds"),
        (judge([True, True]), "supported", "supported", "low > 0 holds in 2 of 2 rows, all needed"),
        (judge([False], [True]), "killed", "killed", "high < 0 holds"),
        (judge([True], [True]), "supported", "supported", "low > 0 holds"),
        (judge([False], [False]), "inconclusive", None, "low > 0 does not hold"),
        (
            judge([True, False], [False, True]),
            "inconclusive",
            None,
            "low > 0 holds in 1 of 2 rows, all needed",
        ),
        (judge([False]), "not met", None, "low > 0 does not hold"),
        (
            judge([True, False], None, "any"),
            "supported",
            "supported",
            "low > 0 holds in 1 of 2 rows, any needed",
        ),
        (
            judge([True, False], None, AtLeast(2)),
            "not met",
            None,
            "low > 0 holds in 1 of 2 rows, at least 2 needed",
        ),
        (judge([True], None, AtLeast(2)), "not met", None, "low > 0 holds in 1 of 1 rows, at least 2 needed"),
        (judge([]), "undefined", None, "the result has no rows"),
        (judge([None]), "undefined", None, "low > 0 is null in row=0"),
        (judge([False], [None]), "undefined", None, "high < 0 is null in row=0"),
        (judge([None], [True]), "killed", "killed", "high < 0 holds"),
    ],
)
def test_verdicts(decision, verdict, rule, reason):
    assert (decision.verdict, decision.rule, decision.reason) == (verdict, rule, reason)


def test_rows_without_an_interval_leave_a_claim_undefined_where_they_are_needed():
    statuses = ["ok", "one cluster"]
    decision = judge([True, True], statuses=statuses)
    assert (decision.verdict, decision.reason) == ("undefined", "status 'one cluster' in row=1")
    assert judge([False, True], statuses=statuses).verdict == "undefined"
    assert judge([True, True], quantifier="any", statuses=statuses).verdict == "supported"
    assert judge([False, True], quantifier="any", statuses=statuses).verdict == "undefined"
    assert judge([False, True], quantifier=AtLeast(2), statuses=statuses).verdict == "not met"


def test_where_no_pair_differs_rules_on_the_ends_do_not_hold():
    statuses = ["no discordant pairs"]
    assert judge([None], [None], statuses=statuses).verdict == "inconclusive"
    assert judge([None], statuses=statuses).verdict == "not met"
    assert judge([True], statuses=statuses).verdict == "supported"


def test_a_family_takes_significance_too():
    assert judge([True], family=(0.05, 0.05)).verdict == "supported"
    decision = judge([True], family=(0.0501, 0.05))
    assert decision.verdict == "not met"
    assert (
        decision.reason == "low > 0 holds, but the adjusted p-value 0.0501 is above the family's level 0.05"
    )
    assert judge([True], [True], family=(0.06, 0.05)).verdict == "killed"
    assert judge([True], [False], family=(0.06, 0.05)).verdict == "inconclusive"
    assert judge([False], [False], family=(0.01, 0.05)).reason == "low > 0 does not hold"


def test_only_the_first_undefined_rows_are_named():
    decision = judge([None] * 5)
    assert decision.reason.count("is null in") == 3
    assert decision.reason.endswith("row=2, and 2 rows more")


@pytest.mark.parametrize("verdict", ["supported", "killed", "inconclusive", "not met"])
def test_what_is_decided_on_early_records_is_exploratory(verdict):
    found, rows = explored(Decision(verdict, "why", "supported"), [verdict, "undefined"], "it is early")
    assert found == Decision(
        "exploratory", f"it is early; by its rules it would be {verdict}: why", "supported"
    )
    assert rows == ["exploratory", "undefined"]


def test_what_is_undefined_stays_so_on_early_records():
    found, rows = explored(Decision("undefined", "why", None), ["undefined"], "it is early")
    assert (found, rows) == (Decision("undefined", "why; it is early", None), ["undefined"])
