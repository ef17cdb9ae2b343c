"""What each kept unit adds to the estimated variance of an attention read."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from kvstats.statistics.attention_read import kept_part, kept_sum

__all__ = ["variance_contributions"]


def variance_contributions(logits: Any, values: Any, inclusion_probability: Any, kept: Any) -> Any:
    r"""Split the variance of `attention_certificate` into the parts of the kept units.

    .. math:: c_i = \hat N^{-2} \frac{1-\pi_i}{\pi_i^2} a_i^2 \lVert v_i - \hat y \rVert^2, \qquad
        \sum_{i \in S} c_i = \hat V

    with :math:`a_i`, :math:`\hat N` and :math:`\hat y` of `attention_certificate`.

    Parameters
    ----------
    logits, values, inclusion_probability, kept : array
        As for `attention_certificate`.

    Returns
    -------
    array of float, shape (..., n)
        At least 0, in squared units of the values; 0 for units that were not kept or are certain.

    Raises
    ------
    InputError
        A kept unit's probability is outside (0, 1], its logit or value is not finite, or a read keeps none.

    References
    ----------
    Error Certificates for KV-Cache Eviction via Randomized Design, the variance of one read.

    Examples
    --------
    >>> import numpy as np
    >>> variance_contributions(np.zeros(3), np.array([[1.0], [2.0], [6.0]]), np.array([1.0, 0.5, 0.5]),
    ...     np.array([True, True, False])).round(4)
    array([0.    , 0.0247, 0.    ])
    """
    name = "variance_contributions"
    shown, values, pi = kept_part(name, logits, values, inclusion_probability, kept)
    xp = array_namespace(shown)
    weight = xp.exp(shown - xp.max(shown, axis=-1, keepdims=True)) / pi
    weight = weight / xp.sum(weight, axis=-1, keepdims=True)
    estimate, values = kept_sum(name, weight, values, kept)
    distance = xp.linalg.vector_norm(values - estimate[..., None, :], axis=-1)
    # The weight of a unit that was not kept is 0, and its value is finite: it adds 0.
    return (1.0 - pi) * (weight * distance) ** 2
