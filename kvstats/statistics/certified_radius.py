"""Radii that a theorem backs for the error of an attention read over a Poisson-sampled cache."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from array_api_compat import array_namespace

from kvstats.errors import InputError, nearest_name
from kvstats.statistics.attention_read import kept_part, kept_sum
from kvstats.statistics.concentration import (
    bernstein_radius,
    check_delta,
    check_nonnegative,
    variance_upper_bound,
)
from kvstats.statistics.empirical_bernstein import psi_exponential

__all__ = ["CertifiedRadius", "certified_radius"]

METHODS = ("bernstein", "empirical_bernstein")
NORM_GUARD = 1e-9
ROUNDS = 40
BETS = tuple(2.0**-k for k in range(1, 9))
"""Bets of the empirical Bernstein radius, before they are divided by the largest possible contribution."""


class CertifiedRadius(NamedTuple):
    """The Hájek estimate of an attention output and a ball around it that holds the truth.

    Attributes
    ----------
    estimate : array, shape (..., d)
        Estimated attention output, in units of the values.
    absolute : array, shape (...)
        Radius in units of the values, at most twice `value_norm`.
    radius : array, shape (...)
        The same, relative to the norm of the estimate, as in `AttentionCertificate`.
    """

    estimate: Any
    absolute: Any
    radius: Any


def certified_radius(
    logits: Any,
    values: Any,
    inclusion_probability: Any,
    kept: Any,
    *,
    value_norm: Any,
    log_weight: Any,
    delta: float = 0.1,
    method: Literal["bernstein", "empirical_bernstein"] = "bernstein",
) -> CertifiedRadius:
    r"""Bound the error of an attention output estimated from a Poisson-sampled cache.

    With :math:`a_i = \exp(s_i)`, the truth y over all units and the Hájek estimate
    :math:`\hat y = \hat N^{-1}\sum_S (a_i/\pi_i) v_i`, :math:`\hat N = \sum_S a_i/\pi_i`, the error is
    exactly

    .. math:: \hat N (\hat y - y) = \sum_i Z_i, \qquad Z_i = (I_i/\pi_i - 1)\, a_i (v_i - y)

    a sum of independent mean-zero vectors divided by a number that is observed. Let e be the norm of the
    error, :math:`A \ge a_i/\pi_i` and :math:`R \ge \lVert v_i\rVert` the two stored bounds, and
    :math:`D = \min(2R, R + \lVert\hat y\rVert + e) \ge \lVert v_i - y\rVert`. Sums run over the kept
    units with :math:`\pi_i < 1`.

    ``bernstein`` (delta is split in two halves, one for each inequality):

    .. math:: \hat N e \le r(V^+, A D; \tfrac\delta 2), \qquad V^+ = u\bigl((\sqrt{\hat V} + e \sqrt{W})^2,
        A^2 D^2; \tfrac\delta 2\bigr)

    .. math:: \hat V = \sum \tfrac{1-\pi_i}{\pi_i^2} a_i^2 \lVert v_i - \hat y\rVert^2, \qquad
        W = \sum \tfrac{1-\pi_i}{\pi_i^2} a_i^2

    with r of `bernstein_radius` and u of `variance_upper_bound`.

    ``empirical_bernstein`` (delta is split over the K = 8 bets :math:`\lambda = 2^{-1}, \dots, 2^{-8}`):

    .. math:: \hat N e \le \min_{\lambda} \theta^{-1}\Bigl(\log\tfrac{2K}{\delta} +
        \tfrac{\psi_E(\theta A D)}{A^2 D^2} (\sqrt{\hat Q} + e\sqrt{W'})^2\Bigr), \qquad
        \theta = \tfrac{\lambda}{2 A R}

    .. math:: \hat Q = \sum \tfrac{a_i^2}{\pi_i^2} \lVert v_i - \hat y\rVert^2, \qquad
        W' = \sum \tfrac{a_i^2}{\pi_i^2}

    Both sides depend on e: the radius starts at 2 R, which always holds, and is lowered to what the
    right-hand side gives for it, 40 times. Each step keeps the bound valid on the same event.

    Parameters
    ----------
    logits : array of float, shape (..., n)
        Scaled logits :math:`s_i`, numpy or torch, WITHOUT the offset log(1/pi).
    values : array of float, shape (..., n, d)
        Value vectors.
    inclusion_probability : array of float, shape (..., n)
        Probability in (0, 1] with which each unit was to be kept; broadcasts against `logits`.
    kept : array of bool, shape (..., n)
        The sample; broadcasts against `logits`. At least one unit of each read must be kept.
    value_norm : float or array of float, shape (...)
        R, at least 0: a bound on the norms of ALL value vectors of the read, kept or not; stored at prefill.
    log_weight : float or array of float, shape (...)
        log A: a bound on :math:`s_i - \log\pi_i` over ALL units with :math:`\pi_i < 1`, kept or not. From
        stored key norms: the largest :math:`\lVert q\rVert \lVert k_i\rVert / \sqrt d - \log\pi_i`.
    delta : float, default 0.1
        Probability, over the draw of the sample, that the error exceeds the radius; in (0, 1).
    method : {"bernstein", "empirical_bernstein"}
        The inequality.

    Returns
    -------
    CertifiedRadius

    Raises
    ------
    InputError
        ``delta`` is outside (0, 1); ``method`` is unknown; a kept unit's probability is outside (0, 1], or
        its logit or value is not finite; a read keeps none; ``value_norm`` or ``log_weight`` is undefined or
        below what a kept unit shows.

    Notes
    -----
    Assumptions: units were kept independently with the given probabilities (Poisson sampling); logits,
    values, probabilities and both bounds do not depend on the sample. Nothing is linearised and nothing is
    asymptotic. The theorem does not cover designs of fixed size, whose units are not independent. For the
    empirical Bernstein form the supermartingale of `empirical_bernstein_spheres` is taken over the units
    with bet theta, centred at :math:`a_i (v_i - y)` for the units kept with certainty and at 0 for the
    others, so that units that were not kept cost nothing; being a supermartingale over units, it also
    holds for every leading part of them. It pays :math:`1/(1-\pi_i)` times the variance of a unit and is the
    wider one where probabilities are near 1.

    With a bound A that is far above the weights in the sample the radius is 2 R, which says nothing. A
    vector c subtracted from all values, as their mean before eviction, leaves the absolute radius of the
    shifted read valid and can lower R.

    References
    ----------
    .. [1] Pinelis (1994), Annals of Probability 22, section 3.
    .. [2] Maurer (2003), Journal of Inequalities in Pure and Applied Mathematics 4, theorem 1.
    .. [3] Martinez-Taboada and Ramdas (2024), arXiv 2409.06060.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> logits, values, pi = rng.normal(size=4000), rng.normal(size=(4000, 8)) + 1, np.full(4000, 0.5)
    >>> kept = rng.random(4000) < pi
    >>> bound = dict(value_norm=np.linalg.norm(values, axis=-1).max(), log_weight=(logits - np.log(pi)).max())
    >>> certified_radius(logits, values, pi, kept, **bound).radius.round(3)
    np.float64(0.441)
    >>> certified_radius(logits, values, pi, kept, **bound, method="empirical_bernstein").radius.round(3)
    np.float64(0.685)
    """
    name = "certified_radius"
    check_delta(name, delta)
    if method not in METHODS:
        raise InputError.argument(name, "method", method, "is unknown", nearest_name(method, METHODS))
    check_nonnegative(name, "value_norm", value_norm)
    logits, values, pi = kept_part(name, logits, values, inclusion_probability, kept)
    xp = array_namespace(logits)
    # Weights are divided by their sum: then the estimate's total is 1 and no exponential overflows.
    shown = logits - xp.log(pi)
    top = xp.max(shown, axis=-1, keepdims=True)
    weight = xp.exp(shown - top)
    total = xp.sum(weight, axis=-1, keepdims=True)
    weight = weight / total
    estimate, values = kept_sum(name, weight, values, kept)
    # From far below exp(50) on the radius is 2 R, and nothing overflows.
    largest_weight = xp.exp(xp.clip(log_weight - (top + xp.log(total))[..., 0], None, 50.0))
    norms = xp.max(xp.where(kept, xp.linalg.vector_norm(values, axis=-1), xp.zeros_like(logits)), axis=-1)
    if not bool(xp.all(xp.isfinite(value_norm + norms) & (norms <= value_norm * (1 + 1e-5)))):
        raise InputError.argument(
            name,
            "value_norm",
            "a bound",
            "is infinite or below that of a kept unit",
            "pass the largest of all",
        )
    sampled = xp.max(xp.where(pi < 1, weight, xp.zeros_like(weight)), axis=-1)
    if not bool(xp.all(sampled <= largest_weight * (1 + 1e-5))):
        raise InputError.argument(
            name,
            "log_weight",
            "a bound",
            "is undefined or below that of a kept unit",
            "pass the largest of all",
        )
    tail = xp.where(pi < 1, weight**2, xp.zeros_like(weight))
    per_unit = tail * (1.0 - pi) if method == "bernstein" else tail
    squared = xp.linalg.vector_norm(values - estimate[..., None, :], axis=-1) ** 2
    squared = xp.where(kept, squared, xp.zeros_like(squared))
    spread = xp.sum(per_unit * squared, axis=-1) ** 0.5
    lever = xp.sum(per_unit, axis=-1) ** 0.5
    norm = xp.linalg.vector_norm(estimate, axis=-1)
    form = pinelis_form if method == "bernstein" else betting_form
    bound = form(spread, lever, largest_weight, value_norm + xp.zeros_like(norm), norm, delta, xp)
    absolute = 2.0 * value_norm + xp.zeros_like(norm)
    for _ in range(ROUNDS):
        absolute = xp.minimum(absolute, bound(absolute))
    return CertifiedRadius(estimate, absolute, absolute / (norm + NORM_GUARD))


def pinelis_form(
    spread: Any, lever: Any, largest: Any, value_norm: Any, norm: Any, delta: float, xp: Any
) -> Callable[[Any], Any]:
    """Give the map from a bound on the error to a better one, by Pinelis' inequality."""

    def bound(error: Any) -> Any:
        contribution = largest * xp.minimum(2.0 * value_norm, value_norm + norm + error)
        variance = variance_upper_bound((spread + error * lever) ** 2, contribution**2, delta=delta / 2)
        return bernstein_radius(variance, contribution, delta=delta / 2)

    return bound


def betting_form(
    spread: Any, lever: Any, largest: Any, value_norm: Any, norm: Any, delta: float, xp: Any
) -> Callable[[Any], Any]:
    """Give the map from a bound on the error to a better one, by the best of several bets."""
    log_term = math.log(2.0 * len(BETS) / delta)
    # A bet divides by a number that cannot depend on the sample; its price may use the smaller bound.
    reach = 2.0 * largest * value_norm
    positive = reach > 0
    safe = xp.where(positive, reach, xp.ones_like(reach))
    value_norm = xp.where(positive, value_norm, xp.ones_like(value_norm))

    def bound(error: Any) -> Any:
        share = xp.minimum((value_norm + norm + error) / (2.0 * value_norm), xp.ones_like(norm))
        share = xp.where(positive, share, xp.ones_like(share))
        sum_of_squares = ((spread + error * lever) / safe) ** 2
        costs = [(log_term + psi_exponential(bet * share) / share**2 * sum_of_squares) / bet for bet in BETS]
        best = costs[0]
        for cost in costs[1:]:
            best = xp.minimum(best, cost)
        return xp.where(positive, safe * best, xp.zeros_like(best))

    return bound
