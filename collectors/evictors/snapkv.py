"""SnapKV: keep what the last queries of the prefill attended to most."""

from __future__ import annotations

import msgspec
import numpy as np

from collectors.evictors.ranking import keep_top
from collectors.evictors.selection import Protected, Selection
from collectors.evictors.tail_score import Scope, check_pool
from collectors.prefill import Prefill
from collectors.scorers.registry import WINDOW

__all__ = ["SnapKV"]


class SnapKV(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="evictor", tag="snapkv"):
    """Keep the positions of highest window attention.

    Attributes
    ----------
    scope : {"layer", "head", "global"}
        One set of positions for each layer, from attention averaged over its heads; for each key head,
        averaged over its query heads, as published; or one set for all, averaged over layers and heads.
    pool : odd int
        Width of the max-pooling of scores along positions; 1 pools nothing.

    Raises
    ------
    InputError
        When `pool` is even or below 1.

    References
    ----------
    Li et al. (2024), SnapKV: LLM Knows What You are Looking for Before Generation.
    """

    scope: Scope = "layer"
    pool: int = 7

    def __post_init__(self) -> None:
        """Check the width of the pooling."""
        check_pool("SnapKV", self.pool)

    @property
    def scorer(self) -> str:
        """What the evictor ranks by."""
        return WINDOW

    def select(
        self, prefill: Prefill, budget: float, protected: Protected, rng: np.random.Generator
    ) -> Selection:
        """Select the kept positions; no chance is involved."""
        return keep_top(prefill, WINDOW, budget, protected, scope=self.scope, pool=self.pool)
