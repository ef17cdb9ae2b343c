"""Estimators: one question each, asked of a log, answered with an interval."""

from kvstats.estimators.coverage import certificate_coverage, rank_correlation
from kvstats.estimators.discrimination import auc
from kvstats.estimators.gating import delta, kept_fraction, mean_drop
from kvstats.estimators.rates import accuracy, harm_rate, induced_failure_rate, recovery_rate
from kvstats.estimators.registry import ESTIMATORS, estimator

__all__ = [
    "ESTIMATORS",
    "accuracy",
    "auc",
    "certificate_coverage",
    "delta",
    "estimator",
    "harm_rate",
    "induced_failure_rate",
    "kept_fraction",
    "mean_drop",
    "rank_correlation",
    "recovery_rate",
]
