"""Poisson sampling of the tail: eviction whose loss can be estimated."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
import torch
from torch import Tensor

from collectors.evictors.selection import Protected, Selection
from collectors.evictors.snapkv import check_pool, window_score
from kvstats.errors import InputError
from kvstats.statistics.allocation import proportional_inclusion

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

    Raises
    ------
    InputError
        When `pool` is even or below 1, or `floor` is outside (0, 1].

    References
    ----------
    Error Certificates for KV-Cache Eviction via Randomized Design, the sampling design.
    """

    scope: Literal["layer", "global"] = "global"
    pool: int = 1
    allocation: Literal["iterated", "one_pass"] = "iterated"
    floor: float = 1e-6

    def __post_init__(self) -> None:
        """Check the width of the pooling and the smallest probability."""
        check_pool("Poisson", self.pool)
        if not 0 < self.floor <= 1:
            raise InputError.argument(
                "Poisson", "floor", self.floor, "is not in (0, 1]", "pass a small probability"
            )

    def select(
        self, attention: Tensor, budget: float, protected: Protected, rng: np.random.Generator
    ) -> Selection:
        """Draw the kept positions of a cache whose window attention has shape [L, H, T].

        Raises
        ------
        InputError
            When the budget does not exceed the protected positions.
        """
        total = attention.shape[-1]
        score = window_score(attention, protected, scope=self.scope, pool=self.pool).to(torch.float64)
        expected = budget * total - protected.count
        if expected <= 0:
            raise InputError.argument(
                "Poisson.select",
                "budget",
                budget,
                f"of {total} tokens does not exceed {protected.count} protected",
                "raise the budget or lengthen the input",
            )
        tail = protected.tail(total)
        pi = torch.ones(score.shape[0], total, dtype=torch.float64)
        pi[:, tail] = proportional_inclusion(score, expected, floor=self.floor, rule=self.allocation)
        kept = torch.from_numpy(rng.random(tuple(pi.shape))) < pi
        return Selection(
            kept=kept[:, None],
            inclusion_probability=pi[:, None].to(torch.float32),
            design="poisson",
            tail=tail,
            score=score,
            allocation=self.allocation,
        )
