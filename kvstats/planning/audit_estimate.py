"""What an audit found: the rate of all runs, from those that were repeated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.planning.audit import AuditPlan
from kvstats.planning.audit_interval import AuditInterval, gamma_interval, most_hidden
from kvstats.planning.audit_outcomes import drawn_outcomes
from kvstats.planning.audit_spread import AuditEstimator
from kvstats.planning.planned import check_share
from kvstats.statistics.designs.sampling_design import BoolArray
from kvstats.statistics.hajek import hajek_mean
from kvstats.statistics.statistic import FloatArray
from kvstats.statistics.student import student_quantile
from kvstats.statistics.survey_estimate import SurveyEstimate
from kvstats.statistics.survey_sample import SurveySample
from kvstats.titled_table import DisplayedTable

__all__ = ["AUDIT_SCHEMA", "AuditEstimate", "audit_estimate"]

AUDIT_SCHEMA: dict[str, pl.DataType] = {
    "estimate": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "se": pl.Float64(),
    "df": pl.Float64(),
    "n": pl.Int64(),
    "population": pl.Int64(),
    "status": pl.String(),
}
"""Columns of every audit's estimate after its by-columns."""

POSITION = "__position__"


@dataclass(frozen=True, eq=False, repr=False)
class AuditEstimate(DisplayedTable):
    """Estimates of an audit with design-based intervals, one row for each combination of the by-columns.

    Attributes
    ----------
    outcome : str
        What was estimated.
    estimator, interval : str
        How.
    level : float
        Confidence level.
    frame : polars.DataFrame
        The by-columns, then ``estimate``, ``low``, ``high``, ``se``, ``df``, ``n`` (re-runs), ``population``
        (runs) and ``status``: ``ok``; ``census`` when all runs were certain to be repeated; ``no units``
        without a re-run, without estimate; ``only certain units``, ``one unit`` or ``zero variance``, where
        the re-runs do not tell how the others vary, without an interval.
    """

    outcome: str
    estimator: AuditEstimator
    interval: AuditInterval
    level: float
    frame: pl.DataFrame

    @property
    def title(self) -> str:
        """What was estimated, and the level of the interval."""
        return f"{self.outcome} by audit, {100 * self.level:g}% interval"


def audit_estimate(
    plan: AuditPlan,
    outcomes: pl.DataFrame,
    *,
    outcome: str = "harm",
    by: str | Sequence[str] = (),
    estimator: AuditEstimator | None = None,
    interval: AuditInterval = "gamma",
    level: float = 0.95,
) -> AuditEstimate:
    r"""Estimate the rate of all runs of an audit's population from those that were repeated.

    With weights w = 1/pi over the re-runs, the Hájek estimate is :math:`\sum w y / \sum w`; the difference
    estimate is the mean of the anticipated p over all runs plus :math:`\sum w (y - p) / \sum w`. Both are
    unbiased but for terms that vanish with the number of re-runs, whatever the signal is worth. The variance
    is that of the design, by linearisation; see `kvstats.statistics.hajek.hajek_mean`.

    Parameters
    ----------
    plan : AuditPlan
        The plan that drew them.
    outcomes : polars.DataFrame
        One row for each run of ``plan.sample``, with the plan's key columns.
    outcome : str, default "harm"
        Column of outcomes, Boolean or numeric, without nulls. It is a rate where all are 0 or 1; a column of
        floating-point numbers only if it holds both, since points lost may all be 0 too.
    by : str or sequence of str, optional
        Columns of the plan's runs to estimate within, such as ``task``.
    estimator : {"hajek", "difference"}, optional
        Default: the plan's.
    interval : {"gamma", "cautious"}
        For rates; other outcomes get a t interval. Both are gamma intervals, whose upper end
        allows for one more event (see `kvstats.planning.audit_interval.gamma_interval`): of the mean weight
        of the re-runs, or, ``cautious``, of the largest weight of all runs, which is much wider. Where no
        re-run has an event, the upper end is the largest rate that may have been missed with probability (1 -
        level) / 2, wherever the events are; likewise at 1.
    level : float, default 0.95
        Confidence level.

    Returns
    -------
    AuditEstimate
        In the unit of the outcome, for rates in [0, 1].

    Raises
    ------
    InputError
        When a drawn run is missing, a run was not drawn, an outcome is null, or a name is not known. Re-runs
        that failed must be repeated: to leave them out would bias the estimate.

    Notes
    -----
    The estimate is of the runs that the plan was made for. What it says of runs to come is uncertain besides,
    by as much as if all had been repeated; with few re-runs among many runs that adds little.

    In simulations of audits of 100 and of 300 out of 3,000 runs, at harm rates of 1, 3 and 10% and with
    signals of a true AUC of 0.9, 0.7, 0.5 and 0.2 that were all taken for 0.9, the interval ``gamma`` held
    the truth in 94.3 to 99.4% of draws where it says 95%, least where the signal misleads; ``cautious`` in
    96.0 to 99.4%. A t interval, as for other outcomes, would undercover there: 28 to 95%, least with about
    one event among the re-runs. Take rates for rates.

    References
    ----------
    .. [1] Hájek (1971), comment in Foundations of Statistical Inference; Särndal, Swensson and Wretman
       (1992), Model Assisted Survey Sampling, results 5.7.1 and 6.3.1.

    Examples
    --------
    >>> from kvstats.planning import plan_audit
    >>> runs = pl.DataFrame({"input_id": [f"{i:03}" for i in range(500)], "risk": [0.01] * 400 + [0.2] * 100})
    >>> plan = plan_audit(runs, budget=100, seed=0, harm_probability="risk")
    >>> harm = pl.col("input_id").str.ends_with("7") & (pl.col("risk") > 0.1)
    >>> repeated = plan.sample.with_columns(harm=harm)
    >>> audit_estimate(plan, repeated)
    harm by audit, 95% interval
    estimate    low   high      se  df   n  population  status
       0.025  0.013  0.069  0.0077  88  89         500  ok
    """
    function = "audit_estimate"
    names = (by,) if isinstance(by, str) else tuple(by)
    for name in names:
        if name not in plan.frame.columns:
            raise InputError.argument(
                function,
                "by",
                name,
                "is not a column of the plan",
                nearest_name(str(name), plan.frame.columns),
            )
    chosen = plan.estimator if estimator is None else estimator
    for argument, value, known in (
        ("estimator", chosen, ("hajek", "difference")),
        ("interval", interval, ("gamma", "cautious")),
    ):
        if value not in known:
            raise InputError.argument(
                function, argument, value, "is not known", nearest_name(str(value), known)
            )
    if chosen == "difference" and plan.harm_probability is None:
        raise InputError.argument(
            function,
            "estimator",
            chosen,
            "needs anticipated probabilities of harm, which the plan has not",
            "use 'hajek'",
        )
    check_share(function, "level", level)
    y = drawn_outcomes(function, plan, outcomes, outcome)
    drawn = plan.frame["drawn"].to_numpy()
    sample = SurveySample.drawn(plan.sampling_design, drawn)
    anticipated = np.zeros(plan.frame.height)
    if chosen == "difference":
        anticipated = plan.frame[str(plan.harm_probability)].cast(pl.Float64).to_numpy()
    distinct = set(np.unique(y))
    rate = distinct <= {0.0, 1.0} and (len(distinct) == 2 or not outcomes.schema[outcome].is_float())
    rows = []
    for group, inside in groups(plan.frame, names):
        found = hajek_mean(y - anticipated[drawn], sample, domain=inside[drawn])
        rows.append({**group, **row_of(plan, y, anticipated, inside, found, rate, interval, level)})
    schema = {**{name: plan.frame.schema[name] for name in names}, **AUDIT_SCHEMA}
    return AuditEstimate(outcome, chosen, interval, level, pl.DataFrame(rows, schema=schema, orient="row"))


def groups(frame: pl.DataFrame, names: Sequence[str]) -> Iterator[tuple[dict[str, Any], BoolArray]]:
    """Yield each combination of columns, in order, with the mask of its rows."""
    if not names:
        yield {}, np.ones(frame.height, dtype=np.bool_)
        return
    rows = frame.select(names).with_row_index(POSITION).group_by(names).agg(POSITION).sort(names)
    for row in rows.iter_rows(named=True):
        inside = np.zeros(frame.height, dtype=np.bool_)
        inside[row.pop(POSITION)] = True
        yield row, inside


def row_of(
    plan: AuditPlan,
    y: FloatArray,
    anticipated: FloatArray,
    inside: BoolArray,
    found: SurveyEstimate,
    rate: bool,
    interval: AuditInterval,
    level: float,
) -> dict[str, Any]:
    """Return the figures of one group of runs: the estimate of what p was off by, plus the mean of p."""
    row: dict[str, Any] = dict.fromkeys(AUDIT_SCHEMA)
    row |= {"n": found.n, "population": int(inside.sum()), "status": found.status}
    if found.estimate is None:
        return row
    estimate = float(found.estimate) + float(anticipated[inside].mean())
    if rate:
        estimate = min(max(estimate, 0.0), 1.0)
    pi = plan.frame["inclusion_probability"].to_numpy()[inside]
    row["estimate"] = estimate
    if (pi == 1).all():
        return row | {"low": estimate, "high": estimate, "se": 0.0, "status": "census"}
    outcomes = y[inside[plan.frame["drawn"].to_numpy()]]
    constant = bool((outcomes == outcomes[0]).all())
    if found.variance and found.df:
        row |= {"se": found.se, "df": found.df, "status": "ok"}
        half = float(student_quantile((1 - level) / 2, found.df)) * math.sqrt(found.variance)
        row |= {"low": estimate - half, "high": estimate + half}
    elif not (rate and constant):
        return row
    if rate:
        variance = found.variance or 0.0
        low, high = rate_interval(plan, inside, estimate, variance, outcomes, interval, level)
        row |= {"low": low, "high": high, "status": "ok"}
    return row


def rate_interval(
    plan: AuditPlan,
    inside: BoolArray,
    estimate: float,
    variance: float,
    outcomes: FloatArray,
    interval: AuditInterval,
    level: float,
) -> tuple[float, float]:
    """Return the interval of the rate of a group; above a half, that of the opposite is mirrored."""
    if estimate > 0.5:
        low, high = rate_interval(plan, inside, 1 - estimate, variance, 1 - outcomes, interval, level)
        return 1 - high, 1 - low
    pi = plan.frame["inclusion_probability"].to_numpy()
    size = int(inside.sum())
    if interval == "cautious":
        largest = 1 / (size * float(pi[inside & (pi < 1)].min()))
        return gamma_interval(estimate, variance, largest, largest**2, level)
    weights = 1 / (size * pi[inside & plan.frame["drawn"].to_numpy()])
    low, high = gamma_interval(estimate, variance, float(weights.mean()), float((weights**2).mean()), level)
    if outcomes.any():
        return low, high
    hidden = most_hidden(pi[inside], (1 - level) / 2) / size
    # Without events a difference estimate is near 0, but need not be 0.
    return 0.0, high if estimate > hidden else hidden
