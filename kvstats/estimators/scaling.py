"""Scaling: how much can be recovered by eviction, against how much the full cache leaves to recover."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real

import polars as pl

from kvstats.errors import InputError
from kvstats.estimators.per_input import per_input
from kvstats.estimators.population import (
    By,
    check_outcome,
    estimate,
    mean_or_rate,
    numbers,
    runs_of,
)
from kvstats.estimators.registry import estimator
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.inference.sample import Kind
from kvstats.log.frames import Log
from kvstats.selection import select
from kvstats.statistics.co_occurrence import OriginSlope
from kvstats.statistics.ratios import Ratio
from kvstats.statistics.statistic import Statistic
from kvstats.tables import EVICTED, FULL, pairs_of

__all__ = [
    "headroom",
    "headroom_slope",
    "recovery_headroom_ratio",
    "recovery_inputs",
]

CELLS = ("suite", "model", "task", "condition")
"""What makes a cell unless told otherwise."""

LEFT = "__headroom__"


@estimator
def headroom(
    log: Log,
    *,
    arm: str = FULL,
    ceiling: float = 1.0,
    outcome: str = "score",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Mean of what an arm leaves to be gained: the best possible outcome minus its own.

    Formula: ``sum(w * (ceiling - y)) / sum(w)`` over runs, 1 minus the accuracy.

    Parameters
    ----------
    log : Log
        The log.
    arm : str, default "full"
        The arm; where no arm is named ``full``, the rows of arm ``plain`` at budget 1 stand for it.
    ceiling : float, default 1.0
        The best possible outcome.
    outcome : {"score", "success"}
        Which outcome.
    where : str, optional
        SQL expression over the runs with the columns of their input records.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it. ``auto`` takes a Korn-Graubard interval for a row whose values are all 0 or 1, and
        else a linearised one.

    Returns
    -------
    Result
        At least 0. Null with status ``no rows`` where none is left.

    Raises
    ------
    InputError
        When an outcome is null or above the ceiling, the ceiling is not finite, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", table 25.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm="full", budget=1.0,
    ...               score=float(i % 5 > 0))
    ...     for i in range(40)
    ... ])
    >>> headroom(log).frame["estimate"].item()
    0.2
    """
    function = "headroom"
    if isinstance(ceiling, bool) or not isinstance(ceiling, Real) or not math.isfinite(ceiling):
        raise InputError.argument(
            function, "ceiling", ceiling, "is not a finite number", "pass one such as 1.0"
        )
    rows = runs_of(function, log, arm, where, by)
    check_outcome(function, rows, outcome)
    rows = rows.with_columns((ceiling - pl.col(outcome).cast(pl.Float64)).alias(LEFT))
    above = rows.filter(pl.col(LEFT) < 0)
    if above.height:
        raise InputError.argument(
            function,
            "ceiling",
            ceiling,
            f"is below {outcome} in {above.height} of {rows.height} rows",
            f"pass the best possible {outcome}",
        )
    return estimate(function, log, rows, by, design, mean_or_rate(LEFT))


@estimator
def recovery_headroom_ratio(
    log: Log,
    *,
    arm: str,
    baseline: str = FULL,
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Recovery rate as a share of the headroom: of what the full cache fails, how much eviction solves.

    Formula: ``sum(w * r) / sum(w * (1 - baseline y))`` over inputs, r whether the arm beats the baseline at
    some budget below 1, as in `kvstats.recovery_rate`, and y the score, in [0, 1]. Inputs that leave nothing
    to gain count on neither side. For scores of 0 or 1 it is a rate: of the inputs that the baseline fails,
    the share that is recovered. Else it may exceed 1.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm that evicts.
    baseline : str, default "full"
        The arm of the twins, with one outcome for each input; see `kvstats.paired`.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to estimate within; an input counts in each part that it has runs in.
    design : Design
        How to judge it; ``auto`` takes a Korn-Graubard interval where the baseline's scores are all 0 or 1,
        and else a linearised one on the log scale.

    Returns
    -------
    Result
        ``n`` is the number of inputs that leave something to gain; parts without any have no row. Null with
        status ``no rows`` where there is none at all.

    Raises
    ------
    InputError
        When a run has no twin, a score is null or outside [0, 1], the baseline's score or a column of the
        design differs between runs of one input, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", table 25.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget, score=score)
    ...     for i in range(20)
    ...     for arm, budget, score in (("full", 1.0, float(i > 7)), ("snapkv", 0.25, float(i > 5)))
    ... ])
    >>> recovery_headroom_ratio(log, arm="snapkv").frame.select("estimate", "n").rows()
    [(0.25, 8)]
    """
    function = "recovery_headroom_ratio"
    inputs = recovery_inputs(function, log, arm, baseline, where, by, design)

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        left = numbers(part, "headroom")
        return Ratio(numbers(part, "recovered"), left), "rate" if bool((left == 1).all()) else "ratio"

    return estimate(function, log, inputs.filter(pl.col("headroom") > 0), by, design, build)


@estimator
def headroom_slope(
    log: Log,
    *,
    arm: str,
    baseline: str = FULL,
    cells: str | Sequence[str] = CELLS,
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Slope of the recovery rate on the headroom over cells, by a straight line through the origin.

    Formula: ``sum(h * rho) / sum(h ** 2)`` over cells, with h the headroom and rho the recovery rate of the
    inputs of a cell, as in `recovery_headroom_ratio`.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm that evicts.
    baseline : str, default "full"
        The arm of the twins, with one outcome for each input; see `kvstats.paired`.
    cells : str or sequence of str
        Columns of the pairs that make a cell. Default: suite, model, task and condition.
    where : str, optional
        SQL expression over the pairs, such as of the tasks that the law is about.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a linearised interval. The cells are taken as fixed and their inputs
        as drawn: it is an interval of the slope for these cells. For other cells of the same kind see
        `kvstats.fit_through_origin`, whose units are cells.

    Returns
    -------
    Result
        ``n`` is the number of inputs. Null with status ``undefined`` where no cell has headroom, ``no rows``
        where no input is left.

    Raises
    ------
    InputError
        When a run has no twin, a score is null or outside [0, 1], the baseline's score or a column of the
        design differs between runs of one input, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", table 25.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task=task, input_id=str(i), arm=arm, budget=budget, score=score)
    ...     for task, failed in (("qa", 4), ("code", 8))
    ...     for i in range(20)
    ...     for arm, budget, score in (
    ...         ("full", 1.0, float(i >= failed)), ("snapkv", 0.25, float(i >= failed / 2)))
    ... ])
    >>> headroom_slope(log, arm="snapkv").frame["estimate"].round(6).item()
    0.5
    """
    function = "headroom_slope"
    names = (cells,) if isinstance(cells, str) else tuple(cells)
    others = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    inputs = recovery_inputs(
        function, log, arm, baseline, where, list(dict.fromkeys([*others, *names])), design
    )

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        codes = part.select(pl.struct(names).rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()
        return OriginSlope(numbers(part, "headroom"), numbers(part, "recovered"), codes), "mean"

    return estimate(function, log, inputs, by, design, build)


def recovery_inputs(
    function: str, log: Log, arm: str, baseline: str, where: str | None, by: By, design: Design
) -> pl.DataFrame:
    """Return one row an input: its ``headroom``, and whether it was ``recovered`` at a budget below 1."""
    pairs = select(pairs_of(function, log, arm, baseline, where), EVICTED, function)
    outside = pairs.filter(~pl.col("baseline_score").is_between(0, 1))
    if outside.height:
        raise InputError.argument(
            function,
            "baseline",
            baseline,
            f"has scores outside [0, 1] in {outside.height} of {pairs.height} pairs",
            "rescale the scores, or select others through `where`",
        )
    columns = {"headroom": 1 - pl.col("baseline_score").first(), "recovered": pl.col("help").any()}
    return per_input(function, pairs, by, design, columns, also={"baseline_score": "baseline"})
