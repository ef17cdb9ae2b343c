"""Variance of an area under the curve, and covariance of two, before any data are there."""

from __future__ import annotations

import math
from typing import Literal

from scipy import special

__all__ = ["AUCShape", "auc_covariance", "auc_variance", "bivariate_normal"]

AUCShape = Literal["binormal", "exponential"]
"""How scores are distributed in the two classes."""


def bivariate_normal(h: float, k: float, correlation: float) -> float:
    """Return P(X <= h, Y <= k) for standard normal X and Y of a correlation in (-1, 1), by Owen's T.

    References
    ----------
    .. [1] Owen, Annals of Mathematical Statistics 27, 1956, equation 2.1.

    Examples
    --------
    >>> round(bivariate_normal(0.0, 0.0, 0.5), 12)  # 1/4 + arcsin(1/2) / (2 pi)
    0.333333333333
    """
    # Owen's form is continuous at 0, where it divides by 0.
    h, k = (value if abs(value) > 1e-150 else 1e-150 for value in (h, k))
    root = math.sqrt(1 - correlation**2)
    owen = special.owens_t(h, (k - correlation * h) / (h * root))
    owen += special.owens_t(k, (h - correlation * k) / (k * root))
    return float((special.ndtr(h) + special.ndtr(k)) / 2 - owen - (0.0 if h * k > 0 else 0.5))


def auc_variance(area: float, positives: float, negatives: float, shape: AUCShape = "binormal") -> float:
    r"""Return the variance of a Mann-Whitney area of independent scores.

    .. math:: \frac{A (1 - A) + (n_+ - 1)(Q_1 - A^2) + (n_- - 1)(Q_2 - A^2)}{n_+ n_-}

    with Q_1 the probability that two positives both score above one negative, and Q_2 that one positive
    scores above two negatives. For normal scores of equal variance both are
    :math:`\Phi_2(z, z; \tfrac12)`, :math:`z = \Phi^{-1}(A)`; for exponential ones :math:`A / (2 - A)` and
    :math:`2 A^2 / (1 + A)` [1]_.

    Parameters
    ----------
    area : float
        A, in (0, 1).
    positives, negatives : float
        Rows of each class, above 0.
    shape : {"binormal", "exponential"}
        How scores are distributed.

    Returns
    -------
    float

    References
    ----------
    .. [1] Hanley and McNeil, Radiology 143, 1982, equations 1 and 2.

    Examples
    --------
    >>> round(auc_variance(0.8, 50, 50) ** 0.5, 4), round(auc_variance(0.8, 50, 50, "exponential") ** 0.5, 4)
    (0.0437, 0.0445)
    """
    if shape == "binormal":
        z = float(special.ndtri(area))
        above = below = bivariate_normal(z, z, 0.5)
    else:
        above, below = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (positives - 1) * (above - area**2) + (negatives - 1) * (below - area**2)
    return spread / (positives * negatives)


def auc_covariance(
    first: float, second: float, positives: float, negatives: float, score_correlation: float
) -> float:
    r"""Return the covariance of the areas of two normal scores of the same rows.

    The form of `auc_variance`, with :math:`\Phi_2(z_1, z_2; r)` in the place of A,
    :math:`\Phi_2(z_1, z_2; r/2)` in that of both Q, and :math:`A_1 A_2` in that of A squared.

    Parameters
    ----------
    first, second : float
        The areas, in (0, 1).
    positives, negatives : float
        Rows of each class, above 0.
    score_correlation : float
        Correlation r of the two scores within a class, in (-1, 1).

    Returns
    -------
    float

    References
    ----------
    .. [1] DeLong, DeLong and Clarke-Pearson, Biometrics 44, 1988, equation 2.

    Examples
    --------
    >>> auc_covariance(0.8, 0.7, 50, 50, 0.0)
    0.0
    >>> close = auc_covariance(0.8, 0.8, 50, 50, 0.999999)
    >>> abs(close / auc_variance(0.8, 50, 50) - 1) < 1e-3
    True
    """
    z1, z2 = float(special.ndtri(first)), float(special.ndtri(second))
    product = first * second
    same = bivariate_normal(z1, z2, score_correlation) - product
    shared = bivariate_normal(z1, z2, score_correlation / 2) - product
    covariance = (same + (positives + negatives - 2) * shared) / (positives * negatives)
    return covariance if score_correlation else 0.0
