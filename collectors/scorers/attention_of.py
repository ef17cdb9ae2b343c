"""Causal attention of chosen queries, from which several scorers are made."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["attention_of"]


def attention_of(queries: Tensor, keys: Tensor, positions: Tensor) -> Tensor:
    """Return the causal attention of some queries, head by head.

    Parameters
    ----------
    queries : Tensor, shape [H, C, d]
        The chosen queries, multiplied by the attention scaling.
    keys : Tensor, shape [H_kv, T, d]
        Keys of all positions.
    positions : Tensor of int, shape [C]
        Positions of the queries; each sees the keys up to its own.

    Returns
    -------
    Tensor, shape [H, C, T], float32
        Each row sums to 1.

    Examples
    --------
    >>> attention_of(torch.zeros(1, 2, 4), torch.ones(1, 3, 4), torch.tensor([1, 2]))
    tensor([[[0.5000, 0.5000, 0.0000],
             [0.3333, 0.3333, 0.3333]]])
    """
    n_heads, count, width = queries.shape
    n_key_heads, total, _ = keys.shape
    grouped = queries.reshape(n_key_heads, -1, width)
    logits = (grouped @ keys.transpose(1, 2)).reshape(n_heads, count, total).float()
    later = torch.arange(total, device=keys.device) > positions[:, None]
    return logits.masked_fill_(later, float("-inf")).softmax(-1)
