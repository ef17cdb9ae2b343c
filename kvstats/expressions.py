"""SQL expressions that can read nothing but the columns of their frame."""

from __future__ import annotations

import re

import polars as pl

from kvstats.errors import InputError, nearest_name

__all__ = ["check_expression", "reads_other_rows"]

MAX_LENGTH = 2000
"""Characters of an expression; parsers recurse, and very long ones overflow the stack."""

# Quoted pieces. Letters before a quote (E'', R'') change what ends the text, so they are refused below.
QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")
WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")

SUBQUERY_WORDS = ("select", "from", "values", "table", "with")
CALL = re.compile(r"([A-Za-z_][A-Za-z_0-9]*|'')\s*\(")
AGGREGATES = frozenset(
    [
        *("avg", "count", "first", "last", "max", "median", "min", "quantile_cont", "quantile_disc"),
        *("stddev", "stdev", "sum", "var", "variance", "over"),
    ]
)
"""Functions whose value in a row depends on other rows."""

FUNCTIONS = frozenset(
    [
        # Words that stand before a bracket and call nothing.
        *("and", "any", "all", "as", "between", "case", "else", "end", "filter", "in", "is", "like", "ilike"),
        *("not", "or", "then", "when"),
        # Arithmetic; comparisons of several values; nulls; types.
        *(
            "abs",
            "ceil",
            "ceiling",
            "div",
            "exp",
            "floor",
            "ln",
            "log",
            "log10",
            "log1p",
            "log2",
            "mod",
            "pow",
        ),
        *("power", "round", "sign", "sqrt", "greatest", "least", "coalesce", "ifnull", "nullif"),
        *("cast", "try_cast", "char", "decimal", "float", "numeric", "varchar"),
        *AGGREGATES,
        # Text, none longer than what it is made of.
        *("char_length", "concat", "ends_with", "left", "length", "lower", "regexp_like", "right"),
        *("starts_with", "strpos", "substr", "trim", "upper"),
    ]
)
"""What may be called. Others may make text of any length, or may one day do more than compute."""

CLOCK_WORDS = ("now", "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp")


def check_expression(place: str, field: str, text: str) -> pl.Expr:
    """Parse an SQL expression that can read nothing but the columns of its frame.

    Parameters
    ----------
    place, field : str
        Where it stands, for messages: ``{file}:{line}`` and the name of the field, or the function that it
        was passed to and the argument.
    text : str
        The expression.

    Returns
    -------
    polars.Expr

    Raises
    ------
    InputError
        When it is no expression; when it has a subquery (whose table functions open files while it is
        being parsed), a comment, a name for its value, several values, a function that is not known to be
        harmless, or asks the clock.

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
    if found := re.search("[\u200b-\u200f\u2060-\u2064]", text):
        raise refuse(f"has the hidden character {found.group()!a}", "remove it")
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
    for name in CALL.findall(QUOTED.sub("''", text)):
        if name.lower() not in FUNCTIONS:
            called = "a function in quotes" if name == "''" else repr(name)
            raise refuse(f"calls {called}, which is not admitted", nearest_name(name.lower(), FUNCTIONS))
    if not expression.meta.undo_aliases().meta.eq(expression):
        raise refuse("ends with a word too many", "check the operators; a name for the value is not wanted")
    return expression


def reads_other_rows(text: str) -> bool:
    """Say whether an expression that was checked has an aggregate, which depends on other rows too.

    Examples
    --------
    >>> reads_other_rows("score >= AVG (score)"), reads_other_rows("task = 'max(a)'")
    (True, False)
    """
    return any(name.lower() in AGGREGATES for name in CALL.findall(QUOTED.sub("''", text)))


def bare(quoted: str) -> str:
    """Return a quoted piece with its content blanked, save backslashes, which can move its end."""
    return quoted[0] + ("\\" if "\\" in quoted else " ") + quoted[-1]
