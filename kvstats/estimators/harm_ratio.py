"""The harm that an arm leaves of another's: a ratio of two harm rates on the same runs."""

from __future__ import annotations

import polars as pl

from kvstats.errors import InputError
from kvstats.estimators.population import By, estimate, mean_or_rate, numbers
from kvstats.estimators.registry import estimator
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.inference.sample import Kind
from kvstats.log.frames import Log
from kvstats.log.records import RUN_KEY
from kvstats.statistics.ratios import Ratio
from kvstats.statistics.statistic import Statistic
from kvstats.tables import FULL, TIE, arm_rows, pairs_of

__all__ = ["harm_ratio"]


@estimator
def harm_ratio(
    log: Log,
    *,
    arm: str,
    reference: str,
    baseline: str = FULL,
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    r"""Ratio of the harm rates of two arms on the same inputs and budgets, such as gated over plain.

    Formula: ``sum(w * [arm harmed]) / sum(w * [reference harmed])`` over runs of the arm, each with the
    reference's run of the same input, budget and seed, both held against their full-cache twin; harmed is
    scoring below it. One minus it is the share of the reference's harm that the arm avoids. The null
    hypothesis of its tests is 1.

    Parameters
    ----------
    log : Log
        The log.
    arm, reference : str
        The two arms.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    where : str, optional
        SQL expression over the pairs of `arm` and `baseline`; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to estimate within; without any, cells are pooled: harms and runs are summed over them.
    design : Design
        How to judge it. Where the arm is a gate over the reference (its ``gate_open`` is known, and says
        which runs score as the reference's and which as the baseline's), it cannot harm a run that the
        reference does not: the ratio is the share of the reference's harmed runs that it harms too, a rate,
        for which ``auto`` takes a Korn-Graubard interval, also where the arm harms none. Any other arm may
        exceed 1, though it happen not to in the sample: ``auto`` takes a linearised interval on the log
        scale.

    Returns
    -------
    Result
        At least 0. ``n`` counts the runs: for a gate those that the reference harms, else all. Null where
        the reference harms none (``no rows``, or ``undefined``); without interval where another arm than a
        gate harms none (``zero variance``).

    Raises
    ------
    InputError
        When a run has no twin or no run of the reference, a score is null, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", table 27.
    .. [2] Katz, Baptista, Azen and Pike, Biometrics 34, 1978, for the log scale.

    Examples
    --------
    >>> from kvstats.log import InputRecord, RunRecord, log_from_records
    >>> from kvstats.policies import gate
    >>> keys = [dict(suite="s", model="m", task="t", input_id=f"{i:02}") for i in range(50)]
    >>> log = log_from_records([
    ...     record for i, key in enumerate(keys) for record in (
    ...         InputRecord(**key, drop=0.05 if 4 < i < 20 else 0.1),
    ...         RunRecord(**key, arm="full", budget=1.0, score=1.0),
    ...         RunRecord(**key, arm="plain", budget=0.25, score=float(i > 19)))
    ... ])
    >>> harm_ratio(gate(log, tau=0.07, base="plain"), arm="gate", reference="plain")
    harm_ratio, 95% interval
    estimate   low  high     se  df   n  clusters  status
        0.25  0.08  0.50  0.099  19  20        20  ok
    """
    function = "harm_ratio"
    if arm == reference:
        raise InputError.argument(function, "reference", reference, "is the arm itself", "name another arm")
    arm_rows(log.runs, reference, function, "reference")
    pairs = pairs_of(function, log, arm, baseline, where)
    if not pairs.height:
        return estimate(function, log, pairs, by, design, mean_or_rate("harm"), null=1.0)
    twins = pairs_of(function, selected(log, pairs, arm), arm, reference, None)
    joined = pairs.join(
        twins.select(*RUN_KEY, pl.col("baseline_score").alias("reference_score")),
        on=list(RUN_KEY),
        how="left",
        nulls_equal=True,
        maintain_order="left",
    ).with_columns(reference_harm=pl.col("baseline_score") - pl.col("reference_score") > TIE)
    if is_gate_over_reference(joined):
        harmed = joined.filter("reference_harm")
        return estimate(function, log, harmed, by, design, mean_or_rate("harm"), null=1.0)

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        return Ratio(numbers(part, "harm"), numbers(part, "reference_harm")), "ratio"

    return estimate(function, log, joined, by, design, build, null=1.0)


def is_gate_over_reference(joined: pl.DataFrame) -> bool:
    """Say whether runs score as the reference's where their gate is open, and as the baseline's elsewhere.

    That an arm happens to harm no run that the reference does not is no reason to rule it out.
    """
    if "gate_open" not in joined.columns:
        return False
    as_reference = (pl.col("score") - pl.col("reference_score")).abs() <= TIE
    alike = pl.when("gate_open").then(as_reference).otherwise(pl.col("difference") == 0)
    return bool(joined.select((pl.col("gate_open").is_not_null() & alike).all()).item())


def selected(log: Log, pairs: pl.DataFrame, arm: str) -> Log:
    """Return the log with no other runs of the arm than those of the pairs."""
    keys = pairs.select(RUN_KEY)
    own = log.runs.filter(pl.col("arm") == arm).join(keys, on=list(RUN_KEY), how="semi", nulls_equal=True)
    return log.with_runs(pl.concat([log.runs.filter(pl.col("arm") != arm), own]))
