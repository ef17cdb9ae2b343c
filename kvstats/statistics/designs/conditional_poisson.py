"""Conditional Poisson sampling: the design of maximum entropy among those of fixed size."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from kvstats.errors import InputError
from kvstats.statistics.designs.sampling_design import as_fixed_size
from kvstats.statistics.designs.sequential import SampleSums, SequentialDesign
from kvstats.statistics.statistic import FloatArray

__all__ = ["ConditionalPoisson"]

TOLERANCE = 1e-12
"""Largest relative difference from the inclusion probabilities asked for."""

STALLED = 0.9
"""An iteration that leaves more than this share of the difference has met rounding."""

MAX_ITERATIONS = 200


class ConditionalPoisson(SequentialDesign):
    r"""Poisson sampling given that m units are drawn, with given inclusion probabilities.

    A sample s of m units has probability proportional to :math:`\prod_{i \in s} w_i`. The working odds w are
    found by iteration on their logarithms,

    .. math:: \log w_i \leftarrow \log w_i
        + t \left( \mathrm{logit}\, \pi_i - \mathrm{logit}\, \pi_i(w) \right),

    from :math:`w_i = \pi_i / (1 - \pi_i)`, until the inclusion probabilities :math:`\pi_i(w)` of the design
    are the given ones to a relative 1e-12, or an absolute one where rounding beside a probability near 1
    allows no more. The step t is 1, and 1/2 from where an iteration fails to halve the difference. Inclusion
    probabilities, joint ones and samples are exact, by the recursion of [1]_: time O(n m) for each iteration,
    O(n\ :sup:`2` m) for the joint ones, O(n) for a sample. Units of probability 1 are in every sample.

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
        When a probability is not in (0, 1], their sum is not an integer, or the iteration does not converge.

    References
    ----------
    .. [1] Chen, Dempster and Liu, Biometrika 81, 1994: weighted finite population sampling.
    .. [2] Tillé (2006), Sampling Algorithms, chapter 5.

    Examples
    --------
    >>> design = ConditionalPoisson([0.2, 0.5, 0.5, 0.8])
    >>> design.joint_inclusion_probability.round(4)
    array([[0.2   , 0.0409, 0.0409, 0.1181],
           [0.0409, 0.5   , 0.1181, 0.3409],
           [0.0409, 0.1181, 0.5   , 0.3409],
           [0.1181, 0.3409, 0.3409, 0.8   ]])
    >>> design.sample(np.random.default_rng(0)).sum()
    np.int64(2)
    """

    def __init__(self, inclusion_probability: npt.ArrayLike) -> None:
        self.inclusion_probability, self.sample_size = as_fixed_size(
            "ConditionalPoisson", inclusion_probability
        )
        uncertain = self.inclusion_probability[self.inclusion_probability < 1]
        self._sums = fitted_sums(
            uncertain, self.sample_size - (self.inclusion_probability.size - uncertain.size)
        )


def fitted_sums(pi: FloatArray, size: int) -> SampleSums:
    """Return the sums of the conditional Poisson design that has the given inclusion probabilities."""
    log_odds = logit(pi)
    step, last = 1.0, np.inf
    for _ in range(MAX_ITERATIONS):
        sums = SampleSums(expit(log_odds), expit(-log_odds), size)
        inside, outside = sums.inclusion()
        error = float(np.max(np.abs(inside / pi - 1), initial=0.0))
        # Beside a probability near 1, small ones are known only to its rounding: their error then stalls.
        stalled = step < 1 and error > STALLED * last and np.max(np.abs(inside - pi)) <= TOLERANCE
        if error <= TOLERANCE or stalled:
            return sums
        if error > last / 2:
            step = 0.5
        last = error
        log_odds = log_odds + step * (logit(pi) - np.log(inside / outside))
    raise InputError.argument(
        "ConditionalPoisson",
        "inclusion_probability",
        f"array of range {pi.min():.3g} to {pi.max():.17g}",
        f"is matched only to {last:.1g} after {MAX_ITERATIONS} iterations",
        "raise the floor of the smallest, or set those near 1 to 1",
    )
