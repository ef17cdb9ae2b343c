"""The record of an input: what its prefill showed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime

import torch

from collectors.agreement import head_agreement, pair_agreement
from collectors.config import StudyPlan
from collectors.prefill import Prefill
from collectors.signals import prefill_signals
from collectors.tasks import Example
from kvstats.log.records import InputRecord

__all__ = ["input_record"]


def input_record(
    plan: StudyPlan,
    key: Mapping[str, str],
    example: Example,
    filled: Prefill,
    recorded_at: datetime,
    *,
    per_pair: bool,
) -> InputRecord:
    """Make the record of a prefill: head agreement, over all positions and the evictable ones, and signals.

    Parameters
    ----------
    plan, example, filled
        What was run.
    key : mapping of str to str
        The key of the input.
    recorded_at : datetime
        Now.
    per_pair : bool
        Whether to record the agreement of each pair of heads too.
    """
    top_k = plan.agreement_top_k
    interior = torch.zeros(filled.n_tokens, dtype=torch.bool)
    interior[plan.protected.tail(filled.n_tokens)] = True
    everywhere = head_agreement(filled.attention, top_k=top_k)
    inside = head_agreement(filled.attention, top_k=top_k, candidates=interior)
    prompt = example.context_ids + example.question_ids + example.prefix_ids
    return InputRecord(
        **key,
        context_tokens=filled.n_tokens,
        prompt_hash=hashlib.sha256(" ".join(map(str, prompt)).encode()).hexdigest(),
        agreement_window=filled.window,
        agreement_top_k=everywhere.top_k,
        agreement_bin_layers=everywhere.bin_layers,
        head_agreement_per_layer=everywhere.per_layer,
        drop=everywhere.drop,
        head_agreement_interior_per_layer=inside.per_layer,
        drop_interior=inside.drop,
        head_agreement_per_pair=pair_agreement(filled.attention, top_k=top_k) if per_pair else None,
        signals={**prefill_signals(filled, top_k=top_k), **example.signals},
        recorded_at=recorded_at,
    )
