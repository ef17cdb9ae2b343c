"""Lists of texts that were written down as numpy or Python prints them."""

from __future__ import annotations

import ast
import re

from kvstats.errors import InputError

__all__ = ["parse_printed_array"]

ESCAPE = r"\\(?:[\\'\"nrt]|x[0-9a-f]{2}|u(?!d[89a-f])[0-9a-f]{4}|U(?:0010|000[1-9a-f])[0-9a-f]{4})"
ELEMENT = re.compile(rf"'(?:[^'\\\x00-\x1f]|{ESCAPE})*'|\"(?:[^\"\\\x00-\x1f]|{ESCAPE})*\"")
BETWEEN = re.compile(r"\s*,\s*|\s+")
SHOWN = 60
"""Characters of the text that messages show."""


def parse_printed_array(text: str) -> list[str]:
    r"""Return the texts of a printed array.

    Parameters
    ----------
    text : str
        One dimension of texts in brackets, as ``str`` gives it of a numpy array (elements apart by blanks and
        line breaks) or of a list (by commas); each element as ``repr`` writes it.

    Returns
    -------
    list of str

    Raises
    ------
    InputError
        When the text is anything else: an array that numpy shortened with ``...``, elements that are no text,
        or two of them with nothing between, which Python would join.

    Examples
    --------
    >>> parse_printed_array("['12' \"it's\"\n 'a\\nb']")
    ['12', "it's", 'a\nb']
    >>> parse_printed_array("['12', '34']")
    ['12', '34']
    """
    if not (text.startswith("[") and text.endswith("]") and len(text) > 1):
        raise fault(text, "does not stand in brackets")
    inner = text[1:-1].strip()
    found: list[str] = []
    place = 0
    while place < len(inner):
        element = ELEMENT.match(inner, place)
        if element is None and inner.startswith("...", place):
            raise fault(text, "is shortened: elements are left out at ...")
        if element is None:
            raise fault(text, f"has an element that is no text: {inner[place : place + 10]}")
        found.append(ast.literal_eval(element[0]))
        gap = BETWEEN.match(inner, element.end())
        place = element.end() if gap is None else gap.end()
        if (gap is None) != (place == len(inner)):
            raise fault(text, f"does not go on or end behind {element[0]}")
    return found


def fault(text: str, what: str) -> InputError:
    shown = text if len(text) <= SHOWN else text[:SHOWN] + "..."
    return InputError.argument(
        "parse_printed_array", "text", shown, what, "write a list of texts as numpy or Python prints it"
    )
