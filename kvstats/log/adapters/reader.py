"""What a reader of a foreign format is, and what the caller may say of its rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from kvstats.log.lines import Reject
from kvstats.log.records import Record

__all__ = ["LABELS", "Labels", "PairBy", "Reader", "stem"]

EXTENSION = re.compile(r"(?<=.)(\.(jsonl|ndjson|json|csv|tsv|parquet|eval))?(\.(gz|zst))?$")


PairBy = Literal["key", "content", "position"]
"""What tells inputs apart: their ids, a hash of their content, or their place in the file."""

LABELS = ("model", "suite", "task", "arm", "condition", "budget", "answer_filter", "metric", "pair_by")
"""What the caller may say of a file's rows."""


@dataclass(frozen=True)
class Labels:
    """What the caller says of a file's rows, for formats whose rows do not say it.

    Attributes
    ----------
    model, suite, task, arm, condition : str, optional
        As in a run record; None where the caller says nothing.
    budget : float, optional
        Fraction of the cache that is kept.
    answer_filter : str, optional
        Which of several filters counts that took the answer out of the same text.
    metric : str, optional
        Which of several scores is the score.
    pair_by : {"key", "content", "position"}
        What becomes the input's id.
    """

    model: str | None = None
    suite: str | None = None
    task: str | None = None
    arm: str | None = None
    condition: str | None = None
    budget: float | None = None
    answer_filter: str | None = None
    metric: str | None = None
    pair_by: PairBy = "key"


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
        Takes file and labels, and yields a record or a reject for each row. What is wrong with the file as
        a whole is an `InputError`.
    takes : tuple of str
        Names of the labels that a caller may give, of `LABELS`. All others are carried by the format, so
        that to give them is an error. Readers that use `kvstats.log.adapters.identity` take ``pair_by``.
    requires : tuple of str
        Those of them that the caller must give: neither rows nor path tell them.
    companions : tuple of str
        Patterns of names (``metrics.json``, ``summary*.csv``) of files that belong to those of this format
        in the same folder, and hold no rows of their own.
    check_runs : callable, optional
        Takes the runs of all files that were read, and raises `InputError` where files contradict each other;
        not called where faults are listed rather than raised.
    """

    name: str
    recognises: Callable[[Path, Sequence[dict[str, Any]]], bool]
    read: Callable[[Path, Labels], Iterator[Record | Reject]]
    takes: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    companions: tuple[str, ...] = ()
    check_runs: Callable[[pl.DataFrame], None] | None = None


def stem(file: Path) -> str:
    """Return a file's name without the extensions of its format and of compression.

    Examples
    --------
    >>> stem(Path("logs/gated_qwen2.5-1.5b.jsonl.gz"))
    'gated_qwen2.5-1.5b'
    """
    return EXTENSION.sub("", file.name)
