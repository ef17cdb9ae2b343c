"""Accuracy at equal memory: outcomes against the fraction of the cache that was really kept."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real

import numpy as np
import polars as pl

from kvstats.errors import InputError
from kvstats.estimators.per_input import Builder, estimate_each, others_than
from kvstats.estimators.population import (
    By,
    by_columns,
    check_outcome,
    estimate,
    mean_or_rate,
    numbers,
    runs_of,
    with_kept_fraction,
)
from kvstats.estimators.registry import estimator, table_estimator
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.inference.sample import Kind
from kvstats.log.frames import Log
from kvstats.selection import select
from kvstats.statistics.memory_curve import CurveCrossing, InterpolatedMean
from kvstats.statistics.ratios import Mean
from kvstats.statistics.statistic import IntArray, Statistic
from kvstats.tables import arm_rows, runs_with_inputs

__all__ = ["accuracy_at_kept", "memory_crossover", "memory_curve"]

NODE = ("budget", "budget_tokens")
"""What makes a point of a curve: runs that agree in both."""


@table_estimator(budget=pl.Float64(), budget_tokens=pl.Int64(), quantity=pl.String())
def memory_curve(
    log: Log,
    *,
    arm: str | None = None,
    outcome: str = "score",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Points of outcome against the fraction of the cache that was really kept, one a budget.

    Formula: at each budget the mean kept fraction and the mean outcome, both ``sum(w * .) / sum(w)`` over its
    runs.

    Parameters
    ----------
    log : Log
        The log.
    arm : str, optional
        The arm. Needed where several arms are left and `by` does not keep them apart.
    outcome : {"score", "success"}
        Which outcome.
    where : str, optional
        SQL expression over the runs with the columns of their input records.
    by : str or sequence of str, optional
        Columns to estimate within, besides both budgets.
    design : Design
        How to judge it; ``auto`` takes a Korn-Graubard interval for outcomes that are all 0 or 1, and else a
        linearised one.

    Returns
    -------
    Result
        Two rows a point, for each ``quantity``: ``kept`` and ``outcome``. The intervals of a point are each
        for itself; to compare arms at equal memory use `accuracy_at_kept`, which knows that both move
        together.

    Raises
    ------
    InputError
        When arms would be pooled, an outcome is null, a run does not tell what it kept, or a name is not
        known.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm="snapkv", budget=budget,
    ...               score=float(i % 10 < hits), kept_fraction=budget)
    ...     for i in range(40)
    ...     for budget, hits in ((0.25, 2), (0.75, 8))
    ... ])
    >>> memory_curve(log).frame.select("budget", "quantity", "estimate").rows()
    [(0.25, 'kept', 0.25), (0.25, 'outcome', 0.2), (0.75, 'kept', 0.75), (0.75, 'outcome', 0.8)]
    """
    function = "memory_curve"
    within = list(dict.fromkeys([*others_than(function, log, by, "quantity"), *NODE]))
    rows = with_kept_fraction(function, runs_of(function, log, arm, where, within))
    check_outcome(function, rows, outcome)

    def kept(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        return Mean(numbers(part, "kept_fraction")), "mean"

    builders: dict[str, Builder] = {"kept": kept, "outcome": mean_or_rate(outcome)}
    return estimate_each(function, log, rows, within, design, builders, ("quantity", pl.String()))


@table_estimator(kept=pl.Float64())
def accuracy_at_kept(
    log: Log,
    *,
    arm: str | None = None,
    kept: Sequence[float],
    outcome: str = "score",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Mean outcome of an arm where its cache is a given fraction of the whole, as really kept.

    Formula: each budget is a point (mean of kept, mean of y), both ``sum(w * .) / sum(w)`` over its runs; the
    estimate is on the straight line between the two points on either side of the given fraction. A gate that
    keeps some caches whole keeps more than its budget says, so that arms are to be compared at what they
    kept: ``by="arm"`` with ``.contrast(arm=("gate", "plain"))`` is the difference at matched memory.

    Parameters
    ----------
    log : Log
        The log.
    arm : str, optional
        The arm. Needed where several arms are left and `by` does not keep them apart.
    kept : sequence of float
        Fractions of the cache to read the curve at, each in (0, 1] and once.
    outcome : {"score", "success"}
        Which outcome.
    where : str, optional
        SQL expression over the runs with the columns of their input records.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a linearised interval, which knows that the points move sideways too.

    Returns
    -------
    Result
        One row a fraction, in the by-column ``kept``. Null with status ``undefined`` outside the range of
        what the arm kept, where nothing was measured; ``no rows`` where no run is left.

    Raises
    ------
    InputError
        When a fraction is out of its range, arms would be pooled, an outcome is null, a run does not tell
        what it kept, or a name is not known.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm="snapkv", budget=budget,
    ...               score=float(i % 10 < hits), kept_fraction=budget)
    ...     for i in range(40)
    ...     for budget, hits in ((0.25, 2), (0.75, 8))
    ... ])
    >>> accuracy_at_kept(log, kept=[0.2, 0.5]).frame.select("kept", "estimate", "status").rows()
    [(0.2, None, 'undefined'), (0.5, 0.5, 'ok')]
    """
    function = "accuracy_at_kept"
    if not isinstance(kept, Sequence | np.ndarray) or isinstance(kept, str):
        raise InputError.argument(
            function, "kept", kept, "is no list of fractions", "pass a list such as [0.25, 0.5]"
        )
    for fraction in kept:
        if isinstance(fraction, bool) or not isinstance(fraction, Real) or not 0 < fraction <= 1:
            raise InputError.argument(
                function, "kept", fraction, "is not a fraction in (0, 1]", "pass a list such as [0.25, 0.5]"
            )
    if not len(kept) or len(set(kept)) < len(kept):
        raise InputError.argument(
            function, "kept", kept, "is empty or names a fraction twice", "name each fraction once"
        )
    names = others_than(function, log, by, "kept")
    rows = with_kept_fraction(function, runs_of(function, log, arm, where, names))
    check_outcome(function, rows, outcome)

    def at(fraction: float) -> Builder:
        def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
            nodes, n_nodes = nodes_of(part, NODE)
            curve = InterpolatedMean(
                numbers(part, outcome), numbers(part, "kept_fraction"), nodes, n_nodes, fraction
            )
            return curve, "mean"

        return build

    builders = {float(fraction): at(float(fraction)) for fraction in kept}
    return estimate_each(function, log, rows, names, design, builders, ("kept", pl.Float64()))


@estimator
def memory_crossover(
    log: Log,
    *,
    arm: str,
    baseline: str,
    outcome: str = "score",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Fraction of the cache, as really kept, at which the outcomes of two arms cross.

    Formula: the lowest kept fraction at which the difference between the curves of `accuracy_at_kept` of both
    arms changes its sign, within the range that both have measured. That they meet where both keep
    everything is no crossing.

    Parameters
    ----------
    log : Log
        The log.
    arm, baseline : str
        The two arms, different ones.
    outcome : {"score", "success"}
        Which outcome.
    where : str, optional
        SQL expression over the runs with the columns of their input records.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a percentile bootstrap.

    Returns
    -------
    Result
        In (0, 1]; ``n`` counts the runs of both arms. Null with status ``undefined`` where the curves do not
        cross, or an arm has no run; ``no rows`` where neither has; without interval where they do not cross
        in more than 5% of the resamples (``undefined in bootstrap``). `kvstats.defined_share` tells in which
        share they do. The interval is of the resamples that have a crossing.

    Raises
    ------
    InputError
        When both arms are one, an outcome is null, a run does not tell what it kept, `by` names the arm, or a
        name is not known.

    Notes
    -----
    Simulated coverage of the 95% percentile interval is within simulation error of 0.95 (400 samples of 100
    inputs, five budgets) where the curves are several standard errors apart at both ends of the range that
    both have measured. Where they are not, as when that range begins close to the crossing, there is often
    no interval; see `accuracy_at_kept` with ``.contrast`` for the difference at chosen fractions.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget,
    ...               score=float(i % 10 < hits), kept_fraction=budget)
    ...     for i in range(40)
    ...     for arm, budget, hits in (("a", 0.2, 1), ("a", 0.8, 9), ("b", 0.2, 5), ("b", 0.8, 7))
    ... ])
    >>> memory_crossover(log, arm="a", baseline="b").frame["estimate"].round(6).item()
    0.6
    """
    function = "memory_crossover"
    if arm == baseline:
        raise InputError.argument(
            function, "baseline", baseline, "is the arm itself", "name the arm to compare it with"
        )
    everything = runs_with_inputs(log, function)
    rows = pl.concat(
        [
            arm_rows(everything, name, function, argument).with_columns(pl.lit(first).alias(FIRST))
            for name, argument, first in ((arm, "arm", True), (baseline, "baseline", False))
        ],
        how="vertical_relaxed",
    )
    rows = with_kept_fraction(function, select(rows, where, function))
    if "arm" in by_columns(function, by, rows):
        raise InputError.argument(function, "by", by, "names the arm, and two are compared", "leave it out")
    check_outcome(function, rows, outcome)

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        # Nodes of the first curve come first: the opposite of the flag is ranked before the budgets.
        nodes, n_nodes = nodes_of(part.with_columns(~pl.col(FIRST)), (FIRST, *NODE))
        n_first = part.filter(FIRST).select(NODE).n_unique() if part[FIRST].any() else 0
        kept = numbers(part, "kept_fraction")
        return CurveCrossing(numbers(part, outcome), kept, nodes, n_first, n_nodes - n_first), "quantile"

    return estimate(function, log, rows, by, design, build)


FIRST = "__first__"


def nodes_of(part: pl.DataFrame, columns: Sequence[str]) -> tuple[IntArray, int]:
    """Return the number of each row's combination of columns, in their order, and how many there are."""
    ranks = part.select(pl.struct(columns).rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()
    return ranks, int(ranks.max(initial=-1)) + 1
