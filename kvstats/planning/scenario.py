"""Scenarios: everything that decides what a simulated log looks like, checked."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any

from kvstats.errors import InputError
from kvstats.log.frames import RUN_SCHEMA
from kvstats.planning.rates import Rate, rate_at

__all__ = ["DEFAULT_SIGNALS", "Cell", "Scenario"]

FUNCTION = "simulate_log"

DEFAULT_SIGNALS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"certificate": (0.75, 0.5), "logprob": (0.4, 0.25)}
)
"""A certificate that knows what eviction broke, and a log-probability that mostly knows a lost input."""

DIMENSIONS = {
    "model": "models",
    "task": "tasks",
    "condition": "conditions",
    "arm": "arms",
    "budget": "budgets",
}


@dataclass(frozen=True)
class Cell:
    """The rates of one arm at one budget, for one model, task and condition.

    Attributes
    ----------
    model, task, condition, arm, budget
        Where.
    accuracy : float
        Share of full-cache runs that succeed.
    harm : float
        Share of pairs in which the full cache succeeds and the arm fails.
    recovery : float
        Share of pairs in which the full cache fails and the arm succeeds.
    """

    model: str
    task: str
    condition: str | None
    arm: str
    budget: float
    accuracy: float
    harm: float
    recovery: float

    @property
    def induced(self) -> float:
        """Probability of a failure of the arm given a success of the full cache."""
        return self.harm / self.accuracy if self.accuracy else 0.0

    @property
    def recovered(self) -> float:
        """Probability of a success of the arm given a failure of the full cache."""
        return self.recovery / (1 - self.accuracy) if self.accuracy < 1 else 0.0


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """The options of `simulate_log`, which documents them; names are sorted, budgets ascending."""

    seed: int
    suite: str
    models: Sequence[str]
    tasks: Sequence[str]
    conditions: Sequence[str | None]
    arms: Sequence[str]
    budgets: Sequence[float]
    inputs: int
    accuracy: Rate
    harm: Rate
    recovery: Rate
    intraclass_correlation: float
    signals: Mapping[str, tuple[float, float]]
    fragile: float
    drop_separation: float
    missing: Rate
    cells: int
    coverage: float
    rank_correlation: float
    delta: float
    context_tokens: int

    def __post_init__(self) -> None:
        for argument in ("models", "tasks", "conditions", "arms"):
            object.__setattr__(self, argument, as_names(argument, getattr(self, argument)))
        if "full" in self.arms:
            raise fault("arms", "full", "is the arm of the full cache, which is always there", "leave it out")
        if not isinstance(self.suite, str) or not self.suite:
            raise fault("suite", self.suite, "is not a name", "pass a text such as 'simulated'")
        object.__setattr__(self, "budgets", as_budgets(self.budgets))
        for argument, least in (("seed", 0), ("inputs", 1), ("cells", 0), ("context_tokens", 1)):
            number = getattr(self, argument)
            if isinstance(number, bool) or not isinstance(number, Integral) or number < least:
                raise fault(argument, number, f"is not a whole number of at least {least}", "pass one")
        self._check_numbers()
        self._check_signals()
        object.__setattr__(self, "signals", dict(sorted(self.signals.items())))
        # Every rate is looked up once, so that a fault shows before anything is drawn.
        for group in self.groups():
            self.missing_at(*group, "full")
            for arm in self.arms:
                self.missing_at(*group, arm)
                self.cells_of(*group, arm)

    def _check_numbers(self) -> None:
        for argument, low, high in (
            ("intraclass_correlation", 0, 1),
            ("fragile", 0, 1),
            ("drop_separation", -10, 10),
        ):
            number = getattr(self, argument)
            if not is_real(number) or not low <= number <= high:
                raise fault(argument, number, f"is not in [{low}, {high}]", "pass a number in it")
        for argument, low in (("coverage", 0), ("rank_correlation", -1), ("delta", 0)):
            number = getattr(self, argument)
            if not is_real(number) or not low < number < 1:
                raise fault(argument, number, f"is not between {low} and 1", "pass a number in between")

    def _check_signals(self) -> None:
        for name, areas in self.signals.items():
            if not isinstance(name, str) or not name or name in {*RUN_SCHEMA, "drop"}:
                raise fault("signals", name, "cannot name a signal of runs", "choose another name")
            pair = isinstance(areas, Sequence) and len(areas) == 2
            if not pair or not all(is_real(area) and 0 < area < 1 for area in areas):
                raise fault(
                    "signals",
                    {name: areas},
                    "is not a pair of areas between 0 and 1",
                    "pass the areas for induced and for inherent failures, such as (0.75, 0.5)",
                )

    def groups(self) -> Iterator[tuple[str, str, str | None]]:
        """Yield each model, task and condition."""
        yield from itertools.product(self.models, self.tasks, self.conditions)

    def cells_of(self, model: str, task: str, condition: str | None, arm: str) -> list[Cell]:
        """Return the rates of an arm at all budgets."""
        found = []
        for budget in self.budgets:
            place = {"model": model, "task": task, "condition": condition, "arm": arm, "budget": budget}
            cell = Cell(
                model,
                task,
                condition,
                arm,
                budget,
                self.accuracy_at(model, task, condition),
                rate_at(FUNCTION, "harm", self.harm, self._names(*DIMENSIONS), place),
                rate_at(FUNCTION, "recovery", self.recovery, self._names(*DIMENSIONS), place),
            )
            if cell.harm > cell.accuracy:
                raise fault(
                    "harm",
                    cell.harm,
                    f"is above the accuracy of the full cache, {cell.accuracy}",
                    "only a run whose full-cache twin succeeds can be harmed: lower it",
                )
            if cell.recovery > 1 - cell.accuracy:
                raise fault(
                    "recovery",
                    cell.recovery,
                    f"is above the share of failures of the full cache, {1 - cell.accuracy:.6g}",
                    "only a run whose full-cache twin fails can recover: lower it",
                )
            found.append(cell)
        return found

    def accuracy_at(self, model: str, task: str, condition: str | None) -> float:
        """Return the share of full-cache runs that succeed."""
        place = {"model": model, "task": task, "condition": condition}
        return rate_at(FUNCTION, "accuracy", self.accuracy, self._names(*place), place)

    def missing_at(self, model: str, task: str, condition: str | None, arm: str) -> float:
        """Return the share of inputs that an arm was not run on."""
        place = {"model": model, "task": task, "condition": condition, "arm": arm}
        names = {**self._names("model", "task", "condition"), "arm": ("full", *self.arms)}
        return rate_at(FUNCTION, "missing", self.missing, names, place)

    def _names(self, *dimensions: str) -> dict[str, Sequence[Any]]:
        return {name: getattr(self, DIMENSIONS[name]) for name in dimensions}

    def settings(self) -> dict[str, Any]:
        """Return the options as they are recorded in a study record."""
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}


def as_names(argument: str, values: object) -> tuple[Any, ...]:
    """Return different names, sorted; a condition may be None."""
    names = list(values) if isinstance(values, Sequence) and not isinstance(values, str) else []
    known = [name for name in names if argument != "conditions" or name is not None]
    if not names or not all(isinstance(name, str) and name for name in known) or len(set(names)) < len(names):
        raise fault(argument, values, "is not a list of different names", "pass at least one, such as ['a']")
    return tuple(sorted(names, key=lambda name: (name is not None, name or "")))


def as_budgets(values: object) -> tuple[float, ...]:
    """Return different kept fractions, ascending."""
    budgets = list(values) if isinstance(values, Sequence) else []
    shares = all(is_real(budget) and 0 < budget < 1 for budget in budgets)
    if not budgets or not shares or len(set(budgets)) < len(budgets):
        raise fault("budgets", values, "are not different kept fractions", "pass some between 0 and 1")
    return tuple(sorted(map(float, budgets)))


def is_real(value: object) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def plain(value: Any) -> Any:
    """Return a value as JSON holds it: keys as text, sequences as lists, numbers as Python's own."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def fault(argument: str, value: object, what: str, remedy: str) -> InputError:
    """Build an error in the name of `simulate_log`."""
    return InputError.argument(FUNCTION, argument, value, what, remedy)
