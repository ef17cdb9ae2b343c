"""Metrics of InfiniteBench's tasks: rules for where in an answer to look for what."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from kvstats.errors import InputError
from kvstats.metrics.references import require_references

__all__ = [
    "bug_choice",
    "first_number",
    "last_number",
    "letter_choice",
    "number_value",
    "speaker",
    "whole_word",
]

SEPARATORS = str.maketrans(dict.fromkeys("\n:\"'.,?!{}", " "))
CHOICE_SEPARATORS = str.maketrans(dict.fromkeys("\n\"'.,?!{}", " "))
CODE_SEPARATORS = str.maketrans(dict.fromkeys("\n.`'\":", " "))
BUG_SEPARATORS = str.maketrans(dict.fromkeys("\n`'\"-*", " "))
SPACES = re.compile(" +")
DIGITS = re.compile(r"[0-9]+")
NUMBER = re.compile(r"\d+\.\d+|\d+")
WHOLE = re.compile(r"[+-]?\d+")

CHOICE_PREFIXES = ("answer is:", "answer:", "answer is", "option is")
BUG_PREFIXES = ("answer is:", "is:", "answer:")


def whole_word(prediction: str, references: Sequence[str]) -> float:
    """Return 1 if a reference is a word of the answer; words are parted by spaces and punctuation.

    Parameters
    ----------
    prediction : str
        The answer.
    references : sequence of str
        The right answers, at least one.

    Returns
    -------
    float
        1 or 0.

    Raises
    ------
    InputError
        Without a reference.

    Examples
    --------
    >>> whole_word('The value is "4a-7c".', ["4a-7c"]), whole_word("4a-7c3", ["4a-7c"])
    (1.0, 0.0)
    """
    require_references("whole_word", references)
    words = prediction.translate(SEPARATORS).split()
    return float(any(reference in words for reference in references))


def speaker(prediction: str, references: Sequence[str]) -> float:
    """Return 1 if the first reference is a word of the answer written in capitals.

    Parameters
    ----------
    prediction : str
        The answer.
    references : sequence of str
        The speaker's names; the first is looked for.

    Returns
    -------
    float
        1 or 0.

    Raises
    ------
    InputError
        Without a reference.

    Examples
    --------
    >>> speaker("It is Ada.", ["ADA", "ADA LOVELACE"])
    1.0
    """
    require_references("speaker", references)
    return whole_word(prediction.upper(), references[:1])


def first_number(prediction: str, references: Sequence[str]) -> float:
    """Return 1 if the first run of digits in the answer is a reference, digit by digit.

    Parameters
    ----------
    prediction : str
        The answer.
    references : sequence of str
        The right numbers as texts, at least one.

    Returns
    -------
    float
        1 or 0.

    Raises
    ------
    InputError
        Without a reference.

    Examples
    --------
    >>> first_number("The key is 04711.", ["04711"]), first_number("1. The key is 04711.", ["04711"])
    (1.0, 0.0)
    """
    require_references("first_number", references)
    found = DIGITS.search(prediction)
    return float(found is not None and found[0] in references)


def number_value(prediction: str, references: Sequence[str]) -> float:
    """Return 1 if the first number in the answer equals a reference as a number.

    Parameters
    ----------
    prediction : str
        The answer.
    references : sequence of str
        The right numbers as texts, at least one.

    Returns
    -------
    float
        1 or 0.

    Raises
    ------
    InputError
        Without a reference, and when one is no number.

    Examples
    --------
    >>> number_value("It is 12.50, I think", ["12.5"])
    1.0
    """
    require_references("number_value", references)
    right = numbers("number_value", references)
    found = NUMBER.search(prediction)
    return float(found is not None and Decimal(found[0]) in right)


def last_number(prediction: str, references: Sequence[str]) -> float:
    """Return 1 if the last word of the answer is a whole number, and a reference.

    Parameters
    ----------
    prediction : str
        The answer.
    references : sequence of str
        The right numbers as texts, at least one.

    Returns
    -------
    float
        1 or 0.

    Raises
    ------
    InputError
        Without a reference, and when one is no number.

    Examples
    --------
    >>> last_number("f(3) gives `-12`.", ["-12"]), last_number("-12 it is", ["-12"])
    (1.0, 0.0)
    """
    require_references("last_number", references)
    right = numbers("last_number", references)
    words = prediction.translate(CODE_SEPARATORS).split()
    found = WHOLE.fullmatch(words[-1]) if words else None
    return float(found is not None and Decimal(found[0]) in right)


def numbers(function: str, references: Sequence[str]) -> list[Decimal]:
    """Return references as numbers, exactly as they are written."""
    try:
        return [Decimal(reference) for reference in references]
    except InvalidOperation:
        raise InputError.argument(
            function, "references", list(references), "holds what is no number", "pass numbers as texts"
        ) from None


def letter_choice(prediction: str, references: Sequence[str]) -> float:
    """Return 1 if the answer chooses the right option of A, B, C and D.

    The choice is the answer's first character; if that is no letter of an option, what follows ``answer
    is:``, ``answer:``, ``answer is`` or ``option is``; without such a phrase, the first word that is a letter
    of an option.

    Parameters
    ----------
    prediction : str
        The answer; an empty one chooses nothing.
    references : sequence of str
        The right option: its text, its letter, or both.

    Returns
    -------
    float
        1 or 0.

    Raises
    ------
    InputError
        Without a reference.

    Examples
    --------
    >>> letter_choice("So the answer is: C. Snowfield", ["Snowfield", "C"])
    1.0
    """
    require_references("letter_choice", references)
    if prediction[:1] and prediction[0] in "ABCD":
        return float(prediction[0] in references)
    text = SPACES.sub(" ", prediction.translate(CHOICE_SEPARATORS))
    found = after(text, CHOICE_PREFIXES)
    if found is not None:
        return float(any(found.startswith(reference) for reference in references if reference))
    word = next((word for word in text.split() if word in "ABCD"), None)
    return float(word in references)


def bug_choice(prediction: str, references: Sequence[str]) -> float:
    """Return 1 if the answer chooses the right function.

    Parameters
    ----------
    prediction : str
        The answer: it begins with the letter and a full stop or colon, or letter or name follow ``answer
        is:``, ``is:`` or ``answer:``.
    references : sequence of str
        Name of the function, and letter of the option.

    Returns
    -------
    float
        1 or 0.

    Raises
    ------
    InputError
        Without a reference.

    Examples
    --------
    >>> bug_choice("B. parse_line", ["parse_line", "B"]), bug_choice("The bug is: parse", ["parse_line", "B"])
    (1.0, 0.0)
    """
    require_references("bug_choice", references)
    if prediction[:2] in (f"{references[-1]}.", f"{references[-1]}:"):
        return 1.0
    text = prediction.strip().translate(BUG_SEPARATORS).replace("Option", " ").replace("option", " ")
    found = after(SPACES.sub(" ", text), BUG_PREFIXES)
    return float(found is not None and any(found.startswith(reference) for reference in references))


def after(text: str, phrases: Sequence[str]) -> str | None:
    """Return what follows the first of the phrases that the text has, and one character after it."""
    for phrase in phrases:
        place = text.find(phrase)
        if place != -1:
            return text[place + len(phrase) + 1 :]
    return None
