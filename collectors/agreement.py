"""Head agreement: how far the heads of a layer look at the same keys, and how that drops with depth."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kvstats.errors import InputError

__all__ = ["HeadAgreement", "head_agreement", "pair_agreement", "top_keys"]


@dataclass(frozen=True)
class HeadAgreement:
    """Agreement by layer, and its drop.

    Attributes
    ----------
    per_layer : list of float, length L
        Mean Jaccard index over all pairs of heads, in [0, 1].
    drop : float
        D: mean of the first floor(L/3) layers minus mean of the last floor(L/3), in [-1, 1].
    top_k, bin_layers : int
        Keys per head, and layers per bin.
    """

    per_layer: list[float]
    drop: float
    top_k: int
    bin_layers: int


def top_keys(attention: Tensor, top_k: int) -> Tensor:
    """Mark the top keys of each head; among equal values the earlier position wins.

    Parameters
    ----------
    attention : Tensor, shape [..., T]
        Attention averaged over a window of queries.
    top_k : int
        How many keys to mark.

    Returns
    -------
    Tensor of bool, shape [..., T]
    """
    lowest = attention.topk(top_k, dim=-1).values[..., -1:]
    member = attention >= lowest
    if int(member.sum(-1).max()) > top_k:
        above, equal = attention > lowest, attention == lowest
        room = top_k - above.sum(-1, keepdim=True)
        member = above | (equal & (equal.cumsum(-1) <= room))
    return member


def head_agreement(attention: Tensor, *, top_k: int = 32, candidates: Tensor | None = None) -> HeadAgreement:
    r"""Mean pairwise Jaccard index of the heads' top-k key sets, by layer, and its drop D.

    .. math:: J_{gh} = \frac{|K_g \cap K_h|}{|K_g \cup K_h|}, \quad
        A_l = \binom{H}{2}^{-1} \sum_{g<h} J_{gh}, \quad D = \bar A_{early} - \bar A_{late}

    Parameters
    ----------
    attention : Tensor, shape [L, H, T]
        Window-averaged attention.
    top_k : int, default 32
        Keys per head.
    candidates : Tensor of bool, shape [T], optional
        Positions that may be top keys; all by default.

    Returns
    -------
    HeadAgreement

    Raises
    ------
    InputError
        Fewer than 3 layers or 2 heads, or fewer candidates than `top_k`.

    Notes
    -----
    One product of the 0/1 indicators by layer gives all intersections; as all sets have k keys, the union
    is 2k minus the intersection. Both bins have floor(L/3) layers, whatever L.

    References
    ----------
    PAGE: Partition-Aware Gated KV-Cache Eviction, the definition of D.

    Examples
    --------
    >>> same = torch.tensor([[.5, .3, .2, 0], [.5, .3, .2, 0]])
    >>> apart = torch.tensor([[.5, .3, 0, 0], [0, 0, .3, .5]])
    >>> head_agreement(torch.stack([same, same, apart]), top_k=2)
    HeadAgreement(per_layer=[1.0, 1.0, 0.0], drop=1.0, top_k=2, bin_layers=1)
    """
    n_layers, n_heads, total = attention.shape
    if n_layers < 3 or n_heads < 2:
        raise InputError.argument(
            "head_agreement",
            "attention",
            tuple(attention.shape),
            "has fewer than 3 layers or 2 heads",
            "D is undefined for this model",
        )
    eligible = total if candidates is None else int(candidates.sum())
    if not 1 <= top_k <= eligible:
        raise InputError.argument(
            "head_agreement",
            "top_k",
            top_k,
            f"is not in [1, {eligible}], the number of candidate positions",
            "lower top_k or lengthen the input",
        )
    if candidates is not None:
        attention = attention[..., candidates]
    per_layer = pair_jaccards(attention, top_k).mean(-1)
    bin_layers = n_layers // 3
    drop = per_layer[:bin_layers].mean() - per_layer[-bin_layers:].mean()
    return HeadAgreement(per_layer.tolist(), float(drop), top_k, bin_layers)


def pair_agreement(attention: Tensor, *, top_k: int = 32) -> list[list[float]]:
    """Jaccard index of the top-k key sets of each pair of heads, by layer.

    Parameters
    ----------
    attention : Tensor, shape [L, H, T]
        Window-averaged attention.
    top_k : int, default 32
        Keys per head, at most T.

    Returns
    -------
    list of list of float, shape [L][H(H - 1)/2]
        In [0, 1], rounded to 4 digits; pairs in the order (0, 1), (0, 2), ..., (1, 2), .... The mean of a
        layer is that of `head_agreement` over all positions.

    Examples
    --------
    >>> pair_agreement(torch.tensor([[[.5, .3, .2, 0], [.5, .3, .2, 0], [0, .2, .3, .5]]]), top_k=2)
    [[1.0, 0.0, 0.0]]
    """
    return [[round(pair, 4) for pair in layer] for layer in pair_jaccards(attention, top_k).tolist()]


def pair_jaccards(attention: Tensor, top_k: int) -> Tensor:
    """Return the Jaccard index of each pair of heads, shape [L, H(H - 1)/2], upper triangle by rows."""
    member = top_keys(attention, top_k).to(torch.float64)
    common = member @ member.transpose(-1, -2)
    jaccard = common / (2 * top_k - common)
    n_heads = attention.shape[1]
    first, second = torch.triu_indices(n_heads, n_heads, offset=1)
    return jaccard[:, first, second]
