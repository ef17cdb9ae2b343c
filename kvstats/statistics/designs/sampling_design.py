"""What a sampling design is, and the checks that all designs share."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.statistic import FloatArray, IntArray, as_column

__all__ = [
    "BoolArray",
    "SamplingDesign",
    "VarianceForm",
    "as_fixed_size",
    "as_probabilities",
    "indexed_joint",
    "zeros_of",
]

BoolArray = npt.NDArray[np.bool_]

VarianceForm = Literal["poisson", "syg", "ht"]
"""Estimators of the variance, see `kvstats.statistics.design_variance`."""

SIZE_TOLERANCE = 1e-9
"""How far from an integer, relative to it, the probabilities of a design of fixed size may sum."""


class SamplingDesign(Protocol):
    """A probability distribution over the samples of a population of n units.

    Attributes
    ----------
    variance_form : {"poisson", "syg", "ht"}
        The variance estimator that fits: ``syg`` for samples of fixed size, ``poisson`` for Poisson sampling.

    Examples
    --------
    >>> from kvstats.statistics.survey import Poisson
    >>> design: SamplingDesign = Poisson(np.array([0.5, 0.25]))
    >>> design.variance_form, design.joint_inclusion_probability.tolist()
    ('poisson', [[0.5, 0.125], [0.125, 0.25]])
    """

    variance_form: VarianceForm

    @property
    def inclusion_probability(self) -> FloatArray:
        """Probability in (0, 1] that each unit is in the sample, shape [n]."""

    @property
    def joint_inclusion_probability(self) -> FloatArray:
        """Probability that both units of each pair are in the sample, shape [n, n].

        Symmetric; the diagonal holds the units' own probabilities.
        """

    def joint_of(self, members: IntArray) -> FloatArray:
        """Return the joint probabilities of k units, by their numbers, shape [k, k].

        `indexed_joint` does for a design without a closed form for them.
        """

    @property
    def excluded_pairs(self) -> int:
        """Number of pairs of units that are never in a sample together; see `zeros_of`."""

    def sample(self, rng: np.random.Generator) -> BoolArray:
        """Draw one sample, as a mask of shape [n]."""


def indexed_joint(joint: FloatArray, members: IntArray) -> FloatArray:
    """Return the joint probabilities of some units, taken from those of all.

    Examples
    --------
    >>> indexed_joint(np.array([[0.5, 0.2], [0.2, 0.7]]), np.array([1]))
    array([[0.7]])
    """
    return joint[np.ix_(members, members)]


def zeros_of(joint: FloatArray) -> int:
    """Return the number of pairs of units whose joint probability is 0.

    Examples
    --------
    >>> zeros_of(np.array([[0.5, 0.0], [0.0, 0.5]]))
    1
    """
    return int((joint <= 0).sum()) // 2


def as_probabilities(function: str, values: npt.ArrayLike) -> FloatArray:
    """Return inclusion probabilities as a read-only vector of float in (0, 1].

    Raises
    ------
    InputError
        When there is no unit, or a probability is not in (0, 1].
    """
    pi = as_column(function, "inclusion_probability", values).copy()
    if pi.size == 0:
        raise InputError.argument(
            function, "inclusion_probability", "an empty array", "has no units", "pass at least one unit"
        )
    faulty = np.flatnonzero((pi <= 0) | (pi > 1))
    if faulty.size:
        raise InputError.argument(
            function,
            "inclusion_probability",
            float(pi[faulty[0]]),
            f"is not in (0, 1], at unit {faulty[0]}",
            "give each unit a chance, as proportional_inclusion does",
        )
    pi.flags.writeable = False
    return pi


def as_fixed_size(function: str, values: npt.ArrayLike) -> tuple[FloatArray, int]:
    """Return inclusion probabilities that sum to an integer, and that integer: the sample size.

    The probabilities below 1 are rescaled to take up the rounding of their sum.

    Raises
    ------
    InputError
        When a probability is not in (0, 1], or their sum is not an integer to a relative 1e-9.
    """
    pi = as_probabilities(function, values)
    total = float(pi.sum())
    size = round(total)
    uncertain = pi < 1
    rest = size - int((~uncertain).sum())
    if abs(total - size) > SIZE_TOLERANCE * size or (rest <= 0 and uncertain.any()):
        raise InputError.argument(
            function,
            "inclusion_probability",
            f"array of sum {total:.12g}",
            "does not sum to a whole sample size",
            "use proportional_inclusion with an integer expected_size, in double precision",
        )
    if rest > 0:
        pi = pi.copy()
        pi[uncertain] = np.minimum(pi[uncertain] * (rest / pi[uncertain].sum()), 1.0)
        pi.flags.writeable = False
    return pi, size
