"""Tables of several quantities of the same runs, each with its interval from the same resamples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.estimators.population import By, by_columns, drawn_rows
from kvstats.inference.design import Design
from kvstats.inference.result import Result, infer
from kvstats.inference.sample import Kind, Sample, samples_by
from kvstats.log.frames import Log
from kvstats.statistics.ratios import Mean
from kvstats.statistics.statistic import Statistic

__all__ = ["chosen_quantities", "estimate_table", "refuse_own_columns"]


def estimate_table(
    function: str,
    title: str,
    log: Log,
    frame: pl.DataFrame,
    by: By,
    design: Design,
    build: Callable[[Sample, pl.DataFrame], list[Sample]],
    columns: Mapping[str, pl.DataType],
    null: float | None,
) -> Result:
    """Split a population by columns, prepare several statistics on each part, and judge them.

    Parameters
    ----------
    function, title : str
        Name of the estimator, for messages and for the result.
    log : Log
        The log.
    frame : polars.DataFrame
        The population, one row a run.
    by : str or sequence of str, optional
        Columns to split by.
    design : Design
        How to judge.
    build : callable
        Makes the samples of a part, from one of all its rows and from the part; to the key of that one they
        add the values of the table's own columns.
    columns : mapping of str to polars.DataType
        The table's own columns, which follow the by-columns.
    null : float or None
        Value under the null hypothesis, where all quantities have the same.
    """
    names = by_columns(function, by, frame)
    refuse_own_columns(function, names, columns)
    parts: list[pl.DataFrame] = []

    def all_rows(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        parts.append(part)
        return Mean(np.zeros(part.height)), "mean"

    found = samples_by(function, frame, names, design, all_rows, drawn_rows(log, design))
    samples = [
        sample for everything, part in zip(found, parts, strict=True) for sample in build(everything, part)
    ]
    kinds = {name: frame.schema[name] for name in names} | dict(columns)
    return infer(title, samples, design, kinds, null)


def chosen_quantities(
    function: str, quantities: Sequence[str] | None, known: Mapping[str, float | None]
) -> tuple[list[str], float | None]:
    """Return the quantities to be shown, all by default, and their value under the null hypothesis.

    Parameters
    ----------
    function : str
        Name of the estimator, for messages.
    quantities : sequence of str, optional
        What was asked for.
    known : mapping of str to float or None
        The value of each known quantity under the null hypothesis, None where it has none.

    Returns
    -------
    names : list of str
    null : float or None
        None where they differ in it.

    Examples
    --------
    >>> chosen_quantities("f", ["gain"], {"base": None, "gain": 0.0})
    (['gain'], 0.0)
    """
    names = list(known) if quantities is None else list(quantities)
    for name in names:
        if name not in known:
            raise InputError.argument(
                function, "quantities", name, "is not a quantity of the table", nearest_name(str(name), known)
            )
    if not names or len(set(names)) < len(names):
        raise InputError.argument(
            function, "quantities", names, "names none, or one twice", "name each once, or pass None"
        )
    values = {known[name] for name in names}
    return names, values.pop() if len(values) == 1 else None


def refuse_own_columns(function: str, names: tuple[str, ...], own: Mapping[str, object]) -> None:
    """Raise `InputError` where a by-column has the name of a column of the table."""
    for name in names:
        if name in own:
            raise InputError.argument(
                function, "by", name, "is a column of every such table", "leave it out, or rename the signal"
            )
