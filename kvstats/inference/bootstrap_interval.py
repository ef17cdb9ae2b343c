"""Intervals from bootstrap replicates, and the p-values that invert them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from scipy import special

from kvstats.inference.bootstrap import bootstrap, studentized_bootstrap
from kvstats.inference.design import Design
from kvstats.inference.linear import ClusterTotals, cluster_totals
from kvstats.inference.sample import Sample
from kvstats.statistics.statistic import FloatArray

__all__ = ["MAX_UNDEFINED", "BootstrapDistribution", "bootstrap_distribution", "distribution_of"]

MAX_UNDEFINED = 0.05
"""Share of undefined replicates above which a bootstrap says nothing."""

TIE = 1e-12
"""Replicates that differ from a null value by no more than this share of the largest are equal to it."""


@dataclass(frozen=True, eq=False)
class BootstrapDistribution:
    r"""The values that the bounds of an interval are taken from, in ascending order.

    A bound of confidence :math:`1 - \alpha` is an order statistic of m values, the k-th from its side with
    :math:`k = \lfloor \alpha (m + 1) \rfloor`, so that (b + 1) / (m + 1), for b values beyond a null value,
    is the p-value that inverts it exactly. With bias :math:`z_0` and acceleration a [1]_ the level
    :math:`\alpha` of the lower bound is replaced by

    .. math:: \Phi\Bigl(z_0 + \frac{z_0 + z_\alpha}{1 - a (z_0 + z_\alpha)}\Bigr)

    and that of the upper one by its mirror image; both 0 give :math:`\alpha` itself.

    Attributes
    ----------
    values : array of float, shape [m]
        Ascending: the replicates (percentile, BCa), their reflections at the estimate (basic), or the
        estimate minus the t statistics of the replicates times its standard error (studentized).
    spread : float
        Standard deviation of the replicates.
    bias, acceleration : float
        0 but for BCa.

    References
    ----------
    .. [1] Efron, Journal of the American Statistical Association 82, 1987, equations 2.3 and 6.6.

    Examples
    --------
    >>> distribution = BootstrapDistribution(np.arange(1.0, 100.0), 28.6)
    >>> distribution.interval(0.9)
    (5.0, 95.0)
    >>> distribution.p_greater(4.5), round(distribution.p_less(4.5), 12)
    (0.05, 0.96)
    """

    values: FloatArray
    spread: float
    bias: float = 0.0
    acceleration: float = 0.0

    def interval(self, level: float) -> tuple[float, float]:
        """Return both bounds; infinite where too few values lie beyond the level, or values are infinite."""
        tail = (1 - level) / 2
        return self._lower_bound(tail), -self._mirrored()._lower_bound(tail)

    def p_greater(self, null: float) -> float:
        """Return the p-value against values above the null value, at least 1 / (m + 1)."""
        tolerance = TIE * np.max(np.abs(self.values[np.isfinite(self.values)]), initial=0.0)
        beyond = int(np.searchsorted(self.values, null + tolerance, side="right"))
        least = 1 / (self.values.size + 1)
        share = (beyond + 1) * least
        if self.bias == self.acceleration == 0:
            return share
        shift = float(special.ndtri(share)) - self.bias
        if not math.isfinite(shift):
            return 1.0
        if 1 + self.acceleration * shift <= 0:
            return 1.0 if shift > 0 else least
        return max(float(special.ndtr(shift / (1 + self.acceleration * shift) - self.bias)), least)

    def p_less(self, null: float) -> float:
        """Return the p-value against values below the null value, at least 1 / (m + 1)."""
        return self._mirrored().p_greater(-null)

    def _lower_bound(self, tail: float) -> float:
        level = tail
        if self.bias or self.acceleration:
            shift = self.bias + float(special.ndtri(tail))
            slope = 1 - self.acceleration * shift
            level = float(special.ndtr(self.bias + shift / slope)) if slope > 0 else float(shift > 0)
        rank = min(math.floor(level * (self.values.size + 1) + 1e-9), self.values.size)
        return float(self.values[rank - 1]) if rank else -math.inf

    def _mirrored(self) -> BootstrapDistribution:
        return BootstrapDistribution(-self.values[::-1], self.spread, -self.bias, -self.acceleration)


DRAWN: WeakKeyDictionary[Sample, dict[tuple[str, int, int, str], BootstrapDistribution | None]] = (
    WeakKeyDictionary()
)
"""What was drawn from samples that still exist: a p-value inverts the distribution behind the interval."""


def bootstrap_distribution(
    label: str, sample: Sample, design: Design, method: str
) -> BootstrapDistribution | None:
    """Resample the clusters of a sample for an interval, or return what was drawn for it before.

    Parameters
    ----------
    label : str
        Name of the cell, which seeds the bootstrap.
    sample : Sample
        A sample whose value is defined and whose standard error is above 0.
    design : Design
        Number of resamples, and seed.
    method : {"percentile", "basic", "bca", "studentized"}
        The kind of interval. The acceleration of ``bca`` comes from the linearised contributions of the
        clusters, for a mean the same as from the jackknife; the statistics of ``studentized`` are divided
        by the linearised standard error of their own resample.

    Returns
    -------
    BootstrapDistribution or None
        None where more than 5% of the replicates are undefined, or, for ``bca``, all lie on one side of the
        estimate.

    References
    ----------
    .. [1] Davison and Hinkley, *Bootstrap Methods and their Application*, 1997, chapters 2 and 5.
    """
    drawn = DRAWN.setdefault(sample, {})
    key = (label, design.n_resamples, design.seed, method)
    if key not in drawn:
        drawn[key] = draw_distribution(label, sample, design, method)
    return drawn[key]


def draw_distribution(
    label: str, sample: Sample, design: Design, method: str
) -> BootstrapDistribution | None:
    estimate, totals = sample.statistic.value(sample.weights), cluster_totals(sample)
    if method == "studentized":
        replicates, errors = studentized_bootstrap(label, sample, design.n_resamples, design.seed)
        return distribution_of(replicates, errors, estimate, totals, method)
    replicates = bootstrap(label, sample, design.n_resamples, design.seed)
    return distribution_of(replicates, None, estimate, totals, method)


def distribution_of(
    replicates: FloatArray,
    errors: FloatArray | None,
    estimate: float,
    totals: ClusterTotals,
    method: str,
) -> BootstrapDistribution | None:
    """Do what `bootstrap_distribution` does, from replicates (and their errors, for ``studentized``)."""
    values = replicates
    if method == "basic":
        values = 2 * estimate - replicates
    elif method == "studentized" and errors is not None:
        se, _ = totals.error()
        with np.errstate(divide="ignore", invalid="ignore"):
            values = estimate - (replicates - estimate) / errors * se
    defined = np.sort(values[~np.isnan(values)])
    if defined.size < (1 - MAX_UNDEFINED) * values.size:
        return None
    # A crossing beyond the range of an axis is infinite, and has no deviation.
    spread = float(np.std(replicates[np.isfinite(replicates)], ddof=1))
    if method != "bca":
        return BootstrapDistribution(defined, spread)
    tolerance = TIE * np.max(np.abs(defined[np.isfinite(defined)]), initial=0.0)
    below = np.searchsorted(defined, estimate - tolerance, side="left")
    not_above = np.searchsorted(defined, estimate + tolerance, side="right")
    bias = float(special.ndtri((below + not_above) / (2 * defined.size)))
    if not math.isfinite(bias):
        return None
    return BootstrapDistribution(defined, spread, bias, totals.acceleration())
