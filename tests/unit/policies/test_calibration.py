import math
import re
import statistics

import numpy as np
import pytest

from kvstats.errors import InputError
from kvstats.log import InputRecord, log_from_records
from kvstats.policies import midpoint_threshold, z_threshold
from kvstats.policies.pilot import drawn


def inputs(drops, task="t", model="m", condition=None):
    return [
        InputRecord(suite="s", model=model, task=task, input_id=f"{n:03}", condition=condition, drop=drop)
        for n, drop in enumerate(drops)
    ]


def drops(seed, size, mean=0.1):
    return np.random.default_rng(seed).normal(mean, 0.02, size).tolist()


def test_z_threshold_is_mean_plus_theta_standard_deviations():
    values = drops(0, 30)
    found = z_threshold(log_from_records(inputs(values)))
    assert found.value == pytest.approx(statistics.mean(values) - 0.69 * statistics.stdev(values))
    assert (found.method, found.signal, found.pilot_size) == ("z", "drop", 30)
    assert z_threshold(log_from_records(inputs(values)), theta_z=0.0).se == pytest.approx(
        statistics.stdev(values) / math.sqrt(30)
    )


def test_the_standard_error_of_a_z_threshold_is_that_of_the_jackknife():
    values = np.array(drops(1, 200))

    def tau(x):
        return x.mean() - 0.69 * x.std(ddof=1)

    left_out = np.array([tau(np.delete(values, i)) for i in range(values.size)])
    jackknife = math.sqrt(199 / 200 * ((left_out - left_out.mean()) ** 2).sum())
    assert z_threshold(log_from_records(inputs(values))).se == pytest.approx(jackknife, rel=0.02)


def test_pilots_are_chosen_by_size_seed_and_filter():
    log = log_from_records([*inputs(drops(2, 50)), *inputs(drops(3, 50), task="u")])
    first = z_threshold(log, pilot_size=10)
    assert first.pilot_size == 10
    assert first == z_threshold(log, pilot_size=10, seed=0)
    assert first.pilot != z_threshold(log, pilot_size=10, seed=1).pilot
    only = z_threshold(log, where="task = 'u'", pilot_size=10)
    assert {key[2] for key in only.pilot} == {"u"}
    by_filter = z_threshold(log, where="input_id < '005'")
    assert [key[3] for key in by_filter.pilot] == [f"{n:03}" for n in range(5)] * 2


def test_a_pilot_does_not_depend_on_the_order_of_records():
    records = inputs(drops(2, 50))
    one = z_threshold(log_from_records(records), pilot_size=7)
    assert one == z_threshold(log_from_records(records[::-1]), pilot_size=7)


def test_midpoint_lies_halfway_with_the_standard_error_of_two_means():
    low, high = drops(4, 60, 0.04), drops(5, 50, 0.16)
    log = log_from_records([*inputs(low, "mk3"), *inputs(high, "vt"), *inputs(drops(6, 9), "other")])
    found = midpoint_threshold(log, capacity_task="mk3", dilution_task="vt", pilot_size=None)
    assert found.value == pytest.approx((statistics.mean(low) + statistics.mean(high)) / 2)
    variance = statistics.variance(low) / 60 + statistics.variance(high) / 50
    assert found.se == pytest.approx(math.sqrt(variance) / 2)
    assert found.pilot_size == 110
    forty = midpoint_threshold(log, capacity_task="mk3", dilution_task="vt")
    tasks = [key[2] for key in forty.pilot]
    assert (tasks.count("mk3"), tasks.count("vt"), len(tasks)) == (20, 20, 40)
    assert abs(forty.value - found.value) < 4 * forty.se


MIDPOINT = {"capacity_task": "mk3", "dilution_task": "vt"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pilot_size": 41}, "midpoint_threshold: pilot_size=41 is no even number; half of the pilot is of"),
        ({"pilot_size": "40"}, "midpoint_threshold: pilot_size='40' is no even number; half of the pilot is"),
        ({"pilot_size": 80}, "midpoint_threshold: pilot_size=40 exceeds the 30 inputs of mk3; pass fewer"),
        ({"pilot_size": 2}, "midpoint_threshold: pilot_size=1 is not a whole number of at least 2"),
        ({"dilution_task": "mk3"}, "dilution_task='mk3' is the capacity-bound task too; name two tasks"),
        ({"dilution_task": "v"}, "dilution_task='v' has 0 selected inputs, and a standard error needs two; "),
        ({"seed": -1}, "midpoint_threshold: seed=-1 is not a whole number of at least 0"),
        ({"signal": "dropp"}, "signal='dropp' is not a numeric column of the inputs; did you mean 'drop'?"),
        (
            {"capacity_task": "vt", "dilution_task": "mk3"},
            "midpoint_threshold: the mean 'drop' of capacity_task='vt' is 0.1601, not below that of "
            "dilution_task='mk3', 0.04",
        ),
    ],
)
def test_midpoints_that_cannot_be_taken_are_refused(arguments, message):
    mk3, vt = inputs([0.04 + 1e-4 * n for n in range(30)], "mk3"), inputs([0.16, 0.1602] * 20, "vt")
    with pytest.raises(InputError, match=re.escape(message)):
        midpoint_threshold(log_from_records([*mk3, *vt]), **(MIDPOINT | arguments))


@pytest.mark.parametrize(
    ("records", "arguments", "message"),
    [
        (inputs([0.1]), {}, "z_threshold: the pilot has 1 inputs without spread of 'drop'; a z-score needs"),
        (inputs([0.1, 0.1]), {}, "z_threshold: the pilot has 2 inputs without spread"),
        (inputs([0.1, None]), {}, "z_threshold: signal='drop' is null for 1 inputs, such as (suite=s"),
        (inputs([0.1, 0.2]), {"where": "task = 'u'"}, "where=\"task = 'u'\" leaves no input; select some"),
        (inputs([0.1, 0.2]), {"theta_z": math.inf}, "z_threshold: theta_z=inf is not a finite number"),
        (inputs([0.1, 0.2]), {"pilot_size": 3}, "pilot_size=3 exceeds the 2 inputs of the selection"),
        (
            [*inputs([0.1, 0.2]), *inputs([0.1, 0.2], model="n")],
            {},
            "z_threshold: the pilot has inputs of 2 values of model (m, n), each with a scale",
        ),
        (
            [*inputs([0.1, 0.2], condition="a"), *inputs([0.1, 0.2], condition="b")],
            {},
            "the pilot has inputs of 2 values of condition (a, b)",
        ),
        ([*inputs([0.1, 0.2]), *inputs([0.3])], {}, "z_threshold: 2 input records share their key"),
    ],
)
def test_pilots_without_a_z_score_are_refused(records, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        z_threshold(log_from_records(records), **arguments)


def test_a_pilot_without_a_signal_is_no_fault_where_it_is_not_selected():
    log = log_from_records(inputs([0.1, 0.3, None]))
    assert z_threshold(log, where="drop IS NOT NULL").pilot_size == 2


def test_a_draw_does_not_depend_on_the_order_of_rows():
    rows = log_from_records(inputs([0.01 * n for n in range(20)])).inputs
    first = drawn("f", rows, 6, 0, "all")
    again = drawn("f", rows[::-1], 6, 0, "all")
    assert first["input_id"].to_list() == again["input_id"].to_list()
    assert first["input_id"].n_unique() == 6
