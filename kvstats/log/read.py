"""Reading logs: every line becomes a record, an error that names it, or a counted reject."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import polars as pl

from kvstats.errors import InputError
from kvstats.log.adapters import OWN_FORMAT, Reader, reader_named
from kvstats.log.adapters.labels import GivenLabels
from kvstats.log.adapters.reader import PairBy
from kvstats.log.build import LogBuilder
from kvstats.log.declared_columns import Columns
from kvstats.log.formats import companion_names, readers_of
from kvstats.log.frames import FILE_SCHEMA, REJECT_SCHEMA, Log
from kvstats.log.ingest import read_file
from kvstats.log.lines import Reject
from kvstats.log.sources import Source, sources
from kvstats.log.table_rows import reader_of_columns

__all__ = ["read_log"]

Label = str | Mapping[str, str] | None


def read_log(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    format: str | Reader = "auto",
    columns: Columns | None = None,
    model: Label = None,
    suite: Label = None,
    task: Label = None,
    arm: Label = None,
    condition: Label = None,
    budget: float | Mapping[str, float] | None = None,
    answer_filter: Label = None,
    metric: Label = None,
    pair_by: PairBy | Mapping[str, PairBy] = "key",
    on_duplicate: Literal["raise", "first"] = "raise",
    on_error: Literal["raise", "skip"] = "raise",
    without: str | Sequence[str] = (),
    progress: Callable[[str, int, int], None] | None = None,
) -> Log:
    """Read logs of this library and of others.

    Parameters
    ----------
    path : str or path-like, or a sequence of them
        A file; a pattern such as ``logs/*.jsonl.gz``, where ``**`` matches folders; a folder, of which every
        file of data is read, those in folders below it too; or a URL of one of these (``s3://``, ``gs://``,
        ``hf://``, ``https://``, ...; needs `fsspec` and its package for such addresses). A file that several
        of them name is read once. Files may be compressed (gzip, Zstandard; several members are one file).
    format : str or Reader, default "auto"
        What the files are: the name of a format, see `kvstats.log.adapters`, or a reader. ``kvstats`` are
        the records of this library. ``auto`` tells for each file by its name and its first lines.
    columns : Columns, optional
        What the columns of tables mean (``.csv``, ``.tsv``, ``.parquet``, and objects of ``.jsonl``), instead
        of a format.
    model, suite, task, arm, condition : str or mapping of str to str, optional
        What the rows of other formats do not carry: one name for all files, or a mapping whose keys are each
        the name of a file without its extension or of a folder that it lies in.
    budget : float or mapping of str to float, optional
        Likewise, the fraction of the cache that is kept.
    answer_filter : str or mapping of str to str, optional
        Likewise, which of several filters counts that took the answer out of the same text.
    metric : str or mapping of str to str, optional
        Likewise, which of several metrics, or of several scorers, is the score.
    pair_by : {"key", "content", "position"} or a mapping of str to them, default "key"
        What tells the inputs of other formats apart, and so finds the same input in the files of two arms:
        the ids that rows carry, a hash of what rows say of their input, or the place in the file.
    on_duplicate : {"raise", "first"}, default "raise"
        What to do where rows of one file in another format repeat an input: raise, or keep the first and
        list the others in ``log.rejects``.
    on_error : {"raise", "skip"}, default "raise"
        What to do with a line that breaks the contract: raise, or keep every other line and list this one
        in ``log.rejects``.
    without : str or sequence of str, default none
        Fields and signals that are not needed, such as ``prediction`` or ``head_agreement_per_pair``;
        ``signals`` stands for all of them, ``replays`` for all of these records. They are read and checked,
        but not kept, so that a log larger than the memory can be read: what it takes is what is kept. Fields
        are null then, and signals have no column.
    progress : callable, optional
        Called before each file with a few words, how many files are read, and how many there are.

    Returns
    -------
    Log
        Rows sorted by key: the same log whatever the order of files and lines.

    Raises
    ------
    InputError
        ``{file}:{line}: {fault}; {remedy}`` for a line; also when no file matches, a file is empty or in no
        known format, or a label is given that no file needs.

    Notes
    -----
    Fields that the contract does not know are kept under ``extra``. Ids are text: a numeric id of a log
    record is an error, never a conversion. Blank lines are passed over. NaN and infinities are errors,
    except ``-Infinity`` as the signal ``logprob``. A compressed file that ends early loses only what cannot
    be read: the fault is reported at the line where it ends. Files of a folder that belong to others
    (``metrics.json``, seals) and hold no rows are passed over; what else cannot be read is an error.

    Examples
    --------
    >>> import tempfile, datetime
    >>> from kvstats.log import LogWriter, RunRecord, StudyRecord
    >>> study = StudyRecord(schema_version=1, suite="s", model="m", dtype="float32", attention="sdpa",
    ...     versions={}, host="x86_64", settings={}, template_hash="0",
    ...     started_at=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with LogWriter(f"{folder}/a.jsonl", study) as writer:
    ...         writer.append([RunRecord(suite="s", model="m", task="t", input_id="1", arm="full")])
    ...     read_log(f"{folder}/*.jsonl")
    Log: 1 run of 1 input by 1 model (m), 1 task (t), 1 arm (full); 0 input records, 0 replay cells, 0 rejects
    """
    require_choice("on_error", on_error, ("raise", "skip"))
    require_choice("on_duplicate", on_duplicate, ("raise", "first"))
    chosen = chosen_format(format, columns)
    single = isinstance(path, str | os.PathLike)
    paths: list[Any] = list(path) if isinstance(path, Iterable) and not single else [path]
    if not all(isinstance(one, str | os.PathLike) for one in paths):
        raise InputError.argument(
            "read_log", "path", path, "is neither a path nor a list of them", "pass one"
        )
    if not paths:
        raise InputError.argument("read_log", "path", path, "names no file", "pass at least one")
    given: dict[str, Any] = {"model": model, "suite": suite, "task": task, "arm": arm, "condition": condition}
    given |= {"budget": budget, "answer_filter": answer_filter, "metric": metric, "pair_by": pair_by}
    builder = LogBuilder(without)
    rejects: list[tuple[str, int, str, str]] = []
    files: list[tuple[str, str, int, int]] = []
    with TemporaryDirectory() as folder:
        beside = companion_names(chosen)
        found = {one.file.resolve(): one for item in paths for one in sources(item, Path(folder), beside)}
        readers = readers_of(list(found.values()), chosen, on_error)
        foreign = {one.file: reader for one, reader in readers.items() if reader is not None}
        if on_duplicate != "raise" and not foreign:
            fault = "is for other formats"
            raise InputError.argument("read_log", "on_duplicate", on_duplicate, fault, "leave it out")
        given_labels = GivenLabels(given, foreign)
        labels = {file: given_labels.of(file) for file in foreign}
        for done, (source, reader) in enumerate(readers.items()):
            if progress is not None:
                progress(f"reading {Path(source.name).name}", done, len(readers))
            before = builder.count, len(rejects)
            with named(source):
                items = (
                    read_file(source.file)
                    if reader is None
                    else reader.read(source.file, labels[source.file])
                )
                for item in items:
                    if not isinstance(item, Reject):
                        builder.append(item)
                    elif on_error == "skip" or (item.duplicate and on_duplicate == "first"):
                        rejects.append((source.name, item.line, item.error, item.text))
                    else:
                        raise InputError.line(source.name, item.line, item.error, item.remedy)
            if before == (builder.count, len(rejects)):
                if on_error == "raise":
                    raise InputError.line(source.name, 1, "the file holds no row", "remove the file")
                rejects.append((source.name, 1, "the file holds no row", ""))
            name = OWN_FORMAT if reader is None else reader.name
            files.append((source.name, name, builder.count - before[0], len(rejects) - before[1]))
    log = builder.log(
        pl.DataFrame(rejects, schema=REJECT_SCHEMA, orient="row"),
        pl.DataFrame(files, schema=FILE_SCHEMA, orient="row"),
    )
    for reader in dict.fromkeys(foreign.values()):
        if reader.check_runs is not None and on_error == "raise":
            reader.check_runs(log.runs)
    return log


def chosen_format(format: str | Reader, columns: Columns | None) -> str | Reader | None:
    """Return the reader of all files, None for this library's own format, or ``auto``."""
    if columns is None:
        return reader_named(format) if isinstance(format, str) and format != "auto" else format
    if not isinstance(columns, Columns):
        raise InputError.argument("read_log", "columns", columns, "is no Columns", "pass kv.Columns(...)")
    if format != "auto":
        remedy = "leave one of them out: declared columns are a format of their own"
        raise InputError.argument("read_log", "format", format, "is given beside columns", remedy)
    return reader_of_columns(columns)


@contextmanager
def named(source: Source) -> Iterator[None]:
    """Have what is wrong with a file say the name that the caller knows, not where it was fetched to."""
    try:
        yield
    except InputError as error:
        if str(source.file) == source.name:
            raise
        raise InputError(str(error).replace(str(source.file), source.name)) from error


def require_choice(argument: str, value: object, choices: tuple[str, str]) -> None:
    if value not in choices:
        remedy = f"pass {choices[0]!r} or {choices[1]!r}"
        raise InputError.argument("read_log", argument, value, "is unknown", remedy)
