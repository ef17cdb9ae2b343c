"""StreamingLLM: keep the first and the last positions."""

from __future__ import annotations

import msgspec
import numpy as np
import torch

from collectors.evictors.ranking import keep_highest
from collectors.evictors.selection import Protected, Selection
from collectors.prefill import Prefill

__all__ = ["StreamingLLM"]


class StreamingLLM(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="evictor", tag="streaming_llm"
):
    """Keep the sinks and, of the rest, the latest positions.

    Positions are not renumbered: what is kept stays where it was.

    References
    ----------
    Xiao et al. (2024), Efficient Streaming Language Models with Attention Sinks.
    """

    @property
    def scorer(self) -> None:
        """Nothing is scored."""
        return None

    def select(
        self, prefill: Prefill, budget: float, protected: Protected, rng: np.random.Generator
    ) -> Selection:
        """Select the kept positions; no chance is involved."""
        total = prefill.n_tokens
        tail = protected.tail(total)
        age = torch.arange(tail.stop - tail.start)[None, None]
        size = protected.tail_size(total, budget)
        kept = keep_highest(age, size, total, protected, n_heads=prefill.n_heads)
        return Selection(kept.kept, kept.inclusion_probability, "deterministic", tail)
