"""Simple random sampling without replacement."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from kvstats.errors import InputError
from kvstats.statistics.designs.sampling_design import BoolArray, VarianceForm
from kvstats.statistics.statistic import FloatArray, IntArray

__all__ = ["SimpleRandom"]


class SimpleRandom:
    r"""All samples of m out of n units are equally likely.

    .. math:: \pi_i = \frac m n, \qquad \pi_{ij} = \frac{m (m - 1)}{n (n - 1)} \quad (i \ne j)

    With m = 1 no two units can be drawn together, and no unbiased estimator of the variance exists.

    Parameters
    ----------
    population_size : int
        Number n of units, at least 1.
    sample_size : int
        Number m of units drawn, in [1, n].

    Attributes
    ----------
    inclusion_probability : array of float, shape [n]
    joint_inclusion_probability : array of float, shape [n, n]

    Raises
    ------
    InputError
        When a size is not an integer or out of its range.

    References
    ----------
    Särndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, section 3.3.

    Examples
    --------
    >>> design = SimpleRandom(4, 2)
    >>> design.inclusion_probability
    array([0.5, 0.5, 0.5, 0.5])
    >>> design.sample(np.random.default_rng(0)).sum()
    np.int64(2)
    """

    variance_form: VarianceForm = "syg"

    def __init__(self, population_size: int, sample_size: int) -> None:
        for argument, size in (("population_size", population_size), ("sample_size", sample_size)):
            if isinstance(size, bool) or not isinstance(size, int | np.integer):
                raise InputError.argument("SimpleRandom", argument, size, "is not an integer", "pass a count")
        if population_size < 1:
            raise InputError.argument(
                "SimpleRandom", "population_size", population_size, "has no units", "pass at least 1"
            )
        if not 1 <= sample_size <= population_size:
            raise InputError.argument(
                "SimpleRandom",
                "sample_size",
                sample_size,
                f"is not in [1, {population_size}], the number of units",
                "change the sample size",
            )
        self.population_size = int(population_size)
        self.sample_size = int(sample_size)
        self.inclusion_probability = np.full(self.population_size, self.sample_size / self.population_size)

    @cached_property
    def joint_inclusion_probability(self) -> FloatArray:
        """Probability that both units of each pair are in the sample, shape [n, n]."""
        return self.joint_of(np.arange(self.population_size))

    def joint_of(self, members: IntArray) -> FloatArray:
        """Return the joint probabilities of k units, by their numbers, shape [k, k]."""
        n, m = self.population_size, self.sample_size
        both = m * (m - 1) / (n * (n - 1)) if n > 1 else 1.0
        joint = np.full((members.size, members.size), both)
        np.fill_diagonal(joint, m / n)
        return joint

    @property
    def excluded_pairs(self) -> int:
        """Number of pairs of units that are never in a sample together: all where one unit is drawn."""
        n = self.population_size
        return n * (n - 1) // 2 if self.sample_size == 1 else 0

    def sample(self, rng: np.random.Generator) -> BoolArray:
        """Draw one sample, as a mask of shape [n]."""
        drawn = np.zeros(self.population_size, dtype=np.bool_)
        drawn[rng.choice(self.population_size, self.sample_size, replace=False)] = True
        return drawn
