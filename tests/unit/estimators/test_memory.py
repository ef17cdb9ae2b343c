import re
from itertools import combinations

import numpy as np
import polars as pl
import pytest

from kvstats.errors import InputError
from kvstats.estimators import batch_kept_fraction, compression, kept_fraction
from kvstats.inference import Design
from kvstats.log import log_from_records
from kvstats.policies import gate

DROP = [0.01, 0.09, 0.08, 0.07, 0.02, 0.09]


def only(result):
    assert result.frame.height == 1
    return result.frame.row(0, named=True)


@pytest.fixture
def log(make_log):
    scores = {"full": {1.0: [1] * 6}, "a": {0.25: [1] * 6, 0.5: [0] * 6}}
    return gate(make_log(scores, drop=DROP), tau=0.05, base="a")


def test_compression_is_one_over_the_mean_kept_fraction(log):
    kept, found = only(kept_fraction(log, arm="gate")), only(compression(log, arm="gate"))
    assert found["estimate"] == pytest.approx(1 / kept["estimate"])
    # Delta method: the derivative of 1 / k is -1 / k ** 2.
    assert found["se"] == pytest.approx(kept["se"] / kept["estimate"] ** 2)
    assert only(compression(log, arm="full"))["status"] == "zero variance"
    assert only(compression(log, arm="gate", where="budget > 1"))["status"] == "no rows"


def test_runs_that_do_not_tell_what_they_kept_are_refused(make_records):
    log = log_from_records(make_records({"a": {0.5: [1, 1]}}, n_kept=None))
    with pytest.raises(InputError, match="compression: kept_fraction is null in 2 of 2 rows"):
        compression(log)


def all_batches(kept, is_open, size):
    """Return the mean kept fraction over all subsets of a size."""
    subsets = list(combinations(range(len(kept)), size))
    return np.mean([np.mean([kept[i] for i in s]) if all(is_open[i] for i in s) else 1.0 for s in subsets])


def test_batches_of_the_log_are_its_subsets(log):
    is_open = [drop >= 0.05 for drop in DROP]
    found = batch_kept_fraction(
        log, arm="gate", batch=[1, 2, 3, 5], draws="without_replacement", where="budget = 0.25"
    ).frame
    kept = [0.25 if opened else 1.0 for opened in is_open]
    assert found["estimate"].to_list() == pytest.approx([all_batches(kept, is_open, b) for b in (1, 2, 3, 5)])
    assert found["status"].to_list() == ["ok", "ok", "ok", "zero variance"]


def test_independent_batches_have_powers(log):
    found = batch_kept_fraction(log, arm="gate", batch=[1, 3], where="budget = 0.25").frame
    assert found["estimate"].to_list() == pytest.approx([1 - (4 / 6) ** b * 0.75 for b in (1, 3)])
    assert found["n"].to_list() == [6, 6]
    single = only(batch_kept_fraction(log, arm="gate", batch=1, design=Design(interval="linear")))
    expected = only(kept_fraction(log, arm="gate"))
    for name in ("estimate", "low", "high", "se"):
        assert single[name] == pytest.approx(expected[name])


def test_budgets_are_averaged_within_inputs_or_kept_apart(log):
    pooled = only(batch_kept_fraction(log, arm="gate", batch=2))
    parts = batch_kept_fraction(log, arm="gate", batch=2, by="budget")
    assert parts.by == ("budget", "batch")
    assert pooled["estimate"] == pytest.approx(parts.frame["estimate"].mean())
    assert pooled["n"] == 6


def test_large_batches_keep_everything_and_no_interval_exceeds_it(log):
    row = only(batch_kept_fraction(log, arm="gate", batch=32))
    assert 1 - 1e-4 < row["estimate"] < 1
    assert row["high"] <= 1
    none = batch_kept_fraction(log, arm="gate", batch=2, where="NOT gate_open")
    assert (only(none)["estimate"], only(none)["status"]) == (1, "zero variance")
    assert only(batch_kept_fraction(log, arm="gate", batch=2, where="budget > 1"))["status"] == "no rows"
    too_large = batch_kept_fraction(log, arm="gate", batch=7, draws="without_replacement")
    assert only(too_large)["status"] == "undefined"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch": 0}, "batch_kept_fraction: batch=0 is not a whole number of at least 1"),
        ({"batch": [2, 2]}, "batch_kept_fraction: batch=[2, 2] is empty or names a size twice"),
        ({"batch": []}, "batch_kept_fraction: batch=[] is empty"),
        ({"draws": "dependent"}, "draws='dependent' is not known; did you mean 'independent'?"),
        ({"arm": "a"}, "batch_kept_fraction: arm='a' has runs without gate_open; name the arm of a gate"),
        (
            {"draws": "without_replacement", "design": Design(weight="n_prompt")},
            "design.weight='n_prompt' makes inputs count unequally",
        ),
        ({"design": Design(weight="n_kept")}, "design='n_kept' differs between runs of one input"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(log, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        batch_kept_fraction(log, **({"arm": "gate", "batch": 2} | arguments))


def test_a_log_without_any_gate_is_refused(make_log):
    with pytest.raises(InputError, match="arm='a' has runs without gate_open"):
        batch_kept_fraction(make_log({"a": {0.5: [1, 1]}}), arm="a")


def test_an_input_is_open_or_closed(log):
    torn = log.with_runs(log.runs.with_columns(gate_open=pl.col("gate_open") & (pl.col("budget") > 0.3)))
    with pytest.raises(InputError, match="arm='gate_open' differs between runs of one input"):
        batch_kept_fraction(torn, arm="gate")
    assert batch_kept_fraction(torn, arm="gate", batch=2, by="budget").frame.height == 2
