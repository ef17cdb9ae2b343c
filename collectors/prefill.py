"""The prefill: the cache of an input, and the attention of its last queries."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from collectors.attention import Recorder

__all__ = ["Prefill", "prefill"]


@dataclass(frozen=True)
class Prefill:
    """What one pass over an input left behind.

    Attributes
    ----------
    cache : DynamicCache
        Keys and values of the prefilled tokens, batch size 1.
    attention : Tensor, shape [L, H, T], float32
        Attention of the last `window` queries, averaged over the queries.
    window : int
        How many queries were averaged.
    """

    cache: DynamicCache
    attention: Tensor
    window: int

    @property
    def n_tokens(self) -> int:
        """Number of prefilled tokens T."""
        return int(self.attention.shape[-1])


@torch.inference_mode()
def prefill(model: PreTrainedModel, token_ids: list[int], recorder: Recorder, *, window: int = 32) -> Prefill:
    """Run the model over the tokens and keep cache and window attention.

    Parameters
    ----------
    model : PreTrainedModel
        The model, inside `recording`.
    token_ids : list of int, length T
        The tokens, positions 0 to T - 1.
    recorder : Recorder
        The active recorder.
    window : int, default 32
        Queries to average.

    Returns
    -------
    Prefill
    """
    cache = DynamicCache(config=model.config)
    ids = torch.tensor([token_ids], device=model.device)
    recorder.window, recorder.captured = window, {}
    try:
        model(ids, cache=cache, use_cache=True, logits_to_keep=1)
        captured = recorder.captured
    finally:
        recorder.window, recorder.captured = 0, {}
    attention = torch.stack([captured[layer] for layer in sorted(captured)])
    return Prefill(cache, attention, min(window, len(token_ids)))
