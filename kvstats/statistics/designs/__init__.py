"""Sampling designs: how units of a finite population enter a sample, with exact probabilities."""

from kvstats.statistics.designs.conditional_poisson import ConditionalPoisson
from kvstats.statistics.designs.poisson import Poisson
from kvstats.statistics.designs.sampford import Sampford
from kvstats.statistics.designs.sampling_design import SamplingDesign, VarianceForm
from kvstats.statistics.designs.simple_random import SimpleRandom
from kvstats.statistics.designs.stratified import Stratified
from kvstats.statistics.designs.systematic_pps import SystematicPPS

__all__ = [
    "ConditionalPoisson",
    "Poisson",
    "Sampford",
    "SamplingDesign",
    "SimpleRandom",
    "Stratified",
    "SystematicPPS",
    "VarianceForm",
]
