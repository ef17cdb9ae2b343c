"""The outcomes of an audit's re-runs, held against its plan."""

from __future__ import annotations

import numpy as np
import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.planning.audit import AuditPlan
from kvstats.statistics.statistic import FloatArray

__all__ = ["drawn_outcomes"]

OUTCOME = "__outcome__"


def drawn_outcomes(function: str, plan: AuditPlan, outcomes: pl.DataFrame, outcome: str) -> FloatArray:
    """Return the outcome of each drawn run in the plan's order, or raise `InputError`."""
    for name in (*plan.key, outcome):
        if name not in outcomes.columns:
            raise InputError.argument(
                function, "outcomes", name, "is a column that they lack", nearest_name(name, outcomes.columns)
            )
    kind = outcomes.schema[outcome]
    if not (kind.is_numeric() or kind == pl.Boolean):
        raise InputError.argument(
            function, "outcome", outcome, f"is a column of {kind}", "name a Boolean or numeric one"
        )
    found = outcomes.select(*plan.key, pl.col(outcome).cast(pl.Float64).alias(OUTCOME))
    repeated = int(found.select(plan.key).is_duplicated().sum())
    if repeated:
        raise InputError(
            f"{function}: {repeated} rows of outcomes share their key with another; keep one a run"
        )
    drawn = plan.sample.select(plan.key)
    on = list(plan.key)
    strangers = found.join(drawn, on=on, how="anti", nulls_equal=True)
    if strangers.height:
        raise InputError(
            f"{function}: {strangers.height} of {found.height} rows of outcomes are of runs not drawn, "
            f"such as {strangers.select(on).row(0)}; keep those of plan.sample: others bias the estimate"
        )
    joined = drawn.join(found, on=on, how="left", nulls_equal=True, maintain_order="left")
    missing = joined.filter(pl.col(OUTCOME).is_null() | ~pl.col(OUTCOME).is_finite())
    if missing.height:
        raise InputError(
            f"{function}: {missing.height} of {drawn.height} drawn runs have no finite outcome, such as "
            f"{missing.select(on).row(0)}; repeat them: to leave them out would bias the estimate"
        )
    return joined[OUTCOME].to_numpy().astype(np.float64)
