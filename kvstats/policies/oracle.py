"""Oracles: gates that know what no gate can know, as bounds of what gates are held against."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY
from kvstats.policies.registry import policy
from kvstats.policies.switch import add_arm, check_new_arm, switched
from kvstats.tables import FULL, TIE, arm_rows, refuse_duplicates, require_values

__all__ = ["input_oracle", "task_oracle"]

GATE = "gate_open"


@policy
def task_oracle(
    log: Log,
    *,
    base: str,
    protect_tasks: Sequence[str] | None = None,
    evict_tasks: Sequence[str] | None = None,
    name: str = "task_oracle",
    full: str = FULL,
) -> Log:
    """Add the arm of a gate that knows the task of every input, and closes by its label.

    Parameters
    ----------
    log : Log
        The log.
    base : str
        Name of the arm that evicts.
    protect_tasks : sequence of str, optional
        Tasks whose inputs keep the whole cache; those of all others are evicted.
    evict_tasks : sequence of str, optional
        Tasks whose inputs are evicted; those of all others keep the whole cache. Exactly one of both is
        given; it may be empty.
    name : str, default "task_oracle"
        Name of the new arm.
    full : str, default "full"
        Name of the arm that keeps the cache; where no arm is named ``full``, the rows of arm ``plain`` at
        budget 1 stand for it.

    Returns
    -------
    Log
        The log with one row more for each row of `base`, as of `kvstats.gate`; ``gate_open`` says which rows
        were evicted.

    Raises
    ------
    InputError
        When not exactly one list is given, a task or an arm is not known, the name is taken, rows are
        duplicated, or a protected input has no full-cache run.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", table 14.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task=task, input_id="1", arm=arm, budget=budget, score=score)
    ...     for task in ("keys", "qa")
    ...     for arm, budget, score in (("full", 1.0, 1.0), ("snapkv", 0.25, 0.0))
    ... ])
    >>> known = task_oracle(log, base="snapkv", protect_tasks=["keys"])
    >>> known.runs.filter(pl.col("arm") == "task_oracle").select("task", "score", "gate_open").rows()
    [('keys', 1.0, False), ('qa', 0.0, True)]
    """
    function = "task_oracle"
    check_new_arm(function, log, name)
    if (protect_tasks is None) == (evict_tasks is None):
        raise InputError.argument(
            function,
            "protect_tasks",
            protect_tasks,
            f"stands beside evict_tasks={evict_tasks!r}",
            "pass exactly one of them",
        )
    rows = arm_rows(log.runs, base, function, "base")
    argument, listed = (
        ("protect_tasks", protect_tasks) if evict_tasks is None else ("evict_tasks", evict_tasks)
    )
    tasks = task_names(function, argument, listed, rows)
    is_listed = pl.col("task").is_in(tasks)
    marked = rows.with_columns((is_listed if evict_tasks is not None else ~is_listed).alias(GATE))
    full_rows = arm_rows(log.runs, full, function, "full")
    chosen = switched(function, marked, full_rows, taken=~pl.col(GATE), other_name=full)
    return add_arm(log, chosen, name)


@policy
def input_oracle(
    log: Log, *, base: str, outcome: str = "score", name: str = "input_oracle", full: str = FULL
) -> Log:
    """Add the arm of a gate that knows both outcomes of every input, and takes the better one.

    For each row of `base`, and so for each input and budget: the outcome is that of the input's full-cache
    run where this is better, and the row's own otherwise. Ties, up to 1e-9, keep the compressed run. No gate
    that chooses between both can have a higher mean outcome.

    Parameters
    ----------
    log : Log
        The log.
    base : str
        Name of the arm that evicts.
    outcome : {"score", "success"}
        What is compared.
    name : str, default "input_oracle"
        Name of the new arm.
    full : str, default "full"
        Name of the arm that keeps the cache; where no arm is named ``full``, the rows of arm ``plain`` at
        budget 1 stand for it.

    Returns
    -------
    Log
        The log with one row more for each row of `base`, as of `kvstats.gate`; ``gate_open`` says which rows
        were evicted.

    Raises
    ------
    InputError
        When an arm or the outcome is not known, the name is taken, an outcome of either arm is null, rows are
        duplicated, or an input has no full-cache run.

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> log = log_from_records([
    ...     RunRecord(suite="s", model="m", task="qa", input_id=str(i), arm=arm, budget=budget, score=score)
    ...     for i in range(3)
    ...     for arm, budget, score in (("full", 1.0, 0.5), ("snapkv", 0.25, 0.5 * i))
    ... ])
    >>> known = input_oracle(log, base="snapkv")
    >>> known.runs.filter(pl.col("arm") == "input_oracle").select("score", "gate_open").rows()
    [(0.5, False), (0.5, True), (1.0, True)]
    """
    function = "input_oracle"
    check_new_arm(function, log, name)
    known = ("score", "success")
    if outcome not in known:
        raise InputError.argument(
            function, "outcome", outcome, "is not known", nearest_name(str(outcome), known)
        )
    rows = arm_rows(log.runs, base, function, "base")
    full_rows = arm_rows(log.runs, full, function, "full")
    for frame in (rows, full_rows):
        require_values(function, frame.filter(pl.col("error").is_null()), outcome)
    refuse_duplicates(function, full_rows, INPUT_KEY, f"rows of arm {full!r}")
    whole = full_rows.select(*INPUT_KEY, pl.col(outcome).cast(pl.Float64).alias("__full__"))
    # Without a full-cache run there is nothing to compare with: closed, so that switching says which.
    is_open = (pl.col("__full__") <= pl.col(outcome).cast(pl.Float64) + TIE).fill_null(value=False)
    marked = (
        rows.join(whole, on=list(INPUT_KEY), how="left", nulls_equal=True, maintain_order="left")
        # A run that ended in an error stays what it is.
        .with_columns(pl.when(pl.col("error").is_null()).then(is_open).alias(GATE))
        .drop("__full__")
    )
    closed = ~pl.col(GATE).fill_null(value=True)
    chosen = switched(function, marked, full_rows, taken=closed, other_name=full)
    return add_arm(log, chosen, name)


def task_names(function: str, argument: str, tasks: object, rows: pl.DataFrame) -> list[str]:
    """Return a list of tasks, or raise `InputError` where one is not a task of the rows."""
    known = rows["task"].unique().to_list()
    if isinstance(tasks, str) or not isinstance(tasks, Sequence):
        raise InputError.argument(function, argument, tasks, "is no list of tasks", "pass one such as ['qa']")
    for task in tasks:
        if task not in known:
            raise InputError.argument(
                function, argument, task, "is not a task of the base arm", nearest_name(str(task), known)
            )
    return list(tasks)
