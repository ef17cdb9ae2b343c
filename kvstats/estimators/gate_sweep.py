"""The sweep of a gate's threshold: what each would have gained, kept and got wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.estimators.per_input import others_than
from kvstats.estimators.population import By, by_columns, drawn_rows, numbers, with_kept_fraction
from kvstats.estimators.registry import table_estimator
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result, infer
from kvstats.inference.sample import Kind, Sample, samples_by
from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY
from kvstats.policies.gate import refuse_other_scales
from kvstats.policies.input_signal import SIGNAL, check_input_signal, with_signal
from kvstats.policies.threshold import DROP, Threshold, as_threshold
from kvstats.selection import select
from kvstats.statistics.ratios import Mean
from kvstats.statistics.statistic import FloatArray, Statistic
from kvstats.tables import EVICTED, FULL, arm_rows, pairs_of, require_values

__all__ = ["QUANTITIES", "gate_sweep"]

QUANTITIES = ("delta", "kept_fraction", "gate_open", "false_open", "false_closed")
"""What a sweep estimates, in the order of its rows."""

STEPS = 20
"""Steps of the default thresholds from the lowest to the highest signal."""

RARE = 0.05
"""Share of inputs below which the gate is said to be open, or closed, for hardly any."""

MOSTLY_CLOSED = f"gate open on under {100 * RARE:g}%"
MOSTLY_OPEN = f"gate open on over {100 - 100 * RARE:g}%"


@table_estimator(tau=pl.Float64(), quantity=pl.String())
def gate_sweep(
    log: Log,
    *,
    base: str,
    taus: Sequence[float | Threshold] | None = None,
    signal: str = DROP,
    full: str = FULL,
    quantities: Sequence[str] = QUANTITIES,
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    r"""Sweep the threshold of a gate over logged runs, without running any.

    At each threshold the outcome of a pair is the full-cache twin's where the signal D is below it (the gate
    is closed), and the evicted run's elsewhere: exactly what `kvstats.gate` gives. Formula: ``sum(w * q) /
    sum(w)`` for each quantity q over pairs of an evicted run and its twin, at budgets below 1:

    - ``delta``: score of the gated run minus that of the evicted one, :math:`[D < \tau](y_1 - y_b)`;
    - ``kept_fraction``: fraction of the cache that the gated run keeps;
    - ``gate_open``: share of pairs with :math:`D \ge \tau`;
    - ``false_open``: among the pairs whose full-cache run succeeded, the share whose gate is open although
      the evicted run fails: answers that the gate lets eviction destroy;
    - ``false_closed``: among the same pairs, the share whose gate is closed although the evicted run succeeds
      too: caches kept whole for nothing.

    Parameters
    ----------
    log : Log
        The log.
    base : str
        Name of the arm that evicts.
    taus : sequence of float or Threshold, optional
        The thresholds, each as `kvstats.gate` takes it. Default: the 0, 5, ..., 100% quantiles of the signal
        over the selected inputs. On another signal than ``drop`` a sweep of plain numbers is refused, as a
        gate is: its thresholds are not those of ``drop``.
    signal : str, default "drop"
        Column of `log.inputs`.
    full : str, default "full"
        Name of the arm that keeps the cache.
    quantities : sequence of str
        Which of the quantities.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the evicted run's.
    by : str or sequence of str, optional
        Columns to sweep within.
    design : Design
        How to judge them; ``auto`` takes Korn-Graubard intervals for shares and linearised ones for
        ``delta`` and ``kept_fraction``.

    Returns
    -------
    Result
        By-columns: those of `by`, ``tau`` and ``quantity``. The status of a ``delta`` is ``gate open on under
        5%`` or ``gate open on over 95%`` where the gate is open, or closed, for so few pairs that its delta
        is what the fallback gains, not the gate; such rows have no p-value. `gate_plateau` finds the range of
        good thresholds.

    Raises
    ------
    InputError
        When a run has no twin, a value that a quantity needs is null, thresholds are not numbers or those of
        another signal, models would be pooled under a calibrated threshold, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", sensitivity to tau.

    Examples
    --------
    >>> from kvstats.log import InputRecord, RunRecord, log_from_records
    >>> keys = [dict(suite="s", model="m", task="t", input_id=f"{i:02}") for i in range(40)]
    >>> log = log_from_records([
    ...     record for i, key in enumerate(keys) for record in (
    ...         InputRecord(**key, drop=0.005 * i),
    ...         RunRecord(**key, arm="full", budget=1.0, score=1.0, success=True, kept_fraction=1.0),
    ...         RunRecord(**key, arm="snapkv", budget=0.25, score=float(i > 9), success=i > 9,
    ...                   kept_fraction=0.25))
    ... ])
    >>> gate_sweep(log, base="snapkv", taus=[0.05], quantities=["delta", "gate_open", "false_closed"])
    gate_sweep, 95% interval
     tau  quantity      estimate    low   high     se  df   n  clusters  status
    0.05  delta             0.25   0.11   0.39  0.069  39  40        40  ok
    0.05  false_closed     0.000  0.000  0.088      –  39  40        40  ok
    0.05  gate_open         0.75   0.59   0.87  0.069  39  40        40  ok
    """
    function = "gate_sweep"
    chosen = chosen_quantities(function, quantities)
    check_input_signal(function, log, signal)
    arm_rows(log.runs, base, function, "base")
    pairs = select(pairs_of(function, log, base, full, where), EVICTED, function)
    pairs = with_signal(function, log, pairs, signal)
    names = by_columns(function, others_than(function, log, by, "tau", "quantity"), pairs)
    grid = swept_thresholds(function, pairs, taus, signal)
    pairs = with_outcomes(function, pairs, chosen)
    keys, samples = [*names, "tau", "quantity"], []
    status: dict[tuple[object, ...], str] = {}
    for part in parts_of(function, log, pairs, names, design):
        for tau in grid:
            if warning := fallback(part, tau):
                status[(*part.everything.key, tau, "delta")] = warning
            samples += [swept(part, tau, quantity) for quantity in chosen]
    schema = {name: pairs.schema[name] for name in names} | {"tau": pl.Float64(), "quantity": pl.String()}
    result = infer(function, samples, design, schema, null=0.0 if chosen == ("delta",) else None)
    statuses = [
        status.get(key, found)
        for key, found in zip(result.frame.select(keys).rows(), result.frame["status"], strict=True)
    ]
    return replace(result, frame=result.frame.with_columns(pl.Series("status", statuses, dtype=pl.String)))


def chosen_quantities(function: str, quantities: Sequence[str]) -> tuple[str, ...]:
    """Return the quantities as a tuple, or raise `InputError` where one is not known or named twice."""
    names = (quantities,) if isinstance(quantities, str) else tuple(quantities)
    for name in names:
        if name not in QUANTITIES:
            raise InputError.argument(
                function, "quantities", name, "is not known", nearest_name(str(name), QUANTITIES)
            )
    if not names or len(set(names)) < len(names):
        raise InputError.argument(
            function, "quantities", quantities, "is not a list of different names", "name each once"
        )
    return names


def swept_thresholds(
    function: str, pairs: pl.DataFrame, taus: Sequence[float | Threshold] | None, signal: str
) -> list[float]:
    """Return the thresholds in ascending order, each once."""
    if taus is None:
        signals = pairs.unique([*INPUT_KEY])[SIGNAL].to_numpy()
        if not signals.size:
            raise InputError(f"{function}: no pair is left, and thresholds are quantiles of its signal")
        return [float(tau) for tau in np.unique(np.quantile(signals, np.linspace(0, 1, STEPS + 1)))]
    if not isinstance(taus, Sequence | np.ndarray) or isinstance(taus, str) or not len(taus):
        raise InputError.argument(
            function, "taus", taus, "is no list of thresholds", "pass one such as [0.05, 0.07]"
        )
    found = [as_threshold(function, tau, signal) for tau in taus]
    for threshold in found:
        refuse_other_scales(function, pairs, threshold)
    return sorted({threshold.value for threshold in found})


def with_outcomes(function: str, pairs: pl.DataFrame, quantities: Sequence[str]) -> pl.DataFrame:
    """Return the pairs with what both runs kept, where asked for, and without nulls in what is needed."""
    if "kept_fraction" in quantities:
        pairs = with_kept_fraction(function, with_kept_fraction(function, pairs), "baseline_")
    if {"false_open", "false_closed"} & {*quantities}:
        for column in ("success", "baseline_success"):
            require_values(function, pairs, column)
    return pairs


class Part(NamedTuple):
    """One cell of the sweep: the samples that all thresholds share, and the columns of its pairs."""

    everything: Sample
    answered: Sample
    """Its pairs whose full-cache run succeeded."""
    drop: FloatArray
    difference: FloatArray
    kept: FloatArray
    baseline_kept: FloatArray
    success: FloatArray
    baseline_success: FloatArray


COLUMNS = (SIGNAL, "difference", "kept_fraction", "baseline_kept_fraction", "success", "baseline_success")
"""Columns of the pairs that a part holds."""


def parts_of(
    function: str, log: Log, pairs: pl.DataFrame, names: Sequence[str], design: Design
) -> list[Part]:
    """Split the pairs once, for all thresholds."""
    drawn = drawn_rows(log, design)
    columns: list[list[FloatArray]] = []

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        columns.append([numbers(part, column) for column in COLUMNS])
        return Mean(columns[-1][0]), "mean"

    def build_rate(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        return Mean(numbers(part, SIGNAL)), "rate"

    everything = samples_by(function, pairs, names, design, build, drawn)
    succeeded = pairs.filter(pl.col("baseline_success"))
    answered = {s.key: s for s in samples_by(function, succeeded, names, design, build_rate, drawn)}
    return [
        Part(sample, answered.get(sample.key, without_rows(sample)), *values)
        for sample, values in zip(everything, columns, strict=True)
    ]


def without_rows(sample: Sample) -> Sample:
    """Return a sample without any of its rows."""
    return Sample(sample.key, Mean([]), np.empty(0), np.empty(0, dtype=np.int64), (), "rate")


def fallback(part: Part, tau: float) -> str | None:
    """Return the status of a delta that is the fallback's rather than the gate's, None for others."""
    if not part.drop.size:
        return None
    share = float(np.average(part.drop >= tau, weights=part.everything.weights))
    if RARE <= share <= 1 - RARE:
        return None
    return MOSTLY_CLOSED if share < RARE else MOSTLY_OPEN


def swept(part: Part, tau: float, quantity: str) -> Sample:
    """Return the sample of a quantity at a threshold."""
    key = (*part.everything.key, tau, quantity)
    is_open = part.drop >= tau
    if quantity == "delta":
        gain = np.where(is_open, 0.0, -part.difference)
        return replace(part.everything, key=key, statistic=Mean(gain), kind="paired")
    if quantity == "kept_fraction":
        kept = np.where(is_open, part.kept, part.baseline_kept)
        return replace(part.everything, key=key, statistic=Mean(kept), kind="mean")
    if quantity == "gate_open":
        return replace(part.everything, key=key, statistic=Mean(is_open), kind="rate")
    wrong = is_open & (part.success == 0) if quantity == "false_open" else ~is_open & (part.success == 1)
    return replace(part.answered, key=key, statistic=Mean(wrong[part.baseline_success == 1]))
