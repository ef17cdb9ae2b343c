import re
from math import comb

import pytest

from kvstats.errors import InputError
from kvstats.estimators import batch_kept_fraction
from kvstats.log import log_from_records
from kvstats.planning import resampled_batches
from kvstats.policies import gate


@pytest.fixture
def log(make_records):
    parts = {"keys": [0.01] * 4 + [0.09] * 2, "qa": [0.09] * 11 + [0.02]}
    records = [
        record
        for task, drop in parts.items()
        for record in make_records(
            {"full": {1.0: [1] * len(drop)}, "a": {0.25: [1] * len(drop)}}, drop=drop, task=task
        )
    ]
    return gate(log_from_records(records), tau=0.05, base="a")


def test_resampling_agrees_with_the_exact_expectation(log):
    exact = batch_kept_fraction(log, arm="gate", batch=[1, 2, 4], draws="without_replacement").frame
    found = resampled_batches(log, arm="gate", batch=[1, 2, 4], n_batches=20_000).frame
    assert found["batch"].to_list() == [1, 2, 4]
    for sampled, expected in zip(found.iter_rows(named=True), exact["estimate"], strict=True):
        assert abs(sampled["kept_fraction"] - expected) < 4 * sampled["simulation_error"]
        assert sampled["all_open"] == pytest.approx(
            comb(13, sampled["batch"]) / comb(18, sampled["batch"]), abs=0.02
        )


def test_batches_of_one_task_are_compressed_more_often(log):
    table = resampled_batches(log, arm="gate", batch=2, within="task", n_batches=20_000)
    assert table.title == "20,000 batches drawn for each size, each of one task"
    found = table.frame.row(0, named=True)
    p_open = 6 / 18 * comb(2, 2) / comb(6, 2) + 12 / 18 * comb(11, 2) / comb(12, 2)
    assert abs(found["kept_fraction"] - (1 - p_open * 0.75)) < 4 * found["simulation_error"]


def test_the_seed_decides(log):
    first, again, other = (resampled_batches(log, arm="gate", batch=3, seed=s).frame for s in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch": 19}, "resampled_batches: batch=19 is larger than the 18 inputs; draw smaller batches"),
        ({"batch": 7, "within": "task"}, "batch=7 is larger than the 6 inputs of task 'keys'"),
        ({"n_batches": 1}, "resampled_batches: n_batches=1 is not a whole number of at least 2"),
        ({"seed": -1}, "resampled_batches: seed=-1 is not a whole number of at least 0"),
        ({"within": "tasks"}, "resampled_batches: within='tasks' is not a column; did you mean 'task'?"),
        ({"where": "budget > 1"}, "resampled_batches: where='budget > 1' leaves no input; select some"),
        ({"arm": "a"}, "resampled_batches: arm='a' has runs without gate_open"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(log, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        resampled_batches(log, **({"arm": "gate", "batch": 2} | arguments))
