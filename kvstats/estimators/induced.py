"""Failures that eviction induced: on inputs that need their context, and of one arm against another."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from kvstats.errors import InputError
from kvstats.estimators.population import By, estimate, numbers
from kvstats.estimators.registry import estimator
from kvstats.estimators.signal_pairs import outcome_pairs
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.inference.sample import Kind
from kvstats.log.frames import Log
from kvstats.log.records import RUN_KEY
from kvstats.statistics.ratios import Mean
from kvstats.statistics.statistic import Statistic
from kvstats.tables import arm_rows, examples, pairs_of, require_values

__all__ = ["ContextDependent", "context_dependent", "induced_failure_difference"]

QUESTION = ["suite", "model", "task", "input_id"]
"""What identifies a question: without a context it does not matter where it stood."""


@dataclass(frozen=True, eq=False)
class ContextDependent:
    """The part of a log whose inputs need their context, and what was left out.

    Attributes
    ----------
    log : Log
        Runs, input records and replays of the inputs that the model does not answer without the context.
    counts : polars.DataFrame
        One row for each suite, model and task: ``inputs``, ``answered_without_context`` (left out) and
        ``kept``.
    """

    log: Log
    counts: pl.DataFrame

    def __repr__(self) -> str:
        left_out = self.counts["answered_without_context"].sum()
        return (
            f"ContextDependent({self.log!r}; {left_out} of {self.counts['inputs'].sum()} inputs are answered "
            "without their context and left out)"
        )


def context_dependent(log: Log, *, no_context: str = "no_context") -> ContextDependent:
    """Return the log without the inputs that the model answers without their context.

    What a model knows by heart no eviction can make it forget: such inputs say nothing about eviction, and
    dilute the rate of induced failures.

    Parameters
    ----------
    log : Log
        The log.
    no_context : str, default "no_context"
        Name of the arm that was given the question only.

    Returns
    -------
    ContextDependent
        ``log``, to be passed on, and ``counts`` of what was left out. An input is left out for a model where
        any of its runs without context succeeded, under all conditions.

    Raises
    ------
    InputError
        When there is no such arm, one of its runs has no success, or an input has no such run.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, score=float(success),
    ...               success=success)
    ...     for i in range(4)
    ...     for arm, success in (("full", True), ("no_context", i == 0), ("poisson", i < 2))
    ... ])
    >>> restricted = context_dependent(log)
    >>> restricted.counts.select("inputs", "answered_without_context", "kept").rows()
    [(4, 1, 3)]
    >>> from kvstats.estimators import induced_failure_rate
    >>> induced_failure_rate(restricted.log, arm="poisson").frame.select("estimate", "n").rows()
    [(0.6666666666666666, 3)]
    """
    function = "context_dependent"
    rows = arm_rows(log.runs, no_context, function, "no_context")
    unscored = rows.filter(pl.col("success").is_null())
    if unscored.height:
        raise InputError.argument(
            function,
            "no_context",
            no_context,
            f"has no success in {unscored.height} of {rows.height} runs, such as "
            f"{examples(unscored, RUN_KEY)}",
            "score them, or use a log without these inputs",
        )
    answered = rows.group_by(QUESTION).agg(pl.col("success").any().alias("answered"))
    questions = log.runs.select(QUESTION).unique().sort(QUESTION)
    known = questions.join(answered, on=QUESTION, how="left", maintain_order="left")
    unknown = known.filter(pl.col("answered").is_null())
    if unknown.height:
        raise InputError.argument(
            function,
            "no_context",
            no_context,
            f"has no run of {unknown.height} of {known.height} inputs, such as {examples(unknown, QUESTION)}",
            "record it for every input, or use a log without these",
        )
    kept = known.filter(~pl.col("answered"))

    def restricted(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.join(kept, on=QUESTION, how="semi")

    counts = (
        known.group_by("suite", "model", "task")
        .agg(
            pl.len().cast(pl.Int64).alias("inputs"),
            pl.col("answered").sum().cast(pl.Int64).alias("answered_without_context"),
        )
        .with_columns((pl.col("inputs") - pl.col("answered_without_context")).alias("kept"))
        .sort("suite", "model", "task")
    )
    smaller = replace(
        log,
        runs=restricted(log.runs),
        inputs=restricted(log.inputs),
        replays=restricted(log.replays),
    )
    return ContextDependent(smaller, counts)


@estimator
def induced_failure_difference(
    log: Log,
    *,
    arm: str,
    second_arm: str,
    baseline: str = "full",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Rate of induced failures of one arm minus that of another, on the same inputs.

    Formula: ``sum(w * ([arm failed] - [second arm failed])) / sum(w)`` over the runs of `arm` whose twin of
    the baseline succeeded, each against the second arm's run of the same input and budget (and seed, where
    that arm has several). In [-1, 1]; the null hypothesis of its tests is 0.

    With a random arm first and a deterministic one second it is the tax of drawing at random, in induced
    failures, ``by="condition"`` for each place of the question. The tax in accuracy, over all inputs, is
    `kvstats.delta` with ``outcome="success"`` of the random arm with the deterministic one as baseline, with
    the sign turned.

    Parameters
    ----------
    log : Log
        The log.
    arm, second_arm : str
        The two arms that evict.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    where : str, optional
        SQL expression over the pairs of `arm` with the baseline; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a linearised interval.

    Returns
    -------
    Result
        Where both arms fail on the same inputs the estimate is 0 with status ``no discordant pairs``,
        without interval, and the p-value is 1. Null with status ``no rows`` where no twin succeeded.

    Raises
    ------
    InputError
        When a run has no twin in either arm, a success is null, both arms are the same, or a name is not
        known.

    References
    ----------
    .. [1] "Error Certificates for KV-Cache Eviction via Randomized Design", claim S3.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget,
    ...               score=float(success), success=success)
    ...     for i in range(20)
    ...     for arm, budget, success in (
    ...         ("full", 1.0, i > 3), ("topk", 0.25, i > 7), ("poisson", 0.25, i > 9))
    ... ])
    >>> induced_failure_difference(log, arm="poisson", second_arm="topk").frame.select("estimate", "n").rows()
    [(0.125, 16)]
    """
    function = "induced_failure_difference"
    if arm == second_arm:
        raise InputError.argument(
            function, "second_arm", second_arm, "is the first arm too", "name two different arms"
        )
    pairs = outcome_pairs(function, log, arm, baseline, "induced_failure", where)
    if not pairs.height:
        return estimate(function, log, pairs, by, design, lambda _: (Mean([]), "paired"), null=0.0)
    chosen = arm_rows(log.runs, arm, function).join(
        pairs.select(RUN_KEY), on=list(RUN_KEY), how="semi", nulls_equal=True
    )
    others = arm_rows(log.runs, second_arm, function, "second_arm")
    both = pairs_of(function, log.with_runs(pl.concat([chosen, others])), arm, second_arm, None)
    require_values(function, both, "baseline_success")
    second = both.select(*RUN_KEY, pl.col("baseline_success").alias("__second__"))
    joined = pairs.join(second, on=list(RUN_KEY), how="left", nulls_equal=True, maintain_order="left")
    joined = joined.with_columns(
        (pl.col("__second__").cast(pl.Float64) - pl.col("success").cast(pl.Float64)).alias("__difference__")
    )

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        return Mean(numbers(part, "__difference__")), "paired"

    return estimate(function, log, joined, by, design, build, null=0.0)
