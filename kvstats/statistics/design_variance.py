"""Estimators of the variance of an estimated total, from one sample and its inclusion probabilities."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

__all__ = ["horvitz_thompson_form", "poisson_form", "sen_yates_grundy_form"]


def as_rows(y: Any) -> Any:
    """Return values of shape [k] or [k, d] as shape [k, d]."""
    return y[:, None] if y.ndim == 1 else y


def poisson_form(y: Any, inclusion_probability: Any) -> float:
    r"""Estimate the variance of a Horvitz-Thompson total under Poisson sampling, by its single sum.

    .. math:: \hat V = \sum_{i \in s} \frac{1 - \pi_i}{\pi_i^2} \lVert y_i \rVert^2

    Unbiased under Poisson sampling only, and never negative.

    Parameters
    ----------
    y : array of float, shape [k] or [k, d]
        Values of the k sampled units, numpy or torch. For vectors the result is the expected squared norm of
        the error, the trace of its covariance matrix.
    inclusion_probability : array of float, shape [k]
        Probabilities in (0, 1] of the sampled units.

    Returns
    -------
    float
        In squared units of y; 0 for an empty sample.

    References
    ----------
    Särndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, equation 3.5.4.

    Examples
    --------
    >>> import numpy as np
    >>> poisson_form(np.array([1.0, 2.0, 5.0]), np.array([0.5, 0.5, 1.0]))
    10.0
    """
    xp = array_namespace(y, inclusion_probability)
    squares = xp.sum(as_rows(y) ** 2, axis=1)
    return float(xp.sum((1 - inclusion_probability) / inclusion_probability**2 * squares))


def sen_yates_grundy_form(y: Any, inclusion_probability: Any, joint_inclusion_probability: Any) -> float:
    r"""Estimate the variance of a Horvitz-Thompson total under a design of fixed size.

    .. math:: \hat V = \frac12 \sum_{i \in s} \sum_{j \in s} \frac{\pi_i \pi_j - \pi_{ij}}{\pi_{ij}}
        \left\lVert \frac{y_i}{\pi_i} - \frac{y_j}{\pi_j} \right\rVert^2

    Unbiased where the sample size is fixed and every pair can be drawn; never negative where
    :math:`\pi_{ij} \le \pi_i \pi_j`, as in simple random, conditional Poisson and Sampford sampling.

    Parameters
    ----------
    y : array of float, shape [k] or [k, d]
        Values of the k sampled units, numpy or torch. For vectors the result is the expected squared norm of
        the error.
    inclusion_probability : array of float, shape [k]
        Probabilities in (0, 1] of the sampled units.
    joint_inclusion_probability : array of float, shape [k, k]
        Probabilities above 0 of their pairs.

    Returns
    -------
    float
        In squared units of y; 0 for fewer than two units.

    References
    ----------
    Sen, Journal of the Indian Society of Agricultural Statistics 5, 1953; Yates and Grundy, Journal of the
    Royal Statistical Society B 15, 1953.

    Examples
    --------
    >>> import numpy as np
    >>> pair = np.array([[0.5, 0.2], [0.2, 0.5]])
    >>> round(sen_yates_grundy_form(np.array([1.0, 2.0]), np.array([0.5, 0.5]), pair), 12)
    1.0
    """
    xp = array_namespace(y, inclusion_probability, joint_inclusion_probability)
    pi, joint = inclusion_probability, joint_inclusion_probability
    factor = (pi[:, None] * pi[None, :] - joint) / joint
    expanded = as_rows(y) / pi[:, None]
    # One column at a time keeps the memory at k * k, and plain differences keep a sum of squares >= 0.
    columns = (expanded[:, c] for c in range(expanded.shape[1]))
    return sum(float(xp.sum(factor * (e[:, None] - e[None, :]) ** 2)) for e in columns) / 2


def horvitz_thompson_form(y: Any, inclusion_probability: Any, joint_inclusion_probability: Any) -> float:
    r"""Estimate the variance of a Horvitz-Thompson total under any design.

    .. math:: \hat V = \sum_{i \in s} \sum_{j \in s} \frac{\pi_{ij} - \pi_i \pi_j}{\pi_{ij}}
        \left\langle \frac{y_i}{\pi_i}, \frac{y_j}{\pi_j} \right\rangle

    Unbiased where every pair can be drawn, but often unstable, and it can be negative.

    Parameters
    ----------
    y : array of float, shape [k] or [k, d]
        Values of the k sampled units, numpy or torch. For vectors the result is the expected squared norm of
        the error.
    inclusion_probability : array of float, shape [k]
        Probabilities in (0, 1] of the sampled units.
    joint_inclusion_probability : array of float, shape [k, k]
        Probabilities above 0 of their pairs; the diagonal holds the units' own.

    Returns
    -------
    float
        In squared units of y; 0 for an empty sample.

    References
    ----------
    Horvitz and Thompson, Journal of the American Statistical Association 47, 1952.

    Examples
    --------
    >>> import numpy as np
    >>> pair = np.array([[0.5, 0.2], [0.2, 0.5]])
    >>> round(horvitz_thompson_form(np.array([1.0, 2.0]), np.array([0.5, 0.5]), pair), 12)
    6.0
    >>> rare = np.array([[0.5, 0.1], [0.1, 0.5]])
    >>> round(horvitz_thompson_form(np.array([2.0, 2.0]), np.array([0.5, 0.5]), rare), 12)
    -32.0
    """
    xp = array_namespace(y, inclusion_probability, joint_inclusion_probability)
    pi, joint = inclusion_probability, joint_inclusion_probability
    factor = (joint - pi[:, None] * pi[None, :]) / joint
    expanded = as_rows(y) / pi[:, None]
    return float(xp.sum(factor * (expanded @ expanded.T)))
