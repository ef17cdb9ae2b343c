"""Pilots: the inputs that a threshold is calibrated on, chosen by size and seed or by a condition."""

from __future__ import annotations

import zlib
from numbers import Integral

import numpy as np
import polars as pl

from kvstats.errors import InputError
from kvstats.log.records import INPUT_KEY
from kvstats.policies.threshold import PilotKey

__all__ = ["SCALE", "check_one_scale", "check_share", "drawn", "pilot_keys"]

SCALE = ("model", "condition")
"""Columns whose values each have a scale of the signal of their own."""


def check_one_scale(function: str, rows: pl.DataFrame) -> None:
    """Raise `InputError` where inputs are of several models or conditions."""
    for column in SCALE:
        found = rows[column].unique().sort().to_list()
        if len(found) > 1:
            raise InputError(
                f"{function}: the pilot has inputs of {len(found)} values of {column} "
                f"({', '.join(map(str, found[:6]))}), each with a scale of the signal of its own; "
                "select one through `where`"
            )


def drawn(function: str, rows: pl.DataFrame, size: int | None, seed: int, label: str) -> pl.DataFrame:
    """Draw inputs without replacement, sorted by their key; all of them where no size is given.

    The generator is seeded from the seed and the label, so that of the same inputs the same are drawn,
    whatever order they come in.

    Raises
    ------
    InputError
        When the size is no whole number of at least 2, exceeds the rows, or the seed is none.
    """
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise InputError.argument(
            function, "seed", seed, "is not a whole number of at least 0", "pass one such as 0"
        )
    rows = rows.sort(INPUT_KEY)
    if size is None:
        return rows
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 2:
        raise InputError.argument(
            function, "pilot_size", size, "is not a whole number of at least 2", "pass one such as 40"
        )
    if size > rows.height:
        raise InputError.argument(
            function,
            "pilot_size",
            size,
            f"exceeds the {rows.height} inputs of {label}",
            "pass fewer, or None for all",
        )
    generator = np.random.default_rng([int(seed), zlib.crc32(label.encode())])
    chosen = np.sort(generator.choice(rows.height, size=int(size), replace=False))
    return rows[chosen]


def pilot_keys(rows: pl.DataFrame) -> tuple[PilotKey, ...]:
    """Return the keys of inputs, as a threshold holds them."""
    return tuple(rows.select(INPUT_KEY).sort(INPUT_KEY).iter_rows())


def check_share(function: str, argument: str, value: object) -> float:
    """Return a share between 0 and 1, both excluded, or raise `InputError`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise InputError.argument(
            function, argument, value, "is not between 0 and 1", "pass a share such as 0.1"
        )
    return float(value)
