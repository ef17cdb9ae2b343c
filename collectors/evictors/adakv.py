"""Ada-KV: the heads of a layer share its budget by their scores."""

from __future__ import annotations

import msgspec
import numpy as np

from collectors.evictors.allocation import head_sizes
from collectors.evictors.ranking import keep_highest
from collectors.evictors.selection import Protected, Selection
from collectors.evictors.tail_score import check_pool, tail_score
from collectors.prefill import Prefill
from collectors.scorers import check_scorer
from kvstats.errors import InputError

__all__ = ["AdaKV"]


class AdaKV(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="evictor", tag="adakv"):
    """Keep the highest scores of each layer, whichever key head they are of, above a floor for each head.

    Attributes
    ----------
    scorer : str
        ``window``, a built-in scorer, or one that a package registered; it must tell heads apart.
    floor : float
        Share of the uniform size that every head keeps, in [0, 1], see `head_sizes`.
    pool : odd int
        As in `SnapKV`.

    Raises
    ------
    InputError
        When `scorer` is unknown, `floor` is outside [0, 1], or `pool` is even or below 1.

    References
    ----------
    Feng et al. (2024), Ada-KV: Optimizing KV Cache Eviction by Adaptive Budget Allocation.
    """

    scorer: str = "window"
    floor: float = 0.5
    pool: int = 7

    def __post_init__(self) -> None:
        """Check the scorer, the floor and the width of the pooling."""
        check_scorer("AdaKV", self.scorer)
        check_pool("AdaKV", self.pool)
        if not 0 <= self.floor <= 1:
            raise InputError.argument("AdaKV", "floor", self.floor, "is not in [0, 1]", "pass 0.5")

    def select(
        self, prefill: Prefill, budget: float, protected: Protected, rng: np.random.Generator
    ) -> Selection:
        """Select the kept positions; no chance is involved.

        Raises
        ------
        InputError
            When the scorer gives all key heads one score.
        """
        score = tail_score(prefill, self.scorer, protected, scope="head", pool=self.pool)
        if score.shape[1] != prefill.n_key_heads:
            raise InputError.argument(
                "AdaKV.select",
                "scorer",
                self.scorer,
                f"gives the {prefill.n_key_heads} key heads one score",
                "use a scorer by head",
            )
        sizes = head_sizes(score, protected.tail_size(prefill.n_tokens, budget), self.floor)
        return keep_highest(
            score, sizes, prefill.n_tokens, protected, n_heads=prefill.n_heads, allocation="adakv"
        )
