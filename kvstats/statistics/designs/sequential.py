"""Designs of fixed size and unequal probabilities, by sums over all samples taken unit by unit."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from kvstats.statistics.designs.sampling_design import BoolArray, VarianceForm, indexed_joint, zeros_of
from kvstats.statistics.statistic import FloatArray, IntArray

__all__ = ["SampleSums", "SequentialDesign"]


class SampleSums:
    r"""Sums over all samples s of m out of n units of a product of weights.

    The weight of a sample is :math:`\prod_{i \in s} p_i \prod_{i \notin s} q_i` without marks, and
    :math:`\sum_{i \in s} c_i \prod_{j \in s, j \ne i} p_j \prod_{j \notin s} q_j` with them: one drawn unit
    is marked and gives c in place of p. The recursion over the units of [1]_, on the state (marks, units
    drawn),

    .. math:: R_i(f, k) = q_i R_{i-1}(f, k) + p_i R_{i-1}(f, k - 1) + c_i R_{i-1}(f - 1, k - 1),

    is run from both ends. All terms are positive, so that nothing cancels and all results are exact to a few
    roundings; with p + q = 1 nothing over- or underflows either.

    Parameters
    ----------
    include, exclude : array of float, shape [n]
        Weights p and q of a unit inside and outside the sample.
    size : int
        Sample size m.
    mark : array of float, shape [n], optional
        Weights c of the marked unit.

    References
    ----------
    .. [1] Chen, Dempster and Liu, Biometrika 81, 1994: the recursion for R(k, C).
    """

    def __init__(
        self, include: FloatArray, exclude: FloatArray, size: int, mark: FloatArray | None = None
    ) -> None:
        self._include, self._exclude, self._mark = include, exclude, mark
        self._size = size
        n, marks = include.size, 1 if mark is None else 2
        # before[i] sums over the units before i; after[i] over unit i and those behind it.
        self._before = np.zeros((n + 1, marks, size + 1))
        self._before[0, 0, 0] = 1.0
        self._after = np.zeros((n + 1, marks, size + 1))
        self._after[n, 0, 0] = 1.0
        for i in range(n):
            self._before[i + 1] = exclude[i] * self._before[i] + self._with_unit(i, self._before[i])
            j = n - 1 - i
            self._after[j] = exclude[j] * self._after[j + 1] + self._with_unit(j, self._after[j + 1])

    def _with_unit(self, i: int, states: FloatArray) -> FloatArray:
        """Return the part of the next states, shape [..., marks, m + 1], in which unit i is drawn."""
        drawn = np.zeros_like(states)
        drawn[..., 1:] = self._include[i] * states[..., :-1]
        if self._mark is not None:
            drawn[..., 1, 1:] += self._mark[i] * states[..., 0, :-1]
        return drawn

    def inclusion(self) -> tuple[FloatArray, FloatArray]:
        """Return the probability that each unit is in the sample, and that it is not, each of shape [n]."""
        n = self._include.size
        missing = self._after[1:, ::-1, ::-1]
        drawn = np.array([self._with_unit(i, self._before[i]) for i in range(n)]).reshape(missing.shape)
        inside = np.einsum("ifk,ifk->i", drawn, missing)
        outside = self._exclude * np.einsum("ifk,ifk->i", self._before[:-1], missing)
        return inside / (inside + outside), outside / (inside + outside)

    def joint(self) -> FloatArray:
        """Return the probability that both units of each pair are in the sample, shape [n, n]."""
        n = self._include.size
        joint = np.zeros((n, n))
        # states[i] sums over the units before j in samples that hold unit i.
        states = np.zeros((n, *self._before.shape[1:]))
        total = self._after[0, -1, -1]
        for j in range(n):
            drawn = self._with_unit(j, states[:j])
            missing = self._after[j + 1, ::-1, ::-1]
            joint[:j, j] = np.einsum("ifk,fk->i", drawn, missing) / total
            states[:j] = self._exclude[j] * states[:j] + drawn
            states[j] = self._with_unit(j, self._before[j])
            joint[j, j] = np.sum(states[j] * missing) / total
        return np.triu(joint) + np.triu(joint, 1).T

    def draw(self, rng: np.random.Generator) -> BoolArray:
        """Draw one sample with probability proportional to its weight, as a mask of shape [n]."""
        n = self._include.size
        drawn = np.zeros(n, dtype=np.bool_)
        marks, left = self._before.shape[1] - 1, self._size
        for i, u in enumerate(rng.random(n)):
            if left == 0:
                break
            after = self._after[i + 1]
            plain = self._include[i] * after[marks, left - 1]
            marked = self._mark[i] * after[0, left - 1] if self._mark is not None and marks else 0.0
            point = u * self._after[i, marks, left]
            if point < plain + marked:
                drawn[i] = True
                left -= 1
                marks -= int(point >= plain)
        return drawn


class SequentialDesign:
    """A design of fixed size whose units below certainty are drawn by `SampleSums`.

    Attributes
    ----------
    inclusion_probability : array of float, shape [n]
    sample_size : int
    """

    variance_form: VarianceForm = "syg"
    inclusion_probability: FloatArray
    sample_size: int
    _sums: SampleSums

    @cached_property
    def joint_inclusion_probability(self) -> FloatArray:
        """Probability that both units of each pair are in the sample, shape [n, n]."""
        pi = self.inclusion_probability
        uncertain = np.flatnonzero(pi < 1)
        joint = np.outer(pi, pi)
        joint[np.ix_(uncertain, uncertain)] = self._sums.joint()
        np.fill_diagonal(joint, pi)
        return joint

    def joint_of(self, members: IntArray) -> FloatArray:
        """Return the joint probabilities of k units, by their numbers, shape [k, k]."""
        return indexed_joint(self.joint_inclusion_probability, members)

    @property
    def excluded_pairs(self) -> int:
        """Number of pairs of units that are never in a sample together."""
        return zeros_of(self.joint_inclusion_probability)

    def sample(self, rng: np.random.Generator) -> BoolArray:
        """Draw one sample, as a mask of shape [n]."""
        drawn = np.ones(self.inclusion_probability.size, dtype=np.bool_)
        drawn[self.inclusion_probability < 1] = self._sums.draw(rng)
        return drawn
