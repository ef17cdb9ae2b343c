"""Cosine distance of a key from the mean direction of all keys."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["KeyDifference"]


@dataclass(frozen=True)
class KeyDifference:
    r"""One less the cosine between a key and the mean of the normalised keys, in [0, 2]; [H_kv, T].

    .. math:: s_i = 1 - \cos(k_i, \mu), \qquad \mu = \frac 1 T \sum_j \frac{k_j}{\lVert k_j \rVert}

    Keys are taken after RoPE, as they stand in the cache.

    References
    ----------
    Park et al. (2025), KeyDiff: Key Similarity-Based KV Cache Eviction, section 3.
    """

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, layer: int) -> Tensor:
        """Score by the cosine distance from the mean direction, shape [H_kv, T]."""
        anchor = torch.nn.functional.normalize(keys, dim=-1).mean(1, keepdim=True)
        return 1 - torch.nn.functional.cosine_similarity(keys, anchor, dim=-1)
