"""Examples of the needle tasks, as token ids of an exact length."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase

from collectors.tasks.haystack import Passage, draw_passage
from collectors.tasks.templates import templates
from kvstats.errors import InputError, nearest_name

__all__ = ["TASKS", "Example", "example_id", "make_example"]

TASKS: tuple[str, ...] = tuple(templates()["tasks"])
"""Names of the tasks."""

MARK = "<<user turn>>"
FIXED_DATE = "01 January 2025"


@dataclass(frozen=True)
class Example:
    """One prompt with the answer that is hoped for.

    The prompt is ``context_ids + question_ids + prefix_ids``. The three pieces are tokenised apart, so no
    token straddles a border, and a cache can be compressed after the context or after the question.

    Attributes
    ----------
    task, input_id : str
        Name of the task, and ``{task}-{seed}-{index:04d}``.
    context_ids : list of int
        Begin of the chat, system turn if the template has one, instruction and haystack.
    question_ids : list of int
        The question, end of the user's turn and begin of the assistant's.
    prefix_ids : list of int
        How the answer begins, up to the values.
    references : list of str
        Values that the answer should contain.
    max_new_tokens : int
        Tokens enough for the answer.
    prompt : str
        The prompt decoded, for reading.
    """

    task: str
    input_id: str
    context_ids: list[int]
    question_ids: list[int]
    prefix_ids: list[int]
    references: list[str]
    max_new_tokens: int
    prompt: str


def example_id(task: str, seed: int, index: int) -> str:
    """Return the id of an example, ``{task}-{seed}-{index:04d}``."""
    return f"{task}-{seed}-{index:04d}"


def make_example(
    task: str, *, seed: int, index: int, length: int, tokenizer: PreTrainedTokenizerBase
) -> Example:
    """Make one example of a task, the same in every process.

    Needles are drawn first, then filler sentences until the length is passed; the last filler sentence is
    cut after the token that makes the length exact and ends the haystack. The needles go, whole, to random
    places between the filler sentences, never behind the cut one. Each sentence is tokenised by itself with
    the separator before it, so lengths add up and every length from the least on is met exactly.

    The chat template is applied once, to a mark in place of the user's text. Tokenising adds no special
    token, so a begin-of-sequence token is there once if the template writes one, and else not at all.

    Parameters
    ----------
    task : str
        One of `TASKS`, in the shape of RULER's needle tasks: ``niah_single`` (a repeated sentence around one
        needle), ``niah_multikey_1`` (an essay around 4 keys, one is asked), ``niah_multikey_2`` (all
        sentences are needles with other keys), ``niah_multikey_3`` (the same with UUIDs for keys and
        values), ``niah_multivalue`` (one key with 4 values) and ``niah_multiquery`` (4 keys, all asked).
    seed, index : int
        Not negative. Which example: other numbers, other needles, places and essay.
    length : int
        Tokens of the whole prompt.
    tokenizer : transformers.PreTrainedTokenizerBase
        A tokenizer with a chat template.

    Returns
    -------
    Example

    Raises
    ------
    InputError
        For an unknown task, a negative seed or index, a length that is too small (the message tells the
        least) or that needs more needles than there are keys, and a tokenizer without a chat template.

    References
    ----------
    Hsieh et al. (2024), RULER: What's the Real Context Size of Your Long-Context Language Models?,
    arXiv:2404.06654, section 3.1. The texts here are other ones.
    """
    if task not in TASKS:
        raise InputError.argument("make_example", "task", task, "is unknown", nearest_name(task, TASKS))
    for argument, value in (("seed", seed), ("index", index)):
        if value < 0:
            raise InputError.argument("make_example", argument, value, "is negative", "pass 0 or more")
    generator = random.Random(f"{task}/{seed}/{index}")
    passage = draw_passage(task, generator)

    def encode(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False)

    opening, closing = chat_frame(tokenizer)
    head = encode(opening + passage.instruction)
    question = encode(f"\n{passage.question}{closing}")
    prefix = encode(passage.prefix)
    needles = [encode(passage.separator + needle) for needle in passage.needles]
    least = sum(map(len, (head, question, prefix, *needles)))
    if length < least:
        raise InputError.argument(
            "make_example", "length", length, f"is too small for {task}", f"pass at least {least}"
        )
    filler = fill(task, passage, length, length - least, encode)
    context = head + [token for piece in hide(needles, filler, generator) for token in piece]
    return Example(
        task=task,
        input_id=example_id(task, seed, index),
        context_ids=context,
        question_ids=question,
        prefix_ids=prefix,
        references=passage.references,
        max_new_tokens=passage.max_new_tokens,
        prompt=tokenizer.decode(context + question + prefix),
    )


def chat_frame(tokenizer: PreTrainedTokenizerBase) -> tuple[str, str]:
    """Return what the chat template puts before and after the text of a single user turn."""
    if not tokenizer.chat_template:
        raise InputError.argument(
            "make_example",
            "tokenizer",
            tokenizer.name_or_path,
            "has no chat template",
            "take an instruction-tuned model",
        )
    chat = [{"role": "user", "content": MARK}]
    # Some templates write today's date unless they are given one; prompts must not change overnight.
    text = tokenizer.apply_chat_template(
        chat, tokenize=False, add_generation_prompt=True, date_string=FIXED_DATE
    )
    if text.count(MARK) != 1:
        raise InputError.argument(
            "make_example",
            "tokenizer",
            tokenizer.name_or_path,
            f"has a chat template that writes the user's text {text.count(MARK)} times",
            "take a model whose template writes it once",
        )
    opening, closing = text.split(MARK)
    return opening, closing


def fill(
    task: str, passage: Passage, length: int, room: int, encode: Callable[[str], list[int]]
) -> list[list[int]]:
    """Return filler sentences of exactly `room` tokens in all, the last one cut if need be."""
    filler: list[list[int]] = []
    while room > 0:
        sentence = next(passage.filler, None)
        if sentence is None:
            raise InputError.argument(
                "make_example",
                "length",
                length,
                f"needs more than the {len(filler)} other keys that {task} has",
                f"pass at most {length - room}",
            )
        filler.append(encode(passage.separator + sentence)[:room])
        room -= len(filler[-1])
    return filler


def hide(needles: list[list[int]], filler: list[list[int]], generator: random.Random) -> list[list[int]]:
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
