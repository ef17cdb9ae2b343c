"""Needles and haystacks: what is hidden, what is asked, and the sentences around it."""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from collectors.tasks.templates import templates

__all__ = ["Passage", "draw_passage"]


@dataclass(frozen=True)
class Passage:
    """The texts of one example, before they are cut to a length.

    Attributes
    ----------
    instruction, question, prefix : str
        What is said before the haystack and after it, and how the answer begins.
    needles : list of str
        Sentences that must be in the haystack, whole, in this order.
    filler : iterator of str
        The other sentences; endless, or as many as there are keys.
    separator : str
        Stands before each sentence of the haystack.
    references : list of str
        Values that the answer should contain.
    max_new_tokens : int
        Tokens enough for the answer.
    """

    instruction: str
    question: str
    prefix: str
    needles: list[str]
    filler: Iterator[str]
    separator: str
    references: list[str]
    max_new_tokens: int


def draw_passage(task: str, generator: random.Random) -> Passage:
    """Draw the texts of one example of a task."""
    table = templates()
    shape = table["tasks"][task]
    form, kind = table[shape["form"]], shape["kind"]
    pairs = key_value_pairs(kind, generator)
    keys, values = [], {}
    for _ in range(shape["keys"]):
        key, value = next(pairs)
        keys.append(key)
        values[key] = [value, *(next(pairs)[1] for _ in range(shape["values_per_key"] - 1))]
    needles = [statement(kind, key, value) for key in keys for value in values[key]]
    generator.shuffle(needles)
    asked = generator.sample(keys, shape["asked"])
    filler = {
        "noise": lambda: repeated(table["noise"]["sentence"]),
        "essay": lambda: essay(generator),
        "needles": lambda: (statement(kind, key, value) for key, value in pairs),
    }[shape["haystack"]]()
    return Passage(
        instruction=form["instruction"].format(kind=kind),
        question=form["question"].format(kind=kind, keys=enumerated(asked)),
        prefix=form["prefix"].format(kind=kind, keys=enumerated(asked)),
        needles=needles,
        filler=filler,
        separator=table["separator"][shape["haystack"]],
        references=[value for key in asked for value in values[key]],
        max_new_tokens=shape["max_new_tokens"],
    )


def statement(kind: str, key: str, value: str) -> str:
    return templates()["needle"]["statement"].format(kind=kind, key=key, value=value)


def enumerated(keys: list[str]) -> str:
    return keys[0] if len(keys) == 1 else f"{', '.join(keys[:-1])}, and {keys[-1]}"


def key_value_pairs(kind: str, generator: random.Random) -> Iterator[tuple[str, str]]:
    """Draw keys with values, no key and no value twice.

    Numbers have seven digits and keys of two words; for ``uuid`` key and value are version-4 UUIDs, which
    do not run out and do not meet.
    """
    if kind == "uuid":
        while True:
            yield random_uuid(generator), random_uuid(generator)
    words = templates()["key"]
    keys = [f"{adjective}-{noun}" for adjective in words["adjectives"] for noun in words["nouns"]]
    generator.shuffle(keys)
    values = generator.sample(range(1_000_000, 10_000_000), len(keys))
    yield from zip(keys, map(str, values), strict=True)


def random_uuid(generator: random.Random) -> str:
    return str(uuid.UUID(int=generator.getrandbits(128), version=4))


def repeated(sentence: str) -> Iterator[str]:
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
