"""Rules of registrations: conditions on the rows of a result, checked before any data is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.expressions import check_expression

__all__ = ["Rule", "parse_rule"]

VALUE = "__value__"


@dataclass(frozen=True)
class Rule:
    """A condition on the rows of a result, and where it stands."""

    place: str
    field: str
    text: str
    expression: pl.Expr

    @property
    def columns(self) -> frozenset[str]:
        """Names of the columns that it reads."""
        return frozenset(self.expression.meta.root_names())

    def values(self, frame: pl.DataFrame) -> list[bool | None]:
        """Return true, false or null for each row; an aggregate is the same for every row."""
        return self.evaluated(frame)[VALUE].to_list()

    def evaluated(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the frame with the rule's value, or raise `InputError` where it is no condition on it."""
        try:
            # NaN would be larger than any threshold.
            marked = frame.with_columns(pl.selectors.float().fill_nan(None)).with_columns(
                self.expression.alias(VALUE)
            )
        except pl.exceptions.PolarsError as error:
            raise InputError.argument(
                self.place,
                self.field,
                self.text,
                f"cannot be computed ({str(error).partition(chr(10))[0]})",
                "compare numbers with numbers and text with 'text'",
            ) from error
        if marked.schema[VALUE] != pl.Boolean:
            raise InputError.argument(
                self.place,
                self.field,
                self.text,
                f"is not true or false but {marked.schema[VALUE]}",
                "write a comparison",
            )
        return marked


def parse_rule(
    place: str,
    field: str,
    text: str,
    columns: Mapping[str, pl.DataType | None],
    elsewhere: Mapping[str, str] | None = None,
) -> Rule:
    """Parse a rule and check it against the columns that it may read.

    Parameters
    ----------
    place, field, text : str
        As for `check_expression`.
    columns : mapping of str to polars.DataType or None
        The columns of the result, with their types as far as known.
    elsewhere : mapping of str to str, optional
        Columns that the result has not, each with what would give it.

    Returns
    -------
    Rule

    Raises
    ------
    InputError
        When the expression is refused, names an unknown column or none at all, or is neither true nor
        false.

    Examples
    --------
    >>> parse_rule("a.yaml:9", "supported", "lo > 0", {"low": pl.Float64(), "high": pl.Float64()})
    Traceback (most recent call last):
    ...
    kvstats.errors.InputError: a.yaml:9: supported='lo > 0' names the unknown column 'lo'; did you mean 'low'?
    """
    rule = Rule(place, field, text, check_expression(place, field, text))
    if not rule.columns:
        raise InputError.argument(
            place, field, text, "names no column of the result", "write a condition such as 'low > 0'"
        )
    for name in sorted(rule.columns):
        if name not in columns:
            remedy = (elsewhere or {}).get(name) or nearest_name(name, columns)
            raise InputError.argument(place, field, text, f"names the unknown column {name!r}", remedy)
    schema = {name: kind for name in rule.columns if (kind := columns[name]) is not None}
    if len(schema) == len(rule.columns):
        rule.evaluated(pl.DataFrame(schema=schema))
    return rule
