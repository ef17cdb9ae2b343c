"""Inclusion probabilities of a cache whose evictable positions are sampled."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from collectors.evictors.selection import Protected
from kvstats.errors import InputError
from kvstats.statistics.allocation import proportional_inclusion

__all__ = ["check_floor", "inclusion_probability"]


def inclusion_probability(
    evictor: str,
    score: Tensor,
    expected: float,
    budget: float,
    total: int,
    protected: Protected,
    *,
    floor: float,
    rule: Literal["iterated", "one_pass"] = "iterated",
) -> Tensor:
    """Return probabilities proportional to the scores, 1 for the protected positions.

    Parameters
    ----------
    evictor : str
        Named in errors.
    score : Tensor of float64, shape [1 or L, 1 or H_kv, T - protected]
        Scores of the evictable positions, none negative.
    expected : float
        How many of them are to be kept, by layer and head, in expectation.
    budget : float
        The budget that this number comes from, named in errors.
    total : int
        Tokens T of the cache.
    protected : Protected
        Positions kept in any case.
    floor, rule
        As in `kvstats.statistics.allocation.proportional_inclusion`.

    Returns
    -------
    Tensor of float64, shape [1 or L, 1 or H_kv, T]

    Raises
    ------
    InputError
        When the budget does not exceed the protected positions, or a score is negative.
    """
    if expected <= 0:
        raise InputError.argument(
            f"{evictor}.select",
            "budget",
            budget,
            f"of {total} tokens does not exceed {protected.count} protected",
            "raise the budget or lengthen the input",
        )
    pi = torch.ones(*score.shape[:2], total, dtype=torch.float64)
    pi[..., protected.tail(total)] = proportional_inclusion(score, expected, floor=floor, rule=rule)
    return pi


def check_floor(evictor: str, floor: float) -> None:
    """Refuse a floor that is no probability."""
    if not 0 < floor <= 1:
        raise InputError.argument(evictor, "floor", floor, "is not in (0, 1]", "pass a small probability")
