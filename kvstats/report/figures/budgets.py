"""The axis of figures over budgets."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from kvstats.errors import InputError

__all__ = ["BUDGETS", "budget_column"]

BUDGETS = ("budget", "budget_tokens")
"""What tells budgets apart: runs that agree in both."""


def budget_column(function: str, frames: Sequence[pl.DataFrame]) -> str:
    """Return the column that tells the budgets of all rows.

    Raises
    ------
    InputError
        When some runs have a budget as a fraction and others in tokens only.
    """
    for name in BUDGETS:
        if not any(frame[name].null_count() for frame in frames):
            return name
    raise InputError(
        f"{function}: some runs tell their budget as a fraction and others in tokens only, which have no "
        "place on one axis; select runs of one kind through `where`"
    )
