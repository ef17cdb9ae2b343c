"""Uniform random eviction: the control that knows nothing."""

from __future__ import annotations

import msgspec
import numpy as np
import torch
from torch import Tensor

from collectors.evictors.selection import Protected, Selection, keep_highest

__all__ = ["Uniform"]


class Uniform(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="evictor", tag="uniform"):
    """Keep a simple random sample of the evictable positions, the same in all layers and heads.

    No offset corrects for what was left out: the arm is a control for score-based eviction, and its
    inclusion probabilities are logged as 1.
    """

    def select(
        self, attention: Tensor, budget: float, protected: Protected, rng: np.random.Generator
    ) -> Selection:
        """Draw the kept positions of a cache whose window attention has shape [L, H, T]."""
        total = attention.shape[-1]
        tail = protected.tail(total)
        score = torch.from_numpy(rng.random((1, tail.stop - tail.start)))
        selection = keep_highest(score, total, budget, protected, "uniform")
        return Selection(
            kept=selection.kept,
            inclusion_probability=selection.inclusion_probability,
            design="uniform",
            tail=tail,
        )
