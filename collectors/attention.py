"""One attention function that watches, offsets and hands over to scaled dot-product attention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from collectors.scorers import Scorer
from kvstats.errors import InputError

__all__ = ["ATTENTION_NAME", "Observer", "Recorder", "recording", "scored", "window_attention"]

ATTENTION_NAME = "kvstats_recorder"


class Observer(Protocol):
    """What is called with each layer's read before it happens."""

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scaling: float) -> None:
        """See a layer's queries [B, H, Q, d] and all its keys and values [B, H_kv, T, d]."""


@dataclass
class Recorder:
    """What the attention function is to do while it is active.

    Attributes
    ----------
    window : int
        Capture the attention of the last `window` queries of the next forward pass; 0 captures nothing.
    captured : dict of int to Tensor
        By layer, the captured attention averaged over the window, shape [H, T], float32.
    scorers : mapping of str to Scorer
        Scorers to call with each layer of the next forward pass, by label.
    scores : dict of (str, int) to Tensor
        By label and layer, what they returned, shape [1 or H_kv or H, T], float32.
    offsets : sequence of Tensor, optional
        By layer, what is added to the logits of the first T0 positions, shape [B, 1 or H, T0]; later
        positions get 0.
    observer : Observer, optional
        Called with each layer's queries, keys and values.
    """

    window: int = 0
    captured: dict[int, Tensor] = field(default_factory=dict)
    scorers: Mapping[str, Scorer] = field(default_factory=dict)
    scores: dict[tuple[str, int], Tensor] = field(default_factory=dict)
    offsets: Tensor | None = None
    observer: Observer | None = None


ACTIVE: ContextVar[Recorder | None] = ContextVar("kvstats_recorder", default=None)


@contextmanager
def recording(model: PreTrainedModel) -> Iterator[Recorder]:
    """Run a model with the recording attention function; afterwards the model is as it was.

    Parameters
    ----------
    model : PreTrainedModel
        A model whose attention goes through transformers' `AttentionInterface`.

    Yields
    ------
    Recorder
        Set its fields between forward passes.
    """
    before = model.config._attn_implementation
    recorder = Recorder()
    token = ACTIVE.set(recorder)
    model.set_attn_implementation(ATTENTION_NAME)
    try:
        yield recorder
    finally:
        model.set_attn_implementation(before)
        ACTIVE.reset(token)


def window_attention(query: Tensor, key: Tensor, scaling: float, window: int) -> Tensor:
    """Average the causal attention of the last queries of one sequence, head by head.

    Parameters
    ----------
    query : Tensor, shape [1, H, Q, d]
        Queries at the last Q positions.
    key : Tensor, shape [1, H_kv, T, d]
        Keys of all positions.
    scaling : float
        Factor of the logits, usually 1/sqrt(d).
    window : int
        How many of the last queries to average; all Q when it is larger.

    Returns
    -------
    Tensor, shape [H, T], float32
        Each row sums to 1. The T x T matrix is never formed.
    """
    n_heads, n_key_heads, total = query.shape[1], key.shape[1], key.shape[2]
    last = query[0, :, -window:].reshape(n_key_heads, n_heads // n_key_heads, -1, query.shape[-1])
    # In float32 from the start: a product of queries and keys that is not yet scaled can exceed float16.
    logits = torch.einsum("hgwd,htd->hgwt", last.float(), key[0].float()) * scaling
    size = logits.shape[2]
    position = torch.arange(total, device=key.device)
    later = position[None, :] > position[total - size :, None]
    attention = logits.masked_fill(later, float("-inf")).softmax(-1)
    return attention.mean(2).reshape(n_heads, total)


def scored(
    scorers: Mapping[str, Scorer], query: Tensor, key: Tensor, value: Tensor, scaling: float, layer: int
) -> dict[tuple[str, int], Tensor]:
    """Call scorers with one layer of one sequence.

    Parameters
    ----------
    scorers : mapping of str to Scorer
        The scorers, by label.
    query : Tensor, shape [1, H, Q, d]
        Queries at the last Q positions.
    key, value : Tensor, shape [1, H_kv, T, d]
        Keys and values of all positions.
    scaling : float
        Factor of the logits.
    layer : int
        Number of the layer.

    Returns
    -------
    dict of (label, layer) to Tensor, shape [1 or H_kv or H, T], float32

    Raises
    ------
    InputError
        When a scorer returns another shape, or scores that are not finite.
    """
    queries, keys, values = query[0].float() * scaling, key[0].float(), value[0].float()
    results = {}
    for label, scorer in scorers.items():
        score = scorer(queries, keys, values, layer).float()
        heads = sorted({1, len(keys), len(queries)})
        if score.ndim != 2 or score.shape[0] not in heads or score.shape[1] != keys.shape[1]:
            admitted = " or ".join(map(str, heads))
            raise InputError.argument(
                "prefill",
                "scorers",
                label,
                f"returned scores of shape {tuple(score.shape)} at layer {layer}",
                f"return [{admitted}, {keys.shape[1]}]",
            )
        if not bool(score.isfinite().all()):
            raise InputError.argument(
                "prefill",
                "scorers",
                label,
                f"returned scores that are not finite at layer {layer}",
                "return a finite score for each position",
            )
        results[label, layer] = score
    return results


def recorder_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    recorder = ACTIVE.get()
    if recorder is None:
        raise RuntimeError(
            f"the attention {ATTENTION_NAME!r} runs only inside collectors.attention.recording"
        )
    factor = query.shape[-1] ** -0.5 if scaling is None else scaling
    layer = int(module.layer_idx)
    if recorder.window:
        recorder.captured[layer] = window_attention(query, key, factor, recorder.window)
    if recorder.scorers:
        recorder.scores |= scored(recorder.scorers, query, key, value, factor, layer)
    if recorder.observer is not None:
        recorder.observer(layer, query, key, value, factor)
    bias = None
    if recorder.offsets is not None:
        offsets = recorder.offsets[layer].to(query.dtype)
        bias = torch.nn.functional.pad(offsets, (0, key.shape[2] - offsets.shape[-1]))[:, :, None, :]
    return sdpa_attention_forward(
        module,
        query,
        key,
        value,
        attention_mask,
        dropout=dropout,
        scaling=factor,
        position_bias=bias,
        **kwargs,
    )


AttentionInterface.register(ATTENTION_NAME, recorder_attention)
AttentionMaskInterface.register(ATTENTION_NAME, sdpa_mask)
