"""Differences between two survey estimates."""

from __future__ import annotations

import math

from kvstats.errors import InputError
from kvstats.statistics.survey_estimate import SurveyEstimate, from_linearised, magnitude

__all__ = ["survey_difference"]


def survey_difference(a: SurveyEstimate, b: SurveyEstimate, *, independent: bool = False) -> SurveyEstimate:
    r"""Return a minus b, with the variance of the difference.

    From one sample, linearised values are subtracted unit by unit, so that covariances count. From
    independent samples the variances add up, with Satterthwaite's degrees of freedom [1]_,

    .. math:: \mathrm{df} = \frac{(v_a + v_b)^2}{v_a^2 / \mathrm{df}_a + v_b^2 / \mathrm{df}_b}.

    Parameters
    ----------
    a, b : SurveyEstimate
        Two estimates from the same `SurveySample` object, such as the means of two domains or the totals of
        two variables; from two objects when `independent`.
    independent : bool, default False
        Whether they come from two samples drawn independently.

    Returns
    -------
    SurveyEstimate
        Where a or b has no estimate, neither has the difference, and its status is that one's. Where one of
        two independent ones has no variance, the difference has none and its status is that one's.

    Raises
    ------
    InputError
        When the samples differ and `independent` is not set, or they are one and it is.

    References
    ----------
    .. [1] Satterthwaite, Biometrics Bulletin 2, 1946.

    Examples
    --------
    >>> from kvstats.statistics.hajek import hajek_mean
    >>> from kvstats.statistics.survey_sample import SurveySample
    >>> sample = SurveySample([0.5, 0.5, 0.5, 0.8])
    >>> survey_difference(hajek_mean([1, 0, 1, 1], sample), hajek_mean([0, 0, 1, 0], sample))
    SurveyEstimate(estimate=0.448276, se=0.169365, df=3, n=4, status='ok')
    """
    if a.estimate is None or b.estimate is None:
        missing = a if a.estimate is None else b
        return SurveyEstimate(None, None, None, None, missing.n, missing.status)
    if independent:
        if a.sample is b.sample:
            raise InputError("survey_difference: a and b come from one sample; leave independent out")
        return independent_difference(a, b)
    if a.sample is None or a.sample is not b.sample:
        raise InputError(
            "survey_difference: a and b come from different samples; "
            "pass independent=True if they were drawn independently"
        )
    return from_linearised(
        a.estimate - b.estimate,
        a.linearised - b.linearised,
        a.domain | b.domain,
        a.sample,
        size=magnitude(a.estimate) + magnitude(b.estimate),
    )


def independent_difference(a: SurveyEstimate, b: SurveyEstimate) -> SurveyEstimate:
    """Return the difference between estimates from independent samples."""
    estimate, n = a.estimate - b.estimate, a.n + b.n
    if a.variance is None or b.variance is None:
        missing = a if a.variance is None else b
        return SurveyEstimate(estimate, None, None, None, n, missing.status)
    variance = a.variance + b.variance
    share = sum(v**2 / df for v, df in ((a.variance, a.df), (b.variance, b.df)) if df)
    df = variance**2 / share if share else 0.0
    return SurveyEstimate(estimate, variance, math.sqrt(variance), df, n, "ok")
