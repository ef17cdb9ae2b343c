"""Planning: simulated logs, sample sizes, and audits."""

from kvstats.planning.anticipated_harm import anticipated_harm
from kvstats.planning.auc_difference_power import AUCDifferencePower, auc_difference_power
from kvstats.planning.auc_power import AUCPower, auc_power
from kvstats.planning.audit import AuditPlan, plan_audit
from kvstats.planning.audit_estimate import AuditEstimate, audit_estimate
from kvstats.planning.batches import resampled_batches
from kvstats.planning.cache import (
    RetryCost,
    gated_kept_fraction,
    kv_cache_bytes,
    margin_to_noise,
    retry_break_even,
)
from kvstats.planning.paired_power import DifferencePower, difference_power
from kvstats.planning.pilot import pilot_correlation
from kvstats.planning.rate_power import RatePower, rate_power
from kvstats.planning.rate_precision import RatePrecision, rate_precision
from kvstats.planning.ratio_band import PredictedInterval, RatioBand, ratio_bands
from kvstats.planning.simulate import SimulatedLog, simulate_log

__all__ = [
    "AUCDifferencePower",
    "AUCPower",
    "AuditEstimate",
    "AuditPlan",
    "DifferencePower",
    "PredictedInterval",
    "RatePower",
    "RatePrecision",
    "RatioBand",
    "RetryCost",
    "SimulatedLog",
    "anticipated_harm",
    "auc_difference_power",
    "auc_power",
    "audit_estimate",
    "difference_power",
    "gated_kept_fraction",
    "kv_cache_bytes",
    "margin_to_noise",
    "pilot_correlation",
    "plan_audit",
    "rate_power",
    "rate_precision",
    "ratio_bands",
    "resampled_batches",
    "retry_break_even",
    "simulate_log",
]
