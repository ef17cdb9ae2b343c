"""ManifoldKV: keep the keys that lie far from their centroid."""

from __future__ import annotations

import msgspec
import numpy as np

from collectors.evictors.ranking import keep_top
from collectors.evictors.selection import Protected, Selection
from collectors.evictors.tail_score import Scope
from collectors.prefill import Prefill
from collectors.scorers import CentroidDistance

__all__ = ["ManifoldKV"]


class ManifoldKV(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="evictor", tag="manifoldkv"
):
    """Keep the positions whose keys have the largest Euclidean distance from the mean key.

    Attributes
    ----------
    before_rope : bool
        Whether the rotary embedding of the keys is undone first.
    scope : {"head", "layer", "global"}
        As in `SnapKV`.

    References
    ----------
    Datta et al. (2026), ManifoldKV: Training-Free KV Cache Compression via Euclidean Outlier Detection.
    """

    before_rope: bool = False
    scope: Scope = "head"

    @property
    def scorer(self) -> CentroidDistance:
        """What the evictor ranks by."""
        return CentroidDistance(self.before_rope)

    def select(
        self, prefill: Prefill, budget: float, protected: Protected, rng: np.random.Generator
    ) -> Selection:
        """Select the kept positions; no chance is involved."""
        return keep_top(prefill, self.scorer, budget, protected, scope=self.scope)
