"""Contradictions between the wide rows of one file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from kvstats.log.adapters.release_row import FULL, ReleaseRow, is_gated

__all__ = ["REPEATS", "ReleaseChecks", "identical_arms"]

REPEATS = "repeats task, id and budget of line"
"""How the fault of a row begins that comes twice."""

MANY = 20
"""Arms that agree on fewer evicting rows may do so by chance."""


class ReleaseChecks:
    """What the rows of a file have said so far.

    Each row is held against those before it, so that a fault names the later line.
    """

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str, float | None, int | None], int] = {}
        self.inputs: dict[tuple[str, str], tuple[int, ReleaseRow]] = {}
        self.first: tuple[int, ReleaseRow] | None = None
        self.tau: tuple[int, float] | None = None
        self.lowest_open: tuple[float, int] | None = None
        self.highest_closed: tuple[float, int] | None = None

    def fault(self, number: int, row: ReleaseRow) -> str | None:
        """Say what a row contradicts, or take it as the truth for those after it."""
        fault = self.other_unit(row) or self.other_input(row) or self.other_gate(row)
        key = (row.task, row.input_id, row.budget, row.budget_tokens)
        if fault is None and key in self.rows:
            fault = f"{REPEATS} {self.rows[key]}"
        if fault is not None:
            return fault
        self.rows[key] = number
        self.inputs.setdefault((row.task, row.input_id), (number, row))
        self.first = self.first or (number, row)
        if row.tau is not None:
            self.tau = self.tau or (number, row.tau)
        if row.drop is not None and row.gate_open:
            self.lowest_open = min(self.lowest_open or (row.drop, number), (row.drop, number))
        elif row.drop is not None and row.gate_open is not None:
            self.highest_closed = max(self.highest_closed or (row.drop, number), (row.drop, number))
        return None

    def other_unit(self, row: ReleaseRow) -> str | None:
        """Say where a row has its budget in another unit than the file."""
        if self.first is None:
            return None
        line, first = self.first
        if (first.budget is None) == (row.budget is None):
            return None
        own, other = (
            ("fraction", "number of tokens")
            if row.budget_tokens is None
            else ("number of tokens", "fraction")
        )
        return f"has a budget that is a {own}, line {line} one that is a {other}"

    def other_input(self, row: ReleaseRow) -> str | None:
        """Say where a row tells another input than earlier rows with its task and id."""
        known = self.inputs.get((row.task, row.input_id))
        if known is None:
            return None
        line, before = known
        for name, column in (("drop", "drop"), ("context_tokens", "T"), ("references", "gold or answers")):
            then, now = getattr(before, name), getattr(row, name)
            if then != now:
                return f"has {column}={now!r} for the input that has {then!r} in line {line}"
        if before.arms.get(FULL) != row.arms.get(FULL):
            return f"has another full-cache run for its input than line {line}"
        return None

    def other_gate(self, row: ReleaseRow) -> str | None:
        """Say where a row follows another gate than the file, whose tau may not be told."""
        if row.tau is not None and self.tau is not None and row.tau != self.tau[1]:
            return f"has tau={row.tau!r}, line {self.tau[0]} has {self.tau[1]!r}"
        if row.gate_open is None or row.drop is None:
            return None
        state = f"gate_open={str(row.gate_open).lower()} at drop={row.drop!r}"
        if row.tau is not None and row.gate_open != (row.drop >= row.tau):
            return f"has {state}, but the gate is open from tau={row.tau!r}"
        if row.gate_open and self.highest_closed is not None and row.drop <= self.highest_closed[0]:
            drop, line = self.highest_closed
            return f"has {state}, but it is closed at {drop!r} in line {line}, so that no tau makes both"
        if not row.gate_open and self.lowest_open is not None and row.drop >= self.lowest_open[0]:
            drop, line = self.lowest_open
            return f"has {state}, but it is open at {drop!r} in line {line}, so that no tau makes both"
        return None


def identical_arms(rows: Sequence[ReleaseRow]) -> Iterator[tuple[str, str, int]]:
    """Yield pairs of arms that agree on all evicting rows, and on how many.

    Gated arms and the full cache are left out: they are made of other arms. So are arms with one outcome
    only, which agree whatever they are, and those that share fewer than 20 rows.
    """
    names = sorted({arm for row in rows for arm in row.arms if not is_gated(arm) and arm != FULL})
    for one, other in combinations(names, 2):
        both = [
            (row.arms[one], row.arms[other])
            for row in rows
            if row.budget != 1.0 and one in row.arms and other in row.arms
        ]
        outcomes = {a.score for a, _ in both}
        if (
            len(both) >= MANY
            and len(outcomes) > 1
            and all(a.score == b.score and a.prediction == b.prediction for a, b in both)
        ):
            yield one, other, len(both)
