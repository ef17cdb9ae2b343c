"""What a reader of a foreign format is, and the names that its rows may lack."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kvstats.errors import InputError, nearest_name
from kvstats.log.lines import Reject
from kvstats.log.records import Record

__all__ = ["Labels", "Names", "Reader", "stem"]

EXTENSION = re.compile(r"(?<=.)(\.(jsonl|ndjson|json))?(\.(gz|zst))?$")


PairBy = Literal["key", "content", "position"]
"""What tells inputs apart: their ids, a hash of their content, or their place in the file."""


@dataclass(frozen=True)
class Labels:
    """What the caller says of a file's rows, for formats whose rows do not say it.

    Attributes
    ----------
    model, suite, task, arm, condition : str, optional
        As in a run record; None where the caller says nothing.
    budget : float, optional
        Fraction of the cache that is kept.
    pair_by : {"key", "content", "position"}
        What becomes the input's id.
    answer_filter : str, optional
        Which of several scores of the same answer counts.
    """

    model: str | None = None
    suite: str | None = None
    task: str | None = None
    arm: str | None = None
    condition: str | None = None
    budget: float | None = None
    pair_by: PairBy = "key"
    answer_filter: str | None = None


@dataclass(frozen=True)
class Reader:
    """A format that logs can be read from.

    Attributes
    ----------
    name : str
        What `kvstats.read_log` calls it.
    recognises : callable
        Says from a file's path and the first JSON objects in it (none where its lines are not such) whether
        it has this format.
    read : callable
        Takes file and labels, and yields a record or a reject for each row.
    """

    name: str
    recognises: Callable[[Path, Sequence[dict[str, Any]]], bool]
    read: Callable[[Path, Labels], Iterator[Record | Reject]]


def stem(file: Path) -> str:
    """Return a file's name without the extensions of JSON and of compression.

    Examples
    --------
    >>> stem(Path("logs/gated_qwen2.5-1.5b.jsonl.gz"))
    'gated_qwen2.5-1.5b'
    """
    return EXTENSION.sub("", file.name)


@dataclass(frozen=True)
class Names:
    """Model and suite of files whose rows do not carry them.

    Attributes
    ----------
    model, suite : str or mapping of str to str, optional
        One name for all files, or a name by file name without extension; None takes that itself.
    files : sequence of Path
        The files that need names.
    """

    model: str | Mapping[str, str] | None
    suite: str | Mapping[str, str] | None
    files: Sequence[Path]

    def __post_init__(self) -> None:
        stems = [stem(file) for file in self.files]
        for argument in ("model", "suite"):
            given = getattr(self, argument)
            if given is not None and not self.files:
                raise self.error(argument, given, "is not needed: the records carry it", "leave it out")
            if isinstance(given, Mapping):
                for name in given:
                    if name not in stems:
                        fault = f"names {name!r}, which is no file among those read"
                        raise self.error(argument, dict(given), fault, nearest_name(str(name), stems))
                for name in stems:
                    if name not in given:
                        raise self.error(argument, dict(given), f"lacks {name!r}", "name every file")
            values = given.values() if isinstance(given, Mapping) else [given]
            if given is not None and not all(isinstance(value, str) and value for value in values):
                raise self.error(argument, given, "is not a name", "pass text that is not empty")

    def of(self, file: Path) -> Labels:
        """Return what was said of a file."""
        model, suite = (
            given if given is None or isinstance(given, str) else given[stem(file)]
            for given in (self.model, self.suite)
        )
        return Labels(model=model, suite=suite)

    @staticmethod
    def error(argument: str, value: object, fault: str, remedy: str) -> InputError:
        """Build the error for one of the two names."""
        return InputError.argument("read_log", argument, value, fault, remedy)
