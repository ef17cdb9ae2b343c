"""What an evictor decides: which positions of a cache are kept, and with which probability."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kvstats.errors import InputError

__all__ = ["Protected", "Selection", "keep_everything", "keep_highest"]


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
        Kept positions; a first or second axis of size 1 is shared by all layers or heads.
    inclusion_probability : Tensor of float, shape of `kept`
        Probability with which each position was to be kept; 1 where chance played no part.
    design : str
        ``deterministic``, ``uniform``, ``poisson``.
    score : Tensor of float, shape [1 or L, T - protected], optional
        Scores of the evictable positions that were ranked or sampled by.
    tail : slice
        The evictable positions.
    allocation : str, optional
        Rule by which the inclusion probabilities were allocated.
    """

    kept: Tensor
    inclusion_probability: Tensor
    design: str
    tail: slice
    score: Tensor | None = None
    allocation: str | None = None

    def logit_offsets(self, n_layers: int) -> Tensor:
        """Return what to add to the logits: log(1/pi) where kept, a large negative number where not.

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


def keep_highest(score: Tensor, total: int, budget: float, protected: Protected, design: str) -> Selection:
    """Keep the protected positions and the evictable ones of highest score; earlier ones win ties.

    Parameters
    ----------
    score : Tensor, shape [1 or L, T - protected]
        Scores of the evictable positions.
    total : int
        Tokens T of the cache.
    budget : float
        Fraction to keep, in (0, 1].
    protected : Protected
        Positions kept in any case; they alone are kept when the budget is smaller than they are.
    design : str
        Name of the design.
    """
    size = protected.tail_size(total, budget)
    tail = protected.tail(total)
    kept = torch.ones(score.shape[0], total, dtype=torch.bool)
    kept[:, tail] = False
    order = torch.sort(score, dim=-1, descending=True, stable=True).indices[:, :size]
    kept.scatter_(1, order + tail.start, True)
    return Selection(
        kept=kept[:, None],
        inclusion_probability=torch.ones(score.shape[0], 1, total),
        design=design,
        tail=tail,
        score=score,
    )
