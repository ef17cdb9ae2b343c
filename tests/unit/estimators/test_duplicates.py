"""Rows that come twice are an error, whatever is asked of them."""

import polars as pl
import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.log import InputRecord, ReplayRecord, log_from_records


def test_runs_that_come_twice_are_refused_by_every_estimator(make_log):
    log = make_log({"full": {1.0: [1, 1]}, "a": {0.5: [0, 1]}}, signals={"margin": [0.1, 0.2]})
    twice = log.with_runs(pl.concat([log.runs, log.runs.filter(pl.col("arm") == "a")]))
    calls = {
        "accuracy": lambda: kv.accuracy(twice, arm="a"),
        "kept_fraction": lambda: kv.kept_fraction(twice, arm="a"),
        "delta": lambda: kv.delta(twice, arm="a"),
        "harm_rate": lambda: kv.harm_rate(twice, arm="a"),
        "auc": lambda: kv.auc(twice, signal="margin", arm="a"),
        "rank_correlation": lambda: kv.rank_correlation(
            twice, x="margin", y="score", table="runs", where="arm = 'a'"
        ),
    }
    for name, call in calls.items():
        with pytest.raises(
            InputError, match=rf"{name}: 4 runs share their key with another, such as \(suite=s"
        ):
            call()


def test_inputs_and_cells_that_come_twice_are_refused():
    key = {"suite": "s", "model": "m", "task": "qa", "input_id": "1"}
    cell = ReplayRecord(
        **key,
        arm="p",
        design="poisson",
        budget=0.5,
        layer=0,
        head=0,
        step=0,
        variance_estimate=0.1,
        radius=0.2,
        true_error=0.1,
        delta=0.1,
    )
    record = InputRecord(**key, drop=0.1)
    with pytest.raises(InputError, match="mean_drop: 2 input records share their key with another"):
        kv.mean_drop(log_from_records([record, record]))
    for estimator in (kv.certificate_coverage, kv.rank_correlation):
        with pytest.raises(
            InputError, match=f"{estimator.__name__}: 2 replay cells share their key with another"
        ):
            estimator(log_from_records([cell, cell]))
