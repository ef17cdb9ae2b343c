"""Frames of any library as logs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
import polars as pl

from kvstats.errors import InputError
from kvstats.log.adapters.reader import Labels
from kvstats.log.build import log_from_records
from kvstats.log.declared_columns import Columns
from kvstats.log.declared_rows import DeclaredRows
from kvstats.log.frames import REJECT_SCHEMA, Log
from kvstats.log.lines import Reject
from kvstats.log.records import Record

__all__ = ["from_frame"]

SOURCE = "from_frame"


def from_frame(frame: Any, *, columns: Columns, on_error: Literal["raise", "skip"] = "raise") -> Log:
    """Make a log of a frame, by what is declared of its columns.

    Parameters
    ----------
    frame : pandas, polars, Arrow or DuckDB frame
        Any that narwhals knows, eager or lazy. The index of pandas is no column: call ``reset_index`` where
        it holds something.
    columns : Columns
        What the columns mean. Suite, model, task and arm must be columns or constants.
    on_error : {"raise", "skip"}, default "raise"
        What to do with a row that breaks the contract: raise, or keep every other row and list this one in
        ``log.rejects``, by its number from 1.

    Returns
    -------
    Log
        The same for the same rows, whatever the library.

    Raises
    ------
    InputError
        ``from_frame: row {number}: {fault}; {remedy}`` for a row; also when the frame is none, a declared
        column is not in it, or two rows are the same run.

    Notes
    -----
    Types are those of the contract, never inferred: an id that is a float is an error, which is what
    pandas makes of whole numbers beside a missing one. NaN is a missing value in pandas; in any other
    frame a declared column that holds it is an error, for there null is what is missing.

    Examples
    --------
    >>> import polars as pl
    >>> import kvstats as kv
    >>> frame = pl.DataFrame({"id": [1, 2], "full_score": [1.0, 1.0], "quant_score": [1.0, 0.5]})
    >>> columns = kv.Columns(input_id="id", constants={"suite": "qa", "model": "llama", "task": "qa"},
    ...     arms={"full": {"score": "full_score"}, "kivi4": {"score": "quant_score"}})
    >>> log = kv.from_frame(frame, columns=columns)
    >>> kv.paired(log, arm="kivi4").select("input_id", "score", "baseline_score").rows()
    [('1', 1.0, 1.0), ('2', 0.5, 1.0)]
    """
    if not isinstance(columns, Columns):
        raise InputError.argument("from_frame", "columns", columns, "is no Columns", "pass kv.Columns(...)")
    if on_error not in ("raise", "skip"):
        raise InputError.argument("from_frame", "on_error", on_error, "is unknown", "pass 'raise' or 'skip'")
    if untold := columns.untold():
        remedy = f"declare a column or constant, such as constants={{{untold[0]!r}: ...}}"
        raise InputError(f"from_frame: columns tells no {', '.join(untold)}; {remedy}")
    rows = rows_of(frame, columns)
    records: list[Record] = []
    rejects: list[tuple[str, int, str, str]] = []
    for item in DeclaredRows(columns, Labels(), delimited=False, noun="row").records(rows):
        if not isinstance(item, Reject):
            records.append(item)
        elif on_error == "raise":
            remedy = "correct it, or pass on_error='skip' to list it in log.rejects"
            raise InputError(f"{SOURCE}: row {item.line}: {item.error}; {remedy}")
        else:
            rejects.append((SOURCE, item.line, item.error, item.text))
    return log_from_records(records, pl.DataFrame(rejects, schema=REJECT_SCHEMA, orient="row"))


def rows_of(frame: Any, columns: Columns) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield number and cells of each row, missing cells as None."""
    # Only this door needs it, and it takes a tenth of the time of importing the library.
    import narwhals as nw

    try:
        table = nw.from_native(frame)
    except TypeError as error:
        fault = "is no frame that narwhals knows"
        remedy = "pass a frame of pandas, polars, Arrow or DuckDB"
        raise InputError.argument("from_frame", "frame", type(frame).__name__, fault, remedy) from error
    except nw.exceptions.DuplicateError as error:
        fault, remedy = "has two columns of one name", "rename one of them"
        raise InputError.argument("from_frame", "frame", list(frame.columns), fault, remedy) from error
    if isinstance(table, nw.LazyFrame):
        table = table.collect()
    for name in table.columns:
        if not isinstance(name, str):
            fault = "has a column whose name is no text"
            raise InputError.argument("from_frame", "frame", name, fault, "rename it")
    columns.check_header(table.columns, SOURCE)
    # Each library has its own missing values: null, None, NaN, NA, NaT.
    names = table.columns
    missing = table.select(nw.all().is_null()).iter_rows()
    for number, (values, absent) in enumerate(zip(table.iter_rows(), missing, strict=True), 1):
        present = [None if gone else value for value, gone in zip(values, absent, strict=True)]
        # What JSON can hold: arrays as lists, times as text.
        cells = msgspec.to_builtins(present, enc_hook=foreign)
        yield number, dict(zip(names, cells, strict=True))


def foreign(value: Any) -> Any:
    """Return a value of numpy or pandas as one of Python, and whatever else as text."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
