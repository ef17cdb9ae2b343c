"""Making the examples of a task: drawn from a seed, cut to a length, inside the chat template."""

from __future__ import annotations

import random
import zlib
from typing import Any

from transformers import PreTrainedTokenizerBase

from collectors.tasks.chat import chat_frame
from collectors.tasks.example import Example, example_id
from collectors.tasks.memory import draw_conversation
from collectors.tasks.needles import draw_needles
from collectors.tasks.passage import Passage, TooLong, TooShort
from collectors.tasks.records import draw_record
from collectors.tasks.sources import Source
from collectors.tasks.templates import templates
from collectors.tasks.variables import draw_variables
from collectors.tasks.words import draw_coded_text, draw_numbered_list
from kvstats.errors import InputError, nearest_name

__all__ = ["TASKS", "make_example"]

TASKS: tuple[str, ...] = tuple(templates()["tasks"])
"""Names of the tasks that need no data."""

SPARE_TOKENS = 4
"""Tokens beyond those of the answer itself: what may stand around it, and its end."""


def make_example(
    task: str,
    *,
    seed: int,
    index: int,
    length: int,
    tokenizer: PreTrainedTokenizerBase,
    source: Source | None = None,
) -> Example:
    """Make one example of a task, the same in every process.

    The sentences of the prompt are tokenised one by one, with the separator before them, so lengths add up;
    what must be in the context is drawn first, then filler until the length is passed, and the last piece of
    filler is cut after the token that makes the length exact. So every length from the least on is met. A
    text that comes from a file is cut in the middle when it is too long, and left as it is when it is
    shorter than asked for.

    The chat template is applied once, to marks in place of the user's texts. Tokenising adds no special
    token, so a begin-of-sequence token is there once if the template writes one, and else not at all.

    Parameters
    ----------
    task : str
        One of `TASKS`, or any name if there is a `source`. In the shape of RULER's tasks, under RULER's
        names: ``niah_single_1`` (a repeated sentence around one needle with a number; also as
        ``niah_single``, the same examples), ``niah_single_2`` (an essay around it), ``niah_single_3`` (an
        essay around a UUID), ``niah_multikey_1`` (an essay around 4 keys, one is asked), ``niah_multikey_2``
        (all sentences are needles with other keys), ``niah_multikey_3`` (the same with UUIDs for keys and
        values), ``niah_multivalue`` (one key with 4 values), ``niah_multiquery`` (4 keys, all asked), ``vt``
        (a chain of 5 variables with one value, hidden in noise), ``cwe`` (the 10 words of a list that stand
        there 6 times as often as the others) and ``fwe`` (the 3 most frequent words of a coded text whose
        counts follow Zipf's law). ``memory_10`` and ``memory_30`` are conversations of 10 and 30 turns with
        a fact in each, one of which is asked for; the ages of the facts spread evenly over the inputs.
    seed, index : int
        Not negative. Which example: other numbers, other needles, places and essay; of a source, which
        record.
    length : int
        Tokens of the whole prompt; of a text from a file the most.
    tokenizer : transformers.PreTrainedTokenizerBase
        A tokenizer with a chat template.
    source : Source, optional
        Where the inputs of the task come from.

    Returns
    -------
    Example

    Raises
    ------
    InputError
        For an unknown task, a negative seed or index, a length that is too small (the message tells the
        least) or that needs more filler than there is, a tokenizer without a chat template, and a source
        that cannot be used or has too few records.

    References
    ----------
    Hsieh et al. (2024), RULER: What's the Real Context Size of Your Long-Context Language Models?,
    arXiv:2404.06654, section 3. The texts here are other ones.
    """
    for argument, value in (("seed", seed), ("index", index)):
        if value < 0:
            raise InputError.argument("make_example", argument, value, "is negative", "pass 0 or more")
    if source is not None:
        generator = random.Random(f"{task}/{seed}/{index}")
        passage = draw_record(task, source, seed, index, generator)
        return assemble(task, passage, seed, index, length, tokenizer, generator)
    if task not in TASKS:
        raise InputError.argument("make_example", "task", task, "is unknown", nearest_name(task, TASKS))
    drawn_as = templates()["tasks"][task].get("same_as", task)
    generator = random.Random(f"{drawn_as}/{seed}/{index}")
    passage = draw_passage(drawn_as, generator, seed, index)
    return assemble(task, passage, seed, index, length, tokenizer, generator)


def draw_passage(task: str, generator: random.Random, seed: int, index: int) -> Passage:
    """Draw the texts of one example of a task that needs no data."""
    shape: dict[str, Any] = templates()["tasks"][task]
    match shape["family"]:
        case "needles":
            return draw_needles(shape, generator)
        case "variables":
            return draw_variables(shape, generator)
        case "common_words":
            return draw_numbered_list(shape, generator)
        case "frequent_words":
            return draw_coded_text(shape, generator)
        case _:
            return draw_conversation(shape, generator, zlib.crc32(f"{task}/{seed}".encode()), index)


def assemble(
    task: str,
    passage: Passage,
    seed: int,
    index: int,
    length: int,
    tokenizer: PreTrainedTokenizerBase,
    generator: random.Random,
) -> Example:
    """Cut a passage to a length and put it into the chat template."""

    def encode(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False))

    opening, *between, closing = chat_frame(tokenizer, passage.replies)
    context = encode(opening + passage.instruction)
    question = encode(f"{passage.junction}{passage.question}{closing}")
    prefix = encode(passage.prefix)
    try:
        filling = passage.body.fill(
            length - len(context) - len(question) - len(prefix), encode, generator, between
        )
    except TooShort as error:
        raise InputError.argument(
            "make_example",
            "length",
            length,
            f"is too small for {task}",
            f"pass at least {length + error.missing}",
        ) from None
    except TooLong as error:
        raise InputError.argument(
            "make_example",
            "length",
            length,
            f"{error.fault} that {task} has",
            f"pass at most {length - error.surplus}",
        ) from None
    spans = []
    for piece in filling.pieces:
        if piece.answers:
            spans.append((len(context), len(context) + len(piece.token_ids)))
        context += piece.token_ids
    answer = passage.answer_room
    return Example(
        task=task,
        input_id=example_id(task, seed, index),
        context_ids=context,
        question_ids=question,
        prefix_ids=prefix,
        references=passage.references,
        max_new_tokens=len(encode(answer)) + SPARE_TOKENS if isinstance(answer, str) else answer,
        prompt=str(tokenizer.decode(context + question + prefix)),
        answer_spans=spans,
        no_context_ids=encode(opening + passage.question + closing) + prefix,
        signals=passage.signals | filling.signals,
        metric=passage.metric,
        classes=passage.classes,
    )
