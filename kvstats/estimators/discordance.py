"""Discordant pairs: among the runs whose success changed, how many were harmed."""

from __future__ import annotations

import numpy as np
import polars as pl

from kvstats.estimators.population import By, by_columns, drawn_rows, numbers
from kvstats.estimators.registry import estimator
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result, infer
from kvstats.inference.sample import Kind, Sample, samples_by
from kvstats.log.frames import Log
from kvstats.statistics.ratios import Mean
from kvstats.statistics.statistic import Statistic
from kvstats.tables import pairs_of, require_values

__all__ = ["discordant_harm_share"]


@estimator
def discordant_harm_share(
    log: Log,
    *,
    arm: str,
    baseline: str = "full",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Share of losses among the pairs whose success differs between arm and baseline.

    Formula: ``sum(w * [twin succeeded, run failed]) / sum(w * [successes differ])``, in [0, 1]. The null
    hypothesis of its tests is 0.5: as many pairs lost as gained, which is McNemar's [1]_.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it. With ``clopper_pearson`` the p-value is that of McNemar's exact test, and the pairs
        must be independent: each in a cluster of its own. ``auto`` takes a Korn-Graubard interval, whose
        p-value allows for pairs that share a cluster, such as one input at several budgets.

    Returns
    -------
    Result
        ``n`` counts discordant pairs. Where there are none the estimate is null with status ``no discordant
        pairs``, and the p-value is 1.

    Raises
    ------
    InputError
        When a run has no twin, a success is null on either side, or a name is not known.

    References
    ----------
    .. [1] McNemar, Psychometrika 12, 1947.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget,
    ...               score=float(success), success=success)
    ...     for i in range(40)
    ...     for arm, budget, success in (("full", 1.0, i > 9), ("snapkv", 0.25, i > 12 or i < 1))
    ... ])
    >>> result = discordant_harm_share(log, arm="snapkv", design=Design(interval="clopper_pearson"))
    >>> result.frame.select("estimate", "n").row(0), result.p_value()["p_value"].item()
    ((0.75, 4), 0.625)
    """
    function = "discordant_harm_share"
    pairs = pairs_of(function, log, arm, baseline, where)
    for column in ("success", "baseline_success"):
        require_values(function, pairs, column)
    names = by_columns(function, by, pairs)
    discordant = pairs.filter(pl.col("success") != pl.col("baseline_success"))

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        return Mean(numbers(part, "baseline_success")), "discordant"

    samples = samples_by(function, discordant, names, design, build, drawn_rows(log, design))
    found = {sample.key for sample in samples}
    keys = pairs.select(names).unique().rows() if names else []
    samples += [concordant(key) for key in keys if key not in found]
    return infer(function, samples, design, {name: pairs.schema[name] for name in names}, null=0.5)


def concordant(key: tuple[object, ...]) -> Sample:
    """Return the empty sample of a part without discordant pairs."""
    return Sample(key, Mean([]), np.empty(0), np.empty(0, dtype=np.int64), (), "discordant")
