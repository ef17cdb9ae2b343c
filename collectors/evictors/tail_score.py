"""From the scores of a prefill to a score of each evictable position, shared as widely as asked."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from collectors.evictors.selection import Protected
from collectors.prefill import Prefill
from collectors.scorers import AnyScorer
from kvstats.errors import InputError

__all__ = ["Scope", "check_pool", "tail_score"]

Scope = Literal["head", "layer", "global"]
"""One set of positions for each key head, for each layer, or for all."""


def tail_score(
    prefill: Prefill, scorer: str | AnyScorer, protected: Protected, *, scope: Scope, pool: int = 1
) -> Tensor:
    """Average what a scorer gave into a score of each evictable position.

    Parameters
    ----------
    prefill : Prefill
        The prefill whose scores [L, 1 or H_kv or H, T] are averaged.
    scorer : str or scorer
        Name or object of the scorer; ``window`` is the window attention.
    protected : Protected
        Positions that need no score; they are left out before pooling.
    scope : {"head", "layer", "global"}
        Average over the query heads of each key head, over the heads of each layer, or over all layers and
        heads.
    pool : int, default 1
        Odd width of a max-pooling along positions; 1 pools nothing.

    Returns
    -------
    Tensor, shape [1 or L, 1 or H_kv, T - protected]
        The second size is 1 for a scorer that does not tell heads apart.
    """
    tail = prefill.score(scorer)[..., protected.tail(prefill.n_tokens)]
    if scope == "global":
        score = tail.mean((0, 1))[None, None]
    elif scope == "layer":
        score = tail.mean(1, keepdim=True)
    else:
        n_layers, n_scored, size = tail.shape
        score = tail.reshape(n_layers, min(n_scored, prefill.n_key_heads), -1, size).mean(2)
    if pool > 1:
        score = torch.nn.functional.max_pool1d(score, pool, stride=1, padding=pool // 2)
    return score


def check_pool(evictor: str, pool: int) -> None:
    """Refuse a width of the max-pooling that has no middle."""
    if pool < 1 or pool % 2 == 0:
        fault = "is even" if pool >= 1 else "is below 1"
        raise InputError.argument(evictor, "pool", pool, fault, "pass an odd width; 1 pools nothing")
