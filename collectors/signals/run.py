"""Signals of a run that the retained cache and its scores give without the full cache."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from transformers import DynamicCache

from collectors.evictors.selection import Selection

__all__ = ["cache_bytes", "evicted_mass", "keep_margin", "retained_entropy", "selection_signals"]


def selection_signals(selection: Selection, attention: Tensor) -> dict[str, float | None]:
    """Return the signals of what was kept and evicted, by name.

    Parameters
    ----------
    selection : Selection
        The kept positions.
    attention : Tensor, shape [L, H, T]
        Window attention of the prefill.
    """
    return {
        "retained_entropy": retained_entropy(selection, attention),
        "evicted_mass": evicted_mass(selection, attention),
        "margin": keep_margin(selection),
    }


def by_layer(selection: Selection, attention: Tensor) -> tuple[Tensor, Tensor]:
    """Return head-averaged attention [L, H', T] and kept positions of the same shape, H' = 1 or H."""
    kept = selection.kept.to(attention.device)
    weight = attention if kept.shape[1] > 1 else attention.mean(1, keepdim=True)
    return weight.to(torch.float64), kept.expand(attention.shape[0], -1, -1)


def evicted_mass(selection: Selection, attention: Tensor) -> float:
    """Share of the window attention that lay on evicted positions, averaged over layers and heads.

    Parameters
    ----------
    selection : Selection
        The kept positions.
    attention : Tensor, shape [L, H, T]
        Window attention of the prefill.

    Returns
    -------
    float
        In [0, 1]; 0 when nothing was evicted.
    """
    weight, kept = by_layer(selection, attention)
    return float((weight * ~kept).sum(-1).mean())


def retained_entropy(selection: Selection, attention: Tensor) -> float | None:
    """Entropy of the window attention over the kept positions, divided by the log of their number.

    Parameters
    ----------
    selection : Selection
        The kept positions.
    attention : Tensor, shape [L, H, T]
        Window attention of the prefill.

    Returns
    -------
    float or None
        In [0, 1], averaged over layers and heads; where the heads share their kept positions, it is that of
        the attention averaged over them. None when some layer or head keeps fewer than two positions, or
        none that the window attended to.
    """
    weight, kept = by_layer(selection, attention)
    count = kept.sum(-1)
    share = weight * kept
    total = share.sum(-1, keepdim=True)
    if int(count.min()) < 2 or float(total.min()) == 0.0:
        return None
    return float((torch.special.entr(share / total).sum(-1) / count.log()).mean())


def keep_margin(selection: Selection) -> float | None:
    """Gap between the lowest kept and the highest evicted score, in standard deviations of the scores.

    Parameters
    ----------
    selection : Selection
        A deterministic selection with scores.

    Returns
    -------
    float or None
        Averaged over the layers and heads that kept a part of their tail and have unequal scores; at least 0
        where the highest scores were kept, below 0 where an evictor overruled its scores. None when no layer
        and head is left, and when the selection was drawn by chance or has no scores.
    """
    if selection.design != "deterministic" or selection.score is None:
        return None
    score = selection.score.to(torch.float64)
    score = score[:, None] if score.ndim == 2 else score
    kept = selection.kept[..., selection.tail].to(score.device)
    score, kept = torch.broadcast_tensors(score, kept)
    spread = score.std(-1, correction=0)
    defined = kept.any(-1) & ~kept.all(-1) & (spread > 0)
    if not bool(defined.any()):
        return None
    lowest_kept = score.masked_fill(~kept, math.inf).amin(-1)
    highest_evicted = score.masked_fill(kept, -math.inf).amax(-1)
    return float(((lowest_kept - highest_evicted)[defined] / spread[defined]).mean())


def cache_bytes(selection: Selection, cache: DynamicCache) -> int:
    """Return the bytes of the kept keys and values; a position is freed once no head of a group keeps it.

    Parameters
    ----------
    selection : Selection
        The kept positions of T.
    cache : DynamicCache
        The prefilled cache, batch size 1.
    """
    total = 0.0
    for number, layer in enumerate(cache.layers):
        kept = selection.kept[number if selection.kept.shape[0] > 1 else 0]
        if kept.shape[0] > 1:
            kept = kept.unflatten(0, (layer.keys.shape[1], -1)).any(1)
        share = float(kept.to(torch.float64).mean())
        total += share * (layer.keys.nbytes + layer.values.nbytes)
    return round(total)
