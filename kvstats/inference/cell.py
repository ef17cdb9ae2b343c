"""One cell of a result: estimate and interval of one sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kvstats.errors import InputError
from kvstats.inference.bootstrap_interval import BootstrapDistribution, bootstrap_distribution
from kvstats.inference.design import BOOTSTRAPS, RATE_INTERVALS, Design
from kvstats.inference.intervals import (
    clopper_pearson_interval,
    clustered_wilson_interval,
    korn_graubard_interval,
    log_interval,
    logit_interval,
    student_quantile,
)
from kvstats.inference.jackknife import jackknife_error
from kvstats.inference.linear import linear_error, row_groups
from kvstats.inference.rate_size import rate_size
from kvstats.inference.sample import Kind, Sample
from kvstats.statistics.difference import parts
from kvstats.statistics.quantile import Quantile, QuantileCrossing, QuantileRatio
from kvstats.statistics.same_rows import atoms

__all__ = ["ROUNDING", "Cell", "infer_cell", "method_of"]

RATES = ("rate", "discordant")
"""Kinds of samples whose values are all 0 or 1."""

RANGES = dict.fromkeys((*RATES, "share", "auc"), (0.0, 1.0)) | {
    "correlation": (-1.0, 1.0),
    "ratio": (0.0, np.inf),
}
"""Bounds of what is estimated, where it has any; an interval is cut off there."""

UNBOUNDED = (-np.inf, np.inf)

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
        ``undefined`` (no estimate); ``one cluster``, ``one cluster in a stratum``, ``one cluster of a
        class``, ``zero variance``, ``undefined without a cluster`` (jackknife), ``undefined in bootstrap``,
        ``too few resamples`` (an estimate without interval); ``no discordant pairs`` (an estimate of 0, or
        none for a share of them).

        A rate without events has no standard error. A bootstrap has none of its own degrees of freedom,
        and its standard error is the spread of the replicates; for ``studentized`` the linearised one.

    Raises
    ------
    InputError
        When the design asks for an interval for rates and the statistic is none, or for a Clopper-Pearson
        interval and rows share clusters, weigh differently or lie in strata.
    """
    n, clusters = sample.statistic.n, sample.n_clusters
    method = method_of(label, sample, design)

    def cell(status: str, estimate: float | None = None, **figures: float | None) -> Cell:
        rest = dict.fromkeys(("low", "high", "se", "df")) | figures
        return Cell(estimate=estimate, n=n, clusters=clusters, status=status, **rest)

    if any(part.n == 0 for part in parts(sample.statistic)):
        return cell("no discordant pairs" if sample.kind == "discordant" else "no rows")
    estimate = sample.statistic.value(sample.weights)
    if np.isnan(estimate):
        return cell("one class" if sample.kind == "auc" else "undefined")
    se, df = linear_error(sample)
    if np.isnan(se):
        return cell(lonely_status(sample), estimate)
    if method in RATE_INTERVALS:
        lower, upper = rate_interval(method, estimate, se, df, sample, design.level)
        constant = estimate in (0.0, 1.0)
        return cell("ok", estimate, low=lower, high=upper, se=None if constant else se, df=df)
    rounding = ROUNDING * magnitude(sample)
    if se <= rounding:
        contributions = sample.weights * sample.statistic.influence(sample.weights)
        discordant = max(abs(estimate), np.max(np.abs(contributions))) > rounding
        identical = sample.kind == "paired" and not discordant
        return cell("no discordant pairs" if identical else "zero variance", estimate)
    if method in BOOTSTRAPS:
        distribution = bootstrap_distribution(label, sample, design, method)
        if distribution is None:
            return cell("undefined in bootstrap", estimate)
        status, lower, upper = bootstrap_bounds(distribution, sample.kind, design.level)
        if status != "ok":
            return cell(status, estimate)
        error = se if method == "studentized" else distribution.spread
        return cell("ok", estimate, low=lower, high=upper, se=error)
    if method == "jackknife":
        se, df = jackknife_error(sample)
        if np.isnan(se):
            return cell("undefined without a cluster", estimate)
        if se <= rounding:
            return cell("zero variance", estimate)
    if on_logit_scale(sample, method) and 0 < estimate < 1:
        lower, upper = logit_interval(estimate, se, df, design.level)
        return cell("ok", estimate, low=lower, high=upper, se=se, df=df)
    if on_log_scale(sample, method):
        lower, upper = log_interval(estimate, se, df, design.level)
        return cell("ok", estimate, low=lower, high=upper, se=se, df=df)
    least, most = RANGES.get(sample.kind, UNBOUNDED)
    half = float(student_quantile((1 - design.level) / 2, df)) * se
    return cell(
        "ok",
        estimate,
        low=float(max(estimate - half, least)),
        high=float(min(estimate + half, most)),
        se=se,
        df=df,
    )


def lonely_status(sample: Sample) -> str:
    """Say of what there are too few clusters for a standard error."""
    if sample.n_clusters < 2:
        return "one cluster"
    if any((np.bincount(sample.stratum_codes[whole]) == 1).any() for whole in sample.drawn_from):
        return "one cluster in a stratum"
    lone = [group for group in row_groups(sample.statistic) if np.unique(sample.codes[group.rows]).size < 2]
    if lone:
        return "one cluster of a class" if any(group.one_class for group in lone) else "one cluster"
    return "one cluster in a stratum"


def on_logit_scale(sample: Sample, method: str) -> bool:
    """Say whether a t interval is taken on the scale of log(A / (1 - A)): an area's, a share's."""
    area = sample.kind == "auc" and sample.statistic.classes is not None
    return (area or sample.kind == "share") and method == "linear"


def on_log_scale(sample: Sample, method: str) -> bool:
    """Say whether a t interval is taken on the scale of the logarithm: that of a ratio, linearised."""
    return sample.kind == "ratio" and method == "linear"


def of_quantiles(sample: Sample) -> bool:
    """Say whether quantiles are estimated, or a contrast of them."""
    return any(
        isinstance(part, Quantile | QuantileRatio | QuantileCrossing) for part in parts(sample.statistic)
    )


def method_of(label: str, sample: Sample, design: Design) -> str:
    """Return the kind of interval for a sample.

    Those for rates give way in contrasts and for quantiles, and the jackknife for quantiles.
    """
    rate, rough = sample.kind in RATES, sample.kind == "quantile" or of_quantiles(sample)
    if design.interval == "auto":
        # The slope of a distribution at its quantile is poorly known; the percentile bootstrap needs none.
        return "korn_graubard" if rate else "percentile" if rough else "linear"
    if design.interval == "jackknife" and of_quantiles(sample):
        # Leaving out one cluster moves a quantile by one place or not at all, whatever its variance is.
        return "percentile"
    if design.interval in RATE_INTERVALS and not rate:
        if rough or sample.kind == "difference":
            return "percentile" if rough else "linear"
        raise InputError.argument(
            label,
            "design.interval",
            design.interval,
            "is for rates, whose values are all 0 or 1",
            "use 'linear', 'percentile' or 'auto'",
        )
    if design.interval == "clopper_pearson":
        require_independent_rows(label, sample)
    return design.interval


def require_independent_rows(label: str, sample: Sample) -> None:
    """Raise `InputError` where rows are no independent trials of equal weight."""
    n, clusters = sample.statistic.n, sample.n_clusters
    if clusters < n:
        fault = f"ignores clusters, and {n} rows are in {clusters}"
    elif sample.strata is not None:
        fault = "ignores strata"
    elif n and np.ptp(sample.weights) > 0:
        fault = "ignores weights, and they differ"
    else:
        return
    raise InputError.argument(label, "design.interval", "clopper_pearson", fault, "use 'korn_graubard'")


def rate_interval(
    method: str, p: float, se: float, df: float, sample: Sample, level: float
) -> tuple[float, float]:
    """Return the bounds of an interval for a rate."""
    if method == "clopper_pearson":
        low, high = clopper_pearson_interval(p, sample.statistic.n, level)
    else:
        size = rate_size(sample, se, df)
        counts = (size.rows, sample.n_clusters, size.df)
        interval = korn_graubard_interval if method == "korn_graubard" else clustered_wilson_interval
        low, high = interval(p, size.se, *counts, level, effective_clusters=size.clusters)
    return float(low), float(high)


def bootstrap_bounds(
    distribution: BootstrapDistribution, kind: Kind, level: float
) -> tuple[str, float, float]:
    """Return the status of a bootstrap interval, and its bounds, cut off at the range of what is estimated.

    Where ``bca`` asks for a level beyond all resamples there is no bound, unless the last of them is the end
    of the range.
    """
    undefined = (float("nan"), float("nan"))
    low, high = distribution.interval(level)
    least, most = RANGES.get(kind, UNBOUNDED)
    first, last = distribution.values[[0, -1]]
    if first == low == -np.inf or last == high == np.inf:
        return "undefined in bootstrap", *undefined
    if (low == -np.inf and first > least) or (high == np.inf and last < most):
        return "too few resamples", *undefined
    low, high = max(low, least), min(high, most)
    return ("zero variance", *undefined) if low == high else ("ok", low, high)


def magnitude(sample: Sample) -> float:
    """Return the largest absolute value among the statistics that a statistic is made of."""
    begin, values = 0, []
    for part in parts(sample.statistic):
        weights = sample.weights[begin : begin + part.n]
        values += [abs(atom.value(weights)) for atom in atoms(part)]
        begin += part.n
    return max(values)
