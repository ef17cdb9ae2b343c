"""What figures say: names of axes with their units, and captions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from kvstats.inference.cell import method_of
from kvstats.inference.result import Result, label_of

__all__ = [
    "axis_label",
    "estimate_label",
    "interval_text",
    "plain_text",
    "row_text",
    "size_text",
    "span",
    "undefined_text",
    "unit_of",
]

AXES = {
    "batch": "batch (inputs)",
    "budget": "budget (share of the cache kept)",
    "budget_tokens": "budget (tokens kept)",
    "context_tokens": "context (tokens)",
    "kept": "cache kept (share)",
    "n_prompt": "prompt (tokens)",
    "tau": "threshold τ",
}
"""Names of columns with their units; of others the name says it."""

ESTIMATES = {
    "auc": "area under the curve",
    "auc_difference": "difference of areas under the curve",
    "crossing_budget": "budget (share of the cache kept)",
    "delta": "Δ (mean difference of scores)",
    "kept_fraction": "cache kept (share)",
    "mean_drop": "head-agreement drop D (mean)",
    "memory_crossover": "cache kept (share)",
    "task_separation": "margin between task means",
    "unit_auc": "area under the curve",
}
"""Names of estimators and quantities with their units, where their kind does not say it."""

UNITS = {
    "rate": "share",
    "discordant": "share of discordant pairs",
    "share": "share",
    "mean": "mean",
    "paired": "mean difference",
    "auc": "area under the curve",
    "correlation": "correlation",
    "ratio": "ratio",
}
"""Units of what is estimated, by its kind."""

METHODS = {
    "linear": "linearised",
    "jackknife": "jackknife",
    "korn_graubard": "Korn-Graubard",
    "wilson": "Wilson",
    "clopper_pearson": "Clopper-Pearson",
    "percentile": "percentile bootstrap",
    "basic": "basic bootstrap",
    "bca": "BCa bootstrap",
    "studentized": "studentized bootstrap",
}
"""Names of intervals in a text."""


def axis_label(column: str) -> str:
    """Return the name of a column as the name of an axis, with its unit.

    Examples
    --------
    >>> axis_label("budget"), axis_label("attention_entropy")
    ('budget (share of the cache kept)', 'attention entropy')
    """
    return AXES.get(column, column.replace("_", " "))


def estimate_label(name: str, kinds: Iterable[str]) -> str:
    """Return the name of an estimator, or of a quantity, as the name of an axis, with its unit.

    Examples
    --------
    >>> estimate_label("harm_rate", ["rate"]), estimate_label("accuracy", ["rate", "mean"])
    ('harm rate (share)', 'accuracy (mean)')
    >>> estimate_label("accuracy difference (arm: ('gate', 'plain'))", ["difference"])
    'accuracy difference'
    """
    if name in ESTIMATES:
        return ESTIMATES[name]
    words, unit = name.partition(" (")[0].replace("_", " "), unit_of(kinds)
    return f"{words} ({unit})" if unit else words


def unit_of(kinds: Iterable[str]) -> str:
    """Return the unit of estimates by their kinds, empty where these do not tell.

    Examples
    --------
    >>> unit_of(["rate", "share"]), unit_of(["quantile"]), unit_of(["rate", "mean"])
    ('share', '', 'mean')
    """
    units = {UNITS.get(kind, "") for kind in kinds}
    # Where all scores of a part happen to be 0 or 1 its mean is a rate.
    return "mean" if units == {"share", "mean"} else units.pop() if len(units) == 1 else ""


def row_text(values: Iterable[Any]) -> str:
    """Return the values of by-columns as the name of a row or of a line.

    Examples
    --------
    >>> row_text(["qa", 0.25, None])
    'qa, 0.25, –'
    """
    return ", ".join(
        "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value) for value in values
    )


def plain_text(text: str, width: int | None = None) -> str:
    r"""Return a text that matplotlib draws letter by letter: no formula, and no name that legends leave out.

    With a width it is broken into lines of at most so many letters, at blanks and after underscores and
    slashes, never within a word.

    Examples
    --------
    >>> plain_text("a$b$"), plain_text("_arm")
    ('a\\$b\\$', ' _arm')
    >>> plain_text("aware, niah_multikey_third_every_2", 24)
    'aware,\nniah_multikey_third_\nevery_2'
    """
    lines = broken(text, width) if width else [text]
    joined = "\n".join(lines).replace("$", r"\$")
    return f" {joined}" if joined.startswith("_") else joined


def broken(text: str, width: int) -> list[str]:
    """Return the lines of a text: words that fit stay whole, longer names break within."""
    lines = [""]
    for word in text.split():
        gap = " " if lines[-1] else ""
        if len(lines[-1] + gap + word) <= width:
            lines[-1] += gap + word
            continue
        if lines[-1]:
            lines.append("")
        for part in re.findall(r"[^_/]*[_/]+|[^_/]+", word):
            if lines[-1] and len(lines[-1] + part) > width:
                lines.append("")
            lines[-1] += part
    return lines


def interval_text(*results: Result) -> str:
    """Return level and kind of the intervals of results in words, such as ``95% Korn-Graubard intervals``."""
    methods = {
        METHODS[method_of(label_of(result.estimator, result.by, sample.key), sample, result.design)]: None
        for result in results
        for sample in result.samples
    }
    levels = {f"{100 * result.design.level:g}%": None for result in results}
    return f"{' and '.join(levels)} {' or '.join(methods)} intervals".replace("  ", " ")


def size_text(*results: Result) -> str:
    """Return in words how many rows and clusters the estimates of results are of, and what a cluster is."""
    frame = pl.concat([result.frame.select("n", "clusters") for result in results])
    n, clusters = (span(frame[name]) for name in ("n", "clusters"))
    columns = ", ".join(dict.fromkeys(name for result in results for name in result.design.cluster))
    each = " for each estimate" if frame.height > 1 else ""
    return f"n = {n} rows in {clusters} clusters (same {columns}){each}"


def span(counts: pl.Series) -> str:
    """Return the least and the largest of some counts.

    Examples
    --------
    >>> span(pl.Series([1200, 40])), span(pl.Series([40, 40]))
    ('40 to 1,200', '40')
    """
    values = sorted(set(counts)) or [0]
    return f"{values[0]:,}" if len(values) == 1 else f"{values[0]:,} to {values[-1]:,}"


def undefined_text(frames: Sequence[pl.DataFrame]) -> str:
    """Return in words how many estimates, and how many intervals, are undefined and why; else nothing.

    Examples
    --------
    >>> undefined_text([pl.DataFrame({"estimate": [0.5, None, None], "low": [None] * 3,
    ...                               "status": ["one cluster", "no rows", "no rows"]})])
    'Hollow marks: undefined (no rows: 2), or without interval (one cluster: 1).'
    """
    frame = pl.concat([part.select("estimate", "low", "status") for part in frames], how="vertical_relaxed")
    missing = pl.col("estimate").is_null() | pl.col("estimate").is_infinite()
    parts = []
    for words, rows in (
        ("undefined", frame.filter(missing)),
        ("without interval", frame.filter(~missing & pl.col("low").is_null())),
    ):
        if rows.height:
            counts = rows["status"].value_counts(name="rows").sort("status").iter_rows()
            parts.append(f"{words} ({', '.join(f'{status}: {count}' for status, count in counts)})")
    return f"Hollow marks: {', or '.join(parts)}." if parts else ""
