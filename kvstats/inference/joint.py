"""Several statistics of the same rows under the same resamples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kvstats.inference.bootstrap import counts_of, drawn_clusters
from kvstats.inference.sample import Kind, Sample
from kvstats.statistics.same_rows import Combination, OfSameRows, atoms
from kvstats.statistics.statistic import FloatArray, Statistic

__all__ = ["JointResampling", "Member", "joint_samples"]

Member = tuple[tuple[Any, ...], Statistic, Kind]
"""Key, statistic and kind of one of several samples of the same rows."""


class JointResampling:
    """Resamples of one sample's clusters, under which several statistics of its rows are evaluated.

    Clusters are drawn once for all, and a statistic that several are made of, such as the area that others
    are compared with, is evaluated once: so the replicates of a difference are the differences of those of
    its sides. The replicates of the last number of resamples and seed are kept.

    Parameters
    ----------
    label : str
        Seeds the draws, with the seed of the design.
    sample : Sample
        Its weights, clusters and strata are those of all.
    statistics : sequence of Statistic
        The statistics, of the rows of the sample. Combinations and quotients are taken apart.

    Examples
    --------
    >>> from kvstats.statistics import Combination, Mean
    >>> first, second = Mean([1.0, 2.0]), Mean([0.0, 2.0])
    >>> gain = Combination([1.0, -1.0], [first, second])
    >>> sample = Sample((), first, np.ones(2), np.array([0, 1]), (("a",), ("b",)), "mean")
    >>> joint = JointResampling("example", sample, [first, gain])
    >>> of_first, of_gain = (joint.replicates(statistic, 100, 0) for statistic in (first, gain))
    >>> sorted(set(zip(of_first.tolist(), of_gain.tolist())))
    [(1.0, 1.0), (1.5, 0.5), (2.0, 0.0)]
    """

    def __init__(self, label: str, sample: Sample, statistics: Sequence[Statistic]) -> None:
        self._label = label
        self._parts = {id(part): part for statistic in statistics for part in atoms(statistic)}
        # The draws depend on the kind of the statistic: under one kind they are the same for any members.
        first = Combination([1.0], [next(iter(self._parts.values()))])
        self._sample = replace(sample, statistic=first, resampling=None)
        self._drawn: tuple[int, int] | None = None
        self._replicates: dict[int, FloatArray] = {}

    def replicates(self, statistic: Statistic, n_resamples: int, seed: int) -> FloatArray:
        """Return the bootstrap replicates of a statistic, shape [B].

        Raises
        ------
        KeyError
            When it is not among those that it was made with.
        """
        if self._drawn != (n_resamples, seed):
            self._draw(n_resamples, seed)
        return self._combined(statistic)

    def _draw(self, n_resamples: int, seed: int) -> None:
        """Draw the clusters, and evaluate all parts."""
        sample = self._sample
        found: dict[int, list[FloatArray]] = {key: [] for key in self._parts}
        for drawn in drawn_clusters(self._label, sample, n_resamples, seed):
            counts = counts_of(drawn)
            for key, part in self._parts.items():
                found[key].append(part.cluster_values(counts, sample.codes, sample.weights))
        self._replicates = {key: np.concatenate(blocks) for key, blocks in found.items()}
        self._drawn = (n_resamples, seed)

    def _combined(self, statistic: Statistic) -> FloatArray:
        """Put the replicates of a statistic together from those of its parts."""
        if isinstance(statistic, OfSameRows):
            return statistic.combined([self._combined(part) for part in statistic.statistics])
        return self._replicates[id(statistic)]


def joint_samples(label: str, sample: Sample, members: Sequence[Member]) -> list[Sample]:
    """Return samples of the rows, weights and clusters of another one, resampled together.

    Parameters
    ----------
    label : str
        Seeds the draws.
    sample : Sample
        The rows.
    members : sequence of (key, statistic, kind)
        What is to be estimated.

    Examples
    --------
    >>> from kvstats.statistics import Mean
    >>> sample = Sample((), Mean([1.0, 2.0]), np.ones(2), np.array([0, 1]), (("a",), ("b",)), "mean")
    >>> members = [(("x",), Mean([1.0, 2.0]), "mean"), (("y",), Mean([5.0, 2.0]), "mean")]
    >>> [member.key for member in joint_samples("example", sample, members)]
    [('x',), ('y',)]
    """
    joint = JointResampling(label, sample, [statistic for _, statistic, _ in members])
    return [
        replace(sample, key=key, statistic=statistic, kind=kind, resampling=joint)
        for key, statistic, kind in members
    ]
