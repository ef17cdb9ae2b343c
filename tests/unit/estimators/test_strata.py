"""Strata are counted in the whole log, whatever an estimator selects from it."""

import numpy as np
import polars as pl
import pytest

from kvstats.estimators import accuracy, auc, discordant_harm_share, induced_failure_rate
from kvstats.inference import Design
from kvstats.log import RunRecord, log_from_records

RANDOM = np.random.default_rng(0)
STRATA = Design(strata="task")


@pytest.fixture
def log():
    records = []
    for i in range(40):
        task, twin = "ab"[i % 2], float(RANDOM.random() < 0.6)
        score = float(RANDOM.random() < (0.3 if task == "a" else 0.8))
        for arm, budget, value in (("full", 1.0, twin), ("x", 0.5, score)):
            records.append(
                RunRecord(
                    suite="s",
                    model="m",
                    task=task,
                    input_id=str(i),
                    arm=arm,
                    budget=budget,
                    score=value,
                    success=value == 1,
                    signals={"margin": float(RANDOM.normal())},
                )
            )
    return log_from_records(records)


def test_the_standard_error_of_a_population_within_strata_by_the_definition(log):
    pairs = log.runs.filter(pl.col("arm") == "x").join(
        log.runs.filter(pl.col("arm") == "full").select("input_id", twin="score"), on="input_id"
    )
    inside = pairs["twin"].to_numpy() == 1
    failed = 1 - pairs["score"].to_numpy()
    totals = np.where(inside, failed - failed[inside].mean(), 0.0) / inside.sum()
    strata = pairs["task"].to_numpy()
    variance = sum(20 / 19 * np.sum((t - t.mean()) ** 2) for t in (totals[strata == name] for name in "ab"))
    row = induced_failure_rate(log, arm="x", design=STRATA).frame.row(0, named=True)
    assert (row["se"], row["df"]) == pytest.approx((np.sqrt(variance), inside.sum() - 2))
    assert (row["n"], row["clusters"]) == (inside.sum(), inside.sum())


@pytest.mark.parametrize(
    "estimated",
    [
        lambda log: accuracy(log, arm="x", where="score = 1", design=STRATA),
        lambda log: accuracy(log, arm="x", by="success", design=STRATA),
        lambda log: auc(log, signal="margin", arm="x", where="baseline_success", design=STRATA),
        lambda log: discordant_harm_share(log, arm="x", design=STRATA),
    ],
    ids=["where", "by", "auc", "discordant"],
)
def test_every_selection_keeps_the_clusters_of_its_strata(log, estimated):
    for sample in estimated(log).samples:
        assert len(sample.clusters) == 40
        assert sample.n_clusters < 40
        assert sample.drawn_from.all()


def test_all_rows_are_judged_as_before(log):
    row = accuracy(log, arm="x", design=STRATA).frame.row(0, named=True)
    assert (row["clusters"], row["df"]) == (40, 38)
