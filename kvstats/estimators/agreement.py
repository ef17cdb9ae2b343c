"""Head agreement by layer: the mean profile over inputs."""

from __future__ import annotations

import polars as pl

from kvstats.errors import InputError
from kvstats.estimators.drop_signals import profile_suffix
from kvstats.estimators.per_input import others_than
from kvstats.estimators.population import By, by_columns, estimate, numbers
from kvstats.estimators.registry import table_estimator
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.inference.sample import Kind
from kvstats.log.frames import Log
from kvstats.selection import select
from kvstats.statistics.ratios import Mean
from kvstats.statistics.statistic import Statistic
from kvstats.tables import require_values, unique_inputs

__all__ = ["agreement_profile"]

AGREEMENT = "__agreement__"


@table_estimator(layer=pl.Int64())
def agreement_profile(
    log: Log,
    *,
    profile: str = "head_agreement_per_layer",
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Mean head agreement by layer, one row a layer.

    Formula: ``sum(w * a_l) / sum(w)`` over input records, for each layer l; in [0, 1].

    Parameters
    ----------
    log : Log
        The log.
    profile : {"head_agreement_per_layer", "head_agreement_interior_per_layer"}
        Column of agreement by layer.
    where : str, optional
        SQL expression over `log.inputs`.
    by : str or sequence of str, optional
        Columns to estimate within, such as the task; the models of one part must have as many layers.
    design : Design
        How to judge it; ``auto`` takes a linearised interval, for each layer alone.

    Returns
    -------
    Result
        By-columns and ``layer``, counted from 0. Without interval where there is one cluster or all inputs
        agree (``zero variance``); no rows where no input is left.

    Raises
    ------
    InputError
        When an input has no profile, models of different depth would be pooled, two input records have the
        same key, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", head agreement over depth.

    Examples
    --------
    >>> from kvstats.log import InputRecord, log_from_records
    >>> log = log_from_records([
    ...     InputRecord(suite="s", model="m", task="qa", input_id=str(i),
    ...                 head_agreement_per_layer=[0.6 + 0.01 * (i % 3), 0.4])
    ...     for i in range(30)
    ... ])
    >>> agreement_profile(log)
    agreement_profile, 95% interval
    layer  estimate     low    high       se  df   n  clusters  status
        0    0.6100  0.6069  0.6131  0.00152  29  30        30  ok
        1     0.400       –       –        –   –  30        30  zero variance
    """
    function = "agreement_profile"
    profile_suffix(function, profile)
    inputs = select(unique_inputs(log, function), where, function)
    names = by_columns(function, others_than(function, log, by, "layer"), inputs)
    require_values(function, inputs, profile)
    depth = inputs.select(*names, pl.col(profile).list.len().alias(AGREEMENT)).unique()
    mixed = depth.filter(depth.select(names).is_duplicated()) if names else depth
    if mixed.height > 1:
        raise InputError(
            f"{function}: inputs of {', '.join(map(str, mixed[AGREEMENT].unique().sort()))} layers would be "
            "pooled, and their layers are not the same; select one model through `where`, or pass by='model'"
        )
    rows = inputs.with_columns(
        pl.int_ranges(0, pl.col(profile).list.len()).alias("layer"), pl.col(profile).alias(AGREEMENT)
    ).explode("layer", AGREEMENT)

    def build(part: pl.DataFrame) -> tuple[Statistic, Kind]:
        return Mean(numbers(part, AGREEMENT)), "mean"

    return estimate(function, log, rows, (*names, "layer"), design, build)
