"""A simulated gating study of sixteen cells whose truth is known, analysed from its log."""

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom, norm

from kvstats import delta, gate, harm_rate, kept_fraction, mean_drop, recovery_rate
from kvstats.log.frames import INPUT_SCHEMA, RUN_SCHEMA, Log

BUDGETS = (0.0625, 0.25, 0.5)
CELLS = [f"model{i:02}" for i in range(16)]
INPUTS = 30
TAU = 0.07


@dataclass(frozen=True)
class Task:
    """Full-cache accuracy, harm by budget, chance that a failure recovers, and mean of D (sd 0.02)."""

    full: float
    harm: tuple[float, ...]
    recovers: float
    drop: float


TASKS = {
    "mk3": Task(0.9, (0.85, 0.7, 0.4), 0.0, 0.04),
    "vt": Task(0.7, (0.3, 0.1, 0.05), 0.2, 0.09),
    "fwe": Task(0.6, (0.25, 0.1, 0.0), 0.3, 0.075),
    "qa": Task(0.8, (0.1, 0.03, 0.01), 0.1, 0.14),
}


def closed(task: Task) -> float:
    return float(norm.cdf((TAU - task.drop) / 0.02))


def truth() -> dict[str, float]:
    """Return what a study of infinitely many inputs would find, averaged over tasks and budgets."""
    tasks = TASKS.values()
    harm = [np.mean(t.harm) for t in tasks]
    # A failure that recovers does so at all budgets.
    help_ = [(1 - t.full) * t.recovers for t in tasks]
    shut = [closed(t) for t in tasks]
    return {
        "delta": float(np.mean([c * (h - r) for c, h, r in zip(shut, harm, help_, strict=True)])),
        "harm": float(np.mean(harm)),
        "gated_harm": float(np.mean([(1 - c) * h for c, h in zip(shut, harm, strict=True)])),
        "rho": float(np.mean(help_)),
        "kept": float(np.mean([c + (1 - c) * np.mean(BUDGETS) for c in shut])),
        "drop": float(np.mean([t.drop for t in tasks])),
    }


def study(seed: int) -> Log:
    """Draw a study; harm is nested: an answer that half the cache loses, a quarter loses too."""
    rng = np.random.default_rng(seed)
    inputs, runs = [], []
    for model in CELLS:
        for name, task in TASKS.items():
            ids = [f"{name}{i}" for i in range(INPUTS)]
            key = {"suite": "s", "model": model, "task": name}
            inputs.append(
                pl.DataFrame({"input_id": ids, "drop": rng.normal(task.drop, 0.02, INPUTS)}).with_columns(
                    pl.lit(value).alias(column) for column, value in key.items()
                )
            )
            full = rng.random(INPUTS) < task.full
            fragile, recovers = rng.random(INPUTS) * task.full, rng.random(INPUTS) < task.recovers
            outcomes = {1.0: full}
            for budget, harm in zip(BUDGETS, task.harm, strict=True):
                outcomes[budget] = np.where(full, fragile >= harm, recovers)
            for arm in ("full", "plain"):
                for budget, success in outcomes.items():
                    if arm == "plain" or budget == 1.0:
                        frame = pl.DataFrame(
                            {"input_id": ids, "score": success.astype(float), "success": success}
                        )
                        runs.append(
                            frame.with_columns(
                                pl.lit(arm).alias("arm"),
                                pl.lit(budget).alias("budget"),
                                pl.lit(budget).alias("kept_fraction"),
                                pl.lit(0, dtype=pl.Int64).alias("seed"),
                                *(pl.lit(value).alias(column) for column, value in key.items()),
                            )
                        )
    empty_inputs, empty_runs = pl.DataFrame(schema=INPUT_SCHEMA), pl.DataFrame(schema=RUN_SCHEMA)
    return Log(
        inputs=pl.concat([empty_inputs, *inputs], how="diagonal"),
        runs=pl.concat([empty_runs, *runs], how="diagonal"),
    )


def analysed(log: Log) -> dict[str, pl.DataFrame]:
    gated = gate(log, tau=TAU, base="plain", name="page")
    evicting = "budget < 1"
    return {
        "delta": delta(gated, arm="page", baseline="plain", where=evicting, by="model").frame,
        "harm": harm_rate(gated, arm="plain", where=evicting, by="model").frame,
        "gated_harm": harm_rate(gated, arm="page", where=evicting, by="model").frame,
        "rho": recovery_rate(gated, arm="plain", by="model").frame,
        "kept": kept_fraction(gated, arm="page", where=evicting, by="model").frame,
        "drop": mean_drop(gated, by="model").frame,
    }


@pytest.mark.slow
def test_the_pipeline_recovers_the_truth_at_the_nominal_rate():
    known, studies = truth(), 30
    held, estimates = dict.fromkeys(known, 0), {name: [] for name in known}
    for seed in range(studies):
        for name, frame in analysed(study(seed)).items():
            assert frame["status"].to_list() == ["ok"] * 16
            held[name] += int(((frame["low"] <= known[name]) & (known[name] <= frame["high"])).sum())
            estimates[name] += frame["estimate"].to_list()
    trials = studies * 16
    # Tasks are strata that the intervals take for one population, which makes them wider than they need be.
    for name, count in held.items():
        assert binom.cdf(count, trials, 0.95) > 1e-3, (name, count / trials)
        error = np.std(estimates[name]) / np.sqrt(trials)
        assert abs(np.mean(estimates[name]) - known[name]) < 4 * error, name
