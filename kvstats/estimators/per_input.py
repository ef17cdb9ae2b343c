"""One row an input: what its runs at several budgets come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from kvstats.errors import InputError
from kvstats.estimators.population import By, by_columns, drawn_rows
from kvstats.inference.design import Design
from kvstats.inference.result import Result, infer
from kvstats.inference.sample import Kind, Sample, samples_by
from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY
from kvstats.statistics.statistic import Statistic

__all__ = ["Builder", "estimate_each", "others_than", "per_input"]

Builder = Callable[[pl.DataFrame], tuple[Statistic, Kind]]
"""Makes of the rows of one part the statistic and its kind."""


def per_input(
    function: str,
    rows: pl.DataFrame,
    by: By,
    design: Design,
    columns: Mapping[str, pl.Expr],
    also: Mapping[str, str] | None = None,
) -> pl.DataFrame:
    """Reduce runs to one row for each input and each combination of the by-columns.

    Parameters
    ----------
    function : str
        Name of the estimator, for messages.
    rows : polars.DataFrame
        The runs.
    by : str or sequence of str, optional
        Columns to estimate within; an input counts in each part that it has runs in.
    design : Design
        Its columns are kept, with one value for each input.
    columns : mapping of str to polars.Expr
        What is computed for each input.
    also : mapping of str to str, optional
        More columns that must have one value for each input, with the argument that they come from, and that
        are kept.

    Returns
    -------
    polars.DataFrame
        Key of the input, by-columns, columns of the design, and those asked for.

    Raises
    ------
    InputError
        When a column to keep differs between runs of one input, or a name is not known.
    """
    unit = list(dict.fromkeys([*INPUT_KEY, *by_columns(function, by, rows)]))
    sources = dict(also or {})
    wanted = [*design.cluster, *design.stratum, design.weight, *sources]
    carried = [name for name in rows.columns if name in wanted and name not in unit]
    inputs = rows.group_by(unit, maintain_order=True).agg(
        *(expression.alias(name) for name, expression in columns.items()),
        *(pl.col(name).first() for name in carried),
        *(pl.col(name).n_unique().alias(f"distinct_{name}") for name in carried),
    )
    for name in carried:
        if (inputs[f"distinct_{name}"] > 1).any():
            raise InputError.argument(
                function,
                sources.get(name, "design"),
                name,
                "differs between runs of one input, and the estimate is over inputs",
                "name a column that has one value for each input, or separate its values through `by`",
            )
    return inputs.drop(f"distinct_{name}" for name in carried)


def others_than(function: str, log: Log, by: By, *own: str) -> list[str]:
    """Return the by-columns without those that the result has of its own, which a contrast may name.

    Raises
    ------
    InputError
        When one of them is a column of the log too: which one is meant cannot be told.
    """
    names = [] if by is None else [by] if isinstance(by, str) else list(by)
    for name in names:
        if name in own and (name in log.runs.columns or name in log.inputs.columns):
            raise InputError.argument(
                function,
                "by",
                name,
                "is a signal of the log, and the name of a column that the result has of its own",
                "rename the signal",
            )
    return [name for name in names if name not in own]


def estimate_each(
    function: str,
    log: Log,
    frame: pl.DataFrame,
    by: By,
    design: Design,
    builders: Mapping[Any, Builder],
    column: tuple[str, pl.DataType],
    null: float | None = None,
) -> Result:
    """Estimate several statistics of one population, each named in a by-column of their own, the last.

    Parameters
    ----------
    function : str
        Name of the estimator.
    log : Log
        The log, for the clusters of strata.
    frame : polars.DataFrame
        The population.
    by : str or sequence of str, optional
        Columns to estimate within, without the new one.
    design : Design
        How to judge it.
    builders : mapping
        Value of the new column, and what makes the statistic.
    column : (str, polars.DataType)
        Name and type of the new column.
    null : float, optional
        The value that tests hold against.

    Raises
    ------
    InputError
        What `samples_by` refuses.
    """
    name, dtype = column
    names = by_columns(function, by, frame)
    samples: list[Sample] = []
    drawn = drawn_rows(log, design)
    for value, build in builders.items():
        samples += [
            replace(sample, key=(*sample.key, value))
            for sample in samples_by(function, frame, names, design, build, drawn)
        ]
    types = {**{other: frame.schema[other] for other in names}, name: dtype}
    return infer(function, samples, design, types, null)
