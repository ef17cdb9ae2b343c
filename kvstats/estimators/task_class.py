"""The four classes of tasks: what eviction does to them, by how much it destroys and how often it helps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from kvstats.errors import InputError
from kvstats.estimators.population import By, by_columns, estimate, mean_or_rate
from kvstats.estimators.rates import recovery_rate
from kvstats.estimators.sensitivity import at_smallest_budget
from kvstats.inference.design import DEFAULT_DESIGN, Design
from kvstats.inference.result import Result
from kvstats.log.frames import Log
from kvstats.policies.pilot import check_share
from kvstats.tables import FULL
from kvstats.titled_table import DisplayedTable

__all__ = ["TaskClasses", "task_class"]

UNTESTABLE = "untestable"

CLASSES = {
    (True, False): "capacity-bound",
    (True, True): "mixed",
    (False, True): "dilution-prone",
    (False, False): "evict-robust",
}
"""Class by whether the sensitivity and the recovery rate reach their thresholds."""


@dataclass(frozen=True, eq=False, repr=False)
class TaskClasses(DisplayedTable):
    """Classes of tasks, with the estimates that they follow from.

    Attributes
    ----------
    frame : polars.DataFrame
        The by-columns; ``full_accuracy``, ``sensitivity`` and ``recovery_rate``, each followed by its
        ``_low`` and ``_high``; ``n`` (inputs); ``task_class``; and ``certain``: whether the intervals that
        the class follows from are all clear of their thresholds. Other classes are tentative.
    full_accuracy, sensitivity, recovery : Result
        The estimates.
    """

    frame: pl.DataFrame
    full_accuracy: Result
    sensitivity: Result
    recovery: Result

    @property
    def title(self) -> str:
        """The name of the estimator, and the level of the intervals."""
        return f"task_class, {100 * self.full_accuracy.design.level:g}% intervals"


def task_class(
    log: Log,
    *,
    arm: str,
    baseline: str = FULL,
    testable: float = 0.15,
    sensitive: float = 0.40,
    recovering: float = 0.05,
    where: str | None = None,
    by: By = ("model", "task"),
    design: Design = DEFAULT_DESIGN,
) -> TaskClasses:
    """Class tasks by how much eviction destroys and how often it helps.

    A task is testable where the full cache answers at least a share `testable` of its inputs. With the
    sensitivity (share of those that the smallest budget destroys; `sensitivity`) and the recovery rate (share
    of inputs that some budget below 1 answers better; `recovery_rate`) a testable task is

    ==================  =====================  ========================
    class               sensitivity            recovery rate
    ==================  =====================  ========================
    ``capacity-bound``  at least `sensitive`   below `recovering`
    ``mixed``           at least `sensitive`   at least `recovering`
    ``dilution-prone``  below `sensitive`      at least `recovering`
    ``evict-robust``    below `sensitive`      below `recovering`
    ==================  =====================  ========================

    and any other is ``untestable``.

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
    by : str or sequence of str, default ("model", "task")
        Columns to class within.
    design : Design
        How to judge the estimates; ``auto`` takes Korn-Graubard intervals. Three intervals are held against
        thresholds at once: that a class called certain is wrong has a probability of at most three times 1
        - level.

    Returns
    -------
    TaskClasses

    Raises
    ------
    InputError
        As `sensitivity` and `recovery_rate`, and when a threshold is not between 0 and 1.

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
    >>> task_class(log, arm="snapkv").frame.select("task", "sensitivity", "task_class", "certain").rows()
    [('mk3', 0.9, 'capacity-bound', True), ('qa', 0.02, 'evict-robust', True)]
    """
    function = "task_class"
    thresholds = {
        "full_accuracy": check_share(function, "testable", testable),
        "sensitivity": check_share(function, "sensitive", sensitive),
        "recovery_rate": check_share(function, "recovering", recovering),
    }
    pairs = at_smallest_budget(function, log, arm, baseline, where, by)
    names = by_columns(function, by, pairs)
    for name in names:
        if name in ("task_class", "certain") or name.startswith(tuple(thresholds)):
            raise InputError.argument(
                function, "by", name, "has the name of a column of the classes", "rename the signal"
            )
    answered = pairs.filter("baseline_success")
    results = {
        "full_accuracy": estimate(function, log, pairs, by, design, mean_or_rate("baseline_success")),
        "sensitivity": estimate("sensitivity", log, answered, by, design, mean_or_rate("induced_failure")),
        "recovery_rate": recovery_rate(log, arm=arm, baseline=baseline, where=where, by=by, design=design),
    }
    return TaskClasses(
        frame=classed(results, names, thresholds),
        full_accuracy=results["full_accuracy"],
        sensitivity=results["sensitivity"],
        recovery=results["recovery_rate"],
    )


def classed(
    results: Mapping[str, Result], names: tuple[str, ...], thresholds: Mapping[str, float]
) -> pl.DataFrame:
    """Return the estimates beside each other, with the class of each row."""
    tables = {
        name: {tuple(row[by] for by in names): row for row in result.frame.iter_rows(named=True)}
        for name, result in results.items()
    }
    rows = []
    for key, whole in tables["full_accuracy"].items():
        found = {name: table.get(key, {}) for name, table in tables.items()}
        figures = {
            f"{name}{suffix}": found[name].get(column)
            for name in results
            for suffix, column in (("", "estimate"), ("_low", "low"), ("_high", "high"))
        }
        name, certain = class_of(found, thresholds)
        rows.append(
            {**dict(zip(names, key, strict=True)), **figures, "n": whole["n"]}
            | {"task_class": name, "certain": certain}
        )
    schema = {name: results["full_accuracy"].frame.schema[name] for name in names}
    schema |= {f"{name}{suffix}": pl.Float64() for name in results for suffix in ("", "_low", "_high")}
    return pl.DataFrame(
        rows, schema=schema | {"n": pl.Int64(), "task_class": pl.String(), "certain": pl.Boolean()}
    )


def class_of(
    found: Mapping[str, Mapping[str, Any]], thresholds: Mapping[str, float]
) -> tuple[str | None, bool]:
    """Return the class of one row of estimates, and whether it is certain; None where there is none."""
    sides = {name: side_of(found[name], threshold) for name, threshold in thresholds.items()}
    testable, clear = sides["full_accuracy"]
    if testable is None:
        return None, False
    if not testable:
        return UNTESTABLE, clear
    (destroyed, destroyed_clear), (helped, helped_clear) = sides["sensitivity"], sides["recovery_rate"]
    if destroyed is None or helped is None:
        return None, False
    return CLASSES[destroyed, helped], clear and destroyed_clear and helped_clear


def side_of(row: Mapping[str, Any], threshold: float) -> tuple[bool | None, bool]:
    """Say whether an estimate reaches a threshold (None: undefined), and whether its interval is clear."""
    estimate, low, high = (row.get(name) for name in ("estimate", "low", "high"))
    if estimate is None:
        return None, False
    if low is None or high is None:
        return estimate >= threshold, False
    return estimate >= threshold, low >= threshold or high < threshold
