"""Statistics as functionals of a weighted sample: value, influence and resampled values in one object."""

from kvstats.statistics.auc import AUC
from kvstats.statistics.auc_covariance import AreaCovariance, delong, obuchowski
from kvstats.statistics.auc_difference import AUCDifference
from kvstats.statistics.difference import Difference
from kvstats.statistics.operating_point import OperatingThreshold, TruePositiveRate
from kvstats.statistics.partial_auc import PartialAUC
from kvstats.statistics.rank_correlation import RankCorrelation
from kvstats.statistics.ratios import Mean, Ratio
from kvstats.statistics.risk_coverage import RiskAtCoverage, RiskCoverageArea, risk_coverage_curve
from kvstats.statistics.statistic import FloatArray, IntArray, Statistic
from kvstats.statistics.stratified_auc import StratifiedAUC

__all__ = [
    "AUC",
    "AUCDifference",
    "AreaCovariance",
    "Difference",
    "FloatArray",
    "IntArray",
    "Mean",
    "OperatingThreshold",
    "PartialAUC",
    "RankCorrelation",
    "Ratio",
    "RiskAtCoverage",
    "RiskCoverageArea",
    "Statistic",
    "StratifiedAUC",
    "TruePositiveRate",
    "delong",
    "obuchowski",
    "risk_coverage_curve",
]
