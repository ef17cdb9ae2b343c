"""The red flag: what a threshold on the certificate catches, and what stays silent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from kvstats.errors import InputError
from kvstats.estimators.joint_table import chosen_quantities, estimate_table
from kvstats.estimators.population import By, narrowed, numbers
from kvstats.estimators.registry import table_estimator
from kvstats.estimators.signal_pairs import check_signal, oriented, outcome_pairs
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.inference.sample import BoolArray, Sample
from kvstats.log.frames import Log
from kvstats.policies.top_share import check_tau
from kvstats.statistics.quantile import Quantile
from kvstats.statistics.ratios import Mean
from kvstats.statistics.statistic import FloatArray
from kvstats.tables import require_values

__all__ = ["red_flag"]


COLUMNS: dict[str, pl.DataType] = {"tau": pl.Float64(), "quantity": pl.String()}

QUANTITIES = (
    "flag_rate",
    "error_rate",
    "silent_error_rate",
    "hit_rate",
    "false_alarm_rate",
    "precision",
    "median_when_wrong",
)


@table_estimator(**COLUMNS)
def red_flag(
    log: Log,
    *,
    arm: str,
    signal: str = "certificate",
    tau: float | Sequence[float] = 1.0,
    outcome: str = "failure",
    higher: str = "positive",
    quantities: Sequence[str] | None = None,
    baseline: str = "full",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Say what a red flag at a threshold catches, one row a threshold and quantity.

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
    tau : float or sequence of float, default 1.0
        Thresholds of the signal, fixed beforehand: intervals do not count a choice of one on the same data.
        Several trace the curve of hits against false alarms.
    outcome : str, default "failure"
        Boolean column of the pairs that says which runs are wrong; see `auc`. For ``induced_failure`` the
        population is the pairs whose twin succeeded.
    higher : {"positive", "negative"}
        Whether high or low signals raise the flag: with ``negative``, as for a log-probability, those at or
        below `tau`.
    quantities : sequence of str, optional
        Which of these rows to show, for registered claims about some of them. Default: all.
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
        By-columns, ``tau`` and ``quantity``; for ``error_rate`` and ``median_when_wrong``, which no threshold
        changes, ``tau`` is null. Null with status ``no rows`` where a quantity has no runs to be about.

    Raises
    ------
    InputError
        When a run has no twin, a signal or outcome is null, a threshold is no number or given twice, or a
        name is not known.

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
    tau  quantity           estimate   low  high     se  df   n  clusters  status
      –  error_rate             0.33  0.18  0.49  0.075  39  40        40  ok
      –  median_when_wrong      1.35  1.27  1.44  0.050   –  13        13  ok
      1  false_alarm_rate       0.37  0.19  0.58  0.095  26  27        27  ok
      1  flag_rate              0.53  0.36  0.69  0.080  39  40        40  ok
      1  hit_rate               0.85  0.53  0.98  0.104  12  13        13  ok
      1  precision              0.52  0.29  0.75  0.112  20  21        21  ok
      1  silent_error_rate      0.05  0.01  0.17  0.035  39  40        40  ok
    """
    function = "red_flag"
    given = list(tau) if isinstance(tau, Sequence | np.ndarray) else [tau]
    taus = [check_tau(function, one) for one in given]
    if not taus or len(set(taus)) < len(taus):
        raise InputError.argument(function, "tau", tau, "names no threshold, or one twice", "name each once")
    sign = oriented(function, "higher", higher)
    shown, _ = chosen_quantities(function, quantities, dict.fromkeys(QUANTITIES))
    pairs = outcome_pairs(function, log, arm, baseline, outcome, where)
    check_signal(function, "signal", pairs, signal)
    require_values(function, pairs, signal)

    def build(everything: Sample, part: pl.DataFrame) -> list[Sample]:
        value, wrong = numbers(part, signal), part[outcome].to_numpy()
        found = list(error_samples(everything, value, wrong))
        for threshold in taus:
            found += flag_samples(everything, threshold, sign * value >= sign * threshold, wrong)
        return [sample for sample in found if sample.key[-1] in shown]

    return estimate_table(function, function, log, pairs, by, design, build, COLUMNS, None)


def error_samples(everything: Sample, value: FloatArray, wrong: BoolArray) -> Iterator[Sample]:
    """Yield the samples of what is wrong, whatever the threshold."""
    median = narrowed(everything, wrong, Quantile(value[wrong]), "quantile")
    yield replace(everything, key=(*everything.key, None, "error_rate"), statistic=Mean(wrong), kind="rate")
    yield replace(median, key=(*everything.key, None, "median_when_wrong"))


def flag_samples(everything: Sample, tau: float, flag: BoolArray, wrong: BoolArray) -> Iterator[Sample]:
    """Yield the samples of what a threshold flags, each on the rows that it is about."""
    every = np.ones(flag.size, dtype=np.bool_)
    shares = {
        "flag_rate": (every, flag),
        "silent_error_rate": (every, wrong & ~flag),
        "hit_rate": (wrong, flag),
        "false_alarm_rate": (~wrong, flag),
        "precision": (flag, wrong),
    }
    for quantity, (rows, event) in shares.items():
        sample = narrowed(everything, rows, Mean(event[rows]), "rate")
        yield replace(sample, key=(*everything.key, tau, quantity))
