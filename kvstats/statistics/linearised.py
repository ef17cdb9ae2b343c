"""Any statistic of the population, from a survey sample."""

from __future__ import annotations

import math

import numpy as np

from kvstats.errors import InputError
from kvstats.statistics.statistic import Statistic
from kvstats.statistics.survey_estimate import SurveyEstimate, from_linearised
from kvstats.statistics.survey_sample import SurveySample

__all__ = ["linearised_estimate"]


def linearised_estimate(statistic: Statistic, sample: SurveySample) -> SurveyEstimate:
    r"""Estimate any statistic of the population, weighted by 1/pi, with its linearised design variance.

    With influences :math:`u_i = \partial \theta / \partial w_i` at :math:`w = 1/\pi`, the variance is that of
    the Horvitz-Thompson total of u [1]_.

    Parameters
    ----------
    statistic : Statistic
        Prepared from the columns of the k sampled units, such as `AUC(score, label)`.
    sample : SurveySample
        The sample, of numpy arrays.

    Returns
    -------
    SurveyEstimate
        Status ``undefined`` where the statistic has no value.

    Raises
    ------
    InputError
        When the statistic's rows are not the sample's units.

    References
    ----------
    .. [1] Deville, Survey Methodology 25, 1999.

    Examples
    --------
    >>> from kvstats.statistics import AUC
    >>> sample = SurveySample([0.5, 0.5, 0.2, 1.0, 0.4])
    >>> linearised_estimate(AUC([0.1, 0.7, 0.4, 0.8, 0.5], [0, 0, 1, 1, 0]), sample)
    SurveyEstimate(estimate=0.423077, se=0.179164, df=3, n=5, status='ok')
    """
    if statistic.n != sample.size:
        raise InputError.argument(
            "linearised_estimate",
            "statistic",
            f"{type(statistic).__name__} of {statistic.n} rows",
            f"does not fit {sample.size} sampled units",
            "prepare it from the sampled units",
        )
    value = statistic.value(sample.weights)
    influence = statistic.influence(sample.weights)
    if math.isnan(value):
        return SurveyEstimate(None, None, None, None, sample.size, "undefined")
    return from_linearised(value, influence, np.ones(sample.size, dtype=np.bool_), sample)
