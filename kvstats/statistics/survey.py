"""Survey sampling in one place: designs, samples, and estimators with design-based variances.

Draw with a design, keep the probabilities as a `SurveySample`, estimate from it.

Examples
--------
>>> import numpy as np
>>> pi = proportional_inclusion(np.array([8.0, 4.0, 3.0, 2.0, 2.0, 1.0]), 3)
>>> design = ConditionalPoisson(pi)
>>> drawn = design.sample(np.random.default_rng(1))
>>> y = np.array([5.0, 3.0, 2.5, 1.0, 2.0, 0.5])
>>> horvitz_thompson_total(y[drawn], SurveySample.drawn(design, drawn))
SurveyEstimate(estimate=12.5, se=0.929532, df=1, n=3, status='ok')
"""

from kvstats.statistics.allocation import proportional_inclusion
from kvstats.statistics.designs import (
    ConditionalPoisson,
    Poisson,
    Sampford,
    SamplingDesign,
    SimpleRandom,
    Stratified,
    SystematicPPS,
)
from kvstats.statistics.effective_size import degrees_of_freedom, effective_sample_size
from kvstats.statistics.hajek import design_effect, hajek_mean, hajek_ratio
from kvstats.statistics.horvitz_thompson import horvitz_thompson_mean, horvitz_thompson_total
from kvstats.statistics.linearised import linearised_estimate
from kvstats.statistics.survey_difference import survey_difference
from kvstats.statistics.survey_estimate import SurveyEstimate
from kvstats.statistics.survey_sample import SurveySample

__all__ = [
    "ConditionalPoisson",
    "Poisson",
    "Sampford",
    "SamplingDesign",
    "SimpleRandom",
    "Stratified",
    "SurveyEstimate",
    "SurveySample",
    "SystematicPPS",
    "degrees_of_freedom",
    "design_effect",
    "effective_sample_size",
    "hajek_mean",
    "hajek_ratio",
    "horvitz_thompson_mean",
    "horvitz_thompson_total",
    "linearised_estimate",
    "proportional_inclusion",
    "survey_difference",
]
