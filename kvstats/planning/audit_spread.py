"""How far the outcome of each run is expected to stray: what an audit's probabilities are proportional to."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.statistics.statistic import FloatArray

__all__ = ["AuditEstimator", "anticipated_spreads", "poisson_se"]

AuditEstimator = Literal["hajek", "difference"]
"""A weighted mean of outcomes, or the mean of anticipated ones plus the weighted mean of what they miss."""


def anticipated_spreads(
    function: str,
    frame: pl.DataFrame,
    harm_probability: str | None,
    spread: str | None,
    estimator: AuditEstimator,
) -> tuple[FloatArray, FloatArray]:
    """Return the anticipated spread of each run for the estimator, and for a plain mean."""
    probability = column(function, frame, "harm_probability", harm_probability, 1.0)
    own = column(function, frame, "spread", spread, math.inf)
    if probability is None:
        given = np.ones(frame.height) if own is None else own
        return given, given
    within = probability * (1 - probability)
    around_mean = np.sqrt(within + (probability - probability.mean()) ** 2)
    if own is not None:
        return own, own
    return (around_mean if estimator == "hajek" else np.sqrt(within)), around_mean


def column(
    function: str, frame: pl.DataFrame, argument: str, name: str | None, most: float
) -> FloatArray | None:
    """Return a numeric column in [0, most], or raise `InputError`."""
    if name is None:
        return None
    if name not in frame.columns or not frame.schema[name].is_numeric():
        numeric = [other for other in frame.columns if frame.schema[other].is_numeric()]
        raise InputError.argument(
            function, argument, name, "is not a numeric column", nearest_name(str(name), numeric)
        )
    values = frame[name].cast(pl.Float64)
    good = values.is_not_null() & values.is_finite() & (values >= 0) & (values <= most)
    faulty = int((~good.fill_null(value=False)).sum())
    if faulty:
        raise InputError.argument(
            function,
            argument,
            name,
            f"has {faulty} of {frame.height} rows that are null, not finite or not in [0, {most:g}]",
            "mend them: every run needs a chance to be drawn",
        )
    return values.to_numpy().astype(np.float64)


def poisson_se(spread: FloatArray, pi: FloatArray) -> float:
    """Return the anticipated standard error of a weighted mean under Poisson sampling."""
    return math.sqrt(float(np.sum((1 - pi) / pi * spread**2))) / spread.size
