"""KeyDiff: keep the keys that point away from the mean direction."""

from __future__ import annotations

import msgspec
import numpy as np

from collectors.evictors.ranking import keep_top
from collectors.evictors.selection import Protected, Selection
from collectors.evictors.tail_score import Scope
from collectors.prefill import Prefill
from collectors.scorers import KeyDifference

__all__ = ["KeyDiff"]


class KeyDiff(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="evictor", tag="keydiff"):
    """Keep the positions whose keys have the lowest cosine with the mean direction of all keys.

    Published by blocks of the prompt, each block evicted before the next is read; here once, over all.

    Attributes
    ----------
    scope : {"head", "layer", "global"}
        As in `SnapKV`.

    References
    ----------
    Park et al. (2025), KeyDiff: Key Similarity-Based KV Cache Eviction.
    """

    scope: Scope = "head"

    @property
    def scorer(self) -> KeyDifference:
        """What the evictor ranks by."""
        return KeyDifference()

    def select(
        self, prefill: Prefill, budget: float, protected: Protected, rng: np.random.Generator
    ) -> Selection:
        """Select the kept positions; no chance is involved."""
        return keep_top(prefill, self.scorer, budget, protected, scope=self.scope)
