"""Variance of an area under the curve, and covariance of two, before any data are there."""

from __future__ import annotations

import math
from typing import Literal

from scipy import special

__all__ = [
    "AUCShape",
    "anticipated_counts",
    "auc_covariance",
    "auc_variance",
    "bivariate_normal",
    "class_covariances",
    "class_variances",
    "satterthwaite_df",
]

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
    above, below = shared_pairs(area, shape)
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
    same, shared = pair_covariances(first, second, score_correlation)
    return (same + (positives + negatives - 2) * shared) / (positives * negatives)


def class_variances(
    area: float, positives: float, negatives: float, shape: AUCShape = "binormal"
) -> tuple[float, float]:
    r"""Return what the positives and the negatives contribute to DeLong's variance, in expectation.

    .. math:: v_+ = \frac 1 {n_+} \Bigl(Q_2 - A^2 + \frac{A - Q_1 - Q_2 + A^2}{n_-}\Bigr), \qquad
        v_- = \frac 1 {n_-} \Bigl(Q_1 - A^2 + \frac{A - Q_1 - Q_2 + A^2}{n_+}\Bigr)

    with the Q of `auc_variance`. Their sum exceeds the variance by
    :math:`(A - Q_1 - Q_2 + A^2) / n_+ n_-`, the bias of DeLong's estimator [1]_.

    Parameters
    ----------
    area, positives, negatives, shape
        As for `auc_variance`.

    Returns
    -------
    of_positives, of_negatives : float
        Above 0.

    References
    ----------
    .. [1] DeLong, DeLong and Clarke-Pearson, Biometrics 44, 1988, equations 5 to 7.

    Examples
    --------
    >>> parts = class_variances(0.8, 20, 80)
    >>> [round(part, 6) for part in parts], round(sum(parts), 6), round(auc_variance(0.8, 20, 80), 6)
    ([0.002399, 0.00063], 0.003029, 0.002988)
    """
    above, below = shared_pairs(area, shape)
    both = area - above - below + area**2
    return (
        (below - area**2 + both / negatives) / positives,
        (above - area**2 + both / positives) / negatives,
    )


def class_covariances(
    first: float, second: float, positives: float, negatives: float, score_correlation: float
) -> tuple[float, float]:
    """Return what the classes contribute to DeLong's covariance of two areas, in expectation.

    The form of `class_variances`, for the parameters of `auc_covariance`.

    Examples
    --------
    >>> class_covariances(0.8, 0.7, 50, 50, 0.0)
    (0.0, 0.0)
    """
    same, shared = pair_covariances(first, second, score_correlation)
    both = same - 2 * shared
    return (shared + both / negatives) / positives, (shared + both / positives) / negatives


def anticipated_counts(rows: float, prevalence: float, design_effect: float = 1.0) -> tuple[float, float]:
    r"""Return how many independent rows the positives and the negatives of a study are worth.

    Rows are worth :math:`n = \mathrm{rows} / \mathrm{deff}`. As a draw decides how many of them are
    positives, variances go by :math:`E(1/n_+)`, to second order that of a fixed number of

    .. math:: \frac{n p}{1 + (1 - p) / (n p)}

    Examples
    --------
    >>> [round(count, 2) for count in anticipated_counts(300, 0.1, 1.5)]
    [19.14, 179.9]
    """
    positives, negatives = (rows / design_effect * share for share in (prevalence, 1 - prevalence))
    return positives / (1 + (1 - prevalence) / positives), negatives / (1 + prevalence / negatives)


def satterthwaite_df(parts: tuple[float, float], counts: tuple[float, float], inputs: int) -> float:
    r"""Return the anticipated degrees of freedom of a variance that is a sum over two classes.

    .. math:: \frac{(v_+ + v_-)^2}{v_+^2 / (C_+ - 1) + v_-^2 / (C_- - 1)}

    with :math:`C` the inputs with rows of a class, anticipated as the independent rows that the class is
    worth and at most all inputs. At most inputs - 1; 0 where a class is worth one row or less.

    References
    ----------
    .. [1] Satterthwaite, Biometrics Bulletin 2, 1946.

    Examples
    --------
    >>> satterthwaite_df((1.0, 1.0), (11.0, 11.0), 100), satterthwaite_df((1.0, 0.0), (11.0, 80.0), 100)
    (20.0, 10.0)
    """
    freedom = [min(count, inputs) - 1 for count in counts]
    if min(freedom) <= 0:
        return 0.0
    total = sum(parts)
    squares = sum(part**2 / each for part, each in zip(parts, freedom, strict=True))
    return min(total**2 / squares, inputs - 1.0) if squares > 0 else min(freedom)


def shared_pairs(area: float, shape: AUCShape) -> tuple[float, float]:
    """Return Q_1 and Q_2: how often two positives beat one negative, and one positive two negatives."""
    if shape == "exponential":
        return area / (2 - area), 2 * area**2 / (1 + area)
    z = float(special.ndtri(area))
    return (both := bivariate_normal(z, z, 0.5)), both


def pair_covariances(first: float, second: float, score_correlation: float) -> tuple[float, float]:
    """Return the covariance of two signals' orderings of the same pair, and of pairs that share a row."""
    if score_correlation == 0:
        return 0.0, 0.0  # not up to rounding
    z1, z2 = float(special.ndtri(first)), float(special.ndtri(second))
    same, shared = (bivariate_normal(z1, z2, r) for r in (score_correlation, score_correlation / 2))
    return same - first * second, shared - first * second
