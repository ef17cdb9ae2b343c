"""Declaring what the columns of a table mean, so that any table is a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kvstats.errors import InputError, nearest_name
from kvstats.log.cells import BUDGET_UNITS, BudgetUnit, CellFault, budget_of, text

__all__ = ["CONSTANTS", "OF_ARM", "Columns"]

OF_ROW = ("input_id", "task", "suite", "model", "condition", "seed", "budget", "n_prompt", "references")
"""Fields that all runs of a row share."""

OF_ARM = ("score", "success", "n_kept", "kept_fraction", "prediction", "error")
"""Fields that each arm of a row has for itself."""

OTHER = ("arm", "recorded_at", "drop")

CONSTANTS = ("suite", "model", "task", "arm", "condition", "budget")
"""What may be said once for all rows."""

FULL = "full"


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What the columns of a table mean.

    A row is a run, or, with `arms`, one run for each of several arms. Columns that are not declared are kept
    under ``extra``.

    Parameters
    ----------
    input_id : str
        Column of the input's id. Text, or a whole number that becomes text with all its digits; a float is
        an error, also one without decimals: it shows that some program took the ids for numbers.
    task, suite, model, condition : str, optional
        Columns of the rest of the input's key; text.
    arm : str, optional
        Column of the arm's name.
    score, success : str, optional
        Columns of a number, higher is better, and of a truth value (true, false, 0, 1). Where only `success`
        is declared, the score is 1 or 0.
    budget : str, optional
        Column of the budget.
    budget_unit : {"fraction_kept", "fraction_removed", "percent_kept", "percent_removed", "tokens"}
        What the budget is written in; required with `budget`. Tokens stay tokens: no fraction follows. Leave
        both out where nothing is evicted, as with quantization: its budget is null.
    n_prompt, n_kept, kept_fraction, seed, prediction, references, error, recorded_at : str, optional
        Columns of the fields of a run with these names. `references` holds lists, or one text.
    drop : str, optional
        Column of the input's D. It makes an input record of each input, with `n_prompt` as its tokens.
    signals : sequence of str
        Columns that are signals of the run, under their own names.
    arms : mapping of str to mapping of str to str
        For rows that hold several arms: by name of the arm, the columns of its `score`, `success`, `n_kept`,
        `kept_fraction`, `prediction` and `error`. Where `arm` is declared too, a row has a run of that arm
        besides, with the columns declared outside of `arms`.
    constants : mapping of str to str or float
        Suite, model, task, arm, condition or budget (fraction kept) of all rows, where no column has it.
    full_arm : str, default "full"
        How the table calls the full cache; it is named ``full`` in the log. Its budget and kept fraction are
        1. Where it is one of `arms`, rows that repeat it for the same input give one run.
    success_at : float, optional
        Score from which on a run is a success, where no column says so.
    na : sequence of str
        Texts, such as ``N/A``, that stand for a missing number or truth value.

    Raises
    ------
    InputError
        When a field is told twice or in an unknown way, no arm is told, or the unit of the budget is not.

    Notes
    -----
    Nothing is inferred from values: a cell that does not have its field's type is an error that names the
    row. An empty cell of CSV is a missing value, in `prediction` an empty answer.

    Examples
    --------
    A narrow table:

    >>> import kvstats as kv
    >>> columns = kv.Columns(input_id="id", task="task", arm="method", score="f1",
    ...     budget="ratio", budget_unit="fraction_removed", full_arm="none",
    ...     constants={"model": "llama", "suite": "longbench"})
    >>> sorted(columns.declared())
    ['f1', 'id', 'method', 'ratio', 'task']

    A wide one, with two arms in a row:

    >>> columns = kv.Columns(input_id="id", constants={"task": "qa", "model": "llama", "suite": "qa"},
    ...     arms={"full": {"score": "full_score"}, "kivi4": {"score": "quant_score"}})
    """

    input_id: str
    task: str | None = None
    suite: str | None = None
    model: str | None = None
    condition: str | None = None
    arm: str | None = None
    score: str | None = None
    success: str | None = None
    budget: str | None = None
    budget_unit: BudgetUnit | None = None
    n_prompt: str | None = None
    n_kept: str | None = None
    kept_fraction: str | None = None
    seed: str | None = None
    prediction: str | None = None
    references: str | None = None
    error: str | None = None
    recorded_at: str | None = None
    drop: str | None = None
    signals: Sequence[str] = ()
    arms: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    constants: Mapping[str, str | float] = field(default_factory=dict)
    full_arm: str = FULL
    success_at: float | None = None
    na: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in (*OF_ROW, *OF_ARM, *OTHER):
            column = getattr(self, name)
            if column is not None or name == "input_id":
                require_name(name, column)
        for name in ("signals", "na"):
            given = getattr(self, name)
            if isinstance(given, str) or not all(isinstance(item, str) for item in given):
                raise refusal(name, given, "is no sequence of texts", "pass a tuple of texts")
            object.__setattr__(self, name, tuple(given))
        object.__setattr__(self, "arms", {arm: dict(columns) for arm, columns in self.arms.items()})
        object.__setattr__(self, "constants", dict(self.constants))
        self.check_budget()
        self.check_constants()
        self.check_arms()

    def check_budget(self) -> None:
        """Refuse a budget without a known unit."""
        unit = self.budget_unit
        if unit is not None and unit not in BUDGET_UNITS:
            raise refusal("budget_unit", unit, "is unknown", nearest_name(str(unit), BUDGET_UNITS))
        if self.budget is not None and unit is None:
            remedy = f"pass budget_unit, one of {', '.join(BUDGET_UNITS)}"
            raise refusal("budget", self.budget, "has no unit", remedy)
        if self.budget is None and unit is not None:
            raise refusal("budget_unit", unit, "is the unit of no column", "pass budget too")

    def check_constants(self) -> None:
        """Refuse constants that are unknown, told by a column too, or of a wrong type."""
        for name, value in self.constants.items():
            if name not in CONSTANTS:
                remedy = nearest_name(str(name), CONSTANTS)
                raise refusal("constants", self.constants, f"has {name!r}", remedy)
            if getattr(self, name) is not None:
                fault = f"has {name!r}, which the column {getattr(self, name)!r} tells"
                raise refusal("constants", self.constants, fault, "leave one of them out")
            try:
                if name == "budget":
                    budget_of(value, "fraction_kept")
                elif not text(value):
                    raise CellFault("which is empty")
            except CellFault as fault:
                wording = f"has {name}={value!r}, {fault}"
                raise refusal("constants", self.constants, wording, "correct it") from fault

    def check_arms(self) -> None:
        """Refuse arms without columns, and columns that may be of any of several arms."""
        for arm, columns in self.arms.items():
            require_name("arms", arm)
            for name, column in columns.items():
                if name not in OF_ARM:
                    fault = f"has {name!r} of arm {arm!r}"
                    raise refusal("arms", self.arms, fault, nearest_name(str(name), OF_ARM))
                require_name(name, column)
            if not columns:
                raise refusal("arms", self.arms, f"has no column of arm {arm!r}", "pass its score")
        if FULL in self.arms and self.full_arm != FULL:
            fault = f"names {FULL!r} beside {self.full_arm!r} as the full cache"
            raise refusal("arms", self.arms, fault, "rename it, or leave full_arm out")
        if self.arms and not self.has_own_arm:
            for name in (*OF_ARM, "signals"):
                if getattr(self, name):
                    fault = "is a column of one arm, and which one is not told"
                    raise refusal(name, getattr(self, name), fault, "move it into arms, or pass arm too")

    @property
    def has_own_arm(self) -> bool:
        """Whether an arm of each row is told besides those of `arms`."""
        return self.arm is not None or "arm" in self.constants

    def declared(self) -> dict[str, str]:
        """Return the columns that have a meaning, each with a field that it is."""
        found = {
            column: name for name in (*OF_ROW, *OF_ARM, *OTHER) if (column := getattr(self, name)) is not None
        }
        found |= dict.fromkeys(self.signals, "signals")
        return found | {column: name for columns in self.arms.values() for name, column in columns.items()}

    def untold(self) -> list[str]:
        """Return the parts of the key that neither a column nor a constant tells."""
        names = ("suite", "model", "task") if self.arms else ("suite", "model", "task", "arm")
        return [name for name in names if getattr(self, name) is None and name not in self.constants]

    def check_header(self, header: Sequence[str], source: object) -> None:
        """Raise `InputError` where a declared column is not in the table."""
        for column, name in self.declared().items():
            if column not in header:
                fault = f"has no column {column!r}, declared as {name}"
                raise InputError(f"{source}: {fault}; {nearest_name(column, header)}")


def require_name(argument: str, value: Any) -> None:
    if not isinstance(value, str) or not value:
        raise refusal(argument, value, "is no name", "pass text that is not empty")


def refusal(argument: str, value: Any, fault: str, remedy: str) -> InputError:
    return InputError.argument("Columns", argument, value, fault, remedy)
