"""Recovery taken apart: headroom, success under eviction, and whether both fall on the same inputs."""

from __future__ import annotations

import polars as pl

from kvstats.estimators.per_input import Builder, estimate_each, others_than, per_input
from kvstats.estimators.population import By, mean_or_rate, numbers
from kvstats.estimators.registry import table_estimator
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.log.frames import Log
from kvstats.selection import select
from kvstats.statistics.co_occurrence import Covariance, FrechetBound, ProductOfMeans
from kvstats.tables import EVICTED, FULL, pairs_of, require_values

__all__ = ["recovery_decomposition"]

LEFT, SOLVED = "__headroom__", "__solved__"


@table_estimator(quantity=pl.String())
def recovery_decomposition(
    log: Log,
    *,
    arm: str,
    baseline: str = FULL,
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Recovery rate as headroom times the rate of compressed success, plus their covariance.

    Formula: with f whether the baseline fails an input and s whether the arm succeeds at some budget below 1,
    ``rho = E[f s] = (1 - A) p + Cov(f, s)``, 1 - A = E[f] and p = E[s] by weighted means over inputs. Given
    both rates alone, rho lies between Fréchet's bounds ``max(0, (1 - A) + p - 1)`` and ``min(1 - A, p)``. The
    covariance is negative where both fail the same inputs.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm that evicts.
    baseline : str, default "full"
        The arm of the twins, with one outcome for each input; see `kvstats.paired`.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to estimate within; an input counts in each part that it has runs in.
    design : Design
        How to judge it; ``auto`` takes Korn-Graubard intervals for the rates, linearised ones for product
        and covariance, and percentile bootstraps for the bounds, which have kinks.

    Returns
    -------
    Result
        One row for each ``quantity``: ``headroom`` (1 - A), ``compressed_success`` (p), ``recovery`` (rho),
        ``independent`` ((1 - A) p), ``covariance``, ``frechet_low`` and ``frechet_high``. A lower bound of 0
        has no interval (``zero variance``). Null with status ``no rows`` where no input is left.

    Raises
    ------
    InputError
        When a run has no twin, a success is null on either side, the baseline's success or a column of the
        design differs between runs of one input, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", on the scaling of recovery.
    .. [2] Fréchet, Annales de l'Université de Lyon A 14, 1951.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget,
    ...               score=float(success), success=success)
    ...     for i in range(20)
    ...     for arm, budget, success in (("full", 1.0, i > 7), ("snapkv", 0.25, 5 < i < 16))
    ... ])
    >>> recovery_decomposition(log, arm="snapkv").frame.select("quantity", "estimate").rows()
    ... # doctest: +ELLIPSIS
    [('compressed_success', 0.5), ('covariance', -0.1), ..., ('headroom', 0.4), ('independent', 0.2), ...]
    """
    function = "recovery_decomposition"
    pairs = select(pairs_of(function, log, arm, baseline, where), EVICTED, function)
    for column in ("success", "baseline_success"):
        require_values(function, pairs, column)
    columns = {
        LEFT: ~pl.col("baseline_success").first(),
        SOLVED: pl.col("success").any(),
        "recovered": pl.col("success").any() & ~pl.col("baseline_success").first(),
    }
    names = others_than(function, log, by, "quantity")
    inputs = per_input(function, pairs, names, design, columns, also={"baseline_success": "baseline"})

    def of_both(make: type[ProductOfMeans] | type[Covariance]) -> Builder:
        return lambda part: (make(numbers(part, LEFT), numbers(part, SOLVED)), "mean")

    def bound(*, upper: bool) -> Builder:
        # Near a kink there is no slope to linearise by: judged as quantiles are, by the percentile bootstrap.
        return lambda part: (
            FrechetBound(numbers(part, LEFT), numbers(part, SOLVED), upper=upper),
            "quantile",
        )

    builders = {
        "headroom": mean_or_rate(LEFT),
        "compressed_success": mean_or_rate(SOLVED),
        "recovery": mean_or_rate("recovered"),
        "independent": of_both(ProductOfMeans),
        "covariance": of_both(Covariance),
        "frechet_low": bound(upper=False),
        "frechet_high": bound(upper=True),
    }
    return estimate_each(function, log, inputs, names, design, builders, ("quantity", pl.String()))
