"""How often a gate is open."""

from __future__ import annotations

from kvstats.estimators.population import By, estimate, mean_or_rate, runs_of
from kvstats.estimators.registry import estimator
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.log.frames import Log
from kvstats.tables import require_values

__all__ = ["gate_open_rate"]


@estimator
def gate_open_rate(
    log: Log,
    *,
    arm: str,
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Share of the runs of a gated arm whose gate is open.

    Formula: ``sum(w * [gate open]) / sum(w)`` over runs, in [0, 1]. With ``where="budget = 0.25"``, or where
    all inputs were run at the same budgets, it is the share of inputs.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm of a gate: one that was executed, or one that a policy added.
    where : str, optional
        SQL expression over the runs with the columns of their input records.
    by : str or sequence of str, optional
        Columns to estimate within.
    design : Design
        How to judge it; ``auto`` takes a Korn-Graubard interval.

    Returns
    -------
    Result
        Null with status ``no rows`` where no run is left.

    Raises
    ------
    InputError
        When a run does not tell whether its gate was open, or a name is not known.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", table 12.

    Examples
    --------
    >>> from kvstats.log import InputRecord, RunRecord, log_from_records
    >>> from kvstats.policies import gate
    >>> keys = [dict(suite="s", model="m", task="t", input_id=str(i)) for i in range(20)]
    >>> log = log_from_records([
    ...     record for i, key in enumerate(keys) for record in (
    ...         InputRecord(**key, drop=0.01 * i), RunRecord(**key, arm="full", budget=1.0, score=1.0),
    ...         RunRecord(**key, arm="snapkv", budget=0.25, score=0.0))
    ... ])
    >>> gate_open_rate(gate(log, tau=0.05, base="snapkv"), arm="gate").frame["estimate"].item()
    0.75
    """
    rows = runs_of("gate_open_rate", log, arm, where, by)
    require_values("gate_open_rate", rows, "gate_open")
    return estimate("gate_open_rate", log, rows, by, design, mean_or_rate("gate_open"))
