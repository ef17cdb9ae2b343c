"""Systematic sampling with unequal probabilities."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.designs.sampling_design import (
    BoolArray,
    VarianceForm,
    as_fixed_size,
    indexed_joint,
    zeros_of,
)
from kvstats.statistics.statistic import FloatArray, IntArray

__all__ = ["SystematicPPS"]

EQUAL_STARTS = 1e-12
"""Starting points closer than this draw the same sample up to rounding."""


class SystematicPPS:
    r"""One random start, then every m-th part of the cumulated probabilities, in the order given.

    With :math:`C_i = \pi_1 + \dots + \pi_i` and u uniform on [0, 1), unit i is drawn when one of u, u + 1,
    ... lies in :math:`[C_{i-1}, C_i)`. The sample size is fixed, and a list sorted by something related to y
    is spread over evenly: often precise. But at most n + 1 samples can occur, so that most pairs never do.

    Parameters
    ----------
    inclusion_probability : array-like of float, shape [n]
        In (0, 1], of integer sum.

    Attributes
    ----------
    inclusion_probability : array of float, shape [n]
    joint_inclusion_probability : array of float, shape [n, n]
        Refused where it holds a zero, see below.

    Raises
    ------
    InputError
        When a probability is not in (0, 1], or their sum is not an integer; and, on access to
        ``joint_inclusion_probability``, when some pair is never drawn together: no unbiased estimator of the
        variance exists then.

    References
    ----------
    Madow, Annals of Mathematical Statistics 20, 1949.

    Examples
    --------
    >>> design = SystematicPPS([0.2, 0.5, 0.3, 0.6, 0.4])
    >>> design.sample(np.random.default_rng(0))
    array([False,  True, False, False,  True])
    """

    variance_form: VarianceForm = "syg"

    def __init__(self, inclusion_probability: npt.ArrayLike) -> None:
        self.inclusion_probability, self.sample_size = as_fixed_size("SystematicPPS", inclusion_probability)
        self._uncertain = np.flatnonzero(self.inclusion_probability < 1)
        rest = self.sample_size - (self.inclusion_probability.size - self._uncertain.size)
        ends = np.cumsum(self.inclusion_probability[self._uncertain])
        if ends.size:
            ends[-1] = rest
        self._ends = np.concatenate([[0.0], ends])

    def _drawn_from(self, start: float) -> BoolArray:
        """Return the sample of a starting point in [0, 1)."""
        drawn = np.ones(self.inclusion_probability.size, dtype=np.bool_)
        drawn[self._uncertain] = np.diff(np.ceil(self._ends - start)) > 0
        return drawn

    @cached_property
    def joint_inclusion_probability(self) -> FloatArray:
        """Probability that both units of each pair are in the sample, shape [n, n], where none is 0."""
        cuts = np.unique(np.concatenate([self._ends % 1.0, [0.0, 1.0]]))
        lengths = np.diff(cuts)
        kept = lengths > EQUAL_STARTS
        samples = np.array(
            [self._drawn_from(start) for start in ((cuts[:-1] + cuts[1:]) / 2)[kept]], dtype=float
        )
        joint: FloatArray = samples.T @ (lengths[kept, None] * samples)
        never = int((joint == 0).sum()) // 2
        if never:
            n_pairs = joint.shape[0] * (joint.shape[0] - 1) // 2
            raise InputError(
                f"SystematicPPS.joint_inclusion_probability: {never} of {n_pairs} pairs of units are never "
                "drawn together, so that no unbiased estimator of the variance exists; draw by "
                "ConditionalPoisson or Sampford with the same probabilities"
            )
        np.fill_diagonal(joint, self.inclusion_probability)
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
        return self._drawn_from(float(rng.random()))
