"""Statistics for what KV-cache eviction did to a language model's answers."""

from kvstats.errors import InputError
from kvstats.estimators import (
    accuracy,
    auc,
    certificate_coverage,
    delta,
    harm_rate,
    induced_failure_rate,
    kept_fraction,
    mean_drop,
    rank_correlation,
    recovery_rate,
)
from kvstats.inference import Design, Result, adjust
from kvstats.log import Log, log_schema, read_log
from kvstats.policies import gate
from kvstats.prereg import Report, verify
from kvstats.tables import paired

__all__ = [
    "Design",
    "InputError",
    "Log",
    "Report",
    "Result",
    "accuracy",
    "adjust",
    "auc",
    "certificate_coverage",
    "delta",
    "gate",
    "harm_rate",
    "induced_failure_rate",
    "kept_fraction",
    "log_schema",
    "mean_drop",
    "paired",
    "rank_correlation",
    "read_log",
    "recovery_rate",
    "verify",
]
