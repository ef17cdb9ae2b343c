"""Values of a table's cells as the types of the log contract: converted by rule or refused, never guessed."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from datetime import MAXYEAR, MINYEAR, datetime
from decimal import Decimal
from typing import Any, Literal, get_args

import msgspec

from kvstats.log.records import Time

__all__ = [
    "BUDGET_UNITS",
    "NEAR",
    "BudgetUnit",
    "CellFault",
    "budget_of",
    "full_marks",
    "moment",
    "real",
    "share",
    "text",
    "texts",
    "truth",
    "whole",
]

BudgetUnit = Literal["fraction_kept", "fraction_removed", "percent_kept", "percent_removed", "tokens"]
BUDGET_UNITS: tuple[BudgetUnit, ...] = get_args(BudgetUnit)

REAL = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", re.ASCII)
WHOLE = re.compile(r"\s*[-+]?\d+(\.0*)?\s*", re.ASCII)
TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}

EXACT = 2**53
"""Floats above may stand for several whole numbers."""

NEAR = 1e-6
"""A fraction that went through single precision is 0 or 1 where it is this near: 0.99999994 means 1."""


class CellFault(ValueError):
    """What is wrong with a value, worded to follow ``has column=value,``."""


def text(value: Any) -> str:
    """Return text as it is, and a whole number with all its digits.

    Examples
    --------
    >>> text("0012"), text(1344800117571260417)
    ('0012', '1344800117571260417')
    >>> text(12.0)
    Traceback (most recent call last):
    kvstats.log.cells.CellFault: which is a float and neither text nor a whole number
    """
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise CellFault(f"which is a {type(value).__name__} and neither text nor a whole number")


def texts(value: Any) -> list[str]:
    """Return a list of texts; one text is a list of one.

    Examples
    --------
    >>> texts("['a' 'b']"), texts(["a", 7])
    (["['a' 'b']"], ['a', '7'])
    """
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [text(item) for item in value]
    return [text(value)]


def real(value: Any) -> float:
    """Return a number; truth values are 0 and 1.

    Examples
    --------
    >>> real("0.5"), real(True), real("1e-3")
    (0.5, 1.0, 0.001)
    >>> real("N/A")
    Traceback (most recent call last):
    kvstats.log.cells.CellFault: which is no number
    """
    if isinstance(value, str) and not REAL.fullmatch(value):
        raise CellFault("which is no number")
    if not isinstance(value, str | int | float | Decimal):
        raise CellFault(f"which is a {type(value).__name__} and no number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise CellFault("which is no finite number")
    return number


def whole(value: Any) -> int:
    """Return a whole number, also one that is written with a decimal point; 1.9 is none.

    Examples
    --------
    >>> whole("480"), whole(480.0)
    (480, 480)
    >>> whole(1.9)
    Traceback (most recent call last):
    kvstats.log.cells.CellFault: which is no whole number
    """
    if isinstance(value, str) and WHOLE.fullmatch(value):
        return int(value.partition(".")[0])
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT:
        return int(value)
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)
    raise CellFault("which is no whole number")


def truth(value: Any) -> bool:
    """Return a truth value, also one that is written as 0 or 1.

    Examples
    --------
    >>> truth("True"), truth(0), truth(1.0)
    (True, False, True)
    >>> truth(0.5)
    Traceback (most recent call last):
    kvstats.log.cells.CellFault: which is neither true or 1 nor false or 0
    """
    if isinstance(value, str | bool | int | float | Decimal):
        known = TRUTH.get(str(value).strip().lower())
        if known is not None:
            return known
    raise CellFault("which is neither true or 1 nor false or 0")


def moment(value: Any) -> datetime:
    """Return a time that has a zone, from ISO 8601 or as it is.

    Examples
    --------
    >>> moment("2026-11-01T10:00:00Z").isoformat()
    '2026-11-01T10:00:00+00:00'
    >>> moment("2026-11-01")
    Traceback (most recent call last):
    kvstats.log.cells.CellFault: which is no time with a zone, such as 2026-11-01T10:00:00Z
    """
    try:
        time = msgspec.convert(value, Time)
    except msgspec.ValidationError as error:
        raise CellFault("which is no time with a zone, such as 2026-11-01T10:00:00Z") from error
    if not MINYEAR < time.year < MAXYEAR:
        # In another zone it may have no date.
        raise CellFault(f"which is in the year {time.year}")
    return time


def share(value: Any) -> float:
    """Return a fraction, 0 or 1 where it is as near as single precision."""
    number = real(value)
    return next((end for end in (0.0, 1.0) if abs(number - end) <= NEAR), number)


def budget_of(value: Any, unit: BudgetUnit) -> dict[str, float | int]:
    """Return a budget as the fields of a run: the fraction kept, or the number of tokens.

    Examples
    --------
    >>> budget_of("0.9", "fraction_removed"), budget_of(25, "percent_kept"), budget_of("512", "tokens")
    ({'budget': 0.1}, {'budget': 0.25}, {'budget_tokens': 512})
    >>> budget_of(50, "fraction_kept")
    Traceback (most recent call last):
    kvstats.log.cells.CellFault: which is no fraction from 0 to 1
    """
    if unit == "tokens":
        return {"budget_tokens": whole(value)}
    number = real(value)
    # In decimals, so that 1 - 0.9 is 0.1.
    exact = Decimal(repr(number))
    if unit.startswith("percent"):
        if 0 < number < 1:
            raise CellFault("which is under one percent, and may be a fraction")
        if not 0 <= number <= 100:
            raise CellFault("which is no percentage from 0 to 100")
        exact /= 100
    elif not 0 <= number <= 1 + NEAR:
        raise CellFault("which is no fraction from 0 to 1")
    kept = share(float(1 - exact if unit.endswith("removed") else exact))
    if kept == 0:
        raise CellFault("so that nothing is kept")
    return {"budget": kept}


def full_marks(score: float | None, scores: Collection[float]) -> bool | None:
    """Say whether a score is full marks, where those of its file are fractions of such.

    Examples
    --------
    >>> full_marks(1.0, [0.5, 1.0]), full_marks(0.5, [0.5, 1.0]), full_marks(1.0, [1.0, 27.5])
    (True, False, None)
    """
    return score == 1.0 if score is not None and all(0 <= one <= 1 for one in scores) else None
