"""Euclidean distance of a key from the centroid of all keys."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel

from collectors.scorers.rotation import Rotation, rotation_of

__all__ = ["CentroidDistance"]


@dataclass(frozen=True)
class BoundCentroidDistance:
    rotation: Rotation | None

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, layer: int) -> Tensor:
        """Score by the distance from the centroid, shape [H_kv, T]."""
        if self.rotation is not None:
            keys = self.rotation.undo(keys, torch.arange(keys.shape[1], device=keys.device))
        return torch.linalg.vector_norm(keys - keys.mean(1, keepdim=True), dim=-1)


@dataclass(frozen=True)
class CentroidDistance:
    r"""Euclidean distance between a key and the mean key, as in ManifoldKV; by key head, [H_kv, T].

    .. math:: s_i = \lVert k_i - \mu \rVert_2, \qquad \mu = \frac 1 T \sum_j k_j

    Attributes
    ----------
    before_rope : bool
        Whether the rotary embedding is undone first, so that positions do not spread equal keys.

    References
    ----------
    Datta et al. (2026), ManifoldKV: Training-Free KV Cache Compression via Euclidean Outlier Detection.
    """

    before_rope: bool = False

    def bind(self, model: PreTrainedModel, question: range) -> BoundCentroidDistance:
        """Return the scorer for one model."""
        return BoundCentroidDistance(
            rotation_of("CentroidDistance.bind", model) if self.before_rope else None
        )
