"""Evictors, one a file: from window attention and a budget to a `Selection`."""

from collectors.evictors.poisson import Poisson
from collectors.evictors.selection import Protected, Selection, keep_everything, keep_highest
from collectors.evictors.snapkv import SnapKV, window_score
from collectors.evictors.uniform import Uniform

Evictor = SnapKV | Uniform | Poisson

__all__ = [
    "Evictor",
    "Poisson",
    "Protected",
    "Selection",
    "SnapKV",
    "Uniform",
    "keep_everything",
    "keep_highest",
    "window_score",
]
