"""Conditional Poisson sampling of the tail: Poisson sampling of fixed size."""

from __future__ import annotations

import msgspec
import numpy as np
import torch
from torch import Tensor

from collectors.evictors.inclusion import check_floor, inclusion_probability
from collectors.evictors.selection import Protected, Selection, by_query_head
from collectors.evictors.tail_score import Scope, check_pool, tail_score
from collectors.prefill import Prefill
from collectors.scorers import check_scorer
from kvstats.statistics.designs import ConditionalPoisson as Design

__all__ = ["ConditionalPoisson"]


class ConditionalPoisson(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    tag_field="evictor",
    tag="conditional_poisson",
):
    """Keep a sample of fixed size, with inclusion probabilities proportional to the scores.

    The design of maximum entropy among those of its size and probabilities, see
    `kvstats.statistics.designs.ConditionalPoisson`, which also gives the joint probabilities.

    Attributes
    ----------
    scope, pool, floor, scorer, offset
        As in `Poisson`.

    Raises
    ------
    InputError
        When `pool` is even or below 1, `floor` is outside (0, 1], or `scorer` is unknown.

    Notes
    -----
    With the offset a read is the Hájek estimate of the full one, but it has no certificate, which is one of
    independent draws; that of a fixed size needs the joint probability of each pair of positions, a T x T
    matrix. Replays hold such reads against the truth.

    The odds of each layer and head are fitted apart, in time O(T m) an iteration, which is hundreds of times
    slower than a Poisson draw: one set for all layers costs a few percent of a prefill, sets by head more
    than the prefill itself.

    References
    ----------
    Chen, Dempster and Liu, Biometrika 81, 1994.
    """

    scope: Scope = "global"
    pool: int = 1
    floor: float = 1e-6
    scorer: str = "window"
    offset: bool = True

    def __post_init__(self) -> None:
        """Check the width of the pooling, the smallest probability and the scorer."""
        check_pool("ConditionalPoisson", self.pool)
        check_floor("ConditionalPoisson", self.floor)
        check_scorer("ConditionalPoisson", self.scorer)

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
        size = protected.tail_size(total, budget)
        pi = inclusion_probability(
            "ConditionalPoisson", score, size, budget, total, protected, floor=self.floor
        )
        return Selection(
            kept=by_query_head(draw(pi, protected.tail(total), rng), prefill.n_heads),
            inclusion_probability=by_query_head(pi.to(torch.float32), prefill.n_heads),
            design="conditional_poisson",
            tail=protected.tail(total),
            score=by_query_head(score, prefill.n_heads),
            allocation="iterated",
            offset=self.offset,
        )


def draw(pi: Tensor, tail: slice, rng: np.random.Generator) -> Tensor:
    """Draw each layer and head on its own, from probabilities [1 or L, 1 or H_kv, T]."""
    kept = torch.ones(pi.shape, dtype=torch.bool)
    for layer in range(pi.shape[0]):
        for head in range(pi.shape[1]):
            sample = Design(pi[layer, head, tail].numpy()).sample(rng)
            kept[layer, head, tail] = torch.from_numpy(sample)
    return kept
