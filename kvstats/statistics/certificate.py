"""The error certificate of an attention read over a cache whose tail was sampled."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from array_api_compat import array_namespace

from kvstats.errors import InputError
from kvstats.statistics.attention_read import as_floats, kept_part, kept_sum, refuse_unless_finite

__all__ = ["AttentionCertificate", "attention_certificate", "relative_error"]

NORM_GUARD = 1e-9


class AttentionCertificate(NamedTuple):
    """The Hájek estimate of an attention output and what the sample says of its error.

    Attributes
    ----------
    estimate : array, shape (..., d)
        Estimated attention output, in units of the values.
    variance : array, shape (...)
        Estimated variance of its squared norm error, in squared units of the values.
    largest : array, shape (...)
        Largest scale of one unit's contribution, in units of the values.
    radius : array, shape (...)
        Certified error relative to the norm of the estimate.
    """

    estimate: Any
    variance: Any
    largest: Any
    radius: Any


def attention_certificate(
    logits: Any, values: Any, inclusion_probability: Any, kept: Any, *, delta: float = 0.1
) -> AttentionCertificate:
    r"""Estimate an attention output from a Poisson-sampled cache, with its error certificate.

    With :math:`a_i = \exp(s_i)` over the kept set S:

    .. math::

        \hat N = \sum_S a_i/\pi_i, \qquad \hat y = \hat N^{-1} \sum_S (a_i/\pi_i) v_i

        \hat V = \hat N^{-2} \sum_S \frac{1-\pi_i}{\pi_i^2} a_i^2 \lVert v_i - \hat y \rVert^2, \qquad
        b = \hat N^{-1} \max_S \frac{\sqrt{1-\pi_i}}{\pi_i} a_i \lVert v_i - \hat y \rVert

        r = \frac{\sqrt{2 \hat V \log(1/\delta)} + b \log(1/\delta)}{\lVert \hat y \rVert + 10^{-9}}

    Units kept with certainty (:math:`\pi_i = 1`) add nothing to V and b.

    Parameters
    ----------
    logits : array of float, shape (..., n)
        Scaled logits :math:`s_i = q \cdot k_i / \sqrt d`, numpy or torch, WITHOUT the offset log(1/pi). What
        stands here, and in `values`, for units that were not kept is not looked at, and may be NaN; integers
        become the default float.
    values : array of float, shape (..., n, d)
        Value vectors.
    inclusion_probability : array of float, shape (..., n)
        Probability in (0, 1] with which each unit was to be kept; broadcasts against `logits`.
    kept : array of bool, shape (..., n)
        The sample; broadcasts against `logits`. At least one unit of each read must be kept.
    delta : float, default 0.1
        Nominal probability that the error exceeds the radius, in (0, 1).

    Returns
    -------
    AttentionCertificate

    Raises
    ------
    InputError
        ``delta`` is outside (0, 1), a kept unit's probability is outside (0, 1], its logit or value is not
        finite, or a read keeps none.

    Notes
    -----
    The largest kept logit is subtracted before the exponential, which changes none of the results and
    keeps them finite. The radius is the empirical-Bernstein form with the plug-in variance: a heuristic
    whose coverage is to be checked against the truth, not a theorem.

    References
    ----------
    Error Certificates for KV-Cache Eviction via Randomized Design, the certificate of one read.

    Examples
    --------
    >>> import numpy as np
    >>> read = attention_certificate(np.zeros(3), np.array([[1.0], [2.0], [6.0]]),
    ...     np.array([1.0, 0.5, 0.5]), np.array([True, True, False]))
    >>> read.estimate.round(4), read.variance.round(4), read.radius.round(4)
    (array([1.6667]), np.float64(0.0247), np.float64(0.4194))
    """
    name = "attention_certificate"
    if not 0 < delta < 1:
        raise InputError.argument(name, "delta", delta, "is not in (0, 1)", "pass a probability such as 0.1")
    shown, values, pi = kept_part(name, logits, values, inclusion_probability, kept)
    xp = array_namespace(shown)
    a = xp.exp(shown - xp.max(shown, axis=-1, keepdims=True))
    weight = a / pi
    total = xp.sum(weight, axis=-1)
    total_value, values = kept_sum(name, weight, values, kept)
    estimate = total_value / total[..., None]
    distance = xp.linalg.vector_norm(values - estimate[..., None, :], axis=-1)
    distance = xp.where(kept, distance, xp.zeros_like(distance))
    spread = xp.sqrt(1.0 - pi) / pi * a * distance / total[..., None]
    variance = xp.sum(spread**2, axis=-1)
    largest = xp.max(spread, axis=-1)
    log_term = math.log(1.0 / delta)
    norm = xp.linalg.vector_norm(estimate, axis=-1) + NORM_GUARD
    radius = (xp.sqrt(2.0 * log_term * variance) + largest * log_term) / norm
    return AttentionCertificate(estimate, variance, largest, radius)


def relative_error(logits: Any, values: Any, estimate: Any) -> Any:
    r"""Error of an estimated attention output, relative to the norm of the estimate.

    .. math:: \lVert y - \hat y \rVert / (\lVert \hat y \rVert + 10^{-9}), \qquad
        y = \sum_i \mathrm{softmax}(s)_i v_i

    Parameters
    ----------
    logits : array of float, shape (..., n)
        Scaled logits of ALL units, kept or not.
    values : array of float, shape (..., n, d)
        Their value vectors.
    estimate : array of float, shape (..., d)
        The estimate.

    Returns
    -------
    array of float, shape (...)
        At least 0; the same denominator as the certificate's radius, so that the two compare.

    Raises
    ------
    InputError
        A logit, a value or the estimate is not finite: the truth needs all units.

    Examples
    --------
    >>> import numpy as np
    >>> relative_error(np.zeros(2), np.array([[1.0], [3.0]]), np.array([4.0])).round(6)
    np.float64(0.5)
    """
    logits, values, estimate = as_floats(logits, values, estimate)
    for argument, array in (("logits", logits), ("values", values), ("estimate", estimate)):
        refuse_unless_finite("relative_error", argument, array)
    xp = array_namespace(logits, values, estimate)
    a = xp.exp(logits - xp.max(logits, axis=-1, keepdims=True))
    truth = xp.sum(a[..., None] * values, axis=-2) / xp.sum(a, axis=-1)[..., None]
    norm = xp.linalg.vector_norm(estimate, axis=-1) + NORM_GUARD
    return xp.linalg.vector_norm(truth - estimate, axis=-1) / norm
