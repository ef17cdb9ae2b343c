"""The cluster bootstrap against its peers, as ratios measured in one process.

``python tests/benchmarks/bootstrap.py`` needs the extra ``bench``. The contenders take turns, so that a busy
machine slows all of them; the figures are medians. A ratio says how many times longer than this library.
"""

import argparse
import statistics
import time
import tracemalloc

import numpy as np
import polars as pl
from scipy import stats

from kvstats.inference import Design, infer, samples_by
from kvstats.statistics import Mean

N_CLUSTERS, SIZE, N_RESAMPLES = 400, 8, 10_000


def paired_differences(n_clusters, size=SIZE):
    """Return paired scores of two arms, in rows of clusters."""
    random = np.random.default_rng(0)
    effect = random.normal(0, 0.5, (n_clusters, 1))
    first = random.normal(0, 1, (n_clusters, size))
    return first, first + 0.1 + effect + random.normal(0, 1, (n_clusters, size))


def prepared_frame(n_clusters, size=SIZE):
    first, second = paired_differences(n_clusters, size)
    return pl.DataFrame(
        {"id": np.repeat(np.arange(n_clusters), size), "difference": (second - first).ravel()}
    )


def of_this_library(frame, interval="percentile", n_resamples=N_RESAMPLES):
    """Return the interval of the mean of a column, from a table of rows."""
    design = Design(cluster="id", interval=interval, n_resamples=n_resamples)
    samples = samples_by(
        "delta", frame, (), design, lambda part: (Mean(part["difference"].to_numpy()), "paired")
    )
    return infer("delta", samples, design).frame.select("low", "high").row(0)


def of_scipy(sums, n_resamples=N_RESAMPLES):
    result = stats.bootstrap(
        (sums,),
        np.mean,
        n_resamples=n_resamples,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(0),
    )
    return result.confidence_interval.low / SIZE, result.confidence_interval.high / SIZE


def of_arch(clusters, n_resamples=N_RESAMPLES):
    from arch.bootstrap import IIDBootstrap

    resampler = IIDBootstrap(clusters, seed=np.random.default_rng(0))
    return tuple(resampler.conf_int(np.mean, reps=n_resamples, method="percentile").ravel())


def of_evalsig(first, second, codes, n_resamples=N_RESAMPLES):
    from evalsig.inference.cluster_bootstrap import cluster_bootstrap_ci

    return cluster_bootstrap_ci(first, second, codes, n_resamples=n_resamples).ci


def seconds(call):
    """Return processor time: no contender uses a second thread, and other processes do not count."""
    began = time.process_time()
    call()
    return time.process_time() - began


def taking_turns(contenders, repeats):
    """Return the median time of each contender; the slow ones run three times only."""
    times = {name: [] for name in contenders}
    for turn in range(repeats):
        for name, call in contenders.items():
            if turn < 3 or times[name][0] < 2:
                times[name].append(seconds(call))
    return {name: statistics.median(measured) for name, measured in times.items()}


def peak_memory(call):
    """Return the largest memory allocated at once, in MB."""
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 1e6


def peers(repeats):
    first, second = paired_differences(N_CLUSTERS)
    difference, codes = second - first, np.repeat(np.arange(N_CLUSTERS), SIZE)
    frame = prepared_frame(N_CLUSTERS)
    contenders = {
        "kvstats": lambda: of_this_library(frame),
        "scipy.stats.bootstrap on cluster sums": lambda: of_scipy(difference.sum(axis=1)),
        "arch IIDBootstrap on clusters": lambda: of_arch(difference),
        "evalsig cluster_bootstrap_ci": lambda: of_evalsig(first.ravel(), second.ravel(), codes),
    }
    bounds = {name: call() for name, call in contenders.items()}
    times = taking_turns(contenders, repeats)
    rows = [("percentile interval", "low", "high", "seconds", "ratio", "peak MB")]
    for name, call in contenders.items():
        low, high = bounds[name]
        ratio = times[name] / times["kvstats"]
        rows.append(
            (
                name,
                f"{low:.4f}",
                f"{high:.4f}",
                f"{times[name]:.4f}",
                f"{ratio:.1f}",
                f"{peak_memory(call):.1f}",
            )
        )
    return rows


def kinds(repeats):
    frame = prepared_frame(N_CLUSTERS)
    names = ("percentile", "basic", "bca", "studentized", "jackknife", "linear")
    times = taking_turns({name: lambda name=name: of_this_library(frame, name) for name in names}, repeats)
    rows = [("interval of this library", "seconds", "ratio to percentile")]
    return rows + [(name, f"{times[name]:.4f}", f"{times[name] / times['percentile']:.2f}") for name in names]


def growth(repeats):
    frames = {n: prepared_frame(n) for n in (400, 1600, 6400)}
    contenders = {
        f"{n * SIZE} rows, 2000 replicates": lambda n=n: of_this_library(frames[n], n_resamples=2000)
        for n in frames
    } | {
        f"{N_CLUSTERS * SIZE} rows, {b} replicates": lambda b=b: of_this_library(
            frames[N_CLUSTERS], n_resamples=b
        )
        for b in (10_000, 40_000, 160_000)
    }
    times = taking_turns(contenders, repeats)
    rows = [("size", "seconds", "microseconds a replicate of 1000 clusters", "peak MB")]
    for name, call in contenders.items():
        n_rows, replicates = (int(name.split()[i]) for i in (0, 2))
        unit = times[name] / (n_rows / SIZE * replicates) * 1e9
        rows.append((name, f"{times[name]:.4f}", f"{unit:.2f}", f"{peak_memory(call):.1f}"))
    return rows


def table(rows):
    head, *body = rows
    return "\n".join(["| " + " | ".join(row) + " |" for row in (head, ("---",) * len(head), *body)]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    print(f"{N_CLUSTERS} clusters of {SIZE} rows, {N_RESAMPLES} replicates\n")
    for rows in (peers(repeats), kinds(repeats), growth(repeats)):
        print(table(rows))


if __name__ == "__main__":
    main()
