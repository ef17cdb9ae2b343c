"""How many evictable positions each layer, or each head of a layer, keeps."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["head_sizes", "pyramid_sizes"]


def pyramid_sizes(mean_size: int, n_layers: int, n_evictable: int, beta: float) -> Tensor:
    r"""Sizes that fall in a straight line from the first layer to the last.

    .. math:: m_l = m_0 - \frac{l}{L - 1} (m_0 - m_{L-1}), \qquad m_{L-1} = \frac m \beta, \quad
        m_0 = 2 m - m_{L-1}

    Where the first layer would keep more than there is, it keeps all and the last one 2m less that, so that
    the mean stays m. Fractions are rounded so that the sizes sum to L m exactly: down, and up for the
    largest fractions, earlier layers first.

    Parameters
    ----------
    mean_size : int
        Mean m over layers, in [0, n_evictable].
    n_layers : int
        Number of layers L, at least 1.
    n_evictable : int
        Most that a layer can keep.
    beta : float
        How steep, at least 1; 1 gives every layer the same.

    Returns
    -------
    Tensor of int, shape [L]

    References
    ----------
    Cai et al. (2024), PyramidKV: Dynamic KV Cache Compression based on Pyramidal Information Funneling,
    section 4.2.

    Examples
    --------
    >>> pyramid_sizes(10, 5, 100, beta=5)
    tensor([18, 14, 10,  6,  2])
    >>> pyramid_sizes(10, 5, 15, beta=5)
    tensor([15, 13, 10,  7,  5])
    """
    last = max(mean_size / beta, 2 * mean_size - n_evictable)
    slope = torch.linspace(1.0, -1.0, n_layers, dtype=torch.float64) if n_layers > 1 else torch.zeros(1)
    exact = mean_size + (mean_size - last) * slope
    sizes = exact.floor().to(torch.int64)
    order = torch.sort(exact - sizes, descending=True, stable=True).indices
    sizes[order[: n_layers * mean_size - int(sizes.sum())]] += 1
    return sizes


def head_sizes(score: Tensor, mean_size: int, floor: float) -> Tensor:
    r"""Give the heads of a layer unequal sizes: the layer's highest scores decide, above a floor.

    Each head keeps its :math:`\lfloor f m \rfloor` best positions. The rest of the :math:`H m` places of
    the layer go to the highest scores among all that is left, whichever head they are of; of equal ones,
    the lower head and then the earlier position come first.

    Parameters
    ----------
    score : Tensor, shape [L, H, n]
        Scores that compare across the heads of a layer.
    mean_size : int
        Mean m over heads, in [0, n].
    floor : float
        Share f of the mean that every head keeps, in [0, 1]; 1 gives every head the same.

    Returns
    -------
    Tensor of int, shape [L, H]

    References
    ----------
    Feng et al. (2024), Ada-KV: Optimizing KV Cache Eviction by Adaptive Budget Allocation, algorithm 1.

    Examples
    --------
    >>> head_sizes(torch.tensor([[[9.0, 8.0, 7.0, 6.0], [5.0, 4.0, 3.0, 2.0]]]), 2, floor=0.5)
    tensor([[3, 1]])
    """
    n_layers, n_heads, n = score.shape
    order = torch.sort(score, dim=-1, descending=True, stable=True).indices
    best = torch.zeros_like(score, dtype=torch.bool).scatter_(-1, order[..., : int(floor * mean_size)], True)
    pooled = score.masked_fill(best, float("inf")).reshape(n_layers, -1)
    kept = torch.sort(pooled, dim=-1, descending=True, stable=True).indices[:, : n_heads * mean_size]
    return torch.stack([torch.bincount(heads, minlength=n_heads) for heads in kept // n])
