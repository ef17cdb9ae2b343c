"""What stands below a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kvstats.inference.result import Result
from kvstats.report.plots.wording import interval_text, size_text, undefined_text
from kvstats.table_layout import decimals

__all__ = ["OUTCOMES", "caption", "classes_text", "compared_text", "estimate_text"]

OUTCOMES = {
    "failure": "own failure",
    "induced_failure": "induced failure",
    "attribution": "attribution",
}
"""Kinds of failure, and what figures call them."""


def caption(
    sentences: str, *results: Result, drawn: str, where: str | None, hollow: str = "Hollow marks"
) -> str:
    """Return the text below a figure.

    Parameters
    ----------
    sentences : str
        What is drawn.
    *results : Result
        What the drawn estimates come from.
    drawn : str
        As what their intervals are drawn, such as ``Bands``.
    where : str or None
        The condition on the rows.
    hollow : str
        How what is undefined or without interval is drawn.
    """
    texts = [
        sentences,
        f"{drawn}: {interval_text(*results)}.",
        f"{size_text(*results)}.",
        "" if where is None else f"Rows where {where}.",
        undefined_text([result.frame for result in results]).replace("Hollow marks", hollow),
    ]
    return " ".join(text for text in texts if text)


def estimate_text(row: Mapping[str, Any]) -> str:
    """Return an estimate with its interval as text, or why there is none.

    Examples
    --------
    >>> estimate_text({"estimate": 0.294, "low": 0.231, "high": 0.352, "status": "ok"})
    '0.29 [0.23, 0.35]'
    >>> estimate_text({"estimate": None, "low": None, "high": None, "status": "no rows"})
    'undefined (no rows)'
    """
    estimate, low, high = row["estimate"], row["low"], row["high"]
    if estimate is None:
        return "undefined" if row["status"] == "undefined" else f"undefined ({row['status']})"
    places = decimals(low, high)
    if low is None:
        return f"{estimate:.{places}f} (no interval: {row['status']})"
    return f"{estimate:.{places}f} [{low:.{places}f}, {high:.{places}f}]"


def compared_text(within: str | Sequence[str] | None) -> str:
    """Return which runs an area compares.

    Examples
    --------
    >>> compared_text(None), compared_text(["task", "budget"])
    ('all runs compared', 'compared within task, budget')
    """
    groups = [within] if isinstance(within, str) else list(within or [])
    return f"compared within {', '.join(groups)}" if groups else "all runs compared"


def classes_text(table: Result) -> str:
    """Return how many runs each outcome of a signal panel is about, and the share of them that have it."""
    rows = table.frame.filter(quantity="share").sort("outcome").iter_rows(named=True)
    texts = [
        f"{OUTCOMES.get(row['outcome'], row['outcome'])} in "
        + (f"{row['estimate']:.1%}" if row["estimate"] is not None else "none")
        + f" of {row['n']:,} runs"
        for row in rows
    ]
    text = "; ".join(texts)
    return f"{text[0].upper()}{text[1:]}."
