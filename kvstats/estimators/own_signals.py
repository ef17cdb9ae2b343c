"""Self-signals of different arms, each judged on the failures of its own arm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from kvstats.errors import InputError
from kvstats.estimators.discrimination import auc
from kvstats.estimators.joint_table import refuse_own_columns
from kvstats.estimators.population import By
from kvstats.estimators.registry import table_estimator
from kvstats.estimators.signal_panel import known_directions
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result, infer
from kvstats.inference.sample import Sample
from kvstats.log.frames import Log

__all__ = ["own_signal_auc"]

COLUMNS: dict[str, pl.DataType] = {"arm": pl.String(), "signal": pl.String()}


@table_estimator(**COLUMNS)
def own_signal_auc(
    log: Log,
    *,
    signals: Mapping[str, str],
    outcome: str = "induced_failure",
    higher: Mapping[str, str] | None = None,
    baseline: str = "full",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Area under the curve of each arm's own signal for the failures of that arm, one row a signal.

    Formula: that of `kvstats.auc`, for each signal on the runs of its own arm. It answers whether
    deterministic eviction sees its own failures as well as a certificate sees those of sampling: a rule of a
    registration can compare the rows. For the difference of two of them, with its interval, see
    `kvstats.auc_difference` with ``second_arm``.

    Parameters
    ----------
    log : Log
        The log.
    signals : mapping of str to str
        For each signal, the arm whose runs carry it and whose failures it is to see.
    outcome : str, default "induced_failure"
        Boolean column of the pairs; see `kvstats.auc`.
    higher : mapping of str to {"positive", "negative"}, optional
        Which class is expected to have the higher signal, where `kvstats.signal_panel` does not know it.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; as for `kvstats.auc`.

    Returns
    -------
    Result
        By-columns, ``arm`` and ``signal``; the null hypothesis of its tests is 0.5. Undefined as in
        `kvstats.auc`.

    Raises
    ------
    InputError
        When no signal is named, the class that has the higher one is not known, and as for `kvstats.auc`.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", claim R2.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget,
    ...               score=float(success), success=success,
    ...               signals={"certificate": i % 7, "margin": i * i % 5})
    ...     for i in range(40)
    ...     for arm, budget, success in (
    ...         ("full", 1.0, True), ("poisson", 0.5, i % 5 > i % 7), ("topk", 0.5, i % 3 > 0))
    ... ])
    >>> own_signal_auc(log, signals={"certificate": "poisson", "margin": "topk"})
    own_signal_auc, 95% interval
    arm      signal       estimate   low  high     se    df   n  clusters  status
    poisson  certificate      0.87  0.71  0.95  0.056  31.0  40        40  ok
    topk     margin           0.53  0.35  0.71  0.091  27.1  40        40  ok
    """
    function = "own_signal_auc"
    if not signals:
        raise InputError.argument(function, "signals", signals, "names no signal", "name each with its arm")
    names = (by,) if isinstance(by, str) else tuple(by or ())
    refuse_own_columns(function, names, COLUMNS)
    directions = known_directions(function, list(signals), higher)
    samples: list[Sample] = []
    columns: dict[str, pl.DataType] = {}
    for signal, arm in signals.items():
        result = auc(
            log,
            signal=signal,
            outcome=outcome,
            arm=arm,
            baseline=baseline,
            higher=directions[signal],
            where=where,
            by=by,
            design=design,
        )
        samples += [replace(sample, key=(*sample.key, arm, signal)) for sample in result.samples]
        columns = {name: result.frame.schema[name] for name in result.by}
    return infer(function, samples, design, {**columns, **COLUMNS}, null=0.5)
