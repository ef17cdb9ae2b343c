"""Records taken apart into columns as they come, so that none of them is held."""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, pairwise
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["Chunks"]

JSON_FIELDS = ("versions", "settings", "seconds", "memory_bytes", "extra")
"""Fields that hold dictionaries, which become canonical JSON text."""

MAX_ROWS = 4_096
"""So many texts or truth values become a part of a column; until then they are Python's objects."""
MAX_ITEMS = 1 << 18
"""About so many items become lists at once."""
AT_ONCE = 8
"""So many items of each list are moved at once: a line of the processor's cache."""

CANONICAL = msgspec.json.Encoder(order="sorted")

WIDTH = 8
"""Bytes of a number."""
EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


class Numbers:
    """A column of numbers or times, as their bytes, and which of them are not null where some are."""

    def __init__(self, dtype: pl.DataType) -> None:
        self.dtype = dtype
        self.code = "d" if dtype.is_float() else "q"
        self.data, self.valid = bytearray(), bytearray()

    def __len__(self) -> int:
        return len(self.data) // WIDTH

    def extend(self, values: Sequence[Any]) -> None:
        """Add values."""
        if isinstance(self.dtype, pl.Datetime):
            values = [None if value is None else (value - EPOCH) // MICROSECOND for value in values]
        form = f"{len(values)}{self.code}"
        try:
            self.add(struct.pack(form, *values))
        except struct.error:  # Null is no number.
            numbers = [0 if value is None else value for value in values]
            self.add(struct.pack(form, *numbers), bytes([value is not None for value in values]))

    def extend_nulls(self, count: int) -> None:
        """Add nulls."""
        self.add(bytes(count * WIDTH), bytes(count))

    def add(self, data: bytes, valid: bytes = b"") -> None:
        """Add the bytes of numbers, and 0 for each that is null and 1 for others, or nothing if none is."""
        if valid and not self.valid:
            self.valid = bytearray(b"\1") * len(self)
        if valid or self.valid:
            self.valid += valid or b"\1" * (len(data) // WIDTH)
        self.data += data

    def view(self) -> NDArray[Any]:
        """Return the numbers, 0 where they are null; to the column nothing can be added then."""
        return np.frombuffer(self.data, dtype=self.code)

    def sort(self, order: pl.Series) -> None:
        """Put the numbers in another order."""
        for view in (self.view(), np.frombuffer(self.valid, dtype=bool)):
            if len(view):
                view[:] = view[order.to_numpy()]

    def series(self) -> pl.Series:
        """Return the column, to which nothing can be added then."""
        numbers = pl.Series(self.view()).cast(self.dtype)
        if not self.valid:
            return numbers
        return pl.select(pl.when(pl.Series(np.frombuffer(self.valid, dtype=bool))).then(numbers)).to_series()

    def sorted(self, order: pl.Series) -> pl.Series:
        """Return the column in another order, to which nothing can be added then."""
        self.sort(order)
        return self.series()


class Values:
    """A column of texts or truth values, which Polars takes over in parts."""

    def __init__(self, dtype: pl.DataType) -> None:
        self.values: list[Any] = []
        self.done = pl.Series(dtype=dtype)

    def __len__(self) -> int:
        return len(self.done) + len(self.values)

    def extend(self, values: Sequence[Any]) -> None:
        """Add values."""
        self.values.extend(values)
        if len(self.values) >= MAX_ROWS:
            self.take_over()

    def take_over(self) -> None:
        """Hand the values held to Polars."""
        self.done.append(pl.Series(self.values, dtype=self.done.dtype, strict=True))
        self.values = []

    def series(self) -> pl.Series:
        """Return the column."""
        self.take_over()
        return self.done.rechunk(in_place=True)

    def sorted(self, order: pl.Series) -> pl.Series:
        """Return the column in another order."""
        return self.series().gather(order)


class Lists:
    """A column of lists, as the items of all and the length of each.

    Polars makes lists of groups of items many times faster than it takes over lists of Python.
    """

    def __init__(self, dtype: pl.List) -> None:
        self.dtype = dtype
        self.items = column_of(dtype.inner)
        self.lengths = Numbers(pl.Int64())

    def __len__(self) -> int:
        return len(self.lengths)

    def extend(self, lists: Sequence[Sequence[Any] | None]) -> None:
        """Add lists."""
        self.lengths.extend([None if one is None else len(one) for one in lists])
        self.items.extend(list(chain.from_iterable([one for one in lists if one])))

    def series(self) -> pl.Series:
        """Return the column, to which nothing can be added then."""
        lengths = self.lengths.series()
        filled = lengths.fill_null(0) > 0
        lists = self.filled(lengths.filter(filled))
        if filled.all():
            return lists
        # Empty lists and nulls are put between those that have items.
        lists = pl.concat([lists, pl.Series([[]], dtype=self.dtype)])
        place = pl.when(filled).then(filled.cast(pl.Int64).cum_sum() - 1)
        return lists.gather(pl.select(place.when(lengths == 0).then(lists.len() - 1)).to_series())

    def shape(self, lengths: pl.Series) -> tuple[Numbers | Values, list[int]]:
        """Return the innermost items, and the length of lists at each depth, 0 where they differ.

        Of the outermost lists these are the lengths of those that are not empty.
        """
        items, shape = self.items, [one_of(lengths)]
        while isinstance(items, Lists):
            shape.append(one_of(items.lengths.series()))
            items = items.items
        return items, shape

    def sorted(self, order: pl.Series) -> pl.Series:
        """Return the column in another order, to which nothing can be added then."""
        lengths = self.lengths.series()
        filled = lengths.fill_null(0) > 0
        items, shape = self.shape(lengths.filter(filled))
        if not all(shape) or not isinstance(items, Numbers) or items.valid:
            return self.series().gather(order)
        # Few items of each list are put in their place at a time, so that lists are not held twice.
        lists = items.view().reshape(-1, math.prod(shape))
        place = (filled.cast(pl.Int64).cum_sum() - 1).gather(order).filter(filled.gather(order)).to_numpy()
        for begin in range(0, lists.shape[1], AT_ONCE):
            lists[:, begin : begin + AT_ONCE] = lists[place, begin : begin + AT_ONCE]
        self.lengths.sort(order)
        return self.series()

    def filled(self, lengths: pl.Series) -> pl.Series:
        """Return the lists of these lengths, which are not 0."""
        items, shape = self.shape(lengths)
        if all(shape):
            return items.series().reshape((-1, *shape)).cast(self.dtype)
        ends = lengths.cum_sum().to_numpy()
        whole = self.items.series()
        parts = [pl.Series(dtype=self.dtype)]
        cuts = np.unique([*np.searchsorted(ends, np.arange(0, len(whole), MAX_ITEMS)), len(ends)])
        for begin, end in pairwise(cuts.tolist()):
            counts = lengths[begin:end].to_numpy()
            owner = pl.Series(np.repeat(np.arange(end - begin), counts)).set_sorted()
            part = whole.slice(ends[begin] - counts[0], len(owner))
            frame = pl.DataFrame({"owner": owner, "items": part})
            parts.append(frame.group_by("owner", maintain_order=True).agg("items")["items"])
        return pl.concat(parts, rechunk=True)


def one_of(lengths: pl.Series) -> int:
    """Return the length that all lists have, 0 where they differ."""
    found = lengths.unique()
    return int(found[0] or 0) if found.len() == 1 else 0


Column = Numbers | Values | Lists


def column_of(dtype: Any) -> Column:
    """Return an empty column."""
    if isinstance(dtype, pl.List):
        return Lists(dtype)
    dtype = dtype if isinstance(dtype, pl.DataType) else dtype()
    return Numbers(dtype) if dtype.is_numeric() or dtype.is_temporal() else Values(dtype)


def as_json(values: Sequence[dict[str, Any]]) -> list[str | None]:
    """Return dictionaries as canonical JSON, null for those that are empty."""
    lines = CANONICAL.encode_lines(values).decode().split("\n")
    return [text if value else None for value, text in zip(values, lines, strict=False)]


class Chunks:
    """Columns of the records of one kind.

    Parameters
    ----------
    schema : mapping of str to polars.DataType
        The fields.
    signals : bool
        Whether the records have signals, each a column of its own name.
    without : collection of str
        Fields and signals that are left out: fields are null, signals have no column.
    """

    def __init__(
        self, schema: Mapping[str, pl.DataType], *, signals: bool = False, without: Collection[str] = ()
    ) -> None:
        self.schema = dict(schema)
        self.signals = signals
        self.without = frozenset(without)
        self.names: set[str] = set()
        """Names of all signals met."""
        self.fields = [name for name in schema if name not in self.without]
        self.fields_of = attrgetter(*self.fields)
        self.begin()

    def begin(self) -> None:
        """Begin with no records."""
        self.height = 0
        self.columns = {name: column_of(self.schema[name]) for name in self.fields}
        self.signal_columns: dict[str, Numbers] = {}

    def add(self, records: Sequence[Any]) -> None:
        """Add records of this kind."""
        for name, values in zip(self.fields, zip(*map(self.fields_of, records), strict=True), strict=True):
            self.columns[name].extend(as_json(values) if name in JSON_FIELDS else values)
        if self.signals:
            self.add_signals([record.signals for record in records])
        self.height += len(records)

    def add_signals(self, signals: Sequence[Mapping[str, float | None]]) -> None:
        """Add the signals of records, which most often are the same of all in the same order."""
        orders = {tuple(one) for one in signals}
        met = set(chain.from_iterable(orders))
        self.names |= met
        for name in met - self.signal_columns.keys() - self.without:
            self.signal_columns[name] = Numbers(pl.Float64())
            self.signal_columns[name].extend_nulls(self.height)
        found: dict[str, Sequence[float | None]]
        if len(orders) == 1:
            rows = zip(*[one.values() for one in signals], strict=True)
            found = dict(zip(*orders, rows, strict=True))
        else:
            found = {name: [one.get(name) for one in signals] for name in met}
        for name, column in self.signal_columns.items():
            if name in found:
                column.extend(found[name])
            else:
                column.extend_nulls(len(signals))

    def frame(self, key: Sequence[str]) -> pl.DataFrame:
        """Return everything that was added, sorted by its key, and begin anew.

        The columns are one a field, then one a signal by name. They are put together one by one, lists last,
        so that little is held twice.
        """
        columns: dict[str, Column] = {**self.columns, **self.signal_columns}
        height = self.height
        self.begin()
        schema = self.schema | dict.fromkeys(sorted(self.names - self.without), pl.Float64())
        keys = pl.DataFrame({name: columns[name].series() for name in key})
        # What is the same in all rows need not be compared.
        varied = [name for name in key if keys[name].n_unique() > 1] or key[:1]
        order = keys.select(pl.arg_sort_by(*varied, nulls_last=False, maintain_order=True)).to_series()
        del keys  # Numbers are put in order below where they lie, and those of the keys are views of them.
        in_order = order.is_sorted()
        done = {}
        for name in sorted(schema, key=lambda name: schema[name].is_nested()):
            if name not in columns:
                done[name] = pl.Series([None], dtype=schema[name]).new_from_index(0, height)
            else:
                column = columns.pop(name)
                done[name] = column.series() if in_order else column.sorted(order)
        return pl.DataFrame({name: done[name] for name in schema})
