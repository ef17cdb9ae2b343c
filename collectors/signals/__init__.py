"""Signals, by what they are read from: the prefill of an input, or the retained cache of a run."""

from collectors.signals.prefill import prefill_signals
from collectors.signals.run import (
    cache_bytes,
    evicted_mass,
    keep_margin,
    retained_entropy,
    selection_signals,
)

__all__ = [
    "cache_bytes",
    "evicted_mass",
    "keep_margin",
    "prefill_signals",
    "retained_entropy",
    "selection_signals",
]
