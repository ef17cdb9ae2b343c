"""Needle tasks: magic numbers or UUIDs for keys, hidden in noise, in an essay or among needles."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from typing import Any

from collectors.tasks.haystack import Haystack, essay, repeated
from collectors.tasks.passage import Passage
from collectors.tasks.templates import templates

__all__ = ["draw_needles", "enumerated", "key_value_pairs", "word_keys"]


def draw_needles(shape: dict[str, Any], generator: random.Random) -> Passage:
    """Draw the texts of one example of a needle task, of the shape that ``templates.toml`` gives."""
    table = templates()
    form, kind = table[shape["form"]], shape["kind"]
    pairs = key_value_pairs(shape["key"], kind, generator)
    keys, values = [], {}
    for _ in range(shape["keys"]):
        key, value = next(pairs)
        keys.append(key)
        values[key] = [value, *(next(pairs)[1] for _ in range(shape["values_per_key"] - 1))]
    needles = [(key, statement(kind, key, value)) for key in keys for value in values[key]]
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
        body=Haystack(
            needles=[text for _, text in needles],
            asked=[key in asked for key, _ in needles],
            filler=filler,
            separator=table["separator"][shape["haystack"]],
            scarce="keys",
        ),
        references=[value for key in asked for value in values[key]],
        answer_room=shape["max_new_tokens"],
    )


def statement(kind: str, key: str, value: str) -> str:
    return str(templates()["needle"]["statement"].format(kind=kind, key=key, value=value))


def enumerated(keys: list[str]) -> str:
    """Join names as in a sentence."""
    return keys[0] if len(keys) == 1 else f"{', '.join(keys[:-1])}, and {keys[-1]}"


def word_keys(generator: random.Random) -> list[str]:
    """Return all keys of an adjective and a noun, shuffled."""
    words = templates()["key"]
    keys = [f"{adjective}-{noun}" for adjective in words["adjectives"] for noun in words["nouns"]]
    generator.shuffle(keys)
    return keys


def key_value_pairs(key: str, kind: str, generator: random.Random) -> Iterator[tuple[str, str]]:
    """Draw keys with values, no key and no value twice.

    Numbers have seven digits and keys of words two words; UUIDs are of version 4, which do not run out and
    do not meet.
    """
    if key == "uuid":
        while True:
            yield random_uuid(generator), random_uuid(generator)
    keys = word_keys(generator)
    if kind == "uuid":
        yield from ((word_key, random_uuid(generator)) for word_key in keys)
    else:
        values = generator.sample(range(1_000_000, 10_000_000), len(keys))
        yield from zip(keys, map(str, values), strict=True)


def random_uuid(generator: random.Random) -> str:
    return str(uuid.UUID(int=generator.getrandbits(128), version=4))
