"""Statistics as functionals of a weighted sample: value, influence and resampled values in one object."""

from kvstats.statistics.auc import AUC
from kvstats.statistics.difference import Difference
from kvstats.statistics.rank_correlation import RankCorrelation
from kvstats.statistics.ratios import Mean, Ratio
from kvstats.statistics.statistic import FloatArray, IntArray, Statistic

__all__ = [
    "AUC",
    "Difference",
    "FloatArray",
    "IntArray",
    "Mean",
    "RankCorrelation",
    "Ratio",
    "Statistic",
]
