"""The prefill: the cache of an input, and the attention of its last queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from collectors.attention import Recorder
from collectors.scorers import AnyScorer, scorer_label
from collectors.scorers.registry import WINDOW, Bindable

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
    scores : dict of str to Tensor, shape [L, 1 or H_kv or H, T], float32
        What the scorers returned, by label.
    """

    cache: DynamicCache
    attention: Tensor
    window: int
    scores: dict[str, Tensor] = field(default_factory=dict)

    @property
    def n_tokens(self) -> int:
        """Number of prefilled tokens T."""
        return int(self.attention.shape[-1])

    @property
    def n_heads(self) -> int:
        """Number of query heads H."""
        return int(self.attention.shape[1])

    @property
    def n_key_heads(self) -> int:
        """Number of key heads H_kv."""
        return int(self.cache.layers[0].keys.shape[1])

    def score(self, scorer: str | AnyScorer) -> Tensor:
        """Return what a scorer gave, shape [L, 1 or H_kv or H, T]; ``window`` is the window attention."""
        label = scorer_label(scorer)
        return self.attention if label == WINDOW else self.scores[label]


@torch.inference_mode()
def prefill(
    model: PreTrainedModel,
    token_ids: list[int],
    recorder: Recorder,
    *,
    window: int = 32,
    scorers: Mapping[str, AnyScorer] | None = None,
    question: range = range(0),
) -> Prefill:
    """Run the model over the tokens and keep cache, window attention and scores.

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
    scorers : mapping of str to Scorer, optional
        What to score each layer with while its queries are at hand, by label; see `requested_scorers`.
    question : range
        Positions of the question, for scorers that ask for them; empty when it is not among the tokens.

    Returns
    -------
    Prefill

    Raises
    ------
    InputError
        When a scorer cannot work with the model or without a question, or returns scores of another shape
        or not finite.

    Notes
    -----
    Scorers are called layer by layer inside the attention function, so that never more than one layer's
    queries are held. Attention and scores come back on the CPU, where selections are made.
    """
    cache = DynamicCache(config=model.config)
    ids = torch.tensor([token_ids], device=model.device)
    recorder.scorers = {
        label: scorer.bind(model, question) if isinstance(scorer, Bindable) else scorer
        for label, scorer in (scorers or {}).items()
    }
    recorder.window, recorder.captured, recorder.scores = window, {}, {}
    try:
        model(ids, cache=cache, use_cache=True, logits_to_keep=1)
        captured, scores = recorder.captured, recorder.scores
    finally:
        recorder.window, recorder.captured = 0, {}
        recorder.scorers, recorder.scores = {}, {}
    layers = sorted(captured)
    return Prefill(
        cache,
        torch.stack([captured[layer] for layer in layers]).cpu(),
        min(window, len(token_ids)),
        {label: torch.stack([scores[label, layer] for layer in layers]).cpu() for label in scorers or {}},
    )
