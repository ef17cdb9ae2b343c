"""Keeping the positions of highest score."""

from __future__ import annotations

import torch
from torch import Tensor

from collectors.evictors.selection import Protected, Selection, by_query_head
from collectors.evictors.tail_score import Scope, tail_score
from collectors.prefill import Prefill
from collectors.scorers import AnyScorer

__all__ = ["keep_highest", "keep_top"]


def keep_top(
    prefill: Prefill,
    scorer: str | AnyScorer,
    budget: float,
    protected: Protected,
    *,
    scope: Scope,
    pool: int = 1,
) -> Selection:
    """Keep the protected positions and as many of highest score as the budget has room for.

    Parameters
    ----------
    prefill : Prefill
        The prefill, with what the scorer gave.
    scorer, scope, pool
        As in `tail_score`.
    budget : float
        Fraction to keep, in (0, 1].
    protected : Protected
        Positions kept in any case; they alone are kept when the budget is smaller than they are.

    Returns
    -------
    Selection
    """
    score = tail_score(prefill, scorer, protected, scope=scope, pool=pool)
    size = protected.tail_size(prefill.n_tokens, budget)
    return keep_highest(score, size, prefill.n_tokens, protected, n_heads=prefill.n_heads)


def keep_highest(
    score: Tensor,
    sizes: Tensor | int,
    total: int,
    protected: Protected,
    *,
    n_heads: int,
    allocation: str | None = None,
) -> Selection:
    """Keep the protected positions and the evictable ones of highest score; earlier ones win ties.

    Parameters
    ----------
    score : Tensor, shape [1 or L, 1 or H_kv, T - protected]
        Scores of the evictable positions.
    sizes : int, or Tensor of int, shape [1 or L, 1 or H_kv]
        How many of them to keep; all where it is at least their number.
    total : int
        Tokens T of the cache.
    protected : Protected
        Positions kept in any case.
    n_heads : int
        Number of query heads H.
    allocation : str, optional
        Name of the rule that gave the sizes.

    Returns
    -------
    Selection
    """
    tail = protected.tail(total)
    order = torch.sort(score, dim=-1, descending=True, stable=True).indices
    rank = torch.empty_like(order).scatter_(-1, order, torch.arange(score.shape[-1]).expand_as(order))
    size = torch.as_tensor(sizes).expand(score.shape[:2])
    kept = torch.ones(*score.shape[:2], total, dtype=torch.bool)
    kept[..., tail] = rank < size[..., None]
    kept = by_query_head(kept, n_heads)
    return Selection(
        kept=kept,
        inclusion_probability=torch.ones(kept.shape),
        design="deterministic",
        tail=tail,
        score=by_query_head(score, n_heads),
        allocation=allocation,
    )
