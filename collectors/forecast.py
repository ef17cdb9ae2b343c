"""What a plan will cost: its cells, and time and memory as a pilot of three inputs shows them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import msgspec

from collectors.compute import Outcome, compute
from collectors.config import Condition, StudyPlan
from collectors.failure import error_of
from collectors.progress import duration
from collectors.units import Unit, plan_units, planned_rows
from kvstats.errors import InputError
from kvstats.log.write import encode_record

__all__ = [
    "Cell",
    "Forecast",
    "Pilot",
    "PilotInput",
    "forecast",
    "pilot_units",
    "run_pilot",
    "shown_forecast",
]

PILOT_INPUTS = 3
PILOT_SEED_DISTANCE = 1_000_000


class Cell(msgspec.Struct, frozen=True):
    """Runs that differ in nothing but their input; the control without a context has no budget."""

    task: str
    condition: Condition
    arm: str
    budget: float | None
    seed: int
    inputs: int


class PilotInput(msgspec.Struct, frozen=True):
    """One input of the pilot: how long it took, and how long its lines are in a log."""

    task: str
    condition: Condition
    seconds: float
    log_bytes: int
    error: str | None


class Pilot(msgspec.Struct, frozen=True):
    """Measured on inputs that are not those of the study.

    Attributes
    ----------
    seed : int
        Seed of the pilot's inputs.
    inputs : list of PilotInput
        What was run.
    memory_bytes, device_bytes : int
        Most memory of the worker process, and of its tensors on a GPU.
    seconds, least_seconds, most_seconds : float
        Expected time of all units in one process: the mean of the pilot's inputs, and were all inputs like
        the fastest or the slowest of them.
    log_bytes : int
        Expected size of the log, not compressed.
    """

    seed: int
    inputs: list[PilotInput]
    memory_bytes: int
    device_bytes: int
    seconds: float
    least_seconds: float
    most_seconds: float
    log_bytes: int


class Forecast(msgspec.Struct, frozen=True):
    """What a plan asks for.

    Attributes
    ----------
    suite, model, dtype, device, length
        As in the plan.
    cells : list of Cell
        Tasks, conditions, arms, budgets and seeds, with their numbers of inputs.
    units, runs : int
        Inputs, each under one condition, and generations: the most that there can be, as inputs without a
        known place of the answer have no oracle.
    pilot : Pilot or None
        Time and memory; None when no pilot was asked for.
    """

    suite: str
    model: str
    dtype: str
    device: str
    length: int
    cells: list[Cell]
    units: int
    runs: int
    pilot: Pilot | None


def forecast(plan: StudyPlan, *, pilot: Pilot | None = None) -> Forecast:
    """Count the cells, units and runs of a plan."""
    cells = [
        Cell(task, condition, *row, inputs=inputs)
        for task, inputs in plan.tasks.items()
        for condition in plan.conditions
        for row in planned_rows(plan, condition)
    ]
    return Forecast(
        suite=plan.suite,
        model=plan.model,
        dtype=plan.dtype,
        device=plan.device,
        length=plan.length,
        cells=cells,
        units=len(plan_units(plan)),
        runs=sum(cell.inputs for cell in cells),
        pilot=pilot,
    )


def pilot_units(plan: StudyPlan) -> list[Unit]:
    """Choose three units, from tasks and conditions that stand evenly apart in the plan.

    Their numbers are from the middle of each third of the inputs, as a plan asks more of the first ones.
    """
    kinds = [(task, condition) for task in plan.tasks for condition in plan.conditions]
    chosen: list[Unit] = []
    for place in range(PILOT_INPUTS):
        task, condition = kinds[place * len(kinds) // PILOT_INPUTS]
        unit = Unit(task, (2 * place + 1) * plan.tasks[task] // (2 * PILOT_INPUTS), condition)
        while unit in chosen:
            unit = msgspec.structs.replace(unit, index=unit.index + 1)
        chosen.append(unit)
    return chosen


def run_pilot(plan: StudyPlan, *, seed: int | None = None) -> Pilot:
    """Run three inputs of another seed in a process of their own.

    Inputs that are read from a file or the hub are taken in another order, and may be among the study's.

    Parameters
    ----------
    plan : StudyPlan
        The plan.
    seed : int, optional
        Seed of the pilot's inputs; that of the plan plus 1,000,000 by default.

    Raises
    ------
    InputError
        `seed` is that of the plan: inputs of a study must not be seen before it.
    """
    seed = plan.seed + PILOT_SEED_DISTANCE if seed is None else seed
    if seed == plan.seed:
        raise InputError.argument(
            "run_pilot",
            "seed",
            seed,
            "is the seed of the study, whose inputs a pilot must not see",
            "pass another",
        )
    units = pilot_units(plan)
    outcomes = list(compute(msgspec.structs.replace(plan, seed=seed), units, 1))
    inputs = [
        PilotInput(unit.task, unit.condition, outcome.seconds, log_bytes(outcome), error_of(outcome.block))
        for unit, outcome in zip(units, outcomes, strict=True)
    ]
    went_well = [item for item in inputs if item.error is None]
    if not went_well:
        raise InputError(f"run_pilot: all inputs failed, the last with {inputs[-1].error}; mend the cause")
    seconds = [item.seconds for item in went_well]
    count = len(plan_units(plan))
    return Pilot(
        seed=seed,
        inputs=inputs,
        memory_bytes=max(outcome.memory_bytes for outcome in outcomes),
        device_bytes=max(outcome.device_bytes for outcome in outcomes),
        seconds=count * statistics.fmean(seconds),
        least_seconds=count * min(seconds),
        most_seconds=count * max(seconds),
        log_bytes=round(count * statistics.fmean(item.log_bytes for item in went_well)),
    )


def log_bytes(outcome: Outcome) -> int:
    return sum(len(encode_record(record)) + 1 for record in outcome.block)


def shown_forecast(found: Forecast) -> Iterator[str]:
    """Yield the lines that tell a forecast."""
    yield f"{found.suite}: {found.model}, {found.dtype} on {found.device}, {found.length} tokens a prompt"
    names = list(dict.fromkeys(cell.task for cell in found.cells))
    conditions = list(dict.fromkeys(cell.condition for cell in found.cells))
    inputs = {cell.task: cell.inputs for cell in found.cells}
    width = max(len(name) for name in [*names, *(cell.arm for cell in found.cells)])
    yield "tasks"
    for name in names:
        yield f"  {name:<{width}}  {inputs[name]} inputs under {len(conditions)} ({', '.join(conditions)})"
    yield "arms"
    for name in dict.fromkeys(cell.arm for cell in found.cells):
        mine = [cell for cell in found.cells if cell.arm == name]
        under = list(dict.fromkeys(cell.condition for cell in mine))
        seeds = list(dict.fromkeys(cell.seed for cell in mine))
        budgets = list(dict.fromkeys(str(cell.budget) for cell in mine if cell.budget is not None))
        yield (
            f"  {name:<{width}}  {'budgets ' + ', '.join(budgets) if budgets else 'no budget'}"
            + (f"; seeds {', '.join(map(str, seeds))}" if len(seeds) > 1 else "")
            + (f"; {', '.join(under)} only" if under != conditions else "")
        )
    yield f"{len(found.cells)} cells, {found.units} inputs with their conditions, {found.runs} runs"
    if found.pilot is not None:
        yield from shown_pilot(found.pilot)


def shown_pilot(pilot: Pilot) -> Iterator[str]:
    yield f"pilot with seed {pilot.seed}, which is not the study's, in one process"
    for item in pilot.inputs:
        outcome = f"{item.seconds:.1f} s" if item.error is None else f"failed: {item.error}"
        yield f"  {item.task}, {item.condition}: {outcome}"
    yield (
        f"time: {duration(pilot.seconds)} of one process "
        f"(from {duration(pilot.least_seconds)} to {duration(pilot.most_seconds)}); "
        "divide by the workers, as far as there are cores or GPUs for them"
    )
    device = f" and {size(pilot.device_bytes)} on its GPU" if pilot.device_bytes else ""
    yield f"memory: {size(pilot.memory_bytes)} a worker{device}"
    yield f"log: {size(pilot.log_bytes)} before compression"


def size(count: int) -> str:
    """Write a number of bytes in decimal units.

    Examples
    --------
    >>> size(1_234), size(2_500_000_000)
    ('1.2 kB', '2.5 GB')
    """
    value, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.1f} {unit}"
