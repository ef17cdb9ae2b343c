"""The cluster bootstrap: replicates of a statistic from resampled clusters."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

import numpy as np

from kvstats.inference.replicate_error import ReplicateErrors
from kvstats.inference.sample import Sample
from kvstats.statistics.difference import signed_parts
from kvstats.statistics.ratios import Ratio, quotients
from kvstats.statistics.statistic import FloatArray, IntArray

__all__ = ["bootstrap", "counts_of", "drawn_clusters", "studentized_bootstrap"]

CELLS = 200_000
"""Drawn clusters that are held at once where sums over clusters are all that is needed: they fit a cache."""

COUNTED_CELLS = 2_000_000
"""The same for other statistics, which prepare themselves for each block of resamples: 16 MB of counts."""


def drawn_clusters(label: str, sample: Sample, n_resamples: int, seed: int) -> Iterator[IntArray]:
    """Yield which clusters are drawn in each resample, in blocks of shape [b, C].

    From each stratum as many clusters as it has are drawn with replacement. The parameters are those of
    `bootstrap`.
    """
    generator = np.random.default_rng([seed, zlib.crc32(label.encode())])
    n_clusters, strata = len(sample.clusters), sample.stratum_codes
    members = [np.flatnonzero(strata == stratum) for stratum in range(int(strata.max(initial=-1)) + 1)]
    step = max(1, (CELLS if ratios_of(sample) else COUNTED_CELLS) // n_clusters)
    for begin in range(0, n_resamples, step):
        rows = min(step, n_resamples - begin)
        if len(members) == 1:
            yield draws(generator, rows, n_clusters)
        else:
            yield np.concatenate([chosen[draws(generator, rows, chosen.size)] for chosen in members], axis=1)


def draws(generator: np.random.Generator, rows: int, size: int) -> IntArray:
    """Draw `size` of `size` numbers with replacement, `rows` times, shape [rows, size]."""
    # Narrow integers cost a quarter of the random bits; most samples have fewer than 65 536 clusters.
    narrow = np.uint16 if size <= 2**16 else np.int64
    return generator.integers(0, size, size=(rows, size), dtype=narrow).astype(np.int64, copy=False)


def counts_of(drawn: IntArray) -> FloatArray:
    """Return how often each cluster was drawn in each resample, of the shape [b, C] of the draws.

    Examples
    --------
    >>> counts_of(np.array([[2, 0, 2], [1, 1, 1]])).tolist()
    [[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]
    """
    rows, size = drawn.shape
    cells = drawn + size * np.arange(rows)[:, None]
    return np.bincount(cells.ravel(), minlength=rows * size).reshape(rows, size).astype(np.float64)


def ratios_of(sample: Sample) -> list[tuple[float, Ratio]] | None:
    """Return the signed parts of a statistic where all are ratios of sums, else None."""
    ratios = [(sign, part) for sign, part in signed_parts(sample.statistic) if isinstance(part, Ratio)]
    return ratios if len(ratios) == len(signed_parts(sample.statistic)) else None


def resampled_value(sample: Sample) -> Callable[[IntArray], FloatArray]:
    """Return a function from drawn clusters of shape [b, C] to values of shape [b]."""
    statistic, codes, weights = sample.statistic, sample.codes, sample.weights
    ratios = ratios_of(sample)
    if ratios is None:
        return lambda drawn: statistic.cluster_values(counts_of(drawn), codes, weights)
    begin, n_clusters = 0, len(sample.clusters)
    sums = []
    for sign, part in ratios:
        rows = slice(begin, begin + part.n)
        begin += part.n
        tops, bottoms = part.cluster_sums(codes[rows], weights[rows], n_clusters)
        # Numerator and denominator as one complex number: they are looked up and summed together.
        sums.append((sign, tops + 1j * bottoms))

    def values(drawn: IntArray) -> FloatArray:
        total = np.zeros(len(drawn))
        for sign, pairs in sums:
            resampled = pairs.take(drawn).sum(axis=1)
            total += sign * quotients(resampled.real, resampled.imag)
        return total

    return values


def bootstrap(label: str, sample: Sample, n_resamples: int, seed: int) -> FloatArray:
    """Draw replicates of a statistic by resampling whole clusters, within strata where there are any.

    A sample with a `resampling` takes its replicates from there.

    As many clusters as there are, are drawn with replacement. No resampled copy of the data is made: means
    and ratios are taken from sums over clusters, and elsewhere the counts of clusters multiply row weights.

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
    if sample.resampling is not None:
        return sample.resampling.replicates(sample.statistic, n_resamples, seed)
    value = resampled_value(sample)
    return np.concatenate([value(drawn) for drawn in drawn_clusters(label, sample, n_resamples, seed)])


def studentized_bootstrap(
    label: str, sample: Sample, n_resamples: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Draw the replicates of `bootstrap`, each with its own linearised standard error.

    Returns
    -------
    replicates, errors : array of float, shape [B]
        Where all clusters of a resample are alike the error is 0; where it is undefined, NaN.

    Examples
    --------
    >>> from kvstats.statistics import Mean
    >>> sample = Sample((), Mean([0.0, 1.0]), np.ones(2), np.array([0, 1]), (("a",), ("b",)), "mean")
    >>> replicates, errors = studentized_bootstrap("example", sample, 100, seed=0)
    >>> sorted(set(zip(replicates.tolist(), errors.tolist())))
    [(0.0, 0.0), (0.5, 0.5), (1.0, 0.0)]
    """
    replicates, errors = [], []
    value, error = resampled_value(sample), ReplicateErrors(sample)
    for drawn in drawn_clusters(label, sample, n_resamples, seed):
        replicates.append(value(drawn))
        errors.append(error(counts_of(drawn)))
    return np.concatenate(replicates), np.concatenate(errors)
