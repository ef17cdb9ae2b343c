"""Variable tracking: a chain of assignments hidden in noise, all variables of the chain are asked for."""

from __future__ import annotations

import random
import string
from itertools import pairwise
from typing import Any

from collectors.tasks.haystack import Haystack, repeated
from collectors.tasks.passage import Passage
from collectors.tasks.templates import templates

__all__ = ["draw_variables"]

NAME_LENGTH = 5


def draw_variables(shape: dict[str, Any], generator: random.Random) -> Passage:
    """Draw the texts of one example: a worked example without noise, then the chain to be hidden."""
    table = templates()
    form = table["variables"]
    names = variable_names(2 * shape["variables"], generator)
    shown, chain = names[: shape["variables"]], names[shape["variables"] :]
    shown_value, value = map(str, generator.sample(range(10_000, 100_000), 2))
    worked = form["worked"].format(
        lines="\n".join(assignments(shown, shown_value)), value=shown_value, names=", ".join(shown)
    )
    needles = assignments(chain, value)
    return Passage(
        instruction=worked + form["instruction"],
        question=form["question"].format(value=value),
        prefix=form["prefix"].format(value=value),
        body=Haystack(
            needles=needles,
            asked=[True] * len(needles),
            filler=repeated(table["noise"]["sentence"]),
            separator=table["separator"]["noise"],
        ),
        references=chain,
        answer_room=" " + ", ".join(chain),
    )


def assignments(names: list[str], value: str) -> list[str]:
    """Assign a value to the first variable, and each variable to the next."""
    form = templates()["variables"]
    first = form["first"].format(name=names[0], value=value)
    return [first, *(form["next"].format(name=name, source=source) for source, name in pairwise(names))]


def variable_names(count: int, generator: random.Random) -> list[str]:
    """Draw different names of five capital letters."""
    names: dict[str, None] = {}
    while len(names) < count:
        names["".join(generator.choices(string.ascii_uppercase, k=NAME_LENGTH))] = None
    return list(names)
