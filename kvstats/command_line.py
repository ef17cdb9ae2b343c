"""How commands end: their help with examples and exit codes, and their output in silence."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Mapping, Sequence

__all__ = ["ending", "finish_output"]

WIDTH = 76

PLAIN_CODES = {0: "done", 2: "wrong usage, or input that cannot be used"}


def ending(examples: Sequence[str], codes: Mapping[int, str] = PLAIN_CODES, listing: str = "") -> str:
    """Return the end of a command's help.

    Parameters
    ----------
    examples : sequence of str
        What may be typed.
    codes : mapping of int to str
        What each exit code means; a line break begins a new line.
    listing : str
        Lines that come before them.

    Examples
    --------
    >>> ending(["kvstats summary logs/"]).splitlines()[-2:]
    ['  0  done', '  2  wrong usage, or input that cannot be used']
    """
    size = max(len(str(code)) for code in codes)
    told: list[str] = []
    for code, text in codes.items():
        first, hanging = f"  {code:<{size}}  ", " " * (size + 4)
        for part in text.splitlines():
            told += textwrap.wrap(part, WIDTH, initial_indent=first, subsequent_indent=hanging)
            first = hanging
    blocks = [["Examples:", *(f"  {example}" for example in examples)], ["Exit codes:", *told]]
    # The mark keeps the lines of a paragraph as they are.
    paragraphs = ["\n".join(("\b", *lines)) for lines in blocks]
    return "\n\n".join([f"\b\n{listing}", *paragraphs] if listing else paragraphs)


def finish_output() -> None:
    """Write what is left to be written, in silence where nobody reads on."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would flush once more at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
