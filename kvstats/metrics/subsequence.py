"""Longest common subsequences, which ROUGE-L and the similarity of code count."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

__all__ = ["common_length", "common_subsequence"]

Item = TypeVar("Item", bound=Hashable)


def common_length(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Return the length of the longest common subsequence of two sequences.

    Parameters
    ----------
    first, second : sequence of hashable
        Texts, or lists of words.

    Returns
    -------
    int
        From 0 to the length of the shorter one.

    References
    ----------
    Hyyrö (2004), Bit-parallel LCS-length computation revisited, AWOCA, figure 3: one step an item of
    `second`, on integers of as many bits as `first` has items.

    Examples
    --------
    >>> common_length("harm rate", "hard gate")
    7
    """
    return len(first) - columns(first, second)[-1].bit_count()


def common_subsequence(first: Sequence[Item], second: Sequence[Item]) -> list[Item]:
    """Return the longest common subsequence of two sequences.

    Of several it is the one found from the ends backwards, by leaving out an item of `second` rather than one
    of `first`.

    Examples
    --------
    >>> "".join(common_subsequence("abcb", "bca"))
    'bc'
    """
    kept = columns(first, second)

    def length(i: int, j: int) -> int:
        return i - (kept[j] & ((1 << i) - 1)).bit_count()

    found: list[Item] = []
    i, j = len(first), len(second)
    while i and j:
        if first[i - 1] == second[j - 1]:
            i, j = i - 1, j - 1
            found.append(first[i])
        elif length(i - 1, j) > length(i, j - 1):
            i -= 1
        else:
            j -= 1
    return found[::-1]


def columns(first: Sequence[Hashable], second: Sequence[Hashable]) -> list[int]:
    """Return the table of lengths, column by column of `second`: bit i is 0 where item i makes it longer."""
    places: dict[Hashable, int] = {}
    for place, item in enumerate(first):
        places[item] = places.get(item, 0) | 1 << place
    all_bits = (1 << len(first)) - 1
    found = [all_bits]
    for item in second:
        before = found[-1]
        matched = before & places.get(item, 0)
        found.append(((before + matched) | (before - matched)) & all_bits)
    return found
