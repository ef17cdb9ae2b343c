"""Attention of the question's tokens alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel

from collectors.scorers.attention_of import attention_of
from kvstats.errors import InputError

__all__ = ["QuestionAttention"]


@dataclass(frozen=True)
class BoundQuestionAttention:
    question: range

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, layer: int) -> Tensor:
        """Score by the mean attention of the question's queries, shape [H, T]."""
        positions = torch.tensor(self.question, device=keys.device)
        first = keys.shape[1] - queries.shape[1]
        return attention_of(queries[:, positions - first], keys, positions).mean(1)


@dataclass(frozen=True)
class QuestionAttention:
    """Mean attention of the queries at the question's tokens; by query head, [H, T].

    Unlike the window of the last queries it holds the whole question, and nothing of what follows it.
    """

    def bind(self, model: PreTrainedModel, question: range) -> BoundQuestionAttention:
        """Return the scorer for one prefill.

        Raises
        ------
        InputError
            When the question is not among the prefilled tokens, as under the condition ``stream``.
        """
        if not question:
            raise InputError.argument(
                "QuestionAttention.bind",
                "question",
                question,
                "holds no prefilled token",
                "score by the question under the condition 'aware' only",
            )
        return BoundQuestionAttention(question)
