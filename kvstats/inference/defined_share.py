"""In how many resamples an estimate is defined."""

from __future__ import annotations

import numpy as np
import polars as pl

from kvstats.inference.bootstrap import bootstrap
from kvstats.inference.result import Result, label_of

__all__ = ["defined_share"]


def defined_share(result: Result) -> pl.DataFrame:
    """Return the share of bootstrap resamples in which each row of a result has a value.

    A crossing of two curves may exist in the data and not in many resamples of them; then its interval, which
    is of the resamples that have one, says less than it seems to.

    Parameters
    ----------
    result : Result
        The result; its design says how many resamples, from which seed.

    Returns
    -------
    polars.DataFrame
        The by-columns, ``resamples`` and ``defined``, the share of them with a finite value: the same
        resamples as those of a bootstrap interval. Null where the row has no rows.

    Examples
    --------
    >>> from kvstats.inference import Design, Sample, infer
    >>> from kvstats.statistics import Ratio
    >>> clusters = tuple((str(i),) for i in range(4))
    >>> sample = Sample((), Ratio([1.0, 0, 0, 0], [1.0, 1, 0, 0]), np.ones(4), np.arange(4), clusters, "mean")
    >>> result = infer("share", [sample], Design(n_resamples=1000))
    >>> defined_share(result).row(0)  # both first clusters are missing in one of 16 resamples
    (1000, 0.929)
    """
    design = result.design
    shares: list[float | None] = []
    for sample in result.samples:
        if sample.statistic.n == 0 or not sample.clusters:
            shares.append(None)
            continue
        label = label_of(result.estimator, result.by, sample.key)
        shares.append(float(np.isfinite(bootstrap(label, sample, design.n_resamples, design.seed)).mean()))
    return result.frame.select(
        *result.by,
        pl.Series("resamples", [design.n_resamples] * len(shares), dtype=pl.Int64),
        pl.Series("defined", shares, dtype=pl.Float64),
    )
