"""What a sample is worth: degrees of freedom and effective sample size."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from kvstats.statistics.survey_columns import as_domain
from kvstats.statistics.survey_sample import SurveySample

__all__ = ["degrees_of_freedom", "effective_sample_size"]


def degrees_of_freedom(sample: SurveySample, domain: Any = None) -> int:
    """Return the degrees of freedom of a variance: uncertain units minus the strata that they are in.

    Parameters
    ----------
    sample : SurveySample
        The sample.
    domain : array of bool, shape [k], optional
        The sampled units that the estimate rests on; default all.

    Returns
    -------
    int
        At least 0. Units of probability 1 count neither as units nor as strata, since they add nothing to a
        variance. Without certain units it is the degrees of freedom of R's ``survey::degf``.

    Raises
    ------
    InputError
        When the domain is no mask of the sample.

    References
    ----------
    Korn and Graubard (1999), Analysis of Health Surveys, section 2.4.

    Examples
    --------
    >>> degrees_of_freedom(SurveySample([0.5, 0.5, 0.5, 1.0]))
    2
    >>> degrees_of_freedom(SurveySample([0.5, 0.5, 0.5, 0.5], strata=["a", "a", "b", "b"]))
    2
    """
    inside = as_domain("degrees_of_freedom", domain, sample) & (sample.inclusion_probability < 1)
    units = int(array_namespace(inside).count_nonzero(inside))
    if units == 0:
        return 0
    strata = 1 if sample.strata is None else np.unique(sample.strata[np.asarray(inside.tolist())]).size
    return units - strata


def effective_sample_size(sample: SurveySample, domain: Any = None) -> float | None:
    r"""Return Kish's effective sample size, the equally weighted sample of the same precision.

    .. math:: n_e = \frac{(\sum_s w_i)^2}{\sum_s w_i^2}, \qquad w_i = 1 / \pi_i

    It accounts for unequal weights alone, and only where they are unrelated to y.

    Parameters
    ----------
    sample : SurveySample
        The sample.
    domain : array of bool, shape [k], optional
        The sampled units that count; default all.

    Returns
    -------
    float or None
        Between 1 and the number of units; None for an empty sample or domain.

    Raises
    ------
    InputError
        When the domain is no mask of the sample.

    References
    ----------
    Kish (1965), Survey Sampling, section 11.7.

    Examples
    --------
    >>> effective_sample_size(SurveySample([0.5, 0.5, 0.5]))
    3.0
    >>> round(effective_sample_size(SurveySample([1.0, 0.5, 0.25])), 4)
    2.3333
    """
    inside = as_domain("effective_sample_size", domain, sample)
    xp = array_namespace(inside)
    weights = xp.where(inside, sample.weights, xp.zeros_like(sample.weights))
    squares = float(xp.sum(weights**2))
    return float(xp.sum(weights)) ** 2 / squares if squares else None
