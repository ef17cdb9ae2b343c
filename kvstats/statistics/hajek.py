"""Hájek estimators of means and ratios, and the design effect of a mean."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from kvstats.errors import InputError
from kvstats.statistics.horvitz_thompson import weighted_total
from kvstats.statistics.survey_columns import as_domain, as_values
from kvstats.statistics.survey_estimate import SurveyEstimate, from_linearised
from kvstats.statistics.survey_sample import SurveySample

__all__ = ["design_effect", "hajek_mean", "hajek_ratio"]


def hajek_mean(y: Any, sample: SurveySample, *, domain: Any = None) -> SurveyEstimate:
    r"""Estimate the mean of y over a population, or a domain of it, of unknown size.

    .. math:: \bar y = \frac 1 {\hat N} \sum_{i \in s} \frac{y_i}{\pi_i}, \qquad
        \hat N = \sum_{i \in s} \frac 1 {\pi_i}, \qquad z_i = \frac{y_i - \bar y}{\hat N}

    with sums over the sampled units of the domain. The variance is that of the total of z, by the sample's
    form. The mean lies within the range of y, shifts and scales with it, and is unbiased in large samples;
    with few units its variance is estimated too low. For the mean of zeros and ones, a rate, take
    `SurveyEstimate.rate_interval`: the t interval misses rare events.

    Parameters
    ----------
    y : array of float, shape [k] or [k, d]
        Values of the k sampled units, finite in the domain; of the sample's array kind, or a sequence.
    sample : SurveySample
        The sample.
    domain : array of bool, shape [k], optional
        The sampled units of a domain.

    Returns
    -------
    SurveyEstimate
        In the unit of y. No estimate without a unit in the domain (``no units``); no variance with a single
        one (``one unit``), or where all y are equal (``zero variance``): there the sample does not tell.

    Raises
    ------
    InputError
        When y or the domain does not fit the sample, or y is not finite in the domain.

    References
    ----------
    Särndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, results 5.7.1 and 5.8.1.

    Examples
    --------
    >>> sample = SurveySample([0.9, 0.5, 0.3, 0.8, 0.2, 0.6, 0.4, 0.7])
    >>> hajek_mean([1, 0, 1, 1, 0, 1, 0, 1], sample)
    SurveyEstimate(estimate=0.480581, se=0.160603, df=7, n=8, status='ok')
    >>> hajek_mean([1, 0, 1, 1, 0, 1, 0, 1], sample, domain=[True] * 3 + [False] * 5)
    SurveyEstimate(estimate=0.689655, se=0.203048, df=2, n=3, status='ok')
    """
    inside = as_domain("hajek_mean", domain, sample)
    values = as_values("hajek_mean", "y", y, sample, inside)
    xp = array_namespace(values, inside)
    return quotient(values, xp.astype(inside, values.dtype), inside, sample)


def hajek_ratio(y: Any, x: Any, sample: SurveySample, *, domain: Any = None) -> SurveyEstimate:
    r"""Estimate the ratio of the totals of two variables.

    .. math:: \hat R = \frac{\sum_s y_i / \pi_i}{\sum_s x_i / \pi_i}, \qquad
        z_i = \frac{y_i - \hat R x_i}{\sum_s x_j / \pi_j}

    with sums over the sampled units of the domain. The variance is that of the total of z, by the sample's
    form.

    Parameters
    ----------
    y : array of float, shape [k] or [k, d]
        Numerators of the k sampled units, finite in the domain.
    x : array of float, shape [k]
        Their denominators, finite in the domain.
    sample : SurveySample
        The sample.
    domain : array of bool, shape [k], optional
        The sampled units of a domain.

    Returns
    -------
    SurveyEstimate
        In units of y over units of x. Statuses as for `hajek_mean`, and ``zero denominator``, without
        estimate, where the denominators sum to 0.

    Raises
    ------
    InputError
        When y, x or the domain does not fit the sample, or a value is not finite in the domain.

    References
    ----------
    Särndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, result 5.6.2.

    Examples
    --------
    >>> hajek_ratio([2, 3, 9], [1, 2, 4], SurveySample([0.5, 0.25, 0.8]))
    SurveyEstimate(estimate=1.81667, se=0.160823, df=2, n=3, status='ok')
    """
    inside = as_domain("hajek_ratio", domain, sample)
    numerators = as_values("hajek_ratio", "y", y, sample, inside)
    denominators = as_values("hajek_ratio", "x", x, sample, inside)
    if denominators.ndim != 1:
        raise InputError.argument(
            "hajek_ratio",
            "x",
            f"array of shape {tuple(denominators.shape)}",
            "is not a vector",
            "pass one denominator for each sampled unit",
        )
    return quotient(numerators, denominators, inside, sample)


def quotient(y: Any, x: Any, inside: Any, sample: SurveySample) -> SurveyEstimate:
    """Return the ratio of the totals of y and x over the units inside a domain, outside which both are 0."""
    xp = array_namespace(y, x)
    n = int(xp.count_nonzero(inside))
    total = weighted_total(x, sample)
    if n == 0 or total == 0:
        status = "zero denominator" if n else "no units"
        return SurveyEstimate(None, None, None, None, n, status, sample)
    ratio = weighted_total(y, sample) / total
    product = x * ratio if y.ndim == 1 else x[:, None] * ratio[None, :]
    return from_linearised(ratio, (y - product) / total, inside, sample)


def design_effect(
    y: Any, sample: SurveySample, *, domain: Any = None, replacement: bool = True
) -> float | None:
    r"""Return how much the design multiplies the variance of a mean, against simple random sampling.

    .. math:: \mathrm{deff} = \frac{\hat V(\bar y)}{S^2 / n}, \qquad
        S^2 = \frac n {n - 1} \frac{\sum_s w_i (y_i - \bar y)^2}{\sum_s w_i}

    for n sampled units, with :math:`\bar y` and its variance from `hajek_mean`. The mean of n units is worth
    one of n / deff simple random ones.

    Parameters
    ----------
    y : array of float, shape [k] or [k, d]
        Values of the k sampled units, finite in the domain.
    sample : SurveySample
        The sample.
    domain : array of bool, shape [k], optional
        The sampled units of a domain.
    replacement : bool, default True
        Whether to compare with simple random sampling with replacement; without, the denominator is
        multiplied by :math:`1 - n / \hat N`.

    Returns
    -------
    float or None
        Above 0; None where the mean has no variance, or all units are certain and there is no replacement.

    Raises
    ------
    InputError
        When y or the domain does not fit the sample, or y is not finite in the domain.

    References
    ----------
    Kish (1965), Survey Sampling, section 8.2.

    Examples
    --------
    >>> sample = SurveySample([0.9, 0.5, 0.3, 0.8, 0.2, 0.6, 0.4, 0.7])
    >>> round(design_effect([1, 0, 1, 1, 0, 1, 0, 1], sample), 6)
    0.723302
    """
    mean = hajek_mean(y, sample, domain=domain)
    if mean.variance is None:
        return None
    xp = array_namespace(mean.linearised)
    weights = xp.where(mean.domain, sample.weights, xp.zeros_like(sample.weights))
    size = float(xp.sum(weights))
    residuals = mean.linearised * size
    squares = residuals**2 if residuals.ndim == 1 else xp.sum(residuals**2, axis=1)
    spread = float(xp.sum(weights * squares)) / size / (mean.n - 1) if mean.n > 1 else 0.0
    if not replacement:
        spread *= 1 - mean.n / size
    return mean.variance / spread if spread > 0 else None
