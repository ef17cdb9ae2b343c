"""Question-aware top-k: keep what the question attended to most."""

from __future__ import annotations

import msgspec
import numpy as np

from collectors.evictors.ranking import keep_top
from collectors.evictors.selection import Protected, Selection
from collectors.evictors.tail_score import Scope, check_pool
from collectors.prefill import Prefill
from collectors.scorers import QuestionAttention

__all__ = ["QuestionAware"]


class QuestionAware(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="evictor", tag="question_aware"
):
    """Keep the positions of highest mean attention of the question's tokens.

    The question must be among the prefilled tokens: under the condition ``aware`` only.

    Attributes
    ----------
    scope, pool
        As in `SnapKV`.

    Raises
    ------
    InputError
        When `pool` is even or below 1.
    """

    scope: Scope = "layer"
    pool: int = 7

    def __post_init__(self) -> None:
        """Check the width of the pooling."""
        check_pool("QuestionAware", self.pool)

    @property
    def scorer(self) -> QuestionAttention:
        """What the evictor ranks by."""
        return QuestionAttention()

    def select(
        self, prefill: Prefill, budget: float, protected: Protected, rng: np.random.Generator
    ) -> Selection:
        """Select the kept positions; no chance is involved."""
        return keep_top(prefill, self.scorer, budget, protected, scope=self.scope, pool=self.pool)
