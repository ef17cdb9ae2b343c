"""Inputs that the user supplies: in the formats of RULER and LongBench, or a corpus of questions."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from kvstats.errors import InputError

__all__ = [
    "DocumentsRecord",
    "LongBenchRecord",
    "RulerRecord",
    "Source",
    "SourceRecord",
    "read_source",
    "shuffled",
]

Text = Annotated[str, Meta(min_length=1)]
Texts = Annotated[list[Text], Meta(min_length=1)]


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the inputs of a task come from, and how they are written there.

    Attributes
    ----------
    format : {"ruler", "longbench", "documents"}
        ``ruler``: objects with ``input`` and ``outputs``, and ``answer_prefix`` in newer versions.
        ``longbench``: objects with ``input``, ``context``, ``answers``, ``dataset``, and ``all_classes``.
        ``documents``: objects with ``documents``, ``question`` and ``answers``, of which RULER's questions on
        documents are made at any length; the documents of other questions are what distracts.
    path : str, optional
        A file of one JSON object a line, from the working directory.
    hub : str, optional
        The hub id of a data set, read by the library ``datasets``; instead of `path`.
    subset, split, revision : str, optional
        Which part and which version of a hub data set.
    prompts : str, optional
        For ``longbench``: a JSON file from the name of a data set to its prompt with ``{context}`` and
        ``{input}``, as LongBench publishes it; without it the prompts are our own.
    metric : {"match_all", "match_part"}
        For ``ruler``: how the file is scored; RULER takes ``match_part`` for questions on documents, and
        ``match_all`` for all else.
    max_new_tokens : int, optional
        Tokens of an answer; without it as many as the answers have, and some more, or for ``longbench`` the
        number that LongBench takes.
    """

    format: Literal["ruler", "longbench", "documents"]
    path: Text | None = None
    hub: Text | None = None
    subset: Text | None = None
    split: Text = "test"
    revision: Text | None = None
    prompts: Text | None = None
    metric: Literal["match_all", "match_part"] = "match_all"
    max_new_tokens: Annotated[int, Meta(ge=1)] | None = None

    def __post_init__(self) -> None:
        if (self.path is None) == (self.hub is None):
            raise ValueError("a source has either a path or a hub id")
        if self.path is not None and (self.subset is not None or self.revision is not None):
            raise ValueError("subset and revision belong to a hub id")
        if self.prompts is not None and self.format != "longbench":
            raise ValueError("prompts belong to the format longbench")
        if self.metric != "match_all" and self.format != "ruler":
            raise ValueError("a metric is chosen for the format ruler only")

    @property
    def name(self) -> str:
        """What the inputs are read from, for messages."""
        return str(self.path or self.hub)


class RulerRecord(msgspec.Struct, frozen=True):
    """One input of RULER; other fields are ignored."""

    input: Text
    outputs: Texts
    answer_prefix: str = ""


class LongBenchRecord(msgspec.Struct, frozen=True):
    """One input of LongBench; other fields are ignored."""

    input: str
    context: Text
    answers: Texts
    dataset: str
    all_classes: list[str] | None = None


class DocumentsRecord(msgspec.Struct, frozen=True):
    """One question with the documents that answer it; other fields are ignored."""

    documents: Texts
    question: Text
    answers: Texts


SourceRecord = RulerRecord | LongBenchRecord | DocumentsRecord

RECORDS: dict[str, type[SourceRecord]] = {
    "ruler": RulerRecord,
    "longbench": LongBenchRecord,
    "documents": DocumentsRecord,
}


@lru_cache(maxsize=8)
def read_source(source: Source) -> Sequence[SourceRecord]:
    """Read and check all records of a source, once in a process.

    Parameters
    ----------
    source : Source
        The source.

    Returns
    -------
    sequence of RulerRecord, LongBenchRecord or DocumentsRecord

    Raises
    ------
    InputError
        A file that is missing or empty, or a line that is not of the format; a hub data set that cannot be
        had; and a hub id where the library ``datasets`` is not installed.
    """
    shape = RECORDS[source.format]
    if source.path is not None:
        records = tuple(read_lines(Path(source.path), shape))
    else:
        records = tuple(read_hub(source, shape))
    if not records:
        raise InputError.argument("read_source", "source", source.name, "has no record", "pass another one")
    return records


def read_lines(path: Path, shape: type[SourceRecord]) -> Iterable[SourceRecord]:
    decoder = msgspec.json.Decoder(shape)
    try:
        lines = path.expanduser().read_bytes().splitlines()
    except OSError as error:
        raise InputError.argument(
            "read_source", "path", str(path), f"cannot be read ({error.strerror})", "pass a JSONL file"
        ) from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield decoder.decode(line)
        except msgspec.MsgspecError as error:
            raise InputError.line(
                path, number, f"is not a record of the format ({error})", "repair the line"
            ) from error


def read_hub(source: Source, shape: type[SourceRecord]) -> Iterable[SourceRecord]:
    if find_spec("datasets") is None:
        raise InputError.argument(
            "read_source",
            "hub",
            source.hub,
            "needs the library datasets",
            "pip install datasets, or pass the path of a JSONL file",
        )
    datasets: Any = import_module("datasets")
    try:
        rows = datasets.load_dataset(source.hub, source.subset, split=source.split, revision=source.revision)
    except (OSError, ValueError, RuntimeError) as error:
        # No network, no such data set or part; or one with a loading script, which newer versions refuse.
        reason = str(error).strip().partition("\n")[0]
        raise InputError.argument(
            "read_source",
            "hub",
            source.hub,
            f"could not be had ({reason})",
            "check id, subset, split and network, or pass the path of a JSONL file",
        ) from error
    for number, row in enumerate(rows):
        try:
            yield msgspec.convert(row, shape)
        except msgspec.ValidationError as error:
            raise InputError.argument(
                "read_source",
                "hub",
                source.hub,
                f"has row {number}, which is not a record of the format ({error})",
                "pass another data set or format",
            ) from error


def shuffled(task: str, seed: int, n_records: int) -> list[int]:
    """Return the order in which the records of a source are taken, given by task and seed."""
    order = list(range(n_records))
    random.Random(f"{task}/{seed}").shuffle(order)
    return order
