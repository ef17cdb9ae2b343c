"""Taking conditions out of a filter."""

from __future__ import annotations

import re
from collections.abc import Set

from kvstats.expressions import check_expression

__all__ = ["without_conditions_on"]

TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[()]|\b(?:AND|OR|BETWEEN|CASE|END)\b""", re.IGNORECASE)


def without_conditions_on(columns: Set[str], where: str | None) -> str | None:
    """Return a filter without those of its conditions, joined by AND, that read any of some columns.

    Parameters
    ----------
    columns : set of str
        The columns.
    where : str or None
        An SQL expression.

    Returns
    -------
    str or None
        None where nothing is left.

    Examples
    --------
    >>> without_conditions_on({"score"}, "budget BETWEEN 0.2 AND 0.5 AND (score > 0 OR task = 'a')")
    'budget BETWEEN 0.2 AND 0.5'
    >>> without_conditions_on({"score"}, "score IS NOT NULL") is None
    True
    """
    if where is None:
        return None
    kept = [
        condition
        for condition in conjuncts(where)
        if not columns & set(check_expression("verify", "where", condition).meta.root_names())
    ]
    return " AND ".join(kept) or None


def conjuncts(where: str) -> list[str]:
    """Return the conditions that AND joins at the top of an expression; with an OR there it is one."""
    depth = between = start = 0
    found = []
    for token in TOKEN.finditer(where):
        word = token.group().upper()
        if word in ("(", "CASE"):
            depth += 1
        elif word in (")", "END"):
            depth -= 1
        elif word == "BETWEEN" and not depth:
            between += 1
        elif word == "AND" and not depth:
            if between:
                between -= 1
                continue
            found.append(where[start : token.start()].strip())
            start = token.end()
        elif word == "OR" and not depth:
            return [where]
    return [*found, where[start:].strip()] if found else [where]
