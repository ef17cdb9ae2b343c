"""What an evictor decides: which positions of a cache are kept, and with which probability."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kvstats.errors import InputError

__all__ = ["Protected", "Selection", "by_query_head", "keep_everything"]


@dataclass(frozen=True)
class Protected:
    """Positions that are always kept.

    Attributes
    ----------
    sinks : int
        First positions.
    recents : int
        Last positions.
    """

    sinks: int = 4
    recents: int = 32

    @property
    def count(self) -> int:
        """Number of protected positions."""
        return self.sinks + self.recents

    def tail(self, total: int) -> slice:
        """Return the evictable positions of a cache of `total` tokens.

        Raises
        ------
        InputError
            When the cache holds none.
        """
        if total <= self.count:
            raise InputError.argument(
                "Protected.tail",
                "total",
                total,
                f"leaves nothing to evict beside {self.count} protected tokens",
                "lengthen the input",
            )
        return slice(self.sinks, total - self.recents)

    def tail_size(self, total: int, budget: float) -> int:
        """Return how many evictable positions a budget keeps: round(budget * total) less the protected."""
        return max(0, round(budget * total) - self.count)


@dataclass(frozen=True)
class Selection:
    """The kept positions of a cache.

    Attributes
    ----------
    kept : Tensor of bool, shape [1 or L, 1 or H, T]
        Kept positions; a first or second axis of size 1 is shared by all layers or query heads.
    inclusion_probability : Tensor of float, shape of `kept`
        Probability with which each position was to be kept; 1 where chance played no part.
    design : str
        ``deterministic``, ``uniform``, ``poisson``, ``conditional_poisson``.
    tail : slice
        The evictable positions.
    score : Tensor of float, shape of `kept` over the tail, optional
        Scores of the evictable positions that were ranked or sampled by.
    allocation : str, optional
        Rule by which sizes or inclusion probabilities were allocated.
    offset : bool
        Whether the logits of what was kept get log(1/pi), which makes the read the Hájek estimate.
    """

    kept: Tensor
    inclusion_probability: Tensor
    design: str
    tail: slice
    score: Tensor | None = None
    allocation: str | None = None
    offset: bool = True

    def logit_offsets(self, n_layers: int) -> Tensor:
        """Return what to add to the logits: log(1/pi) where kept, a large negative number where not.

        Without `offset` it is 0 where kept.

        Parameters
        ----------
        n_layers : int
            Number of layers L.

        Returns
        -------
        Tensor of float32, shape [L, 1 or H, T]
        """
        evicted = torch.finfo(torch.float32).min
        weight = -torch.log(self.inclusion_probability.to(torch.float64)).to(torch.float32)
        if not self.offset:
            weight = torch.zeros_like(weight)
        offsets = torch.where(self.kept, weight, torch.full_like(weight, evicted))
        return offsets.expand(n_layers, -1, -1)

    @property
    def kept_fraction(self) -> float:
        """Fraction of the cache that was kept, averaged over layers and heads."""
        return float(self.kept.to(torch.float64).mean())


def keep_everything(total: int, protected: Protected) -> Selection:
    """Return the selection of the full cache."""
    return Selection(
        kept=torch.ones(1, 1, total, dtype=torch.bool),
        inclusion_probability=torch.ones(1, 1, total),
        design="deterministic",
        tail=protected.tail(total),
    )


def by_query_head(values: Tensor, n_heads: int) -> Tensor:
    """Repeat [.., 1 or H_kv, n] for the query heads of each key head; an axis of size 1 stays shared."""
    n_key_heads = values.shape[1]
    return values if n_key_heads == 1 else values.repeat_interleave(n_heads // n_key_heads, dim=1)
