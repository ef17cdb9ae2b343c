"""Statistics for what KV-cache eviction did to a language model's answers."""

from kvstats.errors import InputError
from kvstats.estimators import (
    accuracy,
    auc,
    auc_difference,
    certificate_coverage,
    delta,
    discordant_harm_share,
    harm_rate,
    induced_failure_rate,
    kept_fraction,
    mean_drop,
    operating_point,
    partial_auc,
    rank_correlation,
    recovery_rate,
    risk_coverage,
    task_order,
    task_separation,
)
from kvstats.inference import Design, Result, adjust, adjust_e_values, mcnemar_test, sign_flip_test
from kvstats.inference.sequential import RateMonitor, betting_confidence_sequence
from kvstats.log import Log, log_schema, read_log
from kvstats.planning import (
    anticipated_harm,
    auc_difference_power,
    auc_power,
    audit_estimate,
    difference_power,
    pilot_correlation,
    plan_audit,
    rate_power,
    rate_precision,
    simulate_log,
)
from kvstats.policies import gate
from kvstats.prereg import Report, verify
from kvstats.statistics import survey
from kvstats.tables import paired

__all__ = [
    "Design",
    "InputError",
    "Log",
    "RateMonitor",
    "Report",
    "Result",
    "accuracy",
    "adjust",
    "adjust_e_values",
    "anticipated_harm",
    "auc",
    "auc_difference",
    "auc_difference_power",
    "auc_power",
    "audit_estimate",
    "betting_confidence_sequence",
    "certificate_coverage",
    "delta",
    "difference_power",
    "discordant_harm_share",
    "gate",
    "harm_rate",
    "induced_failure_rate",
    "kept_fraction",
    "log_schema",
    "mcnemar_test",
    "mean_drop",
    "operating_point",
    "paired",
    "partial_auc",
    "pilot_correlation",
    "plan_audit",
    "rank_correlation",
    "rate_power",
    "rate_precision",
    "read_log",
    "recovery_rate",
    "risk_coverage",
    "sign_flip_test",
    "simulate_log",
    "survey",
    "task_order",
    "task_separation",
    "verify",
]
