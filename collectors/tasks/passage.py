"""What an example consists of before it is cut to a length."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["Body", "Encode", "Filling", "Passage", "Piece", "TooLong", "TooShort"]

Encode = Callable[[str], list[int]]
"""From a text to its token ids, without special tokens of the tokenizer's own."""


@dataclass(frozen=True)
class Piece:
    """Tokens of the context that belong together, such as a sentence.

    Attributes
    ----------
    token_ids : list of int
        The tokens.
    answers : bool
        Whether the answer needs it.
    """

    token_ids: list[int]
    answers: bool = False


@dataclass(frozen=True)
class Filling:
    """The pieces of a context, in order, and what is known of it.

    Attributes
    ----------
    pieces : list of Piece
        The pieces.
    signals : dict of str to float
        Facts to be logged.
    """

    pieces: list[Piece]
    signals: dict[str, float] = field(default_factory=dict)


class TooShort(Exception):
    """The length has no room for what must be in the context; `missing` tokens more are needed."""

    def __init__(self, missing: int) -> None:
        super().__init__(missing)
        self.missing = missing


class TooLong(Exception):
    """There is nothing to fill the length with; `surplus` tokens less can be filled."""

    def __init__(self, fault: str, surplus: int) -> None:
        super().__init__(fault, surplus)
        self.fault = fault
        self.surplus = surplus


class Body(Protocol):
    """What stands between the instruction and the question."""

    def fill(self, room: int, encode: Encode, generator: random.Random, between: Sequence[str]) -> Filling:
        """Fill `room` tokens exactly, or fewer if the text is given and shorter.

        Parameters
        ----------
        room : int
            Tokens; negative if the rest of the prompt is too long already.
        encode : Encode
            The tokenizer.
        generator : random.Random
            For what is drawn.
        between : sequence of str
            What the chat template puts after each turn of the user but the last.

        Raises
        ------
        TooShort, TooLong
        """
        ...


@dataclass(frozen=True)
class Passage:
    """The texts of one example.

    Attributes
    ----------
    instruction, question, prefix : str
        What is said before the body and after it, and how the answer begins.
    body : Body
        What stands between them.
    references : list of str
        What the answer is held against.
    answer_room : int or str
        Tokens enough for the answer; or an answer in full, of which the tokens are counted.
    metric : str
        How the answer is scored, a key of `collectors.tasks.score.METRICS`.
    classes : list of str
        The classes between which the answer chooses.
    signals : dict of str to float
        Facts to be logged.
    replies : tuple of str
        What the assistant says after each turn of the user but the last.
    junction : str
        Stands between body and question.
    """

    instruction: str
    question: str
    prefix: str
    body: Body
    references: list[str]
    answer_room: int | str
    metric: str = "match_all"
    classes: list[str] = field(default_factory=list)
    signals: dict[str, float] = field(default_factory=dict)
    replies: tuple[str, ...] = ()
    junction: str = "\n"
