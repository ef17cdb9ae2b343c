"""Counting words: the common words of a numbered list, and the frequent words of a coded text."""

from __future__ import annotations

import math
import random
import string
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from collectors.tasks.passage import Encode, Filling, Passage, Piece, TooShort
from collectors.tasks.templates import templates

__all__ = ["CodedText", "NumberedList", "draw_coded_text", "draw_numbered_list"]

CODED_LENGTH = 6
ZETA_2 = math.pi**2 / 6


def draw_numbered_list(shape: dict[str, Any], generator: random.Random) -> Passage:
    """Draw the words of one example of the common-words task."""
    table = templates()
    form = table["common_words"]
    words = table["key"]["nouns"] + table["key"]["adjectives"]
    generator.shuffle(words := sorted(set(words)))
    common, rare = words[: shape["common"]], words[shape["common"] :]
    return Passage(
        instruction=form["instruction"],
        question=form["question"],
        prefix=form["prefix"],
        body=NumberedList(common, rare, shape["ratio"]),
        references=common,
        answer_room="".join(f" {number}. {word}" for number, word in enumerate(common, start=1)),
    )


@dataclass(frozen=True)
class NumberedList:
    """Words in random order with running numbers; the common ones stand there `ratio` times as often.

    With as many repetitions as the length asks for, from 1 on, the list holds all common words, then as
    many rare ones as there is room for. What is left of the room is filled with one rare word more, which
    stands there less often, and the last of which is cut.

    Attributes
    ----------
    common, rare : list of str
        The words.
    ratio : int
        How many times as often a common word stands there.
    """

    common: list[str]
    rare: list[str]
    ratio: int

    def fill(self, room: int, encode: Encode, generator: random.Random, between: Sequence[str]) -> Filling:
        """Fill the room, see `Body.fill`."""
        words = {word: encode(f" {word}") for word in [*self.common, *self.rare]}
        numbers: list[list[int]] = []

        def size(listed: list[str]) -> int:
            numbers.extend(encode(f" {number}.") for number in range(len(numbers) + 1, len(listed) + 1))
            return sum(len(numbers[place]) + len(words[word]) for place, word in enumerate(listed))

        def listing(repeats: int, n_rare: int) -> list[str]:
            return self.common * (self.ratio * repeats) + self.rare[:n_rare] * repeats

        # The last rare word is spared for the rest of the room.
        most = len(self.rare) - 1
        repeats = next(repeats for repeats in count(1) if size(listing(repeats, most)) >= room)
        while size(listing(repeats, 0)) > room:
            # The length between two numbers of repetitions that no number of rare words meets.
            repeats -= 1
            if repeats == 0:
                raise TooShort(size(listing(1, 0)) - room)
        n_rare = max(n for n in range(most + 1) if size(listing(repeats, n)) <= room)
        listed = listing(repeats, n_rare)
        generator.shuffle(listed)
        tokens = [numbers[place] + words[word] for place, word in enumerate(listed)]
        left = room - sum(map(len, tokens))
        for number in count(len(listed) + 1):
            if left == 0:
                break
            tokens.append((encode(f" {number}.") + words[self.rare[n_rare]])[:left])
            left -= len(tokens[-1])
        return Filling([Piece(item) for item in tokens])


def draw_coded_text(shape: dict[str, Any], generator: random.Random) -> Passage:
    """Draw the words of one example of the frequent-words task."""
    form = templates()["frequent_words"]
    vocabulary: dict[str, None] = {}
    while len(vocabulary) < shape["vocabulary"]:
        vocabulary["".join(generator.choices(string.ascii_lowercase, k=CODED_LENGTH))] = None
    words = list(vocabulary)
    frequent = words[: shape["frequent"]]
    return Passage(
        instruction=form["instruction"],
        question=form["question"],
        prefix=form["prefix"],
        body=CodedText(form["dots"], words, shape["frequent"]),
        references=frequent,
        answer_room=" " + ", ".join(frequent),
    )


@dataclass(frozen=True)
class CodedText:
    """Words in random order whose counts follow Zipf's law with exponent 2; the first rank are dots.

    Of N words, rank k stands there ``floor(N k^-2 / zeta(2))`` times. N is the largest that the room has
    place for and at which the last frequent word is more frequent than the next; dots fill the rest.

    Attributes
    ----------
    dots : str
        What is to be ignored, rank 1.
    words : list of str
        The words, from rank 2 on.
    frequent : int
        How many of them are asked for.
    """

    dots: str
    words: list[str]
    frequent: int

    def fill(self, room: int, encode: Encode, generator: random.Random, between: Sequence[str]) -> Filling:
        """Fill the room, see `Body.fill`."""
        ranked = [encode(f" {word}") for word in [self.dots, *self.words]]

        def counts(n_words: int) -> list[int]:
            return [int(n_words / rank**2 / ZETA_2) for rank in range(1, len(ranked) + 1)]

        def size(n_words: int) -> int:
            return sum(times * len(word) for times, word in zip(counts(n_words), ranked, strict=True))

        def told_apart(n_words: int) -> bool:
            times = counts(n_words)
            return times[self.frequent] > times[self.frequent + 1]

        least = next(n_words for n_words in count(1) if told_apart(n_words))
        if size(least) > room:
            raise TooShort(size(least) - room)
        # The dots alone are more than the room at twice as many words.
        n_words = bisect_right(range(2 * room + 2), room, key=size) - 1
        while not told_apart(n_words):
            n_words -= 1
        text = [word for word, times in zip(ranked, counts(n_words), strict=True) for _ in range(times)]
        left = room - size(n_words)
        dots = ranked[0]
        text += [dots] * (left // len(dots))
        generator.shuffle(text)
        return Filling([Piece(word) for word in text] + [Piece(dots[: left % len(dots)])])
