"""Anytime-valid inference for bounded outcomes: intervals, e-values and a monitor."""

from kvstats.inference.sequential.blocks import block_e_process, block_means
from kvstats.inference.sequential.confidence_sequences import (
    betting_confidence_sequence,
    empirical_bernstein_sequence,
)
from kvstats.inference.sequential.e_values import (
    average_e_value,
    first_crossing,
    mean_e_process,
    ville_threshold,
)
from kvstats.inference.sequential.monitor import MonitorReading, RateMonitor
from kvstats.inference.sequential.outcomes import ConfidenceSequence

__all__ = [
    "ConfidenceSequence",
    "MonitorReading",
    "RateMonitor",
    "average_e_value",
    "betting_confidence_sequence",
    "block_e_process",
    "block_means",
    "empirical_bernstein_sequence",
    "first_crossing",
    "mean_e_process",
    "ville_threshold",
]
