"""Statistics as functionals of a weighted sample: value, influence and resampled values in one object."""

from kvstats.statistics.auc import AUC
from kvstats.statistics.auc_covariance import AreaCovariance, delong, obuchowski
from kvstats.statistics.auc_difference import AUCDifference
from kvstats.statistics.batch import BatchKept
from kvstats.statistics.best import BestMean
from kvstats.statistics.co_occurrence import Covariance, FrechetBound, OriginSlope, ProductOfMeans
from kvstats.statistics.difference import Difference
from kvstats.statistics.group_gap import GroupGap
from kvstats.statistics.memory_curve import CurveCrossing, InterpolatedMean
from kvstats.statistics.mixture import MixtureCrossing, MixtureMean
from kvstats.statistics.operating_point import OperatingThreshold, TruePositiveRate
from kvstats.statistics.ordered_groups import OrderedConcordance
from kvstats.statistics.partial_auc import PartialAUC
from kvstats.statistics.quantile import Quantile, QuantileCrossing, QuantileRatio
from kvstats.statistics.rank_correlation import RankCorrelation
from kvstats.statistics.ratios import Mean, Ratio
from kvstats.statistics.risk_coverage import RiskAtCoverage, RiskCoverageArea, risk_coverage_curve
from kvstats.statistics.same_rows import Combination, Quotient
from kvstats.statistics.statistic import FloatArray, IntArray, Statistic
from kvstats.statistics.stratified_auc import StratifiedAUC
from kvstats.statistics.top_share import BandMean, TopShareMean
from kvstats.statistics.totals import TotalsFunction
from kvstats.statistics.variance_components import DrawAnalysis, crossed_draws, nested_draws

__all__ = [
    "AUC",
    "AUCDifference",
    "AreaCovariance",
    "BandMean",
    "BatchKept",
    "BestMean",
    "Combination",
    "Covariance",
    "CurveCrossing",
    "Difference",
    "DrawAnalysis",
    "FloatArray",
    "FrechetBound",
    "GroupGap",
    "IntArray",
    "InterpolatedMean",
    "Mean",
    "MixtureCrossing",
    "MixtureMean",
    "OperatingThreshold",
    "OrderedConcordance",
    "OriginSlope",
    "PartialAUC",
    "ProductOfMeans",
    "Quantile",
    "QuantileCrossing",
    "QuantileRatio",
    "Quotient",
    "RankCorrelation",
    "Ratio",
    "RiskAtCoverage",
    "RiskCoverageArea",
    "Statistic",
    "StratifiedAUC",
    "TopShareMean",
    "TotalsFunction",
    "TruePositiveRate",
    "crossed_draws",
    "delong",
    "nested_draws",
    "obuchowski",
    "risk_coverage_curve",
]
