"""Rows of a table as records, by what was declared of its columns."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from kvstats.log.adapters.reader import Labels
from kvstats.log.cells import NEAR, CellFault, budget_of, moment, real, share, text, texts, truth, whole
from kvstats.log.declared_columns import OF_ARM, Columns
from kvstats.log.lines import Reject
from kvstats.log.records import INPUT_KEY, RUN_KEY, InputRecord, Record, RunRecord

__all__ = ["DeclaredRows"]

FULL = "full"

CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "score": real,
    "success": truth,
    "n_prompt": whole,
    "n_kept": whole,
    "kept_fraction": share,
    "seed": whole,
    "drop": real,
    "signals": real,
    "prediction": text,
    "references": texts,
    "error": text,
    "recorded_at": moment,
}
"""How each field's cells become its type; other fields are names."""

NUMBERS = ("score", "success", "n_prompt", "n_kept", "kept_fraction", "seed", "drop", "budget", "signals")
"""Fields for which texts such as ``N/A`` may be declared to be missing."""

REPEATED = "remove one of them, or pass on_duplicate='first' to list the later in log.rejects"
DAMAGED = "which looks like a whole number that some program took for a float"


class Repeated(CellFault):
    """A row that tells a run which an earlier row told."""


class DeclaredRows:
    """Makes records of the rows of one table.

    Parameters
    ----------
    columns : Columns
        What they mean.
    labels : Labels
        What neither columns nor constants say.
    delimited : bool
        Whether cells are text that may stand for anything, as in CSV: the empty one is a missing value.
    noun : {"line", "row"}
        What the numbers of rows count.
    """

    def __init__(self, columns: Columns, labels: Labels, *, delimited: bool, noun: str) -> None:
        self.columns, self.delimited, self.noun = columns, delimited, noun
        self.constants: dict[str, Any] = {
            name: getattr(labels, name)
            for name in ("suite", "model", "task", "arm", "condition", "budget")
            if getattr(labels, name) is not None
        } | dict(columns.constants)
        self.own_arm = columns.has_own_arm or not columns.arms
        self.full_arms = {columns.full_arm, FULL}
        self.full_beside = not self.full_arms.isdisjoint(columns.arms)
        self.declared = columns.declared()
        self.seen: dict[Hashable, tuple[int, InputRecord | RunRecord | None]] = {}
        """By key, the number of the row that told a record, and the record if a later row may repeat it."""

    def records(self, rows: Iterable[tuple[int, Mapping[str, Any]] | Reject]) -> Iterator[Record | Reject]:
        """Yield the records of each row, or what is wrong with it."""
        for row in rows:
            if isinstance(row, Reject):
                yield row
                continue
            number, cells = row
            # A row is read whole or not at all.
            try:
                yield from self.records_of(number, cells)
            except Repeated as fault:
                yield Reject(number, str(fault), beginning(cells), REPEATED, duplicate=True)
            except CellFault as fault:
                yield Reject(number, str(fault), beginning(cells))
            except msgspec.ValidationError as error:
                yield Reject(number, f"breaks the contract of its records ({error})", beginning(cells))

    def records_of(self, number: int, cells: Mapping[str, Any]) -> list[InputRecord | RunRecord]:
        """Return the records of a row that no earlier row told."""
        shared = self.shared(cells)
        made: list[InputRecord | RunRecord] = []
        if self.columns.drop is not None:
            key = {name: shared.get(name) for name in INPUT_KEY}
            drop = self.cell(cells, "drop", self.columns.drop)
            fields = {**key, "context_tokens": shared.get("n_prompt"), "drop": drop}
            made.append(msgspec.convert(fields, InputRecord))
        shared["recorded_at"] = self.cell(cells, "recorded_at", self.columns.recorded_at)
        extra = {
            name: value
            for name, value in cells.items()
            if name not in self.declared and not (self.delimited and value == "")
        }
        runs = []
        if self.own_arm:
            arm = shared.pop("arm")
            own = {
                name: self.cell(cells, name, column)
                for name in OF_ARM
                if (column := getattr(self.columns, name)) is not None
            }
            own["signals"] = {name: self.cell(cells, "signals", name) for name in self.columns.signals}
            runs.append(self.run(arm, shared, own, extra))
        others = self.columns.arms.keys() - self.full_arms
        for arm, columns in self.columns.arms.items():
            figures = {name: self.cell(cells, name, column) for name, column in columns.items()}
            alone = not self.own_arm and (arm in others or not others)
            runs.append(self.run(arm, shared, figures, extra if alone else {}))
        names = [run.arm for run in runs]
        if len(set(names)) < len(names):
            raise CellFault(f"has the arm {max(names, key=names.count)!r} twice")
        new = [record for record in (*made, *runs) if self.is_new(record)]
        for record in new:
            self.seen[key_of(record)] = (number, record if self.may_repeat(record) else None)
        return new

    def shared(self, cells: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields that all runs of a row have in common, and the name of its own arm."""
        columns = self.columns
        fields: dict[str, Any] = {k: v for k, v in self.constants.items() if k != "budget"}
        for name in (*INPUT_KEY, "arm"):
            column = getattr(columns, name)
            if column is None:
                continue
            value = self.cell(cells, name, column)
            if name == "input_id" and self.delimited and value is not None:
                digits, point, zeros = value.partition(".")
                if point and digits.isdecimal() and zeros and not zeros.strip("0"):
                    raise CellFault(f"has {column}={value!r}, {DAMAGED}")
            if not value and (name != "condition" or value == ""):
                raise CellFault(f"has no {name} (column {column!r})")
            fields[name] = value
        for name in ("n_prompt", "seed", "references"):
            value = self.cell(cells, name, getattr(columns, name))
            if value is not None:
                fields[name] = value
        return fields | self.budget(cells)

    def budget(self, cells: Mapping[str, Any]) -> dict[str, Any]:
        """Return the budget of a row as fields of its runs."""
        column, unit = self.columns.budget, self.columns.budget_unit
        if column is None or unit is None:
            return budget_of(self.constants["budget"], "fraction_kept") if "budget" in self.constants else {}
        value = cells.get(column)
        if self.missing("budget", value):
            return {}
        try:
            return dict(budget_of(value, unit))
        except CellFault as fault:
            raise CellFault(f"has {column}={value!r} in unit {unit}, {fault}") from fault

    def cell(self, cells: Mapping[str, Any], name: str, column: str | None) -> Any:
        """Return a cell as its field's type; None where it is missing."""
        value = None if column is None else cells.get(column)
        if self.missing(name, value):
            return "" if name == "prediction" and value is not None else None
        conversion: Callable[[Any], Any] = CONVERSIONS.get(name, text)
        try:
            return conversion(value)
        except CellFault as fault:
            hint = " (declare it in na if it stands for a missing one)" if name in NUMBERS else ""
            raise CellFault(
                f"has {column}={value!r}, {fault}{hint if isinstance(value, str) else ''}"
            ) from fault

    def missing(self, name: str, value: Any) -> bool:
        """Say whether a cell holds nothing."""
        if value is None or (self.delimited and value == ""):
            return True
        return name in NUMBERS and isinstance(value, str) and value in self.columns.na

    def run(self, arm: str, shared: dict[str, Any], own: dict[str, Any], extra: dict[str, Any]) -> RunRecord:
        """Make a run of an arm."""
        run = {"extra": extra, **shared, **{name: value for name, value in own.items() if value is not None}}
        run["arm"] = arm
        score, success = run.get("score"), run.get("success")
        if score is None and success is not None and "score" not in own:
            run["score"] = float(success)
        if success is None and score is not None and self.columns.success_at is not None:
            run["success"] = score >= self.columns.success_at - NEAR
        if arm in self.full_arms:
            self.whole_cache(run)
        return msgspec.convert(run, RunRecord)

    def whole_cache(self, run: dict[str, Any]) -> None:
        """Say of a run of the full cache what is true of any."""
        if not self.full_beside and run.get("budget", 1.0) != 1.0:
            raise CellFault(f"has a budget of {run['budget']!r} for the full cache, which keeps all")
        if run.get("kept_fraction", 1.0) != 1.0:
            raise CellFault(f"has kept_fraction={run['kept_fraction']!r}, and the full cache keeps all")
        run |= {"arm": FULL, "budget": 1.0, "kept_fraction": 1.0}
        run.pop("budget_tokens", None)
        if run.get("n_prompt") is not None:
            run.setdefault("n_kept", run["n_prompt"])
        if self.full_beside:
            # One full cache stands beside runs of all seeds.
            run.pop("seed", None)

    def may_repeat(self, record: InputRecord | RunRecord) -> bool:
        """Say whether later rows may tell a record again: an input, and the full cache beside other arms."""
        return isinstance(record, InputRecord) or (self.full_beside and record.arm == FULL)

    def is_new(self, record: InputRecord | RunRecord) -> bool:
        """Say whether no earlier row told a record.

        Raises
        ------
        Repeated, CellFault
            When one told it that should not, or told something else.
        """
        number, before = self.seen.get(key_of(record), (0, None))
        if number == 0:
            return True
        if isinstance(record, RunRecord) and before is None:
            what = f"input {record.input_id!r}, arm {record.arm!r}"
            raise Repeated(f"repeats the run of {self.noun} {number}: {what}")
        if before is not None and comparable(before) != comparable(record):
            what = "input" if isinstance(record, InputRecord) else "full-cache run"
            raise CellFault(f"tells another {what} of {record.input_id!r} than {self.noun} {number}")
        return False


def beginning(cells: Mapping[str, Any]) -> str:
    return repr(dict(cells))[:200]


def key_of(record: InputRecord | RunRecord) -> Hashable:
    key = INPUT_KEY if isinstance(record, InputRecord) else RUN_KEY
    return (type(record), *(getattr(record, name) for name in key))


def comparable(record: InputRecord | RunRecord) -> InputRecord | RunRecord:
    """Return a record without what may differ between rows that tell it."""
    return msgspec.structs.replace(record, extra={}, recorded_at=None)
