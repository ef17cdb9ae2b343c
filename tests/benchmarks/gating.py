"""Every estimate of a gating study against a pandas script, as a ratio measured in one process.

``python tests/benchmarks/gating.py`` simulates a release of 16 cells of 400 inputs at 9 budgets, adds the
gated arm, and takes percentile intervals of 10,000 cluster replicates. The script does what analysts write:
group by cell, draw inputs with replacement, take means of the drawn rows, in a loop. It is timed for a few
replicates, and its time grows linearly with their number.
"""

import argparse
import time
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl

import kvstats as kv
from kvstats.log.frames import INPUT_SCHEMA, RUN_SCHEMA, Log

CELLS, INPUTS, TAU = 16, 400, 0.07
BUDGETS = (0.0625, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
TASKS = {"mk3": (0.9, 0.8, 0.04), "vt": (0.7, 0.3, 0.09), "fwe": (0.6, 0.2, 0.075), "qa": (0.8, 0.1, 0.14)}
"""Full-cache accuracy, harm at the smallest budget, and mean D of each task."""


def simulated(cells=CELLS, inputs=INPUTS):
    """Return a log with arm ``plain``, whose budget-1 runs are the full cache."""
    random = np.random.default_rng(0)
    runs, drops = [], []
    for model in (f"model{i:02}" for i in range(cells)):
        for task, (full, harm, drop) in TASKS.items():
            n = inputs // len(TASKS)
            key = {"suite": "s", "model": model, "task": task}
            ids = [f"{task}{i:04}" for i in range(n)]
            fragile = random.random(n)
            correct = random.random(n) < full
            helped = random.random(n) < 0.1
            constants = [pl.lit(value).alias(name) for name, value in key.items()]
            drops.append(
                pl.DataFrame({"input_id": ids, "drop": random.normal(drop, 0.02, n)}).with_columns(constants)
            )
            for budget in BUDGETS:
                lost = fragile < harm * (1 - budget)
                success = np.where(correct, ~lost, helped & (budget < 1))
                frame = pl.DataFrame({"input_id": ids, "score": success.astype(float), "success": success})
                runs.append(
                    frame.with_columns(
                        *constants,
                        pl.lit("plain").alias("arm"),
                        pl.lit(0, dtype=pl.Int64).alias("seed"),
                        pl.lit(budget).alias("budget"),
                        pl.lit(budget).alias("kept_fraction"),
                    )
                )
    return Log(
        runs=pl.concat([pl.DataFrame(schema=RUN_SCHEMA), *runs], how="diagonal"),
        inputs=pl.concat([pl.DataFrame(schema=INPUT_SCHEMA), *drops], how="diagonal"),
    )


def of_this_library(log, n_resamples):
    design = kv.Design(interval="percentile", n_resamples=n_resamples)
    evicting = {"where": "budget < 1", "by": "model", "design": design}
    gated = kv.gate(log, tau=TAU, base="plain", name="gated")
    return {
        "plain": kv.accuracy(gated, arm="plain", **evicting),
        "gated": kv.accuracy(gated, arm="gated", **evicting),
        "delta": kv.delta(gated, arm="gated", baseline="plain", **evicting),
        "plain_harm": kv.harm_rate(gated, arm="plain", **evicting),
        "gated_harm": kv.harm_rate(gated, arm="gated", **evicting),
        "kept": kv.kept_fraction(gated, arm="gated", **evicting),
        "rho": kv.recovery_rate(gated, arm="plain", by="model", design=design),
        "drop": kv.mean_drop(gated, by="model", design=design),
    }


def table_of(log):
    """Return the same rows as a pandas table, one row an input and budget below 1."""
    columns = ["model", "task", "input_id", "budget", "score", "kept_fraction"]
    runs = pd.DataFrame(log.runs.select(columns).to_dict(as_series=False))
    drops = pd.DataFrame(log.inputs.select("model", "input_id", "drop").to_dict(as_series=False))
    runs = runs.merge(drops, on=["model", "input_id"])
    full = runs[runs.budget == 1][["model", "input_id", "score"]].rename(columns={"score": "full"})
    table = runs[runs.budget < 1].merge(full, on=["model", "input_id"])
    closed = table["drop"] < TAU
    table["gated_score"] = np.where(closed, table.full, table.score)
    table["gated_kept"] = np.where(closed, 1.0, table.kept_fraction)
    return table


def estimates(part):
    recovered = (part.score > part.full).groupby(part.draw).max()
    return {
        "plain": part.score.mean(),
        "gated": part.gated_score.mean(),
        "delta": (part.gated_score - part.score).mean(),
        "plain_harm": (part.score < part.full).mean(),
        "gated_harm": (part.gated_score < part.full).mean(),
        "kept": part.gated_kept.mean(),
        "rho": recovered.mean(),
        "drop": part["drop"].mean(),
    }


def of_pandas(table, n_resamples):
    random = np.random.default_rng(0)
    found = []
    for model, cell in table.groupby("model"):
        rows = cell.groupby("input_id").indices
        ids = np.array(sorted(rows))
        for _ in range(n_resamples):
            drawn = random.choice(ids, ids.size)
            places = np.concatenate([rows[name] for name in drawn])
            part = cell.iloc[places].assign(
                draw=np.repeat(np.arange(ids.size), [len(rows[n]) for n in drawn])
            )
            found.append({"model": model, **estimates(part)})
    return pd.DataFrame(found).groupby("model").quantile([0.025, 0.975])


def seconds(call):
    began = time.process_time()
    call()
    return time.process_time() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=10_000)
    parser.add_argument(
        "--of-pandas", type=int, default=4, help="replicates that the pandas script is timed for"
    )
    options = parser.parse_args()
    log, few = simulated(), options.of_pandas
    table = table_of(log)
    point = (
        table.assign(draw=table.input_id)
        .groupby("model")[[*table.columns, "draw"]]
        .apply(lambda part: pd.Series(estimates(part)))
    )
    for name, result in of_this_library(log, 200).items():
        frame = result.frame.sort("model")
        np.testing.assert_allclose(frame["estimate"], point[name].sort_index(), rtol=1e-9)
    ours = min(seconds(lambda: of_this_library(log, options.replicates)) for _ in range(3))
    theirs = seconds(lambda: of_pandas(table, few)) / few * options.replicates
    tracemalloc.start()
    of_this_library(log, options.replicates)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    print(f"{log.runs.height:,} runs and as many gated ones, 8 estimates in {CELLS} cells, equal estimates")
    print(f"kvstats, {options.replicates} replicates: {ours:.2f} s, peak {peak:.0f} MB")
    print(
        f"pandas, {few} replicates scaled to {options.replicates}: {theirs:.0f} s, ratio {theirs / ours:.0f}"
    )


if __name__ == "__main__":
    main()
