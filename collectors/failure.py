"""What a log holds of an input that could not be run."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from collectors.config import StudyPlan
from collectors.units import Unit, planned_rows
from kvstats.log.records import InputRecord, Record, RunRecord

__all__ = ["error_of", "error_text", "failed_block"]

MOST_CHARACTERS = 500


def error_text(error: BaseException) -> str:
    r"""Name an exception in one line: its type, and the first 500 characters of its message.

    Examples
    --------
    >>> error_text(ValueError("too\n  long"))
    'ValueError: too long'
    >>> error_text(MemoryError())
    'MemoryError'
    """
    message = " ".join(str(error).split())[:MOST_CHARACTERS]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def failed_block(plan: StudyPlan, unit: Unit, error: str) -> list[RunRecord | InputRecord]:
    """Make the records of a unit that failed: each planned run with its error, and the bare input last.

    Parameters
    ----------
    plan : StudyPlan
        The plan.
    unit : Unit
        What failed.
    error : str
        Why, see `error_text`.
    """
    now = datetime.now(UTC)
    key = {
        "suite": plan.suite,
        "model": plan.model,
        "task": unit.task,
        "input_id": unit.input_id(plan.seed),
        "condition": unit.condition,
        "recorded_at": now,
    }
    runs = [
        RunRecord(**key, arm=row.arm, budget=row.budget, seed=row.seed, error=error)
        for row in planned_rows(plan, unit.condition)
    ]
    return [*runs, InputRecord(**key)]


def error_of(block: Iterable[Record]) -> str | None:
    """Return the error that a block of records holds; None when all its runs went through."""
    errors = (record.error for record in block if isinstance(record, RunRecord))
    return next((error for error in errors if error is not None), None)
