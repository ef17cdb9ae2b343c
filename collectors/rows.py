"""The rows of a batch: an arm at a budget each, drawn, decoded together and watched."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from collectors.attention import Recorder
from collectors.cache import expand_cache
from collectors.config import Condition, StudyPlan
from collectors.decode import Generation, decode, end_tokens
from collectors.evictors import Selection, keep_everything
from collectors.models import LoadedModel
from collectors.prefill import Prefill
from collectors.tasks import Example

__all__ = [
    "Row",
    "StepObserver",
    "decode_rows",
    "draw_rows",
    "generator_of",
    "question_positions",
    "split_prompt",
    "stack_rows",
]


@dataclass(frozen=True)
class Row:
    """One row of the batch: an arm at a budget."""

    arm: str
    budget: float
    seed: int
    selection: Selection


class StepObserver(Protocol):
    """What watches the reads of a batch and knows their decode step."""

    def begin_step(self, step: int) -> None:
        """Take note of the decode step that follows."""

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scaling: float) -> None:
        """See a layer's queries [B, H, Q, d] and all its keys and values [B, H_kv, T, d]."""


def split_prompt(example: Example, condition: Condition) -> tuple[list[int], list[int]]:
    """Split a prompt into what is prefilled and evicted from, and what is fed after the eviction."""
    if condition == "stream":
        return example.context_ids, example.question_ids + example.prefix_ids
    prompt = example.context_ids + example.question_ids + example.prefix_ids
    return prompt[:-1], prompt[-1:]


def question_positions(example: Example, condition: Condition) -> range:
    """Return the positions of the question among the prefilled tokens; none under ``stream``."""
    if condition == "stream":
        return range(0)
    first, prefilled = len(example.context_ids), len(split_prompt(example, condition)[0])
    return range(first, min(first + len(example.question_ids), prefilled))


def generator_of(seed: int, label: str, arm: str, budget: float) -> np.random.Generator:
    """Return the source of chance of a row.

    It depends on the input and condition, which `label` names, on the row's own name and on nothing else, so
    that neither order nor the other arms change a draw.
    """
    return np.random.default_rng([seed, zlib.crc32(f"{label}|{arm}|{budget!r}".encode())])


def draw_rows(plan: StudyPlan, filled: Prefill, label: str, condition: Condition) -> list[Row]:
    """Select the kept positions of every arm, budget and seed of a plan; the full cache comes first.

    Parameters
    ----------
    plan : StudyPlan
        The plan.
    filled : Prefill
        The prefill, with the scores that the evictors of the plan ask for.
    label : str
        Names the input and condition, see `generator_of`.
    condition : {"aware", "stream"}
        Arms that are not run under it are left out.
    """
    protected = plan.protected
    rows = [Row("full", 1.0, 0, keep_everything(filled.n_tokens, protected))]
    for arm in plan.arms_under(condition):
        for budget in arm.budgets:
            for seed in arm.seeds:
                rng = generator_of(seed, label, arm.name, budget)
                selection = arm.evictor.select(filled, budget, protected, rng)
                rows.append(Row(arm.name, budget, seed, selection))
    return rows


def stack_rows(tensors: Sequence[Tensor]) -> Tensor:
    """Stack [L, 1 or H, T] tensors of rows into [L, B, 1 or H, T]."""
    heads = max(tensor.shape[1] for tensor in tensors)
    return torch.stack([tensor.expand(-1, heads, -1) for tensor in tensors], dim=1)


def decode_rows(
    loaded: LoadedModel,
    recorder: Recorder,
    filled: Prefill,
    rows: Sequence[Row],
    fed: list[int],
    max_new_tokens: int,
    observers: Sequence[StepObserver] = (),
) -> list[Generation]:
    """Decode the rows in one batch, each with a copy of the prefilled cache behind its own mask.

    Parameters
    ----------
    loaded : LoadedModel
        The model, inside `recording`.
    recorder : Recorder
        The active recorder.
    filled : Prefill
        The prefill, of T tokens.
    rows : sequence of Row, length B
        The rows.
    fed : list of int
        Tokens after the prefilled ones, fed to every row.
    max_new_tokens : int
        Most tokens to generate.
    observers : sequence of StepObserver
        They see every read of the batch, in this order.

    Returns
    -------
    list of Generation, length B
    """
    n_layers = filled.attention.shape[0]
    offsets = stack_rows([row.selection.logit_offsets(n_layers) for row in rows])

    def begin_step(step: int) -> None:
        for observer in observers:
            observer.begin_step(step)

    def watch(layer: int, query: Tensor, key: Tensor, value: Tensor, scaling: float) -> None:
        for observer in observers:
            observer(layer, query, key, value, scaling)

    recorder.observer = watch if observers else None
    try:
        return decode(
            loaded.model,
            recorder,
            expand_cache(filled.cache, len(rows), len(fed) + max_new_tokens),
            fed,
            position=filled.n_tokens,
            rows=len(rows),
            max_new_tokens=max_new_tokens,
            ends=end_tokens(loaded.model),
            offsets=offsets.to(loaded.model.device),
            before_step=begin_step,
        )
    finally:
        recorder.observer = None
