"""Detecting failures and running these inputs again, against a gate that decides beforehand."""

from __future__ import annotations

import math
from numbers import Real

import polars as pl

from kvstats.errors import InputError
from kvstats.estimators.population import By, estimate, numbers, runs_of
from kvstats.estimators.registry import estimator
from kvstats.estimators.signal_pairs import check_signal, oriented
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.inference.sample import Kind
from kvstats.log.frames import Log
from kvstats.statistics.ratios import Mean
from kvstats.statistics.statistic import Statistic
from kvstats.tables import require_values

__all__ = ["retry_saving"]

COST = "__cost__"


@estimator
def retry_saving(
    log: Log,
    *,
    arm: str,
    signal: str,
    threshold: float,
    prefill_cost: float,
    decode_cost: float,
    gate_cost: float,
    higher: str = "positive",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Mean cost that a gate saves against running again whatever a detector flags.

    Formula: ``sum(w * ([flagged] * (c_pre + c_dec) - c_gate)) / sum(w)`` over runs. The share that is flagged
    is ``p TPR + (1 - p) FPR`` for a share p of failures; see `kvstats.retry_break_even` for it from given
    rates. Above 0 the gate is cheaper; the null hypothesis of its tests is that both cost the same.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm that evicts.
    signal : str
        Numeric column of the runs or their input records that the detector goes by.
    threshold : float
        A run is flagged where its signal is at least this (or, for ``negative``, at most).
    prefill_cost, decode_cost, gate_cost : float
        Cost of one prefill, one generation and one gate, at least 0 and in one unit, which is that of the
        result.
    higher : {"positive", "negative"}
        Which class has the higher signal: ``positive`` where failures have, as with an error estimate.
    where : str, optional
        SQL expression over the runs with the columns of their input records.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a linearised interval.

    Returns
    -------
    Result
        Null with status ``no rows`` where no run is left; without interval where all or none are flagged
        (``zero variance``).

    Raises
    ------
    InputError
        When a signal is null, a number is out of its range, or a name is not known.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm="poisson", budget=0.5, score=1.0,
    ...               signals={"certificate": i / 20})
    ...     for i in range(20)
    ... ])
    >>> retry_saving(log, arm="poisson", signal="certificate", threshold=0.75, prefill_cost=2.0,
    ...              decode_cost=1.0, gate_cost=0.25)
    retry_saving, 95% interval
    estimate  low  high    se  df   n  clusters  status
         0.5 -0.1   1.1  0.30  19  20        20  ok
    """
    function = "retry_saving"
    costs = (("prefill_cost", prefill_cost), ("decode_cost", decode_cost), ("gate_cost", gate_cost))
    for name, number in (("threshold", threshold), *costs):
        cost = name != "threshold"
        real = isinstance(number, Real) and not isinstance(number, bool) and math.isfinite(number)
        if not real or (cost and float(number) < 0):
            fault = "is not a finite number" + (" of at least 0" if cost else "")
            raise InputError.argument(function, name, number, fault, "pass one such as 1.0")
    rows = runs_of(function, log, arm, where, by)
    check_signal(function, "signal", rows, signal)
    require_values(function, rows, signal)
    sign = oriented(function, "higher", higher)
    flagged = (sign * pl.col(signal) >= sign * threshold).cast(pl.Float64)
    rows = rows.with_columns((flagged * (prefill_cost + decode_cost) - gate_cost).alias(COST))

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        return Mean(numbers(part, COST)), "mean"

    return estimate(function, log, rows, by, design, build, null=0.0)
