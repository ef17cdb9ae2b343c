"""A whole verification against a pandas and scikit-learn script, as a ratio measured in one run.

``python tests/benchmarks/verify.py`` writes a release of 100,000 runs (10,000 inputs of four tasks, with the
full cache and three arms at three budgets) as compressed JSON lines, and a registration with a gate and ten
claims that are judged by percentile intervals of 10,000 cluster replicates. It times ``kvstats verify`` as a
process of its own, from its start to its report, and states the peak of its memory. The script does what
analysts write: read the lines, merge each run with its twin, draw inputs with replacement, take the statistic
of the drawn rows, in a loop. It is timed for a few replicates, and its time grows linearly with their number.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

TAU = 0.07
BUDGETS = (0.125, 0.25, 0.5)
ARMS = {"snapkv": 1.0, "h2o": 1.2, "streaming": 1.6}
"""How much each arm harms, relative to the first."""

TASKS = {"mk3": (0.9, 0.8, 0.04), "vt": (0.7, 0.3, 0.09), "fwe": (0.6, 0.2, 0.075), "qa": (0.8, 0.1, 0.14)}
"""Full-cache accuracy, harm at the smallest budget, and mean D of each task."""

EVICTING = "budget < 1"

CLAIMS = {
    "accuracy": ("accuracy", {"arm": "snapkv"}, None),
    "accuracy_by_task": ("accuracy", {"arm": "snapkv"}, "task"),
    "delta_to_full": ("delta", {"arm": "snapkv"}, None),
    "delta_of_arms": ("delta", {"arm": "h2o", "baseline": "snapkv"}, None),
    "gate_gain": ("delta", {"arm": "gate", "baseline": "snapkv"}, "task"),
    "harm": ("harm_rate", {"arm": "streaming"}, "task"),
    "induced": ("induced_failure_rate", {"arm": "snapkv"}, None),
    "recovery": ("recovery_rate", {"arm": "snapkv"}, "task"),
    "margin_predicts_failure": ("auc", {"arm": "snapkv", "signal": "margin", "higher": "negative"}, None),
    "drop_predicts_harm": (
        "auc",
        {"arm": "snapkv", "signal": "drop", "higher": "negative", "outcome": "harm"},
        None,
    ),
}
"""Estimator, arguments and by-column of each claim."""

KEY = ["suite", "model", "task", "input_id"]


def write_release(path, inputs):
    """Write the release, and return the number of runs."""
    random = np.random.default_rng(0)
    lines = [
        {
            "record": "study",
            "schema_version": 1,
            "suite": "s",
            "model": "m",
            "dtype": "float32",
            "attention": "sdpa",
            "versions": {},
            "host": "x86_64",
            "settings": {},
            "template_hash": "0",
            "started_at": "2026-02-01T00:00:00Z",
        }
    ]
    runs = 0
    for task, (full, harm, drop) in TASKS.items():
        for number in range(inputs // len(TASKS)):
            key = {"suite": "s", "model": "m", "task": task, "input_id": f"{number:05}"}
            lines.append({"record": "input", **key, "drop": round(random.normal(drop, 0.02), 6)})
            correct, fragile, helped = random.random() < full, random.random(), random.random() < 0.05
            outcomes = [("full", 1.0, correct)] + [
                (arm, budget, bool((correct and fragile >= harm * factor * (1 - budget)) or helped))
                for arm, factor in ARMS.items()
                for budget in BUDGETS
            ]
            for arm, budget, success in outcomes:
                lines.append(
                    {
                        "record": "run",
                        **key,
                        "arm": arm,
                        "budget": budget,
                        "score": float(success),
                        "success": success,
                        "n_prompt": 4096,
                        "n_kept": int(4096 * budget),
                        "signals": {"margin": round(random.normal(float(success), 1.0), 6)},
                    }
                )
                runs += 1
    with gzip.open(path, "wt", compresslevel=6) as stream:
        stream.writelines(json.dumps(line) + "\n" for line in lines)
    return runs


def registration(replicates):
    claims = [
        {
            "id": name,
            "statement": name,
            "estimator": estimator,
            "arguments": arguments,
            **({} if estimator == "recovery_rate" else {"where": EVICTING}),
            **({"by": by} if by else {}),
            "supported": "low > 0.05",
        }
        for name, (estimator, arguments, by) in CLAIMS.items()
    ]
    return {
        "study": "benchmark",
        "registered_at": "2026-01-01T00:00:00Z",
        "data": {"runs": ["runs.jsonl.gz"]},
        "design": {"interval": "percentile", "n_resamples": replicates},
        "policies": [{"policy": "gate", "arguments": {"tau": TAU, "base": "snapkv"}}],
        "claims": claims,
    }


def verified(plan):
    """Run the command; return its report, seconds, seconds of processors, and peak memory in MiB."""
    code = (
        "import resource, sys\nfrom kvstats.cli import main\ntry:\n    main()\nfinally:\n"
        "    used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "    print(used.ru_utime + used.ru_stime, used.ru_maxrss // 1024, file=sys.stderr)\n"
    )
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, "verify", plan, "--json"], capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - begin
    if done.returncode:
        sys.exit(done.stderr)
    busy, memory = done.stderr.split()[-2:]
    return json.loads(done.stdout), seconds, float(busy), int(memory)


def read_with_pandas(path):
    """Return the runs with their D, and the same with their twins, by baseline."""
    with gzip.open(path, "rt") as stream:
        records = [json.loads(line) for line in stream]
    runs = pd.json_normalize([record for record in records if record["record"] == "run"])
    inputs = pd.DataFrame([record for record in records if record["record"] == "input"])
    runs = runs.merge(inputs[[*KEY, "drop"]], on=KEY)
    full = runs[runs.arm == "full"][[*KEY, "score", "success"]]
    evicted = runs[runs.arm != "full"].merge(full, on=KEY, suffixes=("", "_full"))
    snapkv = runs[runs.arm == "snapkv"][[*KEY, "budget", "score"]]
    return evicted.merge(snapkv, on=[*KEY, "budget"], suffixes=("", "_snapkv"))


STATISTICS = {
    "accuracy": ("snapkv", lambda t: t.score.mean()),
    "accuracy_by_task": ("snapkv", lambda t: t.score.mean()),
    "delta_to_full": ("snapkv", lambda t: (t.score - t.score_full).mean()),
    "delta_of_arms": ("h2o", lambda t: (t.score - t.score_snapkv).mean()),
    "gate_gain": (
        "snapkv",
        lambda t: (np.where(t["drop"] < TAU, t.score_full, t.score) - t.score).mean(),
    ),
    "harm": ("streaming", lambda t: (t.score < t.score_full).mean()),
    "induced": ("snapkv", lambda t: (~t.success[t.success_full]).mean()),
    "recovery": ("snapkv", lambda t: (t.score > t.score_full).groupby(t.draw).max().mean()),
    "margin_predicts_failure": ("snapkv", lambda t: roc_auc_score(~t.success, -t["signals.margin"])),
    "drop_predicts_harm": ("snapkv", lambda t: roc_auc_score(t.score < t.score_full, -t["drop"])),
}
"""Arm and statistic of each claim, on a table of its rows with a number for each drawn input."""


def of_pandas(path, replicates):
    """Return estimates, seconds for what is done once, and seconds for one replicate of everything."""
    begin = time.perf_counter()
    table = read_with_pandas(path)
    table = table.sort_values([*KEY, "arm", "budget"]).reset_index(drop=True)
    once = time.perf_counter() - begin
    random = np.random.default_rng(0)
    estimates, loops = {}, 0.0
    for name, (arm, statistic) in STATISTICS.items():
        rows = table[table.arm == arm]
        by = CLAIMS[name][2]
        for value, part in rows.groupby(by) if by else [(None, rows)]:
            part = part.assign(draw=part.groupby(KEY).ngroup())
            estimates[name, value] = statistic(part)
            begin = time.perf_counter()
            positions = list(part.reset_index(drop=True).groupby("draw").indices.values())
            once += time.perf_counter() - begin
            begin = time.perf_counter()
            for _ in range(replicates):
                drawn = random.integers(len(positions), size=len(positions))
                chosen = [positions[index] for index in drawn]
                sample = part.iloc[np.concatenate(chosen)]
                statistic(sample.assign(draw=np.repeat(np.arange(len(chosen)), [len(c) for c in chosen])))
            loops += time.perf_counter() - begin
    return estimates, once, loops / replicates


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--replicates", type=int, default=10_000)
    parser.add_argument("--peer-replicates", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        release, plan = Path(folder, "runs.jsonl.gz"), Path(folder, "plan.yaml")
        runs = write_release(release, arguments.inputs)
        plan.write_text(json.dumps(registration(arguments.replicates)))
        report, ours, busy, memory = verified(plan)
        estimates, once, each = of_pandas(release, arguments.peer_replicates)
    for claim in report["claims"]:
        for row in claim["rows"]:
            theirs = estimates[claim["id"], row.get("task")]
            assert abs(row["estimate"] - theirs) < 1e-9, (claim["id"], row, theirs)
    theirs = once + arguments.replicates * each
    print(f"{runs:,} runs, {len(CLAIMS)} claims, {arguments.replicates:,} replicates, {os.cpu_count()} CPUs")
    print(f"kvstats verify       {ours:8.1f} s ({busy:.1f} s of processors), peak memory {memory:,} MiB")
    print(f"pandas, scikit-learn {theirs:8.0f} s ({once:.1f} s once, {each:.2f} s a replicate)")
    print(f"ratio                {theirs / ours:8.0f}")


if __name__ == "__main__":
    main()
