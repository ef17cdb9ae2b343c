"""The panel of self-signals against a loop over scikit-learn, in one process.

    OMP_NUM_THREADS=1 python tests/benchmarks/panel.py

Needs scikit-learn. Both sides give, for five signals and two outcomes of one arm, every area and its
difference to the certificate's, each with a percentile interval from resampled clusters. The loop resamples
once for all signals, takes every area once in each replicate, and subtracts; it runs on fewer replicates, and
its time is scaled. Reading and pairing are part of our time, not of the loop's.
"""

from __future__ import annotations

import statistics
import time
import tracemalloc
from typing import Any

import numpy as np
import polars as pl

from kvstats.estimators.signal_panel import HIGHER, signal_panel
from kvstats.inference import Design
from kvstats.log.frames import RUN_SCHEMA, Log
from kvstats.tables import paired

SIGNALS = ("certificate", "evicted_mass", "logprob", "margin", "retained_entropy")
OUTCOMES = ("failure", "induced_failure")
MODELS, BUDGETS, SEEDS, INPUTS = 4, (0.125, 0.25, 0.5), 2, 3084
OF_PEER = 10
REPEATS = 3


def study() -> Log:
    """A log of 74,016 evicted runs of 3,084 inputs, with a full-cache run for each model and input."""
    random = np.random.default_rng(0)
    shape = (INPUTS, MODELS, len(BUDGETS), SEEDS)
    place = np.indices(shape).reshape(4, -1)
    difficulty = random.normal(size=INPUTS)
    full = difficulty[:, None] + random.normal(size=(INPUTS, MODELS)) < 0.3
    error = random.normal(size=shape) - np.array([0.5, 0.0, -0.5])[None, None, :, None]
    success = full[:, :, None, None] & (error < 0.7)
    common = {"suite": "s", "task": "qa", "score": 0.0}
    runs = pl.DataFrame(
        {
            "model": [f"m{i}" for i in place[1]],
            "input_id": [f"i{i:04}" for i in place[0]],
            "arm": "poisson",
            "budget": np.array(BUDGETS)[place[2]],
            "seed": place[3],
            "success": success.ravel(),
            **{
                name: (weight * error + difficulty[:, None, None, None] + random.normal(size=shape)).ravel()
                * (1.0 if HIGHER[name] == "positive" else -1.0)
                for name, weight in zip(SIGNALS, (2.0, 1.0, 0.2, 0.1, 0.5), strict=True)
            },
        }
    )
    twins = pl.DataFrame(
        {
            "model": [f"m{i}" for i in np.tile(np.arange(MODELS), INPUTS)],
            "input_id": [f"i{i:04}" for i in np.repeat(np.arange(INPUTS), MODELS)],
            "arm": "full",
            "budget": 1.0,
            "seed": 0,
            "success": full.ravel(),
        }
    )
    everything = pl.concat([runs, twins], how="diagonal_relaxed").with_columns(
        pl.lit(value).alias(name) for name, value in common.items()
    )
    schema = {**RUN_SCHEMA, **dict.fromkeys(SIGNALS, pl.Float64())}
    return Log(
        runs=everything.select(
            (pl.col(name) if name in everything.columns else pl.lit(None)).cast(kind).alias(name)
            for name, kind in schema.items()
        ),
        run_signals=SIGNALS,
    )


def loop(pairs: pl.DataFrame, n_resamples: int) -> dict[tuple[str, str, str], Any]:
    """Percentile intervals from a loop over scikit-learn."""
    from sklearn.metrics import roc_auc_score

    found = {}
    for outcome in OUTCOMES:
        part = pairs.filter("baseline_success") if outcome == "induced_failure" else pairs
        label = part[outcome].to_numpy()
        scores = {
            name: part[name].to_numpy() * (1.0 if HIGHER[name] == "positive" else -1.0) for name in SIGNALS
        }
        codes = np.unique(part["input_id"].to_numpy(), return_inverse=True)[1]
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes))
        members = np.split(order, ends[:-1])
        random = np.random.default_rng(0)
        areas = np.empty((n_resamples, len(SIGNALS)))
        for replicate in range(n_resamples):
            rows = np.concatenate([members[c] for c in random.integers(0, len(members), len(members))])
            areas[replicate] = [roc_auc_score(label[rows], scores[name][rows]) for name in SIGNALS]
        for index, name in enumerate(SIGNALS):
            found[outcome, name, "auc"] = np.quantile(areas[:, index], [0.025, 0.975])
            found[outcome, name, "difference"] = np.quantile(areas[:, index] - areas[:, 0], [0.025, 0.975])
        found[outcome, "estimates", ""] = [roc_auc_score(label, scores[name]) for name in SIGNALS]
    return found


def main() -> None:
    log = study()
    pairs = paired(log, arm="poisson")
    design = Design(interval="percentile", n_resamples=500)

    def ours() -> Any:
        return signal_panel(log, arm="poisson", design=design)

    result, peer = ours().frame, loop(pairs, 2)
    for outcome in OUTCOMES:
        areas = result.filter(outcome=outcome, quantity="auc").sort("signal")["estimate"].to_numpy()
        difference = np.abs(areas - peer[outcome, "estimates", ""]).max()
        assert difference < 1e-12, difference
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        ours()
        middle = time.perf_counter()
        loop(pairs, OF_PEER)
        times.append((middle - begin, (time.perf_counter() - middle) * 500 / OF_PEER))
    own, other = (statistics.median(column) for column in zip(*times, strict=True))
    tracemalloc.start()
    ours()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    print(f"panel of {len(SIGNALS)} signals, {pairs.height} runs in {INPUTS} clusters, 500 replicates")
    print(f"ours {own:.2f} s, loop {other:.1f} s ({OF_PEER} replicates, scaled): {other / own:.0f} times")
    print(f"largest memory {peak:.0f} MB; estimates agree to 1e-12")


if __name__ == "__main__":
    main()
