"""Estimators: one question each, asked of a log, answered with an interval."""

from kvstats.estimators.coverage import certificate_coverage, rank_correlation
from kvstats.estimators.discordance import discordant_harm_share
from kvstats.estimators.discrimination import auc, auc_difference
from kvstats.estimators.gating import delta, kept_fraction, mean_drop
from kvstats.estimators.operating import operating_point, partial_auc
from kvstats.estimators.prefill_signals import task_order, task_separation
from kvstats.estimators.rates import accuracy, harm_rate, induced_failure_rate, recovery_rate
from kvstats.estimators.registry import ESTIMATORS, estimator
from kvstats.estimators.selective import risk_coverage

__all__ = [
    "ESTIMATORS",
    "accuracy",
    "auc",
    "auc_difference",
    "certificate_coverage",
    "delta",
    "discordant_harm_share",
    "estimator",
    "harm_rate",
    "induced_failure_rate",
    "kept_fraction",
    "mean_drop",
    "operating_point",
    "partial_auc",
    "rank_correlation",
    "recovery_rate",
    "risk_coverage",
    "task_order",
    "task_separation",
]
