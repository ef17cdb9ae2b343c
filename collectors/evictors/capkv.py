"""CapKV: keep the values of highest leverage."""

from __future__ import annotations

import msgspec
import numpy as np

from collectors.evictors.ranking import keep_top
from collectors.evictors.selection import Protected, Selection
from collectors.evictors.tail_score import Scope
from collectors.prefill import Prefill
from collectors.scorers import CapKVLeverage
from kvstats.errors import InputError

__all__ = ["CapKV"]


class CapKV(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="evictor", tag="capkv"):
    """Keep the positions of highest leverage w v'A⁻¹v, see `collectors.scorers.CapKVLeverage`.

    Attributes
    ----------
    tau : float
        Sharpness of the weights w, at least 0.
    scope : {"head", "layer", "global"}
        As in `SnapKV`.

    Raises
    ------
    InputError
        When `tau` is negative or not finite.

    References
    ----------
    Rethinking KV Cache Eviction via a Unified Information-Theoretic Objective (2026), arXiv 2604.25975.
    """

    tau: float = 5.0
    scope: Scope = "head"

    def __post_init__(self) -> None:
        """Check the sharpness."""
        if not 0 <= self.tau < float("inf"):
            raise InputError.argument("CapKV", "tau", self.tau, "is not in [0, inf)", "pass 5.0")

    @property
    def scorer(self) -> CapKVLeverage:
        """What the evictor ranks by."""
        return CapKVLeverage(self.tau)

    def select(
        self, prefill: Prefill, budget: float, protected: Protected, rng: np.random.Generator
    ) -> Selection:
        """Select the kept positions; no chance is involved."""
        return keep_top(prefill, self.scorer, budget, protected, scope=self.scope)
