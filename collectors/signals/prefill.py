"""Signals of an input that its prefill gives, before anything is evicted."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from collectors.prefill import Prefill

__all__ = ["key_norm_dispersion", "margin_to_noise", "normalised_entropy", "prefill_signals"]


def prefill_signals(filled: Prefill, *, top_k: int = 32) -> dict[str, float | None]:
    r"""Return the signals of a prefill, by name.

    With the window attention :math:`a_{lht}`, of which each layer and head sums to 1 over T positions:

    ========================  ==============================================================================
    ``attention_entropy``     entropy over log T, in [0, 1], averaged over layers and heads
    ``entropy_drop``          mean of the same over the first floor(L/3) layers minus the last, in [-1, 1]
    ``top_{k}_mass``          sum of the k largest shares, in [0, 1], averaged over layers and heads
    ``max_share``             largest share, in [0, 1], averaged over layers and heads
    ``key_norm_dispersion``   see `key_norm_dispersion`
    ``margin_to_noise``       see `margin_to_noise`
    ========================  ==============================================================================

    Parameters
    ----------
    filled : Prefill
        Attention [L, H, T] and the cache.
    top_k : int, default 32
        Keys per head; all T where there are fewer.

    Returns
    -------
    dict of str to (float or None)
        None where undefined: entropy of a single position, the drop of fewer than 3 layers.
    """
    attention = filled.attention.to(torch.float64)
    entropy = normalised_entropy(attention)
    third = attention.shape[0] // 3
    drop = entropy[:third].mean() - entropy[-third:].mean() if entropy is not None and third else None
    largest = attention.topk(min(top_k, attention.shape[-1])).values
    return {
        "attention_entropy": None if entropy is None else float(entropy.mean()),
        "entropy_drop": None if drop is None else float(drop),
        f"top_{top_k}_mass": float(largest.sum(-1).mean()),
        "max_share": float(largest[..., 0].mean()),
        "key_norm_dispersion": key_norm_dispersion([layer.keys[0] for layer in filled.cache.layers]),
        "margin_to_noise": margin_to_noise(attention, top_k),
    }


def normalised_entropy(attention: Tensor) -> Tensor | None:
    """Return the entropy of attention [L, H, T] over log T, in [0, 1], as [L, H]; None for one position."""
    total = attention.shape[-1]
    return torch.special.entr(attention).sum(-1) / math.log(total) if total > 1 else None


def key_norm_dispersion(keys: list[Tensor]) -> float | None:
    """Return the standard deviation over the mean of the key norms of a layer and head, averaged over them.

    Parameters
    ----------
    keys : list of Tensor, shape [H_kv, T, d]
        The keys of each layer, before or after rotation: it leaves norms as they are.

    Returns
    -------
    float or None
        At least 0; None when all keys of a layer and head are 0.
    """
    norms = torch.stack([torch.linalg.vector_norm(layer.float(), dim=-1).double() for layer in keys])
    mean = norms.mean(-1)
    return float((norms.std(-1, correction=0) / mean).mean()) if float(mean.min()) > 0 else None


def margin_to_noise(attention: Tensor, top_k: int) -> float | None:
    r"""Return the gap of the attention logits at the top-k boundary over their noise, averaged over layers.

    The logits of a layer are seen through the logarithm of its window attention, centred by head (which
    takes out what the softmax divides by). A logit is the layer's part, common to its heads, and the
    head's own, the noise that makes heads disagree on their top keys:

    .. math:: s_{ht} = \log a_{ht} - \tfrac 1 T \sum_u \log a_{hu}, \quad
        m_t = \tfrac 1 H \sum_h s_{ht}, \quad
        \sigma^2 = \frac{1}{(H - 1)\, T} \sum_{h,t} (s_{ht} - m_t)^2, \quad
        \kappa = \frac{m_{(k)} - m_{(k+1)}}{\sigma}

    with :math:`m_{(k)}` the k-th largest. Independent normal noise of that size leaves all heads of all L
    layers the same top-k keys with probability :math:`1 - \beta` or more where every layer has
    :math:`\kappa \ge 2 \sqrt{\log(2 H^2 L T^2 / \beta)}`.

    Parameters
    ----------
    attention : Tensor, shape [L, H, T]
        Window attention; a share that has underflowed counts as the smallest normal float32.
    top_k : int
        Keys per head.

    Returns
    -------
    float or None
        At least 0; None for a single head, for `top_k` or fewer positions, and without noise in a layer.
    """
    _, n_heads, total = attention.shape
    if n_heads < 2 or total <= top_k:
        return None
    logits = attention.clamp_min(torch.finfo(torch.float32).tiny).log()
    logits = logits - logits.mean(-1, keepdim=True)
    noise = logits.var(1, correction=1).mean(-1).sqrt()
    if float(noise.min()) == 0.0:
        return None
    ordered = logits.mean(1).sort(-1, descending=True).values
    return float(((ordered[:, top_k - 1] - ordered[:, top_k]) / noise).mean())
