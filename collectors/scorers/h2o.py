"""Accumulated attention: what all queries together attended to."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from collectors.scorers.attention_of import attention_of

__all__ = ["AccumulatedAttention"]

CHUNK = 2**18
"""Attention weights held at a time, so that no T x T matrix is formed."""


@dataclass(frozen=True)
class AccumulatedAttention:
    r"""Sum over queries of the attention that a position received, as in H2O.

    .. math:: s_i = \sum_{t \in S, t \ge i} a_{ti}, \qquad S = \{T - 1, T - 1 - s, T - 1 - 2s, \dots\}

    Attributes
    ----------
    stride : int
        Every how many queries s are summed, counted back from the last one; 1 sums all.

    Notes
    -----
    Early positions are seen by more queries, and no count is divided out, as published. Scores by query
    head, [H, T].

    References
    ----------
    Zhang et al. (2023), H2O: Heavy-Hitter Oracle for Efficient Generative Inference, section 4.
    """

    stride: int = 8

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, layer: int) -> Tensor:
        """Score by accumulated attention, shape [H, T]."""
        n_heads, n_queries, _ = queries.shape
        total = keys.shape[1]
        score = torch.zeros(n_heads, total, device=keys.device)
        positions = range(total - 1, total - n_queries - 1, -self.stride)
        size = max(1, CHUNK // (n_heads * total))
        for first in range(0, len(positions), size):
            chunk = torch.tensor(positions[first : first + size], device=keys.device)
            seen = positions[first] + 1
            rows = queries[:, chunk - (total - n_queries)]
            score[:, :seen] += attention_of(rows, keys[:, :seen], chunk).sum(1)
        return score
