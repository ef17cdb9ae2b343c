"""SnapKV: keep what the last queries of the prefill attended to most."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
import torch
from torch import Tensor

from collectors.evictors.selection import Protected, Selection, keep_highest
from kvstats.errors import InputError

__all__ = ["SnapKV", "check_pool", "window_score"]


class SnapKV(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="evictor", tag="snapkv"):
    """Keep the positions of highest window attention.

    Attributes
    ----------
    scope : {"layer", "global"}
        One set of positions for each layer, from attention averaged over its heads; or one set for all,
        averaged over layers and heads.
    pool : odd int
        Width of the max-pooling of scores along positions; 1 pools nothing.

    Raises
    ------
    InputError
        When `pool` is even or below 1.

    References
    ----------
    Li et al. (2024), SnapKV: LLM Knows What You are Looking for Before Generation.
    """

    scope: Literal["layer", "global"] = "layer"
    pool: int = 7

    def __post_init__(self) -> None:
        """Check the width of the pooling."""
        check_pool("SnapKV", self.pool)

    def select(
        self, attention: Tensor, budget: float, protected: Protected, rng: np.random.Generator
    ) -> Selection:
        """Select the kept positions from window attention of shape [L, H, T]; no chance is involved."""
        score = window_score(attention, protected, scope=self.scope, pool=self.pool)
        return keep_highest(score, attention.shape[-1], budget, protected, "deterministic")


def check_pool(evictor: str, pool: int) -> None:
    """Refuse a width of the max-pooling that has no middle."""
    if pool < 1 or pool % 2 == 0:
        fault = "is even" if pool >= 1 else "is below 1"
        raise InputError.argument(evictor, "pool", pool, fault, "pass an odd width; 1 pools nothing")


def window_score(
    attention: Tensor, protected: Protected, *, scope: Literal["layer", "global"], pool: int
) -> Tensor:
    """Average window attention into a score of each evictable position.

    Parameters
    ----------
    attention : Tensor, shape [L, H, T]
        Window attention.
    protected : Protected
        Positions that need no score; they are left out before pooling.
    scope : {"layer", "global"}
        Average over heads, or over layers and heads.
    pool : int
        Odd width of the max-pooling.

    Returns
    -------
    Tensor, shape [L or 1, T - protected]
    """
    tail = attention[..., protected.tail(attention.shape[-1])]
    score = tail.mean(1) if scope == "layer" else tail.mean((0, 1))[None]
    if pool > 1:
        score = torch.nn.functional.max_pool1d(score[:, None], pool, stride=1, padding=pool // 2)[:, 0]
    return score
