import itertools
import re

import pytest

from kvstats.errors import InputError
from kvstats.estimators import recovery_rate, sensitivity, task_class
from kvstats.inference import Design
from kvstats.log import log_from_records


def task(make_records, name, *, size=100, answered, destroyed, recovered=0):
    """`answered` of the full runs succeed, the first `destroyed` fail evicted; `recovered` others succeed."""
    full = [float(n < answered) for n in range(size)]
    low = [float(destroyed <= n < answered) for n in range(size)]
    high = [float(n < answered or n >= size - recovered) for n in range(size)]
    return make_records({"full": {1.0: full}, "a": {0.0625: low, 0.5: high}}, task=name)


def classes(records, **arguments):
    frame = task_class(log_from_records(records), arm="a", by="task", **arguments).frame
    return {row["task"]: (row["task_class"], row["certain"]) for row in frame.iter_rows(named=True)}


def test_the_four_classes_and_the_untestable(make_records):
    records = [
        *task(make_records, "capacity", answered=90, destroyed=80),
        *task(make_records, "mixed", answered=60, destroyed=50, recovered=30),
        *task(make_records, "dilution", answered=60, destroyed=2, recovered=30),
        *task(make_records, "robust", answered=90, destroyed=1),
        *task(make_records, "hopeless", answered=1, destroyed=1),
    ]
    assert classes(records) == {
        "capacity": ("capacity-bound", True),
        "mixed": ("mixed", True),
        "dilution": ("dilution-prone", True),
        "robust": ("evict-robust", True),
        "hopeless": ("untestable", True),
    }


def test_the_table_holds_the_estimates_of_the_estimators(make_records):
    records = [
        *task(make_records, "t", answered=60, destroyed=20, recovered=7),
        *task(make_records, "u", answered=80, destroyed=0),
    ]
    log = log_from_records(records)
    design = Design(interval="wilson")
    found = task_class(log, arm="a", by="task", design=design)
    for name, result in (
        ("sensitivity", sensitivity(log, arm="a", by="task", design=design)),
        ("recovery_rate", recovery_rate(log, arm="a", by="task", design=design)),
    ):
        own = found.frame.select("task", name, f"{name}_low", f"{name}_high").rows()
        assert own == result.frame.select("task", "estimate", "low", "high").rows()
    assert found.frame["full_accuracy"].to_list() == [0.6, 0.8]
    assert found.sensitivity.frame.equals(sensitivity(log, arm="a", by="task", design=design).frame)
    assert found.frame["n"].to_list() == [100, 100]
    assert repr(found).startswith("task_class, 95% intervals\n")


@pytest.mark.parametrize(("destroyed", "recovered"), list(itertools.product((39, 40, 41), (4, 5, 6))))
def test_thresholds_belong_to_the_upper_class(make_records, destroyed, recovered):
    records = task(make_records, "t", size=200, answered=100, destroyed=destroyed, recovered=2 * recovered)
    expected = {
        (False, False): "evict-robust",
        (False, True): "dilution-prone",
        (True, False): "capacity-bound",
        (True, True): "mixed",
    }[destroyed >= 40, recovered >= 5]
    assert classes(records)["t"] == (expected, False)


@pytest.mark.parametrize(("answered", "name"), [(14, "untestable"), (15, "evict-robust")])
def test_what_is_testable(make_records, answered, name):
    assert classes(task(make_records, "t", answered=answered, destroyed=0))["t"] == (name, False)


def test_other_thresholds(make_records):
    records = task(make_records, "t", answered=60, destroyed=20, recovered=2)
    assert classes(records)["t"][0] == "evict-robust"
    assert classes(records, sensitive=0.2, recovering=0.01)["t"][0] == "mixed"
    assert classes(records, testable=0.9)["t"][0] == "untestable"


def test_certain_means_that_no_interval_holds_its_threshold(make_records):
    records = task(make_records, "t", size=100, answered=100, destroyed=52)
    low = task_class(log_from_records(records), arm="a", by="task").frame["sensitivity_low"].item()
    assert classes(records, sensitive=low)["t"] == ("capacity-bound", True)
    assert classes(records, sensitive=low + 1e-6)["t"] == ("capacity-bound", False)


@pytest.mark.parametrize(
    "counts",
    [
        {"answered": 90, "destroyed": 34, "recovered": 0},
        {"answered": 90, "destroyed": 1, "recovered": 4},
        {"answered": 20, "destroyed": 0, "recovered": 50},
    ],
)
def test_one_interval_that_holds_its_threshold_is_enough_for_doubt(make_records, counts):
    frame = task_class(log_from_records(task(make_records, "t", **counts)), arm="a", by="task").frame
    row = frame.row(0, named=True)
    thresholds = {"full_accuracy": 0.15, "sensitivity": 0.40, "recovery_rate": 0.05}
    unclear = [name for name, at in thresholds.items() if row[f"{name}_low"] < at <= row[f"{name}_high"]]
    assert (len(unclear), row["certain"]) == (1, False)


def test_one_input_is_never_certain(make_records):
    assert classes(task(make_records, "t", size=1, answered=1, destroyed=1))["t"] == ("capacity-bound", False)
    assert classes(task(make_records, "t", size=1, answered=0, destroyed=0))["t"] == ("untestable", False)


def test_nothing_selected(make_records):
    log = log_from_records(task(make_records, "t", answered=60, destroyed=20))
    assert task_class(log, arm="a", where="budget > 1").frame.height == 0
    whole = task_class(log, arm="a", where="budget > 1", by=None).frame
    assert whole.select("task_class", "certain").rows() == [(None, False)]


def test_what_cannot_be_classed_is_refused(make_records):
    log = log_from_records(task(make_records, "t", answered=60, destroyed=20))
    with pytest.raises(InputError, match=re.escape("task_class: sensitive=1.5 is not between 0 and 1")):
        task_class(log, arm="a", sensitive=1.5)
    with pytest.raises(InputError, match="task_class: by='tasks' is not a column; did you mean 'task'"):
        task_class(log, arm="a", by="tasks")
