"""Scores and successes for runs of which a log has the prediction only."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import msgspec
import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.log.adapters.predictions import NO_METRIC
from kvstats.log.frames import Log
from kvstats.log.records import RUN_KEY
from kvstats.metrics import METRICS
from kvstats.selection import truth

__all__ = ["score_predictions"]

FUNCTION = "score_predictions"

ROUNDING = 1e-9
"""The same score computed in another order may be so much less."""


def score_predictions(
    log: Log, *, metric: str | None = None, threshold: float | None = None, where: str | None = None
) -> Log:
    """Score predictions that have no score yet, and say which scores are successes.

    Parameters
    ----------
    log : Log
        The log.
    metric : str, optional
        ``exact_match``, ``substring_match``, ``token_f1``, ``rouge_l``, ``string_match_all``,
        ``string_match_part``, or another of `kvstats.metrics.METRICS`. It scores the runs that have a
        prediction and references, but neither score nor error. Without it, runs are taken that have a score,
        but no success.
    threshold : float, optional
        A run is a success where its score is at least this, but for rounding (1e-9). Without it success stays
        null.
    where : str, optional
        An SQL condition on the runs, such as ``task = 'hotpotqa'``.

    Returns
    -------
    Log
        The log with `score` and `success` of these runs, and with ``metric`` and ``threshold`` in their
        ``extra``. All other runs are as they were: a score or success that is there is never changed.

    Raises
    ------
    InputError
        When there is no such run, with a count of why; when the ``extra`` of one names another metric or
        threshold; when a metric cannot use a reference; and when neither metric nor threshold is given.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> key = dict(suite="s", model="m", task="qa", arm="full")
    >>> log = log_from_records([
    ...     RunRecord(**key, input_id="1", prediction="the old mill", references=["An old mill."]),
    ...     RunRecord(**key, input_id="2", prediction="a mill", references=["An old mill."]),
    ... ])
    >>> scored = score_predictions(log, metric="token_f1", threshold=0.5)
    >>> scored.runs.select("score", "success", "extra").rows()[1]
    (0.6666666666666666, True, '{"metric":"token_f1","threshold":0.5}')
    """
    if metric is None and threshold is None:
        raise InputError(f"{FUNCTION}: neither metric nor threshold is given; pass one of them, or both")
    if metric is not None and metric not in METRICS:
        raise InputError.argument(
            FUNCTION, "metric", metric, "is unknown", nearest_name(str(metric), METRICS)
        )
    number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    if threshold is not None and not (number and math.isfinite(threshold)):
        raise InputError.argument(FUNCTION, "threshold", threshold, "is no number", "pass one such as 0.5")
    runs = log.runs
    chosen = pl.lit(True) if where is None else pl.lit(truth(runs, where, FUNCTION).fill_null(False))
    unscored = pl.col("score").is_null()
    answered = pl.col("prediction").is_not_null() & (pl.col("references").list.len() > 0)
    failed = pl.col("error").is_not_null() & (pl.col("error") != NO_METRIC)
    wanted = unscored & answered & ~failed if metric else ~unscored & pl.col("success").is_null()
    marked = runs.with_columns((chosen & wanted).fill_null(False).alias("wanted"), chosen.alias("chosen"))
    taken = marked["wanted"]
    if not taken.any():
        raise nothing_to_do(metric, marked.filter("chosen"))
    rows = [
        filled(row, metric, threshold)
        if wanted
        else (row["score"], row["success"], row["error"], row["extra"])
        for row, wanted in zip(runs.iter_rows(named=True), taken, strict=True)
    ]
    schema = {name: runs.schema[name] for name in ("score", "success", "error", "extra")}
    return log.with_runs(runs.with_columns(pl.DataFrame(rows, schema=schema, orient="row")))


def filled(
    row: dict[str, Any], metric: str | None, threshold: float | None
) -> tuple[float, bool | None, str | None, str]:
    """Return score, success, error and extra of a run that gets one or both of the first."""
    score = METRICS[metric](row["prediction"], row["references"]) if metric else row["score"]
    extra = msgspec.json.decode(row["extra"]) if row["extra"] else {}
    for name, value in (("metric", metric), ("threshold", threshold)):
        if value is None:
            continue
        if extra.get(name) not in (None, value):
            key = ", ".join(f"{part}={row[part]}" for part in RUN_KEY if row[part] is not None)
            raise InputError.argument(
                FUNCTION,
                name,
                value,
                f"is not what extra says of the run {key}, {name}={extra[name]!r}",
                "leave such runs out by where",
            )
        extra[name] = value
    success = None if threshold is None else score >= threshold - ROUNDING
    error = None if metric else row["error"]
    return score, success, error, msgspec.json.encode(extra, order="sorted").decode()


def nothing_to_do(metric: str | None, runs: pl.DataFrame) -> InputError:
    """Say why no run is filled in."""
    if metric is None:
        parts: Iterator[tuple[str, pl.Expr]] = iter(
            (("a success", pl.col("success").is_not_null()), ("no score", pl.col("score").is_null()))
        )
    else:
        unscored = pl.col("score").is_null()
        missing = pl.col("prediction").is_null() | (pl.col("references").list.len().fill_null(0) == 0)
        parts = iter(
            (
                ("a score", ~unscored),
                ("no prediction or no references", unscored & missing),
                ("an error", unscored & ~missing & pl.col("error").is_not_null()),
            )
        )
    told = ", ".join(f"{runs.filter(condition).height:,} have {what}" for what, condition in parts)
    want = "a threshold" if metric is None else f"metric={metric!r}"
    return InputError(
        f"{FUNCTION}: no run is left for {want}: of {runs.height:,} selected, {told}; a score or success "
        "that is there is not changed"
    )
