"""What a plan asks for: units, computed and written as a whole, and the rows that each of them makes."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from collectors.config import Condition, StudyPlan
from collectors.plan_parts import NO_CONTEXT
from collectors.tasks import example_id

__all__ = ["PlannedRow", "Unit", "UnitKey", "plan_units", "planned_rows"]

UnitKey = tuple[str, str, str | None]
"""Task, input id and condition, as they stand in a log."""


class Unit(msgspec.Struct, frozen=True):
    """One input under one condition: what is computed, written and resumed as a whole."""

    task: str
    index: int
    condition: Condition

    def input_id(self, seed: int) -> str:
        """Return the id of the input, for the seed of the plan."""
        return example_id(self.task, seed, self.index)

    def key(self, seed: int) -> UnitKey:
        """Return what names the unit in a log, for the seed of the plan."""
        return self.task, self.input_id(seed), self.condition


class PlannedRow(NamedTuple):
    """One run of a unit: an arm at a budget, with one draw of its chance; the control has no budget."""

    arm: str
    budget: float | None
    seed: int


def plan_units(plan: StudyPlan) -> list[Unit]:
    """List the units of a plan, tasks in turn, so that a log cut short still covers all of them."""
    most = max(plan.tasks.values())
    return [
        Unit(task, index, condition)
        for index in range(most)
        for task, count in plan.tasks.items()
        if index < count
        for condition in plan.conditions
    ]


def planned_rows(plan: StudyPlan, condition: Condition) -> list[PlannedRow]:
    """List the runs of each unit under a condition, in the order of a log.

    The oracle of a retrieval is among them, which a unit lacks where no block holds the answer.
    """
    rows = [PlannedRow("full", 1.0, 0)]
    for arm in plan.arms_under(condition):
        rows += [PlannedRow(arm.name, budget, seed) for budget in arm.budgets for seed in arm.seeds]
    retrieval = plan.retrieval
    if retrieval is not None:
        again = [row for row in rows if row.arm == retrieval.arm and row.budget in retrieval.budgets]
        rows += [PlannedRow(name, row.budget, row.seed) for row in again for name in retrieval.arms]
    if plan.no_context:
        rows.append(PlannedRow(NO_CONTEXT, None, 0))
    return rows
