"""Pairs of heads: their order, and random subsets of them."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from kvstats.errors import InputError
from kvstats.statistics.statistic import IntArray

__all__ = ["head_pairs", "pair_draws"]


def head_pairs(n_pairs: int) -> list[tuple[int, int]]:
    """Return the pairs of heads in the order of the log contract, from how many there are.

    Raises
    ------
    InputError
        When no number of heads H has H (H - 1) / 2 pairs.

    Examples
    --------
    >>> head_pairs(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    heads = (1 + math.isqrt(1 + 8 * max(n_pairs, 0))) // 2
    if n_pairs < 1 or heads * (heads - 1) // 2 != n_pairs:
        raise InputError.argument(
            "head_pairs", "n_pairs", n_pairs, "is no H (H - 1) / 2", "record every pair of heads, each once"
        )
    return list(combinations(range(heads), 2))


def pair_draws(
    n_pairs: int, *, heads: int | None = None, pairs: int | None = None, draws: int = 20, seed: int = 0
) -> list[IntArray]:
    """Draw subsets of the pairs of heads, without replacement within a draw.

    Parameters
    ----------
    n_pairs : int
        How many pairs there are.
    heads, pairs : int
        Either the number of heads to draw, of which all pairs are used, at least 2; or the number of pairs.
    draws : int, default 20
        How many subsets.
    seed : int, default 0
        The subsets depend on it, on `n_pairs` and on the size, and on nothing else.

    Returns
    -------
    list of arrays of int
        Indices of pairs, one array a draw.

    Raises
    ------
    InputError
        When not one of the two sizes is given, or a number is out of range.

    Examples
    --------
    >>> [draw.size for draw in pair_draws(6, heads=3, draws=2)]
    [3, 3]
    >>> [draw.size for draw in pair_draws(6, pairs=2, draws=3)]
    [2, 2, 2]
    """
    named = head_pairs(n_pairs)
    n_heads = named[-1][1] + 1
    if (heads is None) == (pairs is None):
        raise InputError.argument(
            "pair_draws", "heads, pairs", (heads, pairs), "are both or neither given", "pass one of them"
        )
    for argument, value, least, most in (
        ("heads", heads, 2, n_heads),
        ("pairs", pairs, 1, n_pairs),
        ("draws", draws, 1, None),
        ("seed", seed, 0, None),
    ):
        known = isinstance(value, int) and not isinstance(value, bool)
        if value is not None and not (known and value >= least and (most is None or value <= most)):
            bound = f"at least {least}" if most is None else f"from {least} to {most}"
            raise InputError.argument(
                "pair_draws", argument, value, f"is no whole number {bound}", "pass one"
            )
    generator = np.random.default_rng([seed, n_pairs, heads or 0, pairs or 0])
    if pairs is not None:
        return [np.sort(generator.choice(n_pairs, pairs, replace=False)) for _ in range(draws)]
    subsets = []
    for _ in range(draws):
        chosen = set(generator.choice(n_heads, heads, replace=False).tolist())
        subsets.append(np.array([i for i, pair in enumerate(named) if chosen.issuperset(pair)]))
    return subsets
