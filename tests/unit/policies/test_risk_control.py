import math
import re

import numpy as np
import pytest
from scipy import stats

from kvstats.errors import InputError
from kvstats.log import InputRecord, RunRecord, log_from_records
from kvstats.policies import gate, harm_bounds, risk_controlled_threshold
from kvstats.tables import paired


def records_of(drops, harmed, budgets=(0.25,), **key):
    records = []
    for number, (drop, harm) in enumerate(zip(drops, harmed, strict=True)):
        name = {"suite": "s", "model": "m", "task": "t", "input_id": f"{number:04}"} | key
        records += [
            InputRecord(**name, drop=float(drop)),
            RunRecord(**name, arm="full", budget=1.0, score=1.0),
            *(RunRecord(**name, arm="a", budget=b, score=float(not harm)) for b in budgets),
        ]
    return records


@pytest.fixture(scope="module")
def columns():
    random = np.random.default_rng(0)
    drops = random.uniform(0, 0.2, 300).round(3)
    return drops, random.uniform(size=300) < 0.5 * (0.2 - drops) / 0.2


def brute_force(drops, harmed, level, confidence):
    """Walk down from infinity as long as the binomial test rejects."""
    n, last = len(drops), (math.inf, 0)
    for tau in [math.inf, *sorted(set(drops), reverse=True)]:
        k = sum(bool(h) and d >= tau for d, h in zip(drops, harmed, strict=True))
        if stats.binom.cdf(k, n, level) > 1 - confidence:
            break
        last = (tau, k)
    return last


@pytest.mark.parametrize(("level", "confidence"), [(0.05, 0.9), (0.1, 0.95), (0.02, 0.9), (0.6, 0.5)])
def test_the_loosest_threshold_that_every_safer_one_passes_before(columns, level, confidence):
    log = log_from_records(records_of(*columns))
    found = risk_controlled_threshold(log, base="a", level=level, confidence=confidence)
    tau, k = brute_force(*columns, level, confidence)
    assert found.value == tau
    assert found.harm_bound == pytest.approx(stats.beta.ppf(confidence, k + 1, 300 - k))
    assert found.harm_bound <= level
    assert (found.method, found.pilot_size, found.harm_level) == ("risk_controlled", 300, level)
    gated = paired(gate(log, tau=found, base="a"), arm="gate")
    assert int(gated["harm"].sum()) == k


def test_the_table_shows_every_threshold(columns):
    log = log_from_records(records_of(*columns))
    table = harm_bounds(log, base="a", taus=[0.1, 0.05, 0.1])
    assert table["tau"].to_list() == [math.inf, 0.1, 0.05]
    drops, harmed = columns
    for row in table.iter_rows(named=True):
        is_open = drops >= row["tau"]
        assert row["opened"] == is_open.sum()
        assert row["harmed"] == (harmed & is_open).sum()
        assert row["p_value"] == pytest.approx(stats.binom.cdf(row["harmed"], 300, 0.05))
        interval = stats.binomtest(row["harmed"], 300).proportion_ci(0.8, method="exact")
        assert row["high"] == pytest.approx(interval.high)
        assert row["passes"] == (row["high"] <= 0.05)


def test_a_threshold_that_all_inputs_fail_harms_all():
    log = log_from_records(records_of([0.1] * 30, [True] * 30))
    last = harm_bounds(log, base="a").row(-1, named=True)
    assert (last["harmed"], last["high"], last["p_value"], last["passes"]) == (30, 1.0, 1.0, False)
    assert risk_controlled_threshold(log, base="a", level=0.1).value == math.inf


def test_the_gate_of_an_infinite_threshold_is_closed():
    log = log_from_records(records_of([0.1] * 30, [True] * 30))
    closed = gate(log, tau=risk_controlled_threshold(log, base="a", level=0.1), base="a")
    assert not paired(closed, arm="gate")["harm"].any()


def test_where_nothing_is_harmed_the_gate_opens_for_all():
    log = log_from_records(records_of([0.3, 0.1, 0.2] * 20, [False] * 60))
    assert risk_controlled_threshold(log, base="a").value == 0.1


def test_ties_of_the_signal_open_together():
    drops, harmed = [0.1] * 50 + [0.2] * 50, [True] * 10 + [False] * 90
    log = log_from_records(records_of(drops, harmed))
    assert risk_controlled_threshold(log, base="a").value == 0.2


def test_several_runs_of_an_input_are_refused_or_reduced(columns):
    log = log_from_records(records_of(*columns, budgets=(0.25, 0.5)))
    message = (
        "risk_controlled_threshold: 600 runs are of inputs with several, such as (suite=s, model=m, task=t, "
        "input_id=0000)"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        risk_controlled_threshold(log, base="a")
    one = log_from_records(records_of(*columns))
    expected = risk_controlled_threshold(one, base="a")
    assert risk_controlled_threshold(log, base="a", where="budget = 0.25") == expected
    assert risk_controlled_threshold(log, base="a", reduce="any") == expected


def test_any_harmed_run_harms_its_input():
    records = records_of([0.1] * 40, [False] * 40)
    records += [
        RunRecord(suite="s", model="m", task="t", input_id=f"{n:04}", arm="a", budget=0.5, score=float(n > 2))
        for n in range(40)
    ]
    table = harm_bounds(log_from_records(records), base="a", reduce="any")
    assert table["harmed"].to_list() == [0, 3]


def test_runs_at_budget_one_are_no_trials(columns):
    log = log_from_records(records_of(*columns, budgets=(0.25, 1.0)))
    expected = risk_controlled_threshold(log_from_records(records_of(*columns)), base="a")
    assert risk_controlled_threshold(log, base="a") == expected


def test_pilots_are_drawn_and_named(columns):
    log = log_from_records(records_of(*columns))
    found = risk_controlled_threshold(log, base="a", pilot_size=100, seed=3)
    assert found.pilot_size == 100
    drawn = [int(key[3]) for key in found.pilot]
    assert found.value == brute_force(columns[0][drawn], columns[1][drawn], 0.05, 0.9)[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": 0.0}, "risk_controlled_threshold: level=0.0 is not between 0 and 1"),
        ({"confidence": 1}, "risk_controlled_threshold: confidence=1 is not between 0 and 1"),
        ({"reduce": "all"}, "risk_controlled_threshold: reduce='all' is not known; pass 'any' or None"),
        ({"base": "b"}, "risk_controlled_threshold: base='b' is not an arm of the log"),
        ({"signal": "margin"}, "risk_controlled_threshold: signal='margin' is not a numeric column of the"),
        ({"where": "budget > 1"}, "where='budget > 1' leaves no run of the arm; select some"),
        ({"taus": [math.nan]}, "risk_controlled_threshold: taus=[nan] is not a list of numbers"),
        (
            {"where": "input_id < '0028'"},
            "risk_controlled_threshold: 28 inputs cannot show a harm rate below level=0.05 with "
            "confidence=0.9, even without any harm; label at least 45",
        ),
    ],
)
def test_samples_that_show_nothing_are_refused(columns, arguments, message):
    log = log_from_records(records_of(*columns))
    with pytest.raises(InputError, match=re.escape(message)):
        risk_controlled_threshold(log, **({"base": "a"} | arguments))


def test_models_and_conditions_are_not_pooled(columns):
    log = log_from_records([*records_of(*columns), *records_of(*columns, model="n")])
    with pytest.raises(
        InputError, match="risk_controlled_threshold: the pilot has inputs of 2 values of model"
    ):
        risk_controlled_threshold(log, base="a")
    assert risk_controlled_threshold(log, base="a", where="model = 'n'").pilot_size == 300


def test_forty_five_inputs_without_harm_show_a_rate_below_five_percent():
    assert (
        risk_controlled_threshold(log_from_records(records_of([0.1] * 45, [False] * 45)), base="a").value
        == 0.1
    )
