"""A straight line through the origin over cells: recovery against headroom, from a log or from a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.estimators.population import By, numeric_columns
from kvstats.estimators.scaling import CELLS, recovery_inputs
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result, infer
from kvstats.inference.sample import samples_by
from kvstats.log.frames import Log
from kvstats.statistics.ratios import Ratio
from kvstats.titled_table import DisplayedTable, DisplayedTables, TitledTable

__all__ = ["OriginFit", "Table", "cell_table", "fit_through_origin", "scaling_cells"]

Table = pl.DataFrame | Mapping[str, Sequence[Any]]
"""A frame, or columns by name."""


@dataclass(frozen=True, eq=False, repr=False)
class OriginFit(DisplayedTables):
    """A fitted slope, and what it is without each cell.

    Attributes
    ----------
    slope : Result
        The slope over all cells with its interval; ``n`` is the number of cells.
    leave_one_out : polars.DataFrame
        The cells in the given order, each with ``slope_without``, the slope over the others; null where
        these have no headroom.
    """

    slope: Result
    leave_one_out: pl.DataFrame

    @property
    def tables(self) -> tuple[DisplayedTable, ...]:
        """Slope, and the slopes without each cell."""
        return self.slope, TitledTable("slope without each cell", self.leave_one_out)


def scaling_cells(
    log: Log, *, arm: str, baseline: str = "full", where: str | None = None, by: By = CELLS
) -> pl.DataFrame:
    """Return headroom and recovery rate of each cell of a log.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm that evicts.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    where : str, optional
        SQL expression over the pairs.
    by : str or sequence of str
        Columns that make a cell. Default: suite, model, task and condition.

    Returns
    -------
    polars.DataFrame
        The columns of `by`, sorted; ``headroom`` (1 minus the mean score of the baseline), ``rho`` (recovery
        rate), ``ratio`` (rho over headroom, null without headroom) and ``n`` (inputs).

    Raises
    ------
    InputError
        When a run has no twin, a score is null or outside [0, 1], or a name is not known.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget, score=score)
    ...     for i in range(20)
    ...     for arm, budget, score in (("full", 1.0, float(i > 7)), ("snapkv", 0.25, float(i > 5)))
    ... ])
    >>> scaling_cells(log, arm="snapkv", by="task").rows()
    [('qa', 0.4, 0.1, 0.25, 20)]
    """
    names = [by] if isinstance(by, str) else list(by or [])
    inputs = recovery_inputs("scaling_cells", log, arm, baseline, where, names, DEFAULT_DESIGN)
    measures = (
        pl.col("headroom").mean(),
        pl.col("recovered").mean().alias("rho"),
        pl.len().cast(pl.Int64).alias("n"),
    )
    table = inputs.group_by(names).agg(*measures).sort(names) if names else inputs.select(*measures)
    ratio = pl.when(pl.col("headroom") > 0).then(pl.col("rho") / pl.col("headroom"))
    return table.select(*names, "headroom", "rho", ratio.alias("ratio"), "n")


def fit_through_origin(
    cells: Table,
    *,
    x: str = "headroom",
    y: str = "rho",
    cluster: str | Sequence[str] | None = None,
    design: Design = DEFAULT_DESIGN,
) -> OriginFit:
    r"""Fit ``y = slope * x`` over cells by least squares.

    :math:`\hat\beta = \sum_c x_c y_c / \sum_c x_c^2`, each cell counting once: cells are the units, as for a
    statement about further cells of the same kind. The interval does not assume that all cells scatter
    alike.

    Parameters
    ----------
    cells : polars.DataFrame or mapping of str to sequence
        One row a cell, such as from `scaling_cells` or a printed table.
    x, y : str
        Columns of numbers.
    cluster : str or sequence of str, optional
        Columns of cells that are dependent, such as ``model``. Default: each cell stands for itself.
    design : Design
        Level, kind and resamples of the interval; its cluster, strata and weight are not used. ``auto``
        takes the jackknife, since cells are few and one of them may decide the slope.

    Returns
    -------
    OriginFit
        The slope is null with status ``undefined`` where all x are 0, ``no rows`` without a cell; without
        interval with one cell or cluster, or where all cells lie on the line (``zero variance``).

    Raises
    ------
    InputError
        When a column is not known, not of numbers, or has a null.

    Notes
    -----
    Simulated coverage of the 95% jackknife interval in 1500 samples of independent cells with headrooms
    spread evenly over (0.1, 0.8), for 5, 10 and 20 cells: 0.92, 0.93 and 0.94 where all cells scatter alike,
    and 0.88, 0.92 and 0.93 where they scatter in proportion to their headroom. A linearised interval falls 1
    to 4 percentage points below.

    Examples
    --------
    >>> fit = fit_through_origin({"headroom": [0.2, 0.4, 0.8], "rho": [0.05, 0.15, 0.24]})
    >>> fit.slope
    headroom_slope, 95% interval
    estimate   low  high     se  df  n  clusters  status
        0.31  0.18  0.45  0.031   2  3         3  ok
    >>> fit.leave_one_out["slope_without"].round(3).to_list()
    [0.315, 0.297, 0.35]
    """
    function = "fit_through_origin"
    table = cell_table(function, cells, (x, y))
    judged = replace(
        design,
        cluster=(POSITION,) if cluster is None else cluster,
        strata=None,
        weight=None,
        interval="jackknife" if design.interval == "auto" else design.interval,
    )
    top, bottom = table[x] * table[y], table[x] * table[x]
    numbered = table.with_row_index(POSITION)
    samples = samples_by(
        function,
        numbered,
        (),
        judged,
        lambda part: (Ratio((part[x] * part[y]).to_numpy(), (part[x] * part[x]).to_numpy()), "mean"),
    )
    rest = bottom.sum() - bottom
    # A sum without its only term is 0 up to rounding.
    without = pl.DataFrame({"top": top.sum() - top, "rest": rest}).select(
        pl.when(pl.col("rest") > 1e-12 * float(bottom.sum())).then(pl.col("top") / pl.col("rest"))
    )
    return OriginFit(
        slope=infer("headroom_slope", samples, judged),
        leave_one_out=table.with_columns(without.to_series().alias("slope_without")),
    )


POSITION = "__position__"


def cell_table(function: str, cells: Table, columns: Sequence[str]) -> pl.DataFrame:
    """Return cells as a frame with the columns of numbers as floats, or raise `InputError`."""
    table = cells if isinstance(cells, pl.DataFrame) else pl.DataFrame(dict(cells), strict=False)
    for name in columns:
        if name not in numeric_columns(table):
            raise InputError.argument(
                function, "cells", name, "is not a column of numbers", nearest_name(name, table.columns)
            )
        faulty = table.filter(pl.col(name).is_null() | ~pl.col(name).cast(pl.Float64).is_finite()).height
        if faulty:
            raise InputError.argument(
                function,
                "cells",
                name,
                f"is null or not finite in {faulty} of {table.height} cells",
                "leave such cells out",
            )
    return table.with_columns(pl.col(name).cast(pl.Float64) for name in columns)
