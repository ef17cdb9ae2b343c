"""Memory of an agent: a conversation in which every turn tells a fact, one of which is asked for."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from collectors.tasks.haystack import essay, fill_exactly
from collectors.tasks.passage import Encode, Filling, Passage, Piece, TooShort
from collectors.tasks.templates import templates

__all__ = ["Conversation", "draw_conversation", "fact_age"]

GOLDEN = (math.sqrt(5) - 1) / 2


def fact_age(turns: int, offset: int, index: int) -> int:
    """Return how many turns ago the fact that input `index` asks for was told, from 1 to `turns`.

    Every `turns` consecutive inputs have every age once, and any number of them spreads evenly: the ages
    step by a number without common divisor with `turns`, near the golden section of it.
    """
    step = next(
        step
        for step in sorted(range(1, turns + 1), key=lambda step: abs(step - GOLDEN * turns))
        if math.gcd(step, turns) == 1
    )
    return 1 + (offset + index * step) % turns


def draw_conversation(shape: dict[str, Any], generator: random.Random, offset: int, index: int) -> Passage:
    """Draw the texts of one example: facts, chatter, and the fact that is asked for."""
    table = templates()
    form, turns = table["memory"], shape["turns"]
    keys = generator.sample(table["key"]["nouns"], turns)
    values = [str(value) for value in generator.sample(range(10_000, 100_000), turns)]
    age = fact_age(turns, offset, index)
    asked = turns - age
    return Passage(
        instruction=form["instruction"],
        question=form["question"].format(key=keys[asked]),
        prefix=form["prefix"].format(key=keys[asked]),
        body=Conversation(
            facts=[
                form["fact"].format(key=key, value=value) for key, value in zip(keys, values, strict=True)
            ],
            asked=asked,
            chatter=essay(generator),
        ),
        references=[values[asked]],
        answer_room=f" {values[asked]}",
        signals={"turns": float(turns), "fact_age": float(age)},
        replies=(form["reply"],) * turns,
        junction="",
    )


@dataclass(frozen=True)
class Conversation:
    """Turns of the user, each a fact and some chatter, with the assistant's replies between them.

    The chatter is dealt to the turns, one sentence after the other from a random turn on, and the last
    sentence is cut.

    Attributes
    ----------
    facts : list of str
        One for each turn.
    asked : int
        Which of them the answer needs.
    chatter : iterator of str
        Endless sentences.
    """

    facts: list[str]
    asked: int
    chatter: Iterator[str]

    def fill(self, room: int, encode: Encode, generator: random.Random, between: Sequence[str]) -> Filling:
        """Fill the room, see `Body.fill`."""
        separator = templates()["separator"]["essay"]
        turns = [
            [Piece(encode(separator * (turn == 0) + fact), turn == self.asked)]
            for turn, fact in enumerate(self.facts)
        ]
        ends = [Piece(encode(text)) for text in between]
        room -= sum(len(piece.token_ids) for turn in turns for piece in turn)
        room -= sum(len(piece.token_ids) for piece in ends)
        if room < 0:
            raise TooShort(-room)
        first = generator.randrange(len(turns))
        for number, sentence in enumerate(fill_exactly(self.chatter, separator, room, encode, "sentences")):
            turns[(first + number) % len(turns)].append(sentence)
        return Filling([piece for turn, end in zip(turns, ends, strict=True) for piece in [*turn, end]])
