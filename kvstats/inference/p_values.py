"""P-values that invert the interval of a cell."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy import special

from kvstats.inference.bootstrap_interval import bootstrap_distribution
from kvstats.inference.cell import ROUNDING, Cell, method_of, on_log_scale, on_logit_scale
from kvstats.inference.design import BOOTSTRAPS, Design
from kvstats.inference.intervals import effective_size, student_ratio, wilson_size
from kvstats.inference.jackknife import jackknife_error
from kvstats.inference.linear import linear_error
from kvstats.inference.rate_size import rate_size
from kvstats.inference.sample import Sample

__all__ = ["Alternative", "cell_p_value"]

Alternative = Literal["two-sided", "greater", "less"]
"""Which values count against the null hypothesis."""

LEAST_LOGIT = -230.0
"""Logit of the smallest level at which the effective size of a rate is solved for, about 1e-100."""


def cell_p_value(
    label: str, sample: Sample, design: Design, cell: Cell, null: float, alternative: Alternative
) -> float | None:
    """Return the p-value that inverts the interval of a cell.

    The two-sided p-value is twice the smaller one-sided one, at most 1: the level at which an end of the
    interval reaches the null value. A share of discordant pairs of which there are none has the p-value 1.
    Where the sample has no variance it is 1 if the estimate equals the
    null value, as for two identical series, and else undefined.
    """
    if cell.estimate is None:
        return 1.0 if cell.status == "no discordant pairs" else None
    if cell.status in ("zero variance", "no discordant pairs"):
        return 1.0 if np.isclose(cell.estimate, null, rtol=0, atol=ROUNDING) else None
    if cell.status != "ok":
        return None
    method = method_of(label, sample, design)
    if method in BOOTSTRAPS:
        distribution = bootstrap_distribution(label, sample, design, method)
        if distribution is None:
            return None
        greater, less = distribution.p_greater(null), distribution.p_less(null)
    elif method in ("linear", "jackknife"):
        se, df = (linear_error if method == "linear" else jackknife_error)(sample)
        score = (cell.estimate - null) / se
        if on_logit_scale(sample, method):
            distance = special.logit(cell.estimate) - special.logit(min(max(null, 0.0), 1.0))
            score = float(distance) * cell.estimate * (1 - cell.estimate) / se
        elif on_log_scale(sample, method):
            score = math.log(cell.estimate / null) * cell.estimate / se if null > 0 else math.inf
        greater, less = float(special.stdtr(df, -score)), float(special.stdtr(df, score))
    else:
        greater, less = rate_p_values(method, cell.estimate, sample, null)
    return {"greater": greater, "less": less, "two-sided": min(1.0, 2 * min(greater, less))}[alternative]


def rate_p_values(method: str, p: float, sample: Sample, null: float) -> tuple[float, float]:
    """Return both one-sided p-values of a rate p, "greater" first."""
    se, df = linear_error(sample)
    if method == "clopper_pearson":
        n = sample.statistic.n
        return clopper_pearson_tail(p, null, n), clopper_pearson_tail(1 - p, 1 - null, n)
    sizes = rate_size(sample, se, df)
    if method == "wilson":
        found, tail = wilson_size(p, sizes.se, sizes.rows, sample.n_clusters, sizes.clusters), wilson_tail
    else:
        found, tail = effective_size(p, sizes.se, sizes.rows, sizes.clusters), clopper_pearson_tail
    size = float(found)

    def solve(share: float, bound: float) -> float:
        if share in (0.0, 1.0):
            return tail(share, bound, size)
        return self_consistent(
            lambda alpha: tail(share, bound, size * float(student_ratio(sizes.rows, sizes.df, alpha)))
        )

    return solve(p, null), solve(1 - p, 1 - null)


def clopper_pearson_tail(share: float, bound: float, size: float) -> float:
    """Return the level at which the lower Clopper-Pearson bound of a share reaches a given bound."""
    if share <= 0:
        return 1.0
    return float(special.betainc(size * share, size * (1 - share) + 1, min(max(bound, 0.0), 1.0)))


def wilson_tail(share: float, bound: float, size: float) -> float:
    """Return the level at which the lower Wilson bound of a share reaches a given bound."""
    if not 0 < bound < 1:
        return float(share <= bound)
    return float(special.ndtr((bound - share) / np.sqrt(bound * (1 - bound) / size)))


def self_consistent(tail: Callable[[float], float]) -> float:
    """Return the level alpha whose one-sided bound reaches the null value: the root of tail(alpha) = alpha.

    The effective size behind the tail probability depends on the level through its t quantiles; beyond
    alpha = 1/2 it is held at its value there.
    """
    middle = tail(0.5)
    if middle >= 0.5:
        return middle

    def excess(logit: float) -> float:
        alpha = float(special.expit(logit))
        return tail(alpha) - alpha

    if excess(LEAST_LOGIT) <= 0:
        return tail(float(special.expit(LEAST_LOGIT)))
    # Loaded here, since it takes a third of a second and only tests of clustered rates need it.
    from scipy.optimize import brentq

    return float(special.expit(brentq(excess, LEAST_LOGIT, 0.0, xtol=1e-12)))
