"""Uniform random eviction: the control that knows nothing."""

from __future__ import annotations

import msgspec
import numpy as np
import torch

from collectors.evictors.ranking import keep_highest
from collectors.evictors.selection import Protected, Selection
from collectors.prefill import Prefill

__all__ = ["Uniform"]


class Uniform(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="evictor", tag="uniform"):
    """Keep a simple random sample of the evictable positions, the same in all layers and heads.

    No offset corrects for what was left out: the arm is a control for score-based eviction, and its
    inclusion probabilities are logged as 1.
    """

    @property
    def scorer(self) -> None:
        """Nothing is scored."""
        return None

    def select(
        self, prefill: Prefill, budget: float, protected: Protected, rng: np.random.Generator
    ) -> Selection:
        """Draw the kept positions."""
        total = prefill.n_tokens
        tail = protected.tail(total)
        lot = torch.from_numpy(rng.random((1, 1, tail.stop - tail.start)))
        size = protected.tail_size(total, budget)
        drawn = keep_highest(lot, size, total, protected, n_heads=prefill.n_heads)
        return Selection(drawn.kept, drawn.inclusion_probability, "uniform", tail)
