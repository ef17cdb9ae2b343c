"""Records taken apart into columns as they come, so that none of them is held."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import polars as pl

__all__ = ["Chunks"]

JSON_FIELDS = ("versions", "settings", "seconds", "memory_bytes", "extra")
"""Fields that hold dictionaries, which become canonical JSON text."""

MAX_ROWS, MAX_ITEMS = 4_096, 1 << 18
"""So many rows, or items of lists in one column, become a frame; until then they are Python's objects."""
MERGED = 16
"""So many such frames become one."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Lists:
    """A column of lists, as the items of all and the length of each.

    Polars makes lists of sorted groups many times faster than it takes over lists of Python.
    """

    def __init__(self, dtype: pl.List) -> None:
        self.dtype = dtype
        inner = dtype.inner
        self.inner = Lists(inner) if isinstance(inner, pl.List) else None
        self.items = pl.Series(dtype=inner)
        self.lengths: list[int | None] = []

    def __len__(self) -> int:
        """Return how many items there are, at the innermost."""
        return len(self.items) if self.inner is None else len(self.inner)

    def extend(self, lists: Sequence[Sequence[Any] | None]) -> None:
        """Add lists."""
        self.lengths.extend([None if one is None else len(one) for one in lists])
        items = [item for one in lists if one is not None for item in one]
        if self.inner is None:
            self.items.append(pl.Series(items, dtype=self.items.dtype, strict=True))
        else:
            self.inner.extend(items)

    def series(self) -> pl.Series:
        """Return the column."""
        items = self.items if self.inner is None else self.inner.series()
        lengths = pl.Series(self.lengths, dtype=pl.Int64)
        filled = lengths > 0
        owner = np.repeat(np.arange(lengths.len()), lengths.fill_null(0).to_numpy())
        frame = pl.DataFrame({"owner": pl.Series(owner).set_sorted(), "items": items})
        lists = frame.group_by("owner", maintain_order=True).agg("items")["items"]
        if filled.sum() == filled.len():
            return lists
        # Groups have at least one item, so that empty lists and nulls are put between them.
        lists.append(pl.Series([[]], dtype=self.dtype))
        place = pl.when(lengths > 0).then(filled.cast(pl.Int64).cum_sum() - 1)
        return lists.gather(pl.select(place.when(lengths == 0).then(lists.len() - 1)).to_series())


def as_json(value: dict[str, Any]) -> str | None:
    """Return a dictionary as canonical JSON, null when it is empty."""
    return msgspec.json.encode(value, order="sorted").decode() if value else None


def column(values: Lists | list[Any], dtype: Any) -> pl.Series:
    if isinstance(values, Lists):
        return values.series()
    if isinstance(dtype, pl.Datetime):
        # Polars takes over durations several times faster than times with a zone.
        since = [None if value is None else value - EPOCH for value in values]
        return pl.select(pl.lit(EPOCH, dtype=dtype) + pl.Series(since, dtype=pl.Duration("us"))).to_series()
    return pl.Series(values, dtype=dtype, strict=True)


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
        self.fields = [name for name in schema if name not in self.without]
        self.fields_of = attrgetter(*self.fields)
        self.names: set[str] = set()
        """Names of all signals met."""
        self.small: list[pl.DataFrame] = []
        self.chunks: list[pl.DataFrame] = []
        self.begin()

    def begin(self) -> None:
        """Begin a chunk."""
        self.height = 0
        self.values: dict[str, Lists | list[Any]] = {}
        for name in self.fields:
            dtype = self.schema[name]
            self.values[name] = Lists(dtype) if isinstance(dtype, pl.List) else []
        self.signal_values: dict[str, list[float | None]] = {}

    def add(self, records: Sequence[Any]) -> None:
        """Add records of this kind."""
        for name, values in zip(self.fields, zip(*map(self.fields_of, records), strict=True), strict=True):
            texts = [as_json(value) for value in values] if name in JSON_FIELDS else values
            self.values[name].extend(texts)
        if self.signals:
            self.add_signals([record.signals for record in records])
        self.height += len(records)
        longest = max((len(v) for v in self.values.values() if isinstance(v, Lists)), default=0)
        if self.height >= MAX_ROWS or longest >= MAX_ITEMS:
            self.close_chunk()

    def add_signals(self, signals: Sequence[Mapping[str, float | None]]) -> None:
        """Add the signals of records, which most often are those of the first of them."""
        first = signals[0].keys()
        if all(one.keys() == first for one in signals):
            met = set(first)
        else:
            met = {name for one in signals for name in one}
        self.names |= met
        for name in met - self.signal_values.keys() - self.without:
            self.signal_values[name] = [None] * self.height
        for name, values in self.signal_values.items():
            values.extend([one.get(name) for one in signals])

    def close_chunk(self) -> None:
        """Turn the values held into a frame."""
        if self.height:
            columns = {name: column(values, self.schema[name]) for name, values in self.values.items()}
            columns |= {name: column(values, pl.Float64()) for name, values in self.signal_values.items()}
            self.small.append(pl.DataFrame(columns))
        if len(self.small) == MERGED:
            self.merge()
        self.begin()

    def merge(self) -> None:
        """Turn small frames into a large one, whose columns go back to the system one by one."""
        if self.small:
            self.chunks.append(pl.concat(self.small, how="diagonal", rechunk=True))
        self.small = []

    def frame(self, key: Sequence[str]) -> pl.DataFrame:
        """Return everything that was added, sorted by its key, and begin anew.

        The columns are one a field, then one a signal by name. They are put together one by one, lists last,
        so that little is held twice.
        """
        self.close_chunk()
        self.merge()
        schema = self.schema | dict.fromkeys(sorted(self.names - self.without), pl.Float64())
        chunks, self.chunks = self.chunks, []
        keys = pl.concat(
            [pl.DataFrame(schema={name: schema[name] for name in key}), *(c.select(key) for c in chunks)]
        )
        order = keys.select(pl.arg_sort_by(*key, nulls_last=False, maintain_order=True)).to_series()
        del keys
        columns = {}
        for name in sorted(schema, key=lambda name: schema[name].is_nested()):
            parts = [
                c.drop_in_place(name)
                if name in c.columns
                else pl.Series([None], dtype=schema[name]).new_from_index(0, c.height)
                for c in chunks
            ]
            whole = pl.concat([pl.Series(dtype=schema[name]), *parts], rechunk=True)
            parts.clear()
            columns[name] = whole[order]
        return pl.DataFrame({name: columns[name] for name in schema})
