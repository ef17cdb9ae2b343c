"""Poisson sampling: every unit on its own."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from kvstats.statistics.designs.sampling_design import BoolArray, VarianceForm, as_probabilities
from kvstats.statistics.statistic import FloatArray, IntArray

__all__ = ["Poisson"]


class Poisson:
    r"""Each unit enters the sample independently of all others.

    .. math:: \pi_{ij} = \pi_i \pi_j \quad (i \ne j)

    The sample size is random, with mean :math:`\sum \pi_i` and variance :math:`\sum \pi_i (1 - \pi_i)`; a
    sample may be empty.

    Parameters
    ----------
    inclusion_probability : array-like of float, shape [n]
        In (0, 1].

    Attributes
    ----------
    inclusion_probability : array of float, shape [n]
    joint_inclusion_probability : array of float, shape [n, n]

    Raises
    ------
    InputError
        When there is no unit, or a probability is not in (0, 1].

    References
    ----------
    Särndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, section 3.5.

    Examples
    --------
    >>> design = Poisson([1.0, 0.5, 0.2])
    >>> design.sample(np.random.default_rng(0))
    array([ True,  True,  True])
    >>> design.joint_inclusion_probability
    array([[1. , 0.5, 0.2],
           [0.5, 0.5, 0.1],
           [0.2, 0.1, 0.2]])
    """

    variance_form: VarianceForm = "poisson"

    def __init__(self, inclusion_probability: npt.ArrayLike) -> None:
        self.inclusion_probability = as_probabilities("Poisson", inclusion_probability)

    @cached_property
    def joint_inclusion_probability(self) -> FloatArray:
        """Probability that both units of each pair are in the sample, shape [n, n]."""
        return self.joint_of(np.arange(self.inclusion_probability.size))

    def joint_of(self, members: IntArray) -> FloatArray:
        """Return the joint probabilities of k units, by their numbers, shape [k, k]."""
        pi = self.inclusion_probability[members]
        joint = np.outer(pi, pi)
        np.fill_diagonal(joint, pi)
        return joint

    @property
    def excluded_pairs(self) -> int:
        """Number of pairs of units that are never in a sample together: none."""
        return 0

    def sample(self, rng: np.random.Generator) -> BoolArray:
        """Draw one sample, as a mask of shape [n]."""
        drawn: BoolArray = rng.random(self.inclusion_probability.size) < self.inclusion_probability
        return drawn
