"""Attention of the last query alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from collectors.scorers.attention_of import attention_of

__all__ = ["LastQueryAttention"]


@dataclass(frozen=True)
class LastQueryAttention:
    """Attention of the last query, as in TOVA; by query head, [H, T].

    References
    ----------
    Oren et al. (2024), Transformers are Multi-State RNNs, section 3.2.
    """

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, layer: int) -> Tensor:
        """Score by the attention of the last query, shape [H, T]."""
        last = torch.tensor([keys.shape[1] - 1], device=keys.device)
        return attention_of(queries[:, -1:], keys, last)[:, 0]
