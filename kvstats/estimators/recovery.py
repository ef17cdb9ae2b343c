"""The recovery indicator: whether eviction lost or gained, and whether keeping everything changed nothing."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from kvstats.estimators.per_input import others_than
from kvstats.estimators.population import By, by_columns, drawn_rows, mean_or_rate, numbers
from kvstats.estimators.registry import table_estimator
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result, infer
from kvstats.inference.sample import Kind, samples_by
from kvstats.log.frames import Log
from kvstats.statistics.ratios import Mean
from kvstats.statistics.statistic import Statistic
from kvstats.tables import FULL, pairs_of

__all__ = ["recovery_indicator"]

VIOLATED = "not the identity at budget 1"


@table_estimator(quantity=pl.String())
def recovery_indicator(
    log: Log,
    *,
    arm: str,
    baseline: str = FULL,
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    r"""Mean and shares of the recovery indicator, with its audit at budget 1.

    .. math:: r(x) = \mathrm{sign}\bigl(A(b, x) - A(1, x)\bigr) \in \{-1, 0, 1\}

    for the score A of a pair of an evicted run at budget b and its full-cache twin; scores that differ by no
    more than 1e-9 are equal. At budget 1 nothing is evicted, and r must be 0: where it is not, runs are not
    deterministic or the twin is another one, and no figure at other budgets means what it says.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm that evicts.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's. On the arm of a gate ``gate_open`` and ``NOT
        gate_open`` condition on what it decided.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes Korn-Graubard intervals for the shares and a linearised one for the
        mean.

    Returns
    -------
    Result
        By-columns: those of `by`, and ``quantity``: ``lost``, ``same`` and ``gained`` are the shares of r =
        -1, 0 and 1, and ``mean`` is that of r, all over the pairs at budgets below 1; ``identity`` is the
        share of r = 0 among the pairs at budget 1, with status ``no rows`` where there are none and ``not the
        identity at budget 1`` where it is below 1.

    Raises
    ------
    InputError
        When a run has no twin, a score is null, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", the recovery indicator.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget, score=score)
    ...     for i in range(20)
    ...     for arm, budget, score in (
    ...         ("full", 1.0, float(i > 9)), ("snapkv", 1.0, float(i > 9)), ("snapkv", 0.25, float(i > 13)))
    ... ])
    >>> recovery_indicator(log, arm="snapkv")
    recovery_indicator, 95% interval
    quantity  estimate    low   high     se  df   n  clusters  status
    gained        0.00   0.00   0.17      –  19  20        20  ok
    identity      1.00   0.83   1.00      –  19  20        20  ok
    lost          0.20   0.05   0.44  0.092  19  20        20  ok
    mean         -0.20  -0.39  -0.01  0.092  19  20        20  ok
    same          0.80   0.56   0.95  0.092  19  20        20  ok
    """
    function = "recovery_indicator"
    pairs = pairs_of(function, log, arm, baseline, where)
    names = by_columns(function, others_than(function, log, by, "quantity"), pairs)
    whole = pl.col("budget").fill_null(0.0) >= 1
    pairs = pairs.with_columns(
        indicator=pl.col("help").cast(pl.Int64) - pl.col("harm").cast(pl.Int64),
        same=~pl.col("help") & ~pl.col("harm"),
    )

    def build_mean(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        return Mean(numbers(part, "indicator")), "paired"

    drawn, samples = drawn_rows(log, design), []
    for quantity, rows, build in (
        ("mean", pairs.filter(~whole), build_mean),
        ("lost", pairs.filter(~whole), mean_or_rate("harm")),
        ("same", pairs.filter(~whole), mean_or_rate("same")),
        ("gained", pairs.filter(~whole), mean_or_rate("help")),
        ("identity", pairs.filter(whole), mean_or_rate("same")),
    ):
        found = {s.key: s for s in samples_by(function, rows, names, design, build, drawn)}
        keys = pairs.select(names).unique().rows() if names else [()]
        empty = samples_by(function, rows.clear(), (), design, build, drawn)[0]
        samples += [replace(found.get(key, empty), key=(*key, quantity)) for key in keys]
    schema = {name: pairs.schema[name] for name in names} | {"quantity": pl.String()}
    result = infer(function, samples, design, schema)
    violated = (pl.col("quantity") == "identity") & (pl.col("estimate") < 1)
    status = pl.when(violated).then(pl.lit(VIOLATED)).otherwise("status").alias("status")
    return replace(result, frame=result.frame.with_columns(status))
