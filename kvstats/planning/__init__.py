"""Planning: simulated logs, sample sizes, and audits."""

from kvstats.planning.anticipated_harm import anticipated_harm
from kvstats.planning.auc_difference_power import AUCDifferencePower, auc_difference_power
from kvstats.planning.auc_power import AUCPower, auc_power
from kvstats.planning.audit import AuditPlan, plan_audit
from kvstats.planning.audit_estimate import AuditEstimate, audit_estimate
from kvstats.planning.paired_power import DifferencePower, difference_power
from kvstats.planning.pilot import pilot_correlation
from kvstats.planning.rate_power import RatePower, rate_power
from kvstats.planning.rate_precision import RatePrecision, rate_precision
from kvstats.planning.simulate import SimulatedLog, simulate_log

__all__ = [
    "AUCDifferencePower",
    "AUCPower",
    "AuditEstimate",
    "AuditPlan",
    "DifferencePower",
    "RatePower",
    "RatePrecision",
    "SimulatedLog",
    "anticipated_harm",
    "auc_difference_power",
    "auc_power",
    "audit_estimate",
    "difference_power",
    "pilot_correlation",
    "plan_audit",
    "rate_power",
    "rate_precision",
    "simulate_log",
]
