"""Haystacks: sentences that must be found, hidden among others that fill the length."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from collectors.tasks.passage import Encode, Filling, Piece, TooLong, TooShort
from collectors.tasks.templates import templates

__all__ = ["Haystack", "essay", "fill_exactly", "repeated"]


@dataclass(frozen=True)
class Haystack:
    """Needles among filler sentences.

    The needles come first, then filler sentences until the room is passed; the last filler sentence is cut
    after the token that makes the length exact and ends the haystack. The needles go, whole and in their
    order, to random places between the filler sentences, never behind the cut one. Each sentence is
    tokenised by itself with the separator before it, so lengths add up.

    Attributes
    ----------
    needles : list of str
        Sentences that must be there.
    asked : list of bool
        Which of them the answer needs.
    filler : iterator of str
        The other sentences; endless, or as many as there are.
    separator : str
        Stands before each sentence.
    scarce : str
        What there is a limited number of, when the filler ends.
    """

    needles: list[str]
    asked: list[bool]
    filler: Iterator[str]
    separator: str
    scarce: str = "sentences"

    def fill(self, room: int, encode: Encode, generator: random.Random, between: Sequence[str]) -> Filling:
        """Fill the room, see `Body.fill`."""
        needles = [
            Piece(encode(self.separator + needle), asked)
            for needle, asked in zip(self.needles, self.asked, strict=True)
        ]
        room -= sum(len(needle.token_ids) for needle in needles)
        filler = fill_exactly(self.filler, self.separator, room, encode, self.scarce)
        return Filling(hide(needles, filler, generator))


def fill_exactly(
    sentences: Iterator[str], separator: str, room: int, encode: Encode, scarce: str
) -> list[Piece]:
    """Return sentences of exactly `room` tokens in all, the last one cut if need be."""
    if room < 0:
        raise TooShort(-room)
    filler: list[Piece] = []
    while room > 0:
        sentence = next(sentences, None)
        if sentence is None:
            raise TooLong(f"needs more than the {len(filler)} other {scarce}", room)
        filler.append(Piece(encode(separator + sentence)[:room]))
        room -= len(filler[-1].token_ids)
    return filler


def hide(needles: list[Piece], filler: list[Piece], generator: random.Random) -> list[Piece]:
    """Put each needle before a filler sentence of its own, drawn at random; the order of the needles stays.

    When there are fewer filler sentences than needles, several needles share one.
    """
    if len(filler) >= len(needles):
        places = sorted(generator.sample(range(len(filler)), k=len(needles)))
    else:
        places = sorted(generator.choices(range(max(len(filler), 1)), k=len(needles)))
    pieces = list(filler)
    for place, needle in zip(reversed(places), reversed(needles), strict=True):
        pieces.insert(place, needle)
    return pieces


def repeated(sentence: str) -> Iterator[str]:
    """Say the same sentence again and again."""
    while True:
        yield sentence


def essay(generator: random.Random) -> Iterator[str]:
    """Make sentences from patterns and word lists; every pattern is used once before any is used again."""
    table = templates()["essay"]
    patterns = list(table["sentences"])
    while True:
        generator.shuffle(patterns)
        for pattern in patterns:
            text = re.sub(r"\{(\w+)\}", lambda slot: generator.choice(table["words"][slot[1]]), pattern)
            yield text[0].upper() + text[1:]
