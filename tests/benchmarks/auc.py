"""Areas under the receiver operating characteristic against their peers, in one process.

    OMP_NUM_THREADS=1 python tests/benchmarks/auc.py

Needs scikit-learn and MLstatkit. Each time is the median of several runs, those of the two sides in turn.
Peers that would take minutes run on fewer replicates, and the time of one is scaled; the table says so.
"""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from kvstats.inference.bootstrap import bootstrap
from kvstats.inference.contrast import difference_sample
from kvstats.inference.sample import Sample
from kvstats.statistics import AUC, AUCDifference, delong
from kvstats.statistics.statistic import Statistic

REPEATS = 5


def columns(n: int, n_clusters: int) -> tuple[Any, Any, Any, Any]:
    """Two correlated scores with a cluster effect, classes of which 30% are positive, and clusters."""
    random = np.random.default_rng(n)
    codes = np.sort(random.integers(0, n_clusters, n))
    label = random.uniform(size=n) < 0.3
    score = label + random.normal(0, 0.6, n_clusters)[codes] + random.normal(0, 0.8, n)
    return score, score + random.normal(size=n), label, codes


def sample_of(statistic: Statistic, codes: Any, n_clusters: int) -> Sample:
    clusters = tuple((f"{i:06}",) for i in range(n_clusters))
    return Sample((), statistic, np.ones(statistic.n), codes, clusters, "auc")


def seconds(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def medians(ours: Callable[[], Any], peer: Callable[[], Any]) -> tuple[float, float]:
    """Median times of both, run in turn after one run each."""
    ours(), peer()
    pairs = [(seconds(ours), seconds(peer)) for _ in range(REPEATS)]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def megabytes(call: Callable[[], Any]) -> float:
    """Largest memory that a call allocates."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def report(name: str, ours: float, peer: float, memory: float, note: str) -> None:
    print(f"{name:<62} {ours:>9.4f} {peer:>10.3f} {peer / ours:>7.0f}x {memory:>8.1f}  {note}", flush=True)


def clustered_bootstrap(n: int, n_clusters: int, n_resamples: int, of_peer: int, paired: bool) -> None:
    """All of our bootstrap, drawing included, against scikit-learn's loop with the counts given."""
    from sklearn.metrics import roc_auc_score

    first, second, label, codes = columns(n, n_clusters)
    statistic = AUCDifference(first, second, label) if paired else AUC(first, label)
    sample = sample_of(statistic, codes, n_clusters)
    drawn = np.random.default_rng(0).integers(0, n_clusters, (of_peer, n_clusters))
    counts = np.array([np.bincount(row, minlength=n_clusters) for row in drawn], dtype=float)

    def peer() -> list[float]:
        found = []
        for row in counts:
            weights = row[codes]
            area = roc_auc_score(label, first, sample_weight=weights)
            found.append(area - roc_auc_score(label, second, sample_weight=weights) if paired else area)
        return found

    def ours() -> Any:
        return bootstrap("auc", sample, n_resamples, 0)

    difference = np.abs(statistic.cluster_values(counts, codes, np.ones(n)) - peer()).max()
    assert difference < 1e-12, difference
    own, other = medians(ours, peer)
    report(
        f"bootstrap of {'a paired difference' if paired else 'an area'}, {n} in {n_clusters}, {n_resamples}",
        own,
        other * n_resamples / len(counts),
        megabytes(ours),
        f"peer on {len(counts)} replicates; largest difference {difference:.0e}",
    )


def delong_test(n: int) -> None:
    from MLstatkit import Delong_test

    first, second, label, _ = columns(n, n)
    scores, classes = np.array([first, second]), label.astype(int)

    def ours() -> tuple[float, float]:
        return delong(scores, label).test(0, 1)

    def peer() -> Any:
        return Delong_test(classes, first, second, return_ci=False, return_auc=False)

    difference = abs(ours()[1] - peer()[1])
    assert difference < 1e-12, difference
    own, other = medians(ours, peer)
    note = f"p-values differ by {difference:.0e}"
    report(f"DeLong test of two scores, {n}", own, other, megabytes(ours), note)


def growth() -> None:
    """Time for each row and replicate, which is constant where growth is linear."""
    print("\nGrowth: nanoseconds for each row and replicate (DeLong: for each row)")
    for n, n_resamples in ((10_000, 400), (40_000, 400), (160_000, 400), (40_000, 100), (40_000, 1600)):
        first, _, label, codes = columns(n, n // 4)
        statistic = AUC(first, label)
        counts = np.random.default_rng(0).poisson(1, (min(n_resamples, 100), n // 4)).astype(float)

        def values(
            statistic: AUC = statistic,
            counts: Any = counts,
            codes: Any = codes,
            n_resamples: int = n_resamples,
        ) -> None:
            for _ in range(n_resamples // len(counts)):
                statistic.cluster_values(counts, codes, np.ones(statistic.n))

        spent = statistics.median(seconds(values) for _ in range(3))
        each = spent / n / n_resamples * 1e9
        print(f"  resampled areas, {n:>6} rows, {n_resamples:>5} replicates: {each:6.2f}")
    for n in (10_000, 40_000, 160_000):
        first, second, label, _ = columns(n, n)
        scores = np.array([first, second])
        spent = statistics.median(seconds(lambda s=scores, y=label: delong(s, y)) for _ in range(5))
        print(f"  DeLong of two scores, {n:>6} rows: {spent / n * 1e9:6.1f}")


def shared_weights() -> None:
    """The difference on rows given once against the one of two samples with clusters in common."""
    first, second, label, codes = columns(12_000, 3_000)
    once = sample_of(AUCDifference(first, second, label), codes, 3_000)
    sides = [sample_of(AUC(score, label), codes, 3_000) for score in (first, second)]
    twice = difference_sample((), *sides)
    difference = np.abs(bootstrap("auc", once, 500, 0) - bootstrap("auc", twice, 500, 0)).max()
    assert difference < 1e-12, difference
    own, other = medians(lambda: bootstrap("auc", once, 500, 0), lambda: bootstrap("auc", twice, 500, 0))
    print(f"\nPaired difference, 12000 in 3000, 500: {own:.4f} s; as two samples {other:.4f} s")


if __name__ == "__main__":
    print(f"{'':<62} {'ours, s':>9} {'peer, s':>10} {'ratio':>8} {'MB':>8}")
    clustered_bootstrap(12_000, 3_000, 500, 50, paired=False)
    clustered_bootstrap(12_000, 3_000, 500, 50, paired=True)
    clustered_bootstrap(74_000, 10_000, 10_000, 20, paired=False)
    for size in (1_000, 12_000, 100_000):
        delong_test(size)
    shared_weights()
    growth()
