import dataclasses
import math

import pytest
from statsmodels.stats.power import TTestPower

from kvstats.errors import InputError
from kvstats.planning import difference_power


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
@pytest.mark.parametrize(("difference", "discordance"), [(0.05, 0.1), (0.02, 0.3), (0.3, 0.6)])
def test_independent_pairs_against_statsmodels(difference, discordance, alternative):
    peer = TTestPower()
    effect = difference / math.sqrt(discordance - difference**2)
    other = {"two-sided": "two-sided", "greater": "larger"}[alternative]
    plan = difference_power(
        inputs=150, difference=difference, discordance=discordance, alternative=alternative
    )
    assert plan.power == pytest.approx(peer.power(effect, 150, 0.05, alternative=other), abs=1e-9)
    plan = difference_power(
        power=0.8, difference=difference, discordance=discordance, alternative=alternative
    )
    size = peer.solve_power(effect, None, 0.05, 0.8, alternative=other)
    assert plan.inputs == math.ceil(size)
    assert plan.solved_for == "inputs"


def test_the_detectable_difference_has_the_power():
    plan = difference_power(
        inputs=200, power=0.9, discordance=0.2, rows_per_input=3, intraclass_correlation=0.4
    )
    assert plan.power == pytest.approx(0.9, abs=1e-9)
    back = difference_power(
        inputs=200,
        difference=plan.difference,
        discordance=0.2,
        rows_per_input=3,
        intraclass_correlation=0.4,
    )
    assert back.power == plan.power
    below = difference_power(inputs=200, power=0.9, discordance=0.2, alternative="less")
    above = difference_power(inputs=200, power=0.9, discordance=0.2, alternative="greater")
    assert below.difference == -above.difference < 0


def test_the_number_of_inputs_is_the_least():
    figures = {"difference": 0.04, "discordance": 0.12, "rows_per_input": 2.5, "intraclass_correlation": 0.2}
    plan = difference_power(power=0.85, **figures)
    assert plan.power >= 0.85
    assert difference_power(inputs=plan.inputs - 1, **figures).power < 0.85


def test_rows_that_are_alike_are_worth_one():
    alike = difference_power(
        power=0.8, difference=0.05, discordance=0.1, rows_per_input=8, intraclass_correlation=1.0
    )
    single = difference_power(power=0.8, difference=0.05, discordance=0.1)
    assert alike.inputs == single.inputs
    assert alike.design_effect == 8
    apart = difference_power(power=0.8, difference=0.05, discordance=0.1, rows_per_input=8)
    assert apart.inputs < single.inputs / 7


def test_differences_that_all_fall_on_one_side():
    plan = difference_power(inputs=2, difference=1.0, discordance=1.0)
    assert plan.se == 0
    assert plan.power == 1.0
    assert difference_power(power=0.8, difference=-1.0, discordance=1.0).inputs == 2


def test_a_plan_is_frozen_and_shows_what_it_rests_on():
    plan = difference_power(power=0.8, difference=0.05, discordance=0.1)
    text = repr(plan)
    for field in dataclasses.fields(plan):
        if field.name != "solved_for":
            assert f"  {field.name} " in text
    assert text.count("<- solved for") == 1
    assert text.count("  assumes: ") == len(plan.assumptions)
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.inputs = 3


GIVEN = {"difference": 0.05, "power": 0.8, "discordance": 0.1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"inputs": 10},
            r"arguments=\[\] is not the one figure to solve for among inputs, difference, power",
        ),
        ({"power": None}, r"arguments=\['inputs', 'power'\] is not the one figure"),
        ({"power": 1.0}, "difference_power: power=1.0 is not between 0 and 1; pass a share"),
        ({"power": None, "inputs": 1}, "inputs=1 is not a whole number of at least 2"),
        ({"power": None, "inputs": 10.0}, "inputs=10.0 is not a whole number"),
        ({"discordance": 0.0}, "discordance=0.0 leaves nothing to detect"),
        ({"discordance": 1.5}, r"discordance=1.5 is not in \[0, 1\]"),
        ({"discordance": "x"}, r"discordance='x' is not in \[0, 1\]"),
        ({"difference": 0.0}, "difference=0.0 is 0 or beyond the discordance of 0.1"),
        ({"difference": 0.2}, "difference=0.2 is 0 or beyond"),
        ({"difference": math.nan}, "difference=nan is 0 or beyond"),
        ({"difference": True}, "difference=True is 0 or beyond"),
        ({"alternative": "less"}, "difference=0.05 is not on the side of alternative 'less'"),
        ({"alternative": "les"}, "alternative='les' is not known; did you mean 'less'"),
        ({"rows_per_input": 0.5}, "rows_per_input=0.5 is not at least 1"),
        ({"rows_per_input": math.inf}, "rows_per_input=inf is not at least 1"),
        ({"intraclass_correlation": -0.1}, r"intraclass_correlation=-0.1 is not in \[0, 1\]"),
        ({"level": 1.0}, "level=1.0 is not between 0 and 1"),
        ({"difference": 1e-9}, "power=0.8 is not reached with 1,000,000,000 inputs"),
        (
            {"difference": None, "inputs": 3},
            "inputs=3 is too few: even where all 0.1 that differ fall on one",
        ),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(InputError, match=message):
        difference_power(**{**GIVEN, **change})
