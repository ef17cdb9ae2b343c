"""Greedy decoding of a batch whose rows are the arms and budgets of one input."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import Cache, PreTrainedModel

from collectors.attention import Recorder

__all__ = ["Generation", "decode", "end_tokens"]


@dataclass(frozen=True)
class Generation:
    """What one row of a batch generated.

    Attributes
    ----------
    token_ids : list of int
        Generated tokens, without the end token.
    log_probabilities : list of float
        Natural log-probability of each of them, and of the end token if it came.
    """

    token_ids: list[int]
    log_probabilities: list[float]

    @property
    def mean_log_probability(self) -> float:
        """Mean log-probability of what was generated, the end token included; at most 0."""
        return sum(self.log_probabilities) / len(self.log_probabilities)


def end_tokens(model: PreTrainedModel) -> frozenset[int]:
    """Return the token ids at which the model's own generation ends."""
    ends = model.generation_config.eos_token_id
    if ends is None:
        return frozenset()
    return frozenset(ends if isinstance(ends, list) else [ends])


@torch.inference_mode()
def decode(
    model: PreTrainedModel,
    recorder: Recorder,
    cache: Cache,
    token_ids: list[int],
    *,
    position: int,
    rows: int,
    max_new_tokens: int,
    ends: Collection[int],
    offsets: Tensor | None = None,
    before_step: Callable[[int], None] | None = None,
) -> list[Generation]:
    """Feed the same tokens to every row, then decode greedily.

    Parameters
    ----------
    model : PreTrainedModel
        The model, inside `recording`.
    recorder : Recorder
        The active recorder.
    cache : Cache
        Batch size `rows`; grows in place.
    token_ids : list of int
        Tokens to feed before the first generated one; at least one.
    position : int
        True position of the first of them, whatever the cache still holds.
    rows : int
        Batch size B.
    max_new_tokens : int
        Most tokens to generate, at least 1.
    ends : collection of int
        Tokens that end a row.
    offsets : Tensor, shape [L, B, 1 or H, T], optional
        Logit offsets of the prefilled positions.
    before_step : callable, optional
        Called with the number of the token about to be generated, from 0.

    Returns
    -------
    list of Generation, length B
    """
    device = model.device
    fed = torch.tensor([token_ids], device=device).expand(rows, -1)
    tokens: list[list[int]] = [[] for _ in range(rows)]
    scores: list[list[float]] = [[] for _ in range(rows)]
    open_rows = set(range(rows))
    recorder.offsets = offsets
    try:
        for step in range(max_new_tokens):
            if before_step is not None:
                before_step(step)
            positions = torch.arange(position, position + fed.shape[1], device=device)[None].expand(rows, -1)
            logits = model(fed, cache=cache, use_cache=True, position_ids=positions, logits_to_keep=1).logits
            position += fed.shape[1]
            chosen = logits[:, -1].argmax(-1)
            log_probability = logits[:, -1].float().log_softmax(-1).gather(-1, chosen[:, None])[:, 0]
            # One copy from the device for all rows.
            next_tokens, next_scores = chosen.tolist(), log_probability.tolist()
            for row in sorted(open_rows):
                token = next_tokens[row]
                scores[row].append(next_scores[row])
                if token in ends:
                    open_rows.discard(row)
                else:
                    tokens[row].append(token)
            if not open_rows:
                break
            fed = chosen[:, None]
    finally:
        recorder.offsets = None
    return [Generation(ids, values) for ids, values in zip(tokens, scores, strict=True)]
