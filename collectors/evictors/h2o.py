"""H2O: keep what all queries together attended to most."""

from __future__ import annotations

import msgspec
import numpy as np

from collectors.evictors.ranking import keep_top
from collectors.evictors.selection import Protected, Selection
from collectors.evictors.tail_score import Scope
from collectors.prefill import Prefill
from collectors.scorers import AccumulatedAttention
from kvstats.errors import InputError

__all__ = ["H2O"]


class H2O(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="evictor", tag="h2o"):
    """Keep the positions of highest accumulated attention, the heavy hitters, once after the prefill.

    Published as a rule that evicts at every step and gives half of the budget to the latest positions; here
    the protected recent positions take their part.

    Attributes
    ----------
    stride : int
        Every how many queries are accumulated; 1 takes all.
    scope : {"head", "layer", "global"}
        As in `SnapKV`.

    Raises
    ------
    InputError
        When `stride` is below 1.

    References
    ----------
    Zhang et al. (2023), H2O: Heavy-Hitter Oracle for Efficient Generative Inference.
    """

    stride: int = 8
    scope: Scope = "head"

    def __post_init__(self) -> None:
        """Check the stride."""
        if self.stride < 1:
            raise InputError.argument(
                "H2O", "stride", self.stride, "is below 1", "pass 1 to take all queries"
            )

    @property
    def scorer(self) -> AccumulatedAttention:
        """What the evictor ranks by."""
        return AccumulatedAttention(self.stride)

    def select(
        self, prefill: Prefill, budget: float, protected: Protected, rng: np.random.Generator
    ) -> Selection:
        """Select the kept positions; no chance is involved."""
        return keep_top(prefill, self.scorer, budget, protected, scope=self.scope)
