"""Horvitz-Thompson estimators of totals and means."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from array_api_compat import array_namespace

from kvstats.errors import InputError
from kvstats.statistics.survey_columns import as_domain, as_values
from kvstats.statistics.survey_estimate import SurveyEstimate, from_linearised
from kvstats.statistics.survey_sample import SurveySample

__all__ = ["horvitz_thompson_mean", "horvitz_thompson_total", "weighted_total"]


def weighted_total(y: Any, sample: SurveySample) -> Any:
    """Return the sum of y / pi over the sample: a float for y of shape [k], an array [d] for [k, d]."""
    xp = array_namespace(y)
    if y.ndim == 1:
        return float(xp.sum(sample.weights * y))
    return xp.sum(sample.weights[:, None] * y, axis=0)


def horvitz_thompson_total(y: Any, sample: SurveySample, *, domain: Any = None) -> SurveyEstimate:
    r"""Estimate the total of y over the population, or over a domain of it.

    .. math:: \hat Y = \sum_{i \in s} \frac{y_i}{\pi_i}

    Unbiased under any design. It is precise where y is about proportional to :math:`\pi`; otherwise, and
    where the sample size is random, `hajek_mean` times a known population size is better.

    Parameters
    ----------
    y : array of float, shape [k] or [k, d]
        Values of the k sampled units, finite in the domain; of the sample's array kind, or a sequence.
    sample : SurveySample
        The sample.
    domain : array of bool, shape [k], optional
        The sampled units of a domain; the others count as 0.

    Returns
    -------
    SurveyEstimate
        In the unit of y. Without a sampled unit in the domain the total is 0, the sum over nothing, with
        status ``no units`` and no variance: to leave such samples out of an average would bias it. Under the
        form ``ht`` a negative variance is None, with status ``negative variance: use syg``.

    Raises
    ------
    InputError
        When y or the domain does not fit the sample, or y is not finite in the domain.

    References
    ----------
    Horvitz and Thompson, Journal of the American Statistical Association 47, 1952.

    Examples
    --------
    >>> sample = SurveySample([0.9, 0.5, 0.3, 0.8, 0.2, 0.6, 0.4, 0.7])
    >>> horvitz_thompson_total([1, 0, 1, 1, 0, 1, 0, 1], sample)
    SurveyEstimate(estimate=8.78968, se=3.15232, df=7, n=8, status='ok')
    """
    inside = as_domain("horvitz_thompson_total", domain, sample)
    values = as_values("horvitz_thompson_total", "y", y, sample, inside)
    return from_linearised(weighted_total(values, sample), values, inside, sample)


def horvitz_thompson_mean(
    y: Any, sample: SurveySample, population_size: float, *, domain: Any = None
) -> SurveyEstimate:
    r"""Estimate the mean of y over a population, or domain, whose size is known.

    .. math:: \frac 1 N \sum_{i \in s} \frac{y_i}{\pi_i}

    Unbiased, but it can leave the range of y, and shifting y does not shift it; see `hajek_mean`.

    Parameters
    ----------
    y : array of float, shape [k] or [k, d]
        Values of the k sampled units, finite in the domain.
    sample : SurveySample
        The sample.
    population_size : float
        Number N of units of the population, or of the domain in it; finite and above 0.
    domain : array of bool, shape [k], optional
        The sampled units of a domain.

    Returns
    -------
    SurveyEstimate
        In the unit of y; statuses as for `horvitz_thompson_total`.

    Raises
    ------
    InputError
        When y or the domain does not fit the sample, y is not finite in the domain, or the size is not a
        positive number.

    References
    ----------
    Särndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, section 5.7.

    Examples
    --------
    >>> horvitz_thompson_mean([2.0, 4.0, 0.0], SurveySample([0.5, 0.5, 1.0]), 5)
    SurveyEstimate(estimate=2.4, se=1.26491, df=1, n=3, status='ok')
    """
    known = isinstance(population_size, Real) and not isinstance(population_size, bool)
    if not known or not math.isfinite(population_size) or population_size <= 0:
        raise InputError.argument(
            "horvitz_thompson_mean",
            "population_size",
            population_size,
            "is not a number of units",
            "pass the known size, or use hajek_mean, which needs none",
        )
    inside = as_domain("horvitz_thompson_mean", domain, sample)
    values = as_values("horvitz_thompson_mean", "y", y, sample, inside)
    values = values / population_size
    return from_linearised(weighted_total(values, sample), values, inside, sample)
