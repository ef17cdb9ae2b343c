"""The one exception that this library raises for input it cannot accept."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["InputError", "nearest_name"]


class InputError(ValueError):
    """Input that cannot be used, with the place, the value, the fault and the remedy.

    Messages read ``{function}: {argument}={value!r} {fault}; {remedy}`` for arguments and
    ``{file}:{line}: {fault}; {remedy}`` for files.

    Examples
    --------
    >>> print(InputError.argument("accuracy", "level", 1.5, "is not between 0 and 1", "pass 0.95"))
    accuracy: level=1.5 is not between 0 and 1; pass 0.95
    >>> print(InputError.line("a.jsonl", 7, "is not JSON", "repair or remove the line"))
    a.jsonl:7: is not JSON; repair or remove the line
    """

    @classmethod
    def argument(cls, function: str, argument: str, value: object, fault: str, remedy: str) -> InputError:
        """Build the error for an argument of a function."""
        return cls(f"{function}: {argument}={value!r} {fault}; {remedy}")

    @classmethod
    def line(cls, file: object, line: int, fault: str, remedy: str) -> InputError:
        """Build the error for a line of a file."""
        return cls(f"{file}:{line}: {fault}; {remedy}")


def nearest_name(name: str, known: Iterable[str]) -> str:
    """Say which known name is nearest to `name`, or list the known ones when none is near.

    Parameters
    ----------
    name : str
        The name that was not found.
    known : iterable of str
        The names that exist.

    Returns
    -------
    str
        ``did you mean 'accuracy'?`` or ``known: a, b, c``.

    Examples
    --------
    >>> nearest_name("acuracy", ["accuracy", "auc"])
    "did you mean 'accuracy'?"
    >>> nearest_name("zzz", ["b", "a"])
    'known: a, b'
    >>> nearest_name("zzz", [])
    'there are none'
    """
    names = sorted(known)
    if not names:
        return "there are none"
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"
