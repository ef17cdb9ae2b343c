"""Rules that are one comparison of a column with a number."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Comparison", "comparison_of", "two_sided_limit"]

NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
OPERATOR = r"<=|>=|<|>|=="
COLUMN_FIRST = re.compile(rf"\s*([a-z_]+)\s*({OPERATOR}|=)\s*({NUMBER})\s*")
NUMBER_FIRST = re.compile(rf"\s*({NUMBER})\s*({OPERATOR}|=)\s*([a-z_]+)\s*")
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}


@dataclass(frozen=True)
class Comparison:
    """A column, how it is compared, and with what.

    Attributes
    ----------
    column : str
        Such as ``low``.
    operator : {"<", "<=", "==", ">=", ">"}
        The column is on its left.
    value : float
        The number.
    """

    column: str
    operator: str
    value: float

    @property
    def upwards(self) -> bool | None:
        """Whether large values satisfy it; None where neither large nor small ones do."""
        return None if self.operator == "==" else self.operator in (">", ">=")


def comparison_of(rule: str) -> Comparison | None:
    """Return the comparison that a rule consists of, or None where it is anything else.

    Examples
    --------
    >>> comparison_of("low >= 0.05"), comparison_of("0 > high")
    (Comparison(column='low', operator='>=', value=0.05), Comparison(column='high', operator='<', value=0.0))
    >>> comparison_of("low > 0 AND estimate > 0.1")
    """
    if found := COLUMN_FIRST.fullmatch(rule):
        column, operator, number = found.groups()
        operator = "==" if operator == "=" else operator
    elif found := NUMBER_FIRST.fullmatch(rule):
        number, operator, column = found.groups()
        operator = MIRRORED["==" if operator == "=" else operator]
    else:
        return None
    return Comparison(column, operator, float(number))


def two_sided_limit(rule: str) -> float | None:
    """Return the value that an interval must exclude on either side, or None where a rule is another.

    Examples
    --------
    >>> two_sided_limit("low > 0 OR high < 0"), two_sided_limit("low > 0 OR high < 1")
    (0.0, None)
    """
    parts = re.split(r"\bOR\b", rule, flags=re.IGNORECASE)
    compared = [comparison_of(part) for part in parts]
    if len(compared) != 2 or None in compared:
        return None
    sides = {part.column: part for part in compared if part is not None}
    if set(sides) != {"low", "high"} or not sides["low"].upwards or sides["high"].upwards is not False:
        return None
    return sides["low"].value if sides["low"].value == sides["high"].value else None
