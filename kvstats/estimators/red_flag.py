"""The red flag: what a threshold on the certificate catches, and what stays silent."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl

from kvstats.errors import InputError
from kvstats.estimators.population import By, by_columns, drawn_rows, narrowed, numbers
from kvstats.estimators.registry import table_estimator
from kvstats.estimators.signal_pairs import check_signal, outcome_pairs
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result, infer
from kvstats.inference.sample import BoolArray, Kind, Sample, samples_by
from kvstats.log.frames import Log
from kvstats.statistics.quantile import Quantile
from kvstats.statistics.ratios import Mean
from kvstats.statistics.statistic import FloatArray, Statistic
from kvstats.tables import require_values

__all__ = ["red_flag"]


@table_estimator(quantity=pl.String())
def red_flag(
    log: Log,
    *,
    arm: str,
    signal: str = "certificate",
    tau: float = 1.0,
    outcome: str = "failure",
    baseline: str = "full",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Say what a red flag at a threshold catches, one row a quantity.

    With a flag where ``signal >= tau``, and wrong where the outcome is true, all over runs of the arm:

    Formula: ``flag_rate`` = Pr[flag]; ``error_rate`` = Pr[wrong]; ``silent_error_rate`` = Pr[wrong, no flag],
    the errors that nothing announces; ``hit_rate`` = Pr[flag | wrong]; ``false_alarm_rate`` = Pr[flag | not
    wrong]; ``precision`` = Pr[wrong | flag]; ``median_when_wrong``, the median signal among wrong runs.

    The arm that answers flagged runs again is `kvstats.retrieve`, whose accuracy is `kvstats.accuracy`.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm.
    signal : str, default "certificate"
        Numeric column of the pairs; see `auc`.
    tau : float, default 1.0
        Threshold of the signal, fixed beforehand: intervals do not count a choice of it on the same data.
    outcome : str, default "failure"
        Boolean column of the pairs that says which runs are wrong; see `auc`. For ``induced_failure`` the
        population is the pairs whose twin succeeded.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to estimate within, such as the budget.
    design : Design
        How to judge it; ``auto`` takes a Korn-Graubard interval for rates and a percentile bootstrap for the
        median. Intervals for rates give way to a percentile bootstrap for the median.

    Returns
    -------
    Result
        By-columns and ``quantity``. Null with status ``no rows`` where a quantity has no runs to be about.

    Raises
    ------
    InputError
        When a run has no twin, a signal or outcome is null, the threshold is no number, or a name is not
        known.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", table 6.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget,
    ...               score=float(success), success=success, signals={"certificate": 1.5 - i / 40})
    ...     for i in range(40)
    ...     for arm, budget, success in (("full", 1.0, True), ("poisson", 0.5, i > 9 and i % 8 > 0))
    ... ])
    >>> red_flag(log, arm="poisson")
    red_flag, 95% interval
    quantity           estimate   low  high     se  df   n  clusters  status
    error_rate             0.33  0.18  0.49  0.075  39  40        40  ok
    false_alarm_rate       0.37  0.19  0.58  0.095  26  27        27  ok
    flag_rate              0.53  0.36  0.69  0.080  39  40        40  ok
    hit_rate               0.85  0.53  0.98  0.104  12  13        13  ok
    median_when_wrong      1.35  1.20  1.43  0.054   –  13        13  ok
    precision              0.52  0.29  0.75  0.112  20  21        21  ok
    silent_error_rate      0.05  0.01  0.17  0.035  39  40        40  ok
    """
    function = "red_flag"
    if isinstance(tau, bool) or not isinstance(tau, int | float) or math.isnan(tau):
        raise InputError.argument(function, "tau", tau, "is not a number", "pass the threshold of the signal")
    pairs = outcome_pairs(function, log, arm, baseline, outcome, where)
    check_signal(function, "signal", pairs, signal)
    require_values(function, pairs, signal)
    names = by_columns(function, by, pairs)
    parts: list[tuple[FloatArray, BoolArray]] = []

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        parts.append((numbers(part, signal), part[outcome].to_numpy()))
        return Mean(parts[-1][1]), "rate"

    whole = samples_by(function, pairs, names, design, build, drawn_rows(log, design))
    samples = [
        replace(sample, key=(*everything.key, quantity))
        for everything, (value, wrong) in zip(whole, parts, strict=True)
        for quantity, sample in quantities(everything, value, value >= tau, wrong).items()
    ]
    columns = {**{name: pairs.schema[name] for name in names}, "quantity": pl.String()}
    return infer(function, samples, design, columns)


def quantities(everything: Sample, value: FloatArray, flag: BoolArray, wrong: BoolArray) -> dict[str, Sample]:
    """Return the sample of each quantity, on the rows that it is about."""
    every = np.ones(flag.size, dtype=np.bool_)
    shares = {
        "flag_rate": (every, flag),
        "error_rate": (every, wrong),
        "silent_error_rate": (every, wrong & ~flag),
        "hit_rate": (wrong, flag),
        "false_alarm_rate": (~wrong, flag),
        "precision": (flag, wrong),
    }
    found = {
        quantity: narrowed(everything, rows, Mean(event[rows]), "rate")
        for quantity, (rows, event) in shares.items()
    }
    return found | {"median_when_wrong": narrowed(everything, wrong, Quantile(value[wrong]), "quantile")}
