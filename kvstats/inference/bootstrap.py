"""The cluster bootstrap."""

from __future__ import annotations

import zlib

import numpy as np

from kvstats.inference.sample import Sample
from kvstats.statistics.statistic import FloatArray

__all__ = ["MAX_UNDEFINED", "bootstrap", "percentile_interval"]

MAX_UNDEFINED = 0.05
"""Share of undefined replicates above which a bootstrap says nothing."""

CELLS = 2_000_000
"""Counts that are held at once: 16 MB for each of the arrays that make them."""


def bootstrap(label: str, sample: Sample, n_resamples: int, seed: int) -> FloatArray:
    """Draw replicates of a statistic by resampling whole clusters.

    As many clusters as there are, are drawn with replacement; their counts multiply the row weights, and
    no resampled copy of the data is made.

    Parameters
    ----------
    label : str
        Name of what is estimated. The generator is seeded from the seed and the label's CRC-32, so that
        neither order nor number of other estimates changes a result.
    sample : Sample
        The sample.
    n_resamples : int
        Number of replicates, B.
    seed : int
        Seed, at least 0.

    Returns
    -------
    array of float, shape [B]
        NaN where the statistic is undefined in a resample.

    References
    ----------
    .. [1] Efron and Tibshirani, *An Introduction to the Bootstrap*, 1993, chapters 6 and 8.

    Examples
    --------
    >>> from kvstats.statistics import Mean
    >>> sample = Sample((), Mean([0.0, 1.0]), np.ones(2), np.array([0, 1]), (("a",), ("b",)), "mean")
    >>> sorted(set(bootstrap("example", sample, 100, seed=0).tolist()))
    [0.0, 0.5, 1.0]
    """
    generator = np.random.default_rng([seed, zlib.crc32(label.encode())])
    n_clusters = len(sample.clusters)
    step = max(1, CELLS // n_clusters)
    replicates = []
    for begin in range(0, n_resamples, step):
        size = min(step, n_resamples - begin)
        drawn = generator.integers(0, n_clusters, size=(size, n_clusters))
        drawn += n_clusters * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * n_clusters).reshape(size, n_clusters)
        replicates.append(
            sample.statistic.cluster_values(counts.astype(np.float64), sample.codes, sample.weights)
        )
    return np.concatenate(replicates)


def percentile_interval(replicates: FloatArray, level: float) -> tuple[float, float]:
    """Return the percentile interval of bootstrap replicates that are all defined.

    Examples
    --------
    >>> percentile_interval(np.arange(101.0), 0.5)
    (25.0, 75.0)
    """
    low, high = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
