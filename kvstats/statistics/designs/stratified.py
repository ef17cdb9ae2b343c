"""Stratified sampling: simple random samples, one a stratum, drawn independently."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.designs.sampling_design import BoolArray, VarianceForm
from kvstats.statistics.designs.simple_random import SimpleRandom
from kvstats.statistics.statistic import FloatArray, IntArray

__all__ = ["Stratified"]


class Stratified:
    r"""Draw a simple random sample of given size in each stratum, independently.

    With m_h of the n_h units of stratum h, :math:`\pi_i = m_h / n_h`; pairs within a stratum have
    :math:`\pi_{ij} = m_h (m_h - 1) / (n_h (n_h - 1))`, pairs across strata :math:`\pi_{ij} = \pi_i \pi_j`.
    A stratum from which only one of several units is drawn leaves no unbiased estimator of the variance.

    Parameters
    ----------
    strata : array-like, shape [n]
        Label of each unit's stratum: text or numbers.
    sample_sizes : mapping of label to int
        How many units to draw from each stratum, in [1, n_h]; it names every stratum and no other.

    Attributes
    ----------
    strata : array, shape [n]
    inclusion_probability : array of float, shape [n]
    joint_inclusion_probability : array of float, shape [n, n]

    Raises
    ------
    InputError
        When there is no unit, a stratum has no size or a size no stratum, or a size is out of range.

    References
    ----------
    Särndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, section 3.7.

    Examples
    --------
    >>> design = Stratified(["qa", "qa", "code", "code", "code"], {"qa": 2, "code": 1})
    >>> design.inclusion_probability.round(3)
    array([1.   , 1.   , 0.333, 0.333, 0.333])
    """

    variance_form: VarianceForm = "syg"

    def __init__(self, strata: npt.ArrayLike, sample_sizes: Mapping[Any, int]) -> None:
        self.strata = np.asarray(strata)
        if self.strata.ndim != 1 or self.strata.size == 0:
            raise InputError.argument(
                "Stratified",
                "strata",
                f"array of shape {self.strata.shape}",
                "is not a vector with units",
                "pass one label a unit",
            )
        labels, self._codes = np.unique(self.strata, return_inverse=True)
        names = labels.tolist()
        odd = sorted(set(names) ^ set(sample_sizes), key=str)
        if odd:
            raise InputError.argument(
                "Stratified",
                "sample_sizes",
                dict(sample_sizes),
                f"and the strata do not match at {odd[0]!r}",
                "give a size to every stratum and to no other label",
            )
        self._designs = []
        for name, count in zip(names, np.bincount(self._codes).tolist(), strict=True):
            try:
                self._designs.append(SimpleRandom(count, sample_sizes[name]))
            except InputError as error:
                raise InputError(f"Stratified: sample_sizes[{name!r}]: {error}") from error

    @cached_property
    def inclusion_probability(self) -> FloatArray:
        """Probability that each unit is in the sample, shape [n]."""
        return np.array([d.sample_size / d.population_size for d in self._designs])[self._codes]

    @cached_property
    def joint_inclusion_probability(self) -> FloatArray:
        """Probability that both units of each pair are in the sample, shape [n, n]."""
        return self.joint_of(np.arange(self.strata.size))

    def joint_of(self, members: IntArray) -> FloatArray:
        """Return the joint probabilities of k units, by their numbers, shape [k, k]."""
        pi, codes = self.inclusion_probability[members], self._codes[members]
        joint = np.outer(pi, pi)
        for code in np.unique(codes):
            inside = np.flatnonzero(codes == code)
            joint[np.ix_(inside, inside)] = self._designs[code].joint_of(inside)
        return joint

    @property
    def excluded_pairs(self) -> int:
        """Number of pairs of units that are never in a sample together: those of strata of one drawn unit."""
        return sum(design.excluded_pairs for design in self._designs)

    def sample(self, rng: np.random.Generator) -> BoolArray:
        """Draw one sample, as a mask of shape [n]."""
        drawn = np.zeros(self.strata.size, dtype=np.bool_)
        for code, design in enumerate(self._designs):
            drawn[self._codes == code] = design.sample(rng)
        return drawn
