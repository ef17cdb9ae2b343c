"""Top-k by any scorer."""

from __future__ import annotations

import msgspec
import numpy as np

from collectors.evictors.ranking import keep_top
from collectors.evictors.selection import Protected, Selection
from collectors.evictors.tail_score import Scope, check_pool
from collectors.prefill import Prefill
from collectors.scorers import check_scorer

__all__ = ["TopK"]


class TopK(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="evictor", tag="top_k"):
    """Keep the positions of highest score, whatever scorer gave it.

    Attributes
    ----------
    scorer : str
        ``window``, a built-in scorer, or one that a package registered.
    scope, pool
        As in `SnapKV`.

    Raises
    ------
    InputError
        When `scorer` is unknown, or `pool` is even or below 1.
    """

    scorer: str
    scope: Scope = "layer"
    pool: int = 1

    def __post_init__(self) -> None:
        """Check the scorer and the width of the pooling."""
        check_scorer("TopK", self.scorer)
        check_pool("TopK", self.pool)

    def select(
        self, prefill: Prefill, budget: float, protected: Protected, rng: np.random.Generator
    ) -> Selection:
        """Select the kept positions; no chance is involved."""
        return keep_top(prefill, self.scorer, budget, protected, scope=self.scope, pool=self.pool)
