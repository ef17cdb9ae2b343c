"""The control without a context: what the model answers when it is asked alone."""

from __future__ import annotations

from transformers import DynamicCache

from collectors.attention import Recorder
from collectors.decode import Generation, decode, end_tokens
from collectors.models import LoadedModel
from collectors.tasks import Example

__all__ = ["answer_without_context"]


def answer_without_context(loaded: LoadedModel, recorder: Recorder, example: Example) -> Generation:
    """Answer the question of an example from the prompt that lacks its context."""
    (generation,) = decode(
        loaded.model,
        recorder,
        DynamicCache(config=loaded.model.config),
        example.no_context_ids,
        position=0,
        rows=1,
        max_new_tokens=example.max_new_tokens,
        ends=end_tokens(loaded.model),
    )
    return generation
