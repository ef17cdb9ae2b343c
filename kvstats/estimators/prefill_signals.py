"""Prefill signals against the tasks: whether they separate them, and rise along an order of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.estimators.per_input import others_than
from kvstats.estimators.population import By, by_columns, drawn_rows, numbers
from kvstats.estimators.registry import table_estimator
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result, infer
from kvstats.inference.sample import Kind, Sample, samples_by
from kvstats.log.frames import Log
from kvstats.selection import select
from kvstats.statistics.group_gap import GroupGap
from kvstats.statistics.ordered_groups import OrderedConcordance
from kvstats.statistics.statistic import Statistic
from kvstats.tables import require_values, unique_inputs

__all__ = ["task_order", "task_separation"]


class SignalBuilder(Protocol):
    """What makes of a part and a signal the statistic and its kind."""

    def __call__(self, part: pl.DataFrame, /, signal: str) -> tuple[Statistic, Kind]:
        """Prepare the statistic."""


@table_estimator(signal=pl.String())
def task_separation(
    log: Log,
    *,
    below: Sequence[str],
    above: Sequence[str],
    signals: Sequence[str] = ("drop",),
    leave_out: Sequence[str] = (),
    standardised: bool = False,
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Margin by which a prefill signal separates two sets of tasks, one row a signal.

    Formula: lowest task mean of `above` minus highest task mean of `below`; see
    `kvstats.statistics.GroupGap`. Above 0, some threshold separates the means of all tasks. For a signal that
    is high where D is low, the two sets change places: a margin below 0 may be the other order.

    Parameters
    ----------
    log : Log
        The log.
    below, above : sequence of str
        Tasks whose means should be low (capacity-bound, for D), and those whose means should be high.
    signals : sequence of str, default ("drop",)
        Numeric columns of `log.inputs`.
    leave_out : sequence of str
        Tasks that the comparison leaves out; every task must be named in one of the three.
    standardised : bool, default False
        Whether to divide by the pooled standard deviation within tasks, which makes signals of different
        units comparable.
    where : str, optional
        SQL expression over `log.inputs`.
    by : str or sequence of str, optional
        Columns to estimate within, such as the model.
    design : Design
        How to judge it; ``auto`` takes a linearised interval.

    Returns
    -------
    Result
        By-columns and ``signal``, in the unit of the signal or, standardised, without one. Null with status
        ``undefined`` where one side has no input or, standardised, no task has spread; ``no rows`` where no
        input is left. Where two means of one side are about equal, the margin is biased downwards.

    Raises
    ------
    InputError
        When a task is in none or in two of the sets, a name is not known, a value is null, or a task has no
        input where another of its cell has.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", comparison of prefill signals.

    Examples
    --------
    >>> from kvstats.log import InputRecord, log_from_records
    >>> log = log_from_records([
    ...     InputRecord(suite="s", model="m", task=task, input_id=str(i), drop=mean + 0.01 * (i % 3))
    ...     for i in range(30)
    ...     for task, mean in (("mk3", 0.02), ("qa", 0.09), ("vt", 0.12))
    ... ])
    >>> task_separation(log, below=["mk3"], above=["qa", "vt"])
    task_separation, 95% interval
    signal  estimate     low    high       se  df   n  clusters  status
    drop      0.0700  0.0657  0.0743  0.00214  58  90        90  ok
    """
    function = "task_separation"
    by = others_than(function, log, by, "signal")
    inputs = named_inputs(function, log, signals, where, by)
    sets = {"below": list(below), "above": list(above), "leave_out": list(leave_out)}
    check_tasks(function, sets, inputs)
    for argument in ("below", "above"):
        if not sets[argument]:
            raise InputError.argument(function, argument, [], "names no task", "name one or more")
    inputs = inputs.filter(~pl.col("task").is_in(sets["leave_out"]))
    return by_signal(
        function, log, inputs, signals, by, design, partial(gap, sets=sets, standardised=standardised)
    )


@table_estimator(signal=pl.String())
def task_order(
    log: Log,
    *,
    tasks: Sequence[str],
    signals: Sequence[str] = ("drop",),
    leave_out: Sequence[str] = (),
    where: str | None = None,
    by: By = None,
    design: Design = DEFAULT_DESIGN,
) -> Result:
    """Say how well a prefill signal rises along an order of tasks, one row a signal.

    Formula: the mean over pairs of tasks of the probability that an input of the later one has the higher
    signal; see `kvstats.statistics.OrderedConcordance`. In [0, 1]; the null hypothesis of its tests is 0.5.

    Parameters
    ----------
    log : Log
        The log.
    tasks : sequence of str
        The tasks in the order in which the signal should rise.
    signals : sequence of str, default ("drop",)
        Numeric columns of `log.inputs`.
    leave_out : sequence of str
        Tasks that the comparison leaves out; every task must be named in one of the two.
    where : str, optional
        SQL expression over `log.inputs`.
    by : str or sequence of str, optional
        Columns to estimate within, such as the model.
    design : Design
        How to judge it; ``auto`` takes a linearised t interval on the scale of log(C / (1 - C)).

    Returns
    -------
    Result
        By-columns and ``signal``. Null with status ``no rows`` where no input is left; without interval
        where the order is perfect (``zero variance``) or a task has one cluster.

    Raises
    ------
    InputError
        When a task is named in none or both of the sets, a name is not known, a value is null, or a task has
        no input where another of its cell has.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", monotonicity of prefill signals.

    Examples
    --------
    >>> from kvstats.log import InputRecord, log_from_records
    >>> log = log_from_records([
    ...     InputRecord(suite="s", model="m", task=task, input_id=str(i), drop=(place + i % 5) / 100)
    ...     for i in range(30)
    ...     for task, place in (("mk3", 2), ("qa", 4), ("vt", 6))
    ... ])
    >>> task_order(log, tasks=["mk3", "qa", "vt"])
    task_order, 95% interval
    signal  estimate    low   high      se    df   n  clusters  status
    drop       0.873  0.824  0.910  0.0213  72.4  90        90  ok
    """
    function = "task_order"
    by = others_than(function, log, by, "signal")
    inputs = named_inputs(function, log, signals, where, by)
    order = list(tasks)
    check_tasks(function, {"tasks": order, "leave_out": list(leave_out)}, inputs)
    if len(order) < 2:
        raise InputError.argument(function, "tasks", order, "is no order", "name two tasks or more")
    inputs = inputs.filter(pl.col("task").is_in(order))

    def build(part: pl.DataFrame, /, signal: str) -> tuple[Statistic, Kind]:
        require_tasks(function, {"tasks": order}, part)
        place = part["task"].replace_strict(order, list(range(len(order))), return_dtype=pl.Int64)
        return OrderedConcordance(numbers(part, signal), place.to_numpy()), "auc"

    return by_signal(function, log, inputs, signals, by, design, build, null=0.5)


def gap(
    part: pl.DataFrame, /, signal: str, sets: dict[str, list[str]], standardised: bool
) -> tuple[Statistic, Kind]:
    """Prepare the gap of one signal in one part, of which every named task must have an input."""
    require_tasks("task_separation", {name: sets[name] for name in ("below", "above")}, part)
    statistic = GroupGap(
        numbers(part, signal), part["task"].to_numpy(), sets["above"], standardised=standardised
    )
    return statistic, "mean"


def require_tasks(function: str, sets: dict[str, list[str]], part: pl.DataFrame) -> None:
    """Raise `InputError` where a part with inputs has none of a named task: it would tell of other tasks."""
    found = set(part["task"].unique())
    for argument, tasks in sets.items():
        for task in tasks if found else ():
            if task not in found:
                raise InputError.argument(
                    function,
                    argument,
                    task,
                    "has no input in a cell where other tasks have some",
                    "leave the task or the cell out, through `leave_out` or `where`",
                )


def named_inputs(function: str, log: Log, signals: Sequence[str], where: str | None, by: By) -> pl.DataFrame:
    """Return the inputs that are left, with their signals checked."""
    inputs = select(unique_inputs(log, function), where, function)
    known = [name for name in inputs.columns if inputs.schema[name].is_numeric()]
    if isinstance(signals, str) or not signals or len(set(signals)) < len(signals):
        raise InputError.argument(
            function, "signals", signals, "is not a list of different columns", "name each once, in a list"
        )
    for signal in signals:
        if signal not in known:
            raise InputError.argument(
                function,
                "signals",
                signal,
                "is not a numeric column of the inputs",
                nearest_name(signal, known),
            )
        require_values(function, inputs, signal)
    by_columns(function, by, inputs)
    return inputs


def check_tasks(function: str, sets: dict[str, list[str]], inputs: pl.DataFrame) -> None:
    """Raise `InputError` where a task of the inputs is in none or in two of the sets, or one is unknown."""
    found = inputs["task"].unique().sort().to_list()
    seen: dict[str, str] = {}
    for argument, tasks in sets.items():
        for task in tasks:
            if task in seen:
                raise InputError.argument(
                    function, argument, task, f"is in {seen[task]} already", "name each task once"
                )
            seen[task] = argument
            if inputs.height and task not in found:
                raise InputError.argument(
                    function, argument, task, "is no task of the inputs", nearest_name(task, found)
                )
    for task in found:
        if task not in seen:
            raise InputError.argument(
                function,
                next(iter(sets)),
                next(iter(sets.values())),
                f"and the others leave the task {task!r} unmentioned",
                "name it in leave_out, so that what was left out is stated",
            )


def by_signal(
    function: str,
    log: Log,
    inputs: pl.DataFrame,
    signals: Sequence[str],
    by: By,
    design: Design,
    build: SignalBuilder,
    null: float | None = None,
) -> Result:
    """Estimate one statistic for each signal, on the same inputs."""
    names = by_columns(function, by, inputs)
    samples: list[Sample] = []
    for signal in signals:
        found = samples_by(
            function, inputs, names, design, partial(build, signal=signal), drawn_rows(log, design)
        )
        samples += [replace(sample, key=(*sample.key, signal)) for sample in found]
    columns = {**{name: inputs.schema[name] for name in names}, "signal": pl.String()}
    return infer(function, samples, design, columns, null)
