"""Estimators: one question each, asked of a log, answered with an interval."""

from kvstats.estimators.agreement import agreement_profile
from kvstats.estimators.attribution import recovery_by_tercile
from kvstats.estimators.block_ranking import block_ranking
from kvstats.estimators.class_survey import class_agreement, class_survey
from kvstats.estimators.coverage import certificate_coverage, rank_correlation
from kvstats.estimators.crossover import accuracy_at_kept, memory_crossover, memory_curve
from kvstats.estimators.discordance import discordant_harm_share
from kvstats.estimators.discrimination import auc, auc_difference
from kvstats.estimators.gate_open import gate_open_rate
from kvstats.estimators.gate_plateau import gate_plateau
from kvstats.estimators.gate_sweep import gate_sweep
from kvstats.estimators.gating import delta, kept_fraction, mean_drop
from kvstats.estimators.harm_ratio import harm_ratio
from kvstats.estimators.induced import context_dependent, induced_failure_difference
from kvstats.estimators.memory import batch_kept_fraction, compression
from kvstats.estimators.mixture import mixture_crossing, mixture_delta
from kvstats.estimators.operating import operating_point, partial_auc
from kvstats.estimators.oracle_gain import best_accuracy, headroom_recovered
from kvstats.estimators.own_signals import own_signal_auc
from kvstats.estimators.prefill_signals import task_order, task_separation
from kvstats.estimators.quantiles import crossing_budget, signal_quantile, time_ratio
from kvstats.estimators.rates import accuracy, harm_rate, induced_failure_rate, recovery_rate
from kvstats.estimators.recovery import recovery_indicator
from kvstats.estimators.recovery_parts import recovery_decomposition
from kvstats.estimators.red_flag import red_flag
from kvstats.estimators.registry import ESTIMATORS, estimator
from kvstats.estimators.replay import looseness, permutation_range, read_error
from kvstats.estimators.retries import retry_saving
from kvstats.estimators.scaling import headroom, headroom_slope, recovery_headroom_ratio
from kvstats.estimators.scheduling import recomputation
from kvstats.estimators.selective import risk_coverage
from kvstats.estimators.sensitivity import prevalence, sensitivity
from kvstats.estimators.signal_panel import signal_panel
from kvstats.estimators.task_class import TaskClasses, task_class
from kvstats.estimators.units import best_unit_auc, unit_auc

__all__ = [
    "ESTIMATORS",
    "TaskClasses",
    "accuracy",
    "accuracy_at_kept",
    "agreement_profile",
    "auc",
    "auc_difference",
    "batch_kept_fraction",
    "best_accuracy",
    "best_unit_auc",
    "block_ranking",
    "certificate_coverage",
    "class_agreement",
    "class_survey",
    "compression",
    "context_dependent",
    "crossing_budget",
    "delta",
    "discordant_harm_share",
    "estimator",
    "gate_open_rate",
    "gate_plateau",
    "gate_sweep",
    "harm_rate",
    "harm_ratio",
    "headroom",
    "headroom_recovered",
    "headroom_slope",
    "induced_failure_difference",
    "induced_failure_rate",
    "kept_fraction",
    "looseness",
    "mean_drop",
    "memory_crossover",
    "memory_curve",
    "mixture_crossing",
    "mixture_delta",
    "operating_point",
    "own_signal_auc",
    "partial_auc",
    "permutation_range",
    "prevalence",
    "rank_correlation",
    "read_error",
    "recomputation",
    "recovery_by_tercile",
    "recovery_decomposition",
    "recovery_headroom_ratio",
    "recovery_indicator",
    "recovery_rate",
    "red_flag",
    "retry_saving",
    "risk_coverage",
    "sensitivity",
    "signal_panel",
    "signal_quantile",
    "task_class",
    "task_order",
    "task_separation",
    "time_ratio",
    "unit_auc",
]
