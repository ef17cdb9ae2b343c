"""Surveys of tasks: the class of each, and how often a gate does what the class asks for."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from kvstats.errors import InputError
from kvstats.estimators.population import By, by_columns, estimate, mean_or_rate
from kvstats.estimators.registry import estimator, table_estimator
from kvstats.estimators.task_class import UNTESTABLE, task_class
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result, infer
from kvstats.log.frames import Log
from kvstats.tables import EVICTED, FULL, pairs_of, require_values

__all__ = ["class_agreement", "class_survey"]

UNDEFINED = "undefined"
TO_EVICT = ("dilution-prone", "evict-robust")
"""Classes of tasks from which evicting takes little."""

MAJORITY = 0.5


@table_estimator(quantity=pl.String(), task_class=pl.String(), certain=pl.Boolean())
def class_survey(
    log: Log,
    *,
    arm: str,
    baseline: str = FULL,
    testable: float = 0.15,
    sensitive: float = 0.40,
    recovering: float = 0.05,
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Class of each task, with the three estimates that it follows from.

    Formula: the class is that of `kvstats.task_class`, and the estimates are its shares over inputs, in
    [0, 1]: ``sum(w * y) / sum(w)`` with y whether the full cache answers, whether the smallest budget
    destroys what it answers, and whether some budget answers better.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm that evicts.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    testable, sensitive, recovering : float
        The thresholds, between 0 and 1.
    where : str, optional
        SQL expression over the pairs; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns to class within, such as model and task. Default: all is one task.
    design : Design
        How to judge the estimates.

    Returns
    -------
    Result
        By-columns: those of `by`; ``quantity``: ``full_accuracy``, ``sensitivity`` and ``recovery_rate``; and
        for all three ``task_class``, ``undefined`` where an estimate that it needs is, and ``certain``:
        whether the intervals that it follows from are clear of their thresholds.

    Raises
    ------
    InputError
        As `kvstats.task_class`.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", the classes of tasks.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task=task, input_id=str(i), arm=arm, budget=budget, score=score,
    ...               success=score == 1)
    ...     for i in range(100) for task, hit in (("mk3", 90), ("qa", 2))
    ...     for arm, budget, score in (("full", 1.0, 1.0), ("snapkv", 0.25, float(i >= hit)))
    ... ])
    >>> survey = class_survey(log, arm="snapkv", by="task")
    >>> survey.frame.filter(quantity="sensitivity").select("task", "task_class", "certain", "estimate").rows()
    [('mk3', 'capacity-bound', True, 0.9), ('qa', 'evict-robust', True, 0.02)]
    """
    function = "class_survey"
    names = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    if "quantity" in names:
        raise InputError.argument(
            function, "by", "quantity", "has the name of a column of the survey", "rename the signal"
        )
    classes = task_class(
        log,
        arm=arm,
        baseline=baseline,
        testable=testable,
        sensitive=sensitive,
        recovering=recovering,
        where=where,
        by=names or None,
        design=design,
    )
    found = {
        row[: len(names)]: (row[-2] or UNDEFINED, row[-1])
        for row in classes.frame.select(*names, "task_class", "certain").rows()
    }
    results = {
        "full_accuracy": classes.full_accuracy,
        "sensitivity": classes.sensitivity,
        "recovery_rate": classes.recovery,
    }
    samples = [
        replace(sample, key=(*sample.key, quantity, *found[sample.key]))
        for quantity, result in results.items()
        for sample in result.samples
    ]
    schema: dict[str, pl.DataType] = {name: classes.frame.schema[name] for name in names}
    own = {"quantity": pl.String(), "task_class": pl.String(), "certain": pl.Boolean()}
    return infer(function, samples, design, schema | own)


@estimator
def class_agreement(
    log: Log,
    *,
    arm: str,
    gate: str,
    unit: By = ("model", "task"),
    baseline: str = FULL,
    testable: float = 0.15,
    sensitive: float = 0.40,
    recovering: float = 0.05,
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    r"""Share of tasks on which a gate does what the class of the task asks for.

    .. math:: \frac{1}{T} \sum_t [\, (\text{the gate is open on at least half of } t) =
        (t \text{ is dilution-prone or evict-robust}) \,]

    over the T tasks that have a class. An open gate evicts, which takes little from these two classes; on
    capacity-bound and mixed tasks the gate is to keep the whole cache.

    Parameters
    ----------
    log : Log
        The log.
    arm : str
        The arm that evicts everywhere, by which tasks are classed.
    gate : str
        The arm of the gate: one that was executed, or one that a policy added.
    unit : str or sequence of str, default ("model", "task")
        Columns whose values make a task.
    baseline : str, default "full"
        The arm of the twins; see `kvstats.paired`.
    testable, sensitive, recovering : float
        The thresholds of the classes, between 0 and 1.
    where : str, optional
        SQL expression over the pairs of either arm; ``budget`` is the arm's.
    by : str or sequence of str, optional
        Columns of `unit` to estimate within.
    design : Design
        How to judge it; ``auto`` takes a Korn-Graubard interval. The tasks are the clusters, whatever
        ``cluster`` says, and their classes are taken as known; there are no weights and strata of tasks.

    Returns
    -------
    Result
        ``n`` is the number of tasks with a class. Null with status ``no rows`` where none has one.

    Raises
    ------
    InputError
        As `kvstats.task_class`, when a run does not tell whether its gate was open, or a column of `by` is
        none of `unit`.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", the classes of tasks.

    Examples
    --------
    >>> from kvstats.log import InputRecord, RunRecord, log_from_records
    >>> from kvstats.policies import gate
    >>> log = log_from_records([
    ...     record
    ...     for i in range(50) for task, hit, drop in (("mk3", 45, 0.02), ("qa", 1, 0.2), ("code", 1, 0.01))
    ...     for key in [dict(suite="s", model="m", task=task, input_id=str(i))]
    ...     for record in (
    ...         InputRecord(**key, drop=drop),
    ...         RunRecord(**key, arm="full", budget=1.0, score=1.0, success=True),
    ...         RunRecord(**key, arm="snapkv", budget=0.25, score=float(i >= hit), success=i >= hit))
    ... ])
    >>> gated = gate(log, tau=0.05, base="snapkv", name="gated")
    >>> class_agreement(gated, arm="snapkv", gate="gated").frame.select("estimate", "n").rows()
    [(0.6666666666666666, 3)]
    """
    function = "class_agreement"
    units = (unit,) if isinstance(unit, str) else tuple(unit or ())
    if not units:
        raise InputError.argument(function, "unit", unit, "names no column", "pass ('model', 'task')")
    within = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    for name in within:
        if name not in units:
            raise InputError.argument(
                function, "by", name, "is no column of unit", f"pass one of {', '.join(units)}"
            )
    if design.weight is not None or design.stratum:
        raise InputError.argument(
            function, "design", design, "has weights or strata, which tasks have not", "pass a design without"
        )
    classes = task_class(
        log,
        arm=arm,
        baseline=baseline,
        testable=testable,
        sensitive=sensitive,
        recovering=recovering,
        where=where,
        by=units,
        design=replace(design, interval="auto"),
    ).frame
    evicted = f"({EVICTED})" if where is None else f"({EVICTED}) AND ({where})"
    decisions = pairs_of(function, log, gate, baseline, evicted)
    by_columns(function, units, decisions)
    require_values(function, decisions, "gate_open")
    opened = decisions.group_by(*units).agg(pl.col("gate_open").mean().alias("__open__"))
    classed = classes.filter(pl.col("task_class").is_not_null() & (pl.col("task_class") != UNTESTABLE))
    joined = classed.select(*units, "task_class").join(opened, on=list(units), how="left", nulls_equal=True)
    if joined["__open__"].null_count():
        row = joined.filter(pl.col("__open__").is_null()).row(0, named=True)
        raise InputError.argument(
            function,
            "gate",
            gate,
            f"has no run on ({', '.join(f'{name}={row[name]}' for name in units)})",
            "select the same tasks through `where`",
        )
    judged = joined.with_columns(
        agrees=(pl.col("__open__") >= MAJORITY) == pl.col("task_class").is_in(TO_EVICT)
    )
    return estimate(function, log, judged, by, replace(design, cluster=units), mean_or_rate("agrees"))
