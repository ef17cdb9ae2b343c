"""SQL expressions of registrations, checked before any data is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from kvstats.errors import InputError, nearest_name

__all__ = ["Rule", "check_expression", "parse_rule"]

MAX_LENGTH = 2000
"""Characters of an expression; parsers recurse, and very long ones overflow the stack."""

# Quoted pieces. Letters before a quote (E'', R'') change what ends the text, so they are refused below.
QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")
WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")

SUBQUERY_WORDS = ("select", "from", "values", "table", "with")
CLOCK_WORDS = ("now", "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp")

VALUE = "__value__"


def check_expression(place: str, field: str, text: str) -> pl.Expr:
    """Parse an SQL expression that can read nothing but the columns of its frame.

    Parameters
    ----------
    place, field : str
        Where it stands, for messages: ``{file}:{line}`` and the name of the field.
    text : str
        The expression.

    Returns
    -------
    polars.Expr

    Raises
    ------
    InputError
        When it is no expression; when it has a subquery (whose table functions open files while it is
        being parsed), a comment, a name for its value, several values, or asks the clock.

    Examples
    --------
    >>> check_expression("a.yaml:3", "where", "budget < 1 AND task = 'qa'").meta.root_names()
    ['budget', 'task']
    >>> check_expression("a.yaml:3", "where", "EXISTS (SELECT 1)")
    Traceback (most recent call last):
    ...
    kvstats.errors.InputError: a.yaml:3: where='EXISTS (SELECT 1)' has a subquery ('select'); use only columns
    """

    def refuse(fault: str, remedy: str) -> InputError:
        return InputError.argument(place, field, text, fault, remedy)

    if len(text) > MAX_LENGTH:
        raise InputError(
            f"{place}: {field} has {len(text):,} characters; an expression has at most {MAX_LENGTH:,}"
        )
    if found := re.search(r"[\\$`;#{}]|--|/\*|[A-Za-z0-9_&]'", QUOTED.sub(lambda m: bare(m.group()), text)):
        raise refuse(f"has {found.group()!r}", "write one expression of columns, numbers and 'text'")
    words = [word.lower() for word in WORD.findall(QUOTED.sub(" ", text))]
    for word in words:
        if word in SUBQUERY_WORDS:
            raise refuse(f"has a subquery ({word!r})", "use only columns")
        if word in CLOCK_WORDS:
            raise refuse(f"asks the clock ({word!r})", "a rule must mean the same at any time")
    try:
        expression = pl.sql_expr(text)
    except pl.exceptions.PolarsError as error:
        raise refuse(
            f"is no SQL expression ({str(error).partition(chr(10))[0]})",
            "write a condition such as \"low > 0 AND task = 'qa'\"",
        ) from error
    if expression.meta.has_multiple_outputs():
        raise refuse("has several values", "write one condition")
    if not expression.meta.undo_aliases().meta.eq(expression):
        raise refuse("ends with a word too many", "check the operators; a name for the value is not wanted")
    return expression


def bare(quoted: str) -> str:
    """Return a quoted piece with its content blanked, save backslashes, which can move its end."""
    return quoted[0] + ("\\" if "\\" in quoted else " ") + quoted[-1]


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
            marked = frame.with_columns(self.expression.alias(VALUE))
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
