"""Signals of a run that the retained cache and its scores give without the full cache."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from collectors.evictors.selection import Selection

__all__ = ["evicted_mass", "keep_margin", "retained_entropy"]


def by_layer(selection: Selection, attention: Tensor) -> tuple[Tensor, Tensor]:
    """Return head-averaged attention [L, H', T] and kept positions of the same shape, H' = 1 or H."""
    kept = selection.kept
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
        In [0, 1], averaged over layers and heads; None when some layer keeps fewer than two positions.
    """
    weight, kept = by_layer(selection, attention)
    count = kept.sum(-1)
    if int(count.min()) < 2:
        return None
    share = weight * kept
    share = share / share.sum(-1, keepdim=True)
    return float((torch.special.entr(share).sum(-1) / count.log()).mean())


def keep_margin(selection: Selection) -> float | None:
    """Gap between the lowest kept and the highest evicted score, in standard deviations of the scores.

    Parameters
    ----------
    selection : Selection
        A deterministic selection with scores.

    Returns
    -------
    float or None
        At least 0, averaged over layers. None when the selection was drawn by chance, has no scores, kept
        or evicted the whole tail, or when all scores of a layer are equal.
    """
    if selection.design != "deterministic" or selection.score is None:
        return None
    score = selection.score.to(torch.float64)
    kept = selection.kept[:, 0, selection.tail]
    spread = score.std(-1, correction=0)
    if bool(kept.all()) or not bool(kept.any()) or float(spread.min()) == 0.0:
        return None
    lowest_kept = score.masked_fill(~kept, math.inf).amin(-1)
    highest_evicted = score.masked_fill(kept, -math.inf).amax(-1)
    return float(((lowest_kept - highest_evicted) / spread).mean())
