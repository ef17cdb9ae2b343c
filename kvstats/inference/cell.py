"""One cell of a result: estimate and interval of one sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kvstats.errors import InputError
from kvstats.inference.bootstrap import MAX_UNDEFINED, bootstrap, percentile_interval
from kvstats.inference.design import Design
from kvstats.inference.intervals import (
    clustered_wilson_interval,
    korn_graubard_interval,
    student_quantile,
)
from kvstats.inference.linear import linear_error
from kvstats.inference.sample import Sample
from kvstats.statistics.difference import parts

__all__ = ["ROUNDING", "Cell", "infer_cell", "method_of"]

RANGES = {"rate": (0.0, 1.0), "auc": (0.0, 1.0), "correlation": (-1.0, 1.0)}
"""Bounds of what is estimated, where it has any; a t interval is cut off there."""

ROUNDING = 1e-12
"""Standard errors below this share of the estimate are 0 up to rounding."""


@dataclass(frozen=True)
class Cell:
    """The figures of one row of a result; None where undefined."""

    estimate: float | None
    low: float | None
    high: float | None
    se: float | None
    df: float | None
    n: int
    clusters: int
    status: str


def infer_cell(label: str, sample: Sample, design: Design) -> Cell:
    """Estimate a sample's statistic with its interval.

    Parameters
    ----------
    label : str
        Name of the cell, which seeds its bootstrap.
    sample : Sample
        The sample.
    design : Design
        Kind and level of the interval.

    Returns
    -------
    Cell
        `status` is ``ok``, or the reason why something is undefined: ``no rows``, ``one class``,
        ``undefined`` (no estimate); ``one cluster``, ``zero variance``, ``no discordant pairs``,
        ``undefined in bootstrap`` (an estimate without interval).

    Raises
    ------
    InputError
        When the design asks for an interval for rates and the statistic is none.
    """
    n, clusters = sample.statistic.n, len(sample.clusters)
    method = method_of(label, sample, design)

    def cell(status: str, estimate: float | None = None, **figures: float | None) -> Cell:
        rest = dict.fromkeys(("low", "high", "se", "df")) | figures
        return Cell(estimate=estimate, n=n, clusters=clusters, status=status, **rest)

    if any(part.n == 0 for part in parts(sample.statistic)):
        return cell("no rows")
    estimate = sample.statistic.value(sample.weights)
    if np.isnan(estimate):
        return cell("one class" if sample.kind == "auc" else "undefined")
    se, df = linear_error(sample)
    if np.isnan(se):
        return cell("one cluster", estimate)
    if method in ("korn_graubard", "wilson"):
        interval = korn_graubard_interval if method == "korn_graubard" else clustered_wilson_interval
        low, high = interval(estimate, se, n, clusters, df, design.level)
        constant = estimate in (0.0, 1.0)
        return cell("ok", estimate, low=float(low), high=float(high), se=None if constant else se, df=df)
    if se <= ROUNDING * magnitude(sample):
        discordant = estimate or sample.statistic.influence(sample.weights).any()
        identical = sample.kind == "paired" and not discordant
        return cell("no discordant pairs" if identical else "zero variance", estimate)
    if method == "percentile":
        replicates = bootstrap(label, sample, design.n_resamples, design.seed)
        defined = replicates[~np.isnan(replicates)]
        if defined.size < (1 - MAX_UNDEFINED) * replicates.size:
            return cell("undefined in bootstrap", estimate)
        lower, upper = percentile_interval(defined, design.level)
        if lower == upper:
            return cell("zero variance", estimate)
        return cell("ok", estimate, low=lower, high=upper, se=float(defined.std(ddof=1)))
    half = float(student_quantile((1 - design.level) / 2, df)) * se
    least, most = RANGES.get(sample.kind, (-np.inf, np.inf))
    return cell(
        "ok",
        estimate,
        low=float(max(estimate - half, least)),
        high=float(min(estimate + half, most)),
        se=se,
        df=df,
    )


def method_of(label: str, sample: Sample, design: Design) -> str:
    """Return the kind of interval for a sample: intervals for rates give way to `linear` in contrasts."""
    if design.interval == "auto":
        return "korn_graubard" if sample.kind == "rate" else "linear"
    if design.interval in ("korn_graubard", "wilson") and sample.kind != "rate":
        if sample.kind == "difference":
            return "linear"
        raise InputError.argument(
            label,
            "design.interval",
            design.interval,
            "is for rates, whose values are all 0 or 1",
            "use 'linear', 'percentile' or 'auto'",
        )
    return design.interval


def magnitude(sample: Sample) -> float:
    """Return the largest absolute value among the parts of a statistic."""
    begin, values = 0, []
    for part in parts(sample.statistic):
        values.append(abs(part.value(sample.weights[begin : begin + part.n])))
        begin += part.n
    return max(values)
