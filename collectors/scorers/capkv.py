"""Leverage of a value among the values, weighted by how well its key meets the queries."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel

from collectors.scorers.rotation import Rotation, rotation_of

__all__ = ["CapKVLeverage"]

EPSILON = 1e-6
"""Added to the weights in the matrix A, which keeps weights that underflow from vanishing there."""


@dataclass(frozen=True)
class CapKVLeverage:
    r"""Statistical leverage of the values, as in CapKV; by key head, [H_kv, T].

    .. math:: s_i = w_i\, v_i^\top A^{-1} v_i, \qquad
        A = I + \sum_j (w_j + 10^{-6})\, v_j v_j^\top, \qquad
        w_i = \frac{e^{\tau \cos(k_i, q)}}{\max_j e^{\tau \cos(k_j, q)}}

    for each query head, averaged over the query heads of a key head. The anchor q stands for the queries to
    come: the mean of the queries seen, before RoPE, turned to each of the next `future` positions and
    averaged. The first `sinks` positions are left out of the mean, of A and of the maximum, and get the
    largest score of the layer plus 1.

    Attributes
    ----------
    tau : float
        Sharpness of the weights; 0 weighs all values alike.
    future : int
        Positions after the last one to which the mean query is turned.
    sinks : int
        First positions that are kept in any case.

    Notes
    -----
    The paper has the product of key and anchor in place of their cosine, and neither the sinks nor the
    maximum; this is the definition of kvpress 0.5.5 (``CapPress``), whose first three numbers are the
    defaults here. The leverage w v'A⁻¹v is at most 1.

    References
    ----------
    Rethinking KV Cache Eviction via a Unified Information-Theoretic Objective (2026), arXiv 2604.25975.
    """

    tau: float = 5.0
    future: int = 512
    sinks: int = 4

    def bind(self, model: PreTrainedModel, question: range) -> BoundCapKVLeverage:
        """Return the scorer for one model."""
        return BoundCapKVLeverage(self, rotation_of("CapKVLeverage.bind", model))


@dataclass(frozen=True)
class BoundCapKVLeverage:
    settings: CapKVLeverage
    rotation: Rotation

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, layer: int) -> Tensor:
        """Score by leverage, shape [H_kv, T]."""
        total, first = keys.shape[1], self.settings.sinks
        weight = self.weights(queries, keys)
        value = values[:, first:]
        scaled = value[:, None] * (weight + EPSILON).sqrt()[..., None]
        information = scaled.transpose(-2, -1) @ scaled + torch.eye(value.shape[-1], device=value.device)
        # With A = L L', the leverage is the squared norm of L⁻¹v.
        inverse = torch.linalg.solve_triangular(
            torch.linalg.cholesky(information), torch.eye(value.shape[-1], device=value.device), upper=False
        )
        leverage = (value[:, None] @ inverse.transpose(-2, -1)).square().sum(-1)
        score = (weight * leverage).mean(1)
        certain = (score.max() + 1).expand(keys.shape[0], min(first, total))
        return torch.cat([certain, score], 1)

    def weights(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return the weights of all but the first positions, shape [H_kv, H / H_kv, T - sinks]."""
        n_key_heads, total, width = keys.shape
        first, seen = self.settings.sinks, torch.arange(total - queries.shape[1], total, device=keys.device)
        anchor = self.rotation.undo(queries, seen)[:, seen >= first].mean(1)
        coming = torch.arange(total, total + self.settings.future, device=keys.device)
        anchor = self.rotation.mean_apply(anchor, coming).reshape(n_key_heads, -1, width)
        direction = torch.nn.functional.normalize(keys[:, first:], dim=-1)
        cosine = torch.nn.functional.normalize(anchor, dim=-1) @ direction.transpose(1, 2)
        logits = self.settings.tau * cosine
        return (logits - logits.amax(-1, keepdim=True)).exp()
