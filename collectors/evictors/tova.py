"""TOVA: keep what the last query attended to most."""

from __future__ import annotations

import msgspec
import numpy as np

from collectors.evictors.ranking import keep_top
from collectors.evictors.selection import Protected, Selection
from collectors.prefill import Prefill
from collectors.scorers import LastQueryAttention

__all__ = ["TOVA"]


class TOVA(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="evictor", tag="tova"):
    """Keep the positions of highest attention of the last query, averaged over the heads of each layer.

    Published as a rule that evicts at every step and protects nothing; here once after the prefill, beside
    the protected positions.

    References
    ----------
    Oren et al. (2024), Transformers are Multi-State RNNs.
    """

    @property
    def scorer(self) -> LastQueryAttention:
        """What the evictor ranks by."""
        return LastQueryAttention()

    def select(
        self, prefill: Prefill, budget: float, protected: Protected, rng: np.random.Generator
    ) -> Selection:
        """Select the kept positions; no chance is involved."""
        return keep_top(prefill, self.scorer, budget, protected, scope="layer")
