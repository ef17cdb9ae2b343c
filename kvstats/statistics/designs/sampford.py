"""Sampford's design: fixed size, inclusion probabilities exactly proportional to size."""

from __future__ import annotations

import numpy.typing as npt

from kvstats.statistics.designs.sampling_design import as_fixed_size
from kvstats.statistics.designs.sequential import SampleSums, SequentialDesign

__all__ = ["Sampford"]


class Sampford(SequentialDesign):
    r"""Fixed size without any iteration: the given probabilities are the design's own.

    A sample s of m units has probability proportional to [1]_

    .. math:: \sum_{i \in s} (1 - \pi_i) \prod_{j \in s} \frac{\pi_j}{1 - \pi_j}.

    It is drawn unit by unit from that distribution, and not by the rejection of whole samples, whose
    acceptance vanishes as m grows. The joint probabilities are those of [1]_, summed in a form that has
    positive terms only. Time O(n m), O(n\ :sup:`2` m) for the joint ones, O(n) for a sample. Units of
    probability 1 are in every sample.

    Parameters
    ----------
    inclusion_probability : array-like of float, shape [n]
        In (0, 1], of integer sum m.

    Attributes
    ----------
    inclusion_probability : array of float, shape [n]
    joint_inclusion_probability : array of float, shape [n, n]
        At most :math:`\pi_i \pi_j` off the diagonal.
    sample_size : int
        The fixed size m.

    Raises
    ------
    InputError
        When a probability is not in (0, 1], or their sum is not an integer.

    References
    ----------
    .. [1] Sampford, Biometrika 54, 1967.

    Examples
    --------
    >>> import numpy as np
    >>> design = Sampford([0.2, 0.5, 0.5, 0.8])
    >>> design.joint_inclusion_probability.round(4)
    array([[0.2   , 0.0394, 0.0394, 0.1212],
           [0.0394, 0.5   , 0.1212, 0.3394],
           [0.0394, 0.1212, 0.5   , 0.3394],
           [0.1212, 0.3394, 0.3394, 0.8   ]])
    >>> design.sample(np.random.default_rng(0)).sum()
    np.int64(2)
    """

    def __init__(self, inclusion_probability: npt.ArrayLike) -> None:
        self.inclusion_probability, self.sample_size = as_fixed_size("Sampford", inclusion_probability)
        pi = self.inclusion_probability[self.inclusion_probability < 1]
        certain = self.inclusion_probability.size - pi.size
        self._sums = SampleSums(pi, 1 - pi, self.sample_size - certain, mark=pi * (1 - pi))
