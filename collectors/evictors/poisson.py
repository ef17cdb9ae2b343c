"""Poisson sampling of the tail: eviction whose loss can be estimated."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
import torch

from collectors.evictors.inclusion import check_floor, inclusion_probability
from collectors.evictors.selection import Protected, Selection, by_query_head
from collectors.evictors.tail_score import Scope, check_pool, tail_score
from collectors.prefill import Prefill
from collectors.scorers import check_scorer

__all__ = ["Poisson"]


class Poisson(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="evictor", tag="poisson"):
    """Keep each evictable position independently with a probability proportional to its score.

    Attributes
    ----------
    scope, pool
        As in `SnapKV`.
    allocation : {"iterated", "one_pass"}
        How the probabilities are clipped to 1, see `kvstats.statistics.allocation.proportional_inclusion`.
    floor : float
        Smallest probability, in (0, 1].
    scorer : str
        ``window``, a built-in scorer, or one that a package registered; its scores must not be negative.
    offset : bool
        Whether the logits of what was kept get log(1/pi). Without it the read is no estimate of the full one.

    Raises
    ------
    InputError
        When `pool` is even or below 1, `floor` is outside (0, 1], or `scorer` is unknown.

    References
    ----------
    Error Certificates for KV-Cache Eviction via Randomized Design, the sampling design.
    """

    scope: Scope = "global"
    pool: int = 1
    allocation: Literal["iterated", "one_pass"] = "iterated"
    floor: float = 1e-6
    scorer: str = "window"
    offset: bool = True

    def __post_init__(self) -> None:
        """Check the width of the pooling, the smallest probability and the scorer."""
        check_pool("Poisson", self.pool)
        check_floor("Poisson", self.floor)
        check_scorer("Poisson", self.scorer)

    def select(
        self, prefill: Prefill, budget: float, protected: Protected, rng: np.random.Generator
    ) -> Selection:
        """Draw the kept positions.

        Raises
        ------
        InputError
            When the budget does not exceed the protected positions, or a score is negative.
        """
        total = prefill.n_tokens
        score = tail_score(prefill, self.scorer, protected, scope=self.scope, pool=self.pool)
        score = score.to(torch.float64)
        pi = inclusion_probability(
            "Poisson",
            score,
            budget * total - protected.count,
            budget,
            total,
            protected,
            floor=self.floor,
            rule=self.allocation,
        )
        kept = torch.from_numpy(rng.random(tuple(pi.shape))) < pi
        return Selection(
            kept=by_query_head(kept, prefill.n_heads),
            inclusion_probability=by_query_head(pi.to(torch.float32), prefill.n_heads),
            design="poisson",
            tail=protected.tail(total),
            score=by_query_head(score, prefill.n_heads),
            allocation=self.allocation,
            offset=self.offset,
        )
