"""What an audit finds, and what each check's findings would bias."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

__all__ = ["BIAS", "SEVERITIES", "SHOWN", "Finding", "arm_of", "evicted", "full_runs", "named", "several"]

FULL = "full"
PLAIN = "plain"

SHOWN = 3
"""How many examples a finding names."""

SEVERITIES = ("error", "warning", "note")
"""From the worst to the least."""

BIAS: dict[str, str] = {
    "unreadable lines": "rows are missing, and nothing says that they are like the others",
    "duplicates": "every mean that counts a row twice, and every interval that takes it for two",
    "no score": "a rate over scored runs alone leaves failures out of its denominator",
    "missing twin": "paired differences and harm rates are of those inputs that have a twin",
    "partial cells": "cells are compared on different inputs, and pooled means weigh tasks unevenly",
    "other cells than other tasks": "what is pooled over tasks mixes cells that not all of them have",
    "reused id": "pairs of different content: their difference is no effect of eviction",
    "id reused across models or conditions": "clusters join different inputs, and intervals are wrong",
    "prompt length differs between arms": "pairs of different prompts, such as one with a second first token",
    "budget 1 differs from full": "differences at lower budgets hold the same fault, which is not eviction's",
    "closed gate differs from full": "the gated arm is not what its gate says: other runs stand in it",
    "full cache not whole": "what is held against the full cache is held against a compressed one",
    "kept above prompt": "kept fractions and memory savings",
    "kept unlike budget": "what is compared at one budget keeps different amounts",
    "identical arms": "one arm may be the other under two names, and their difference is none",
    "no effect": "eviction may not have taken place: there is no harm of what was not done",
    "mixed tau": "an arm that is pooled over several thresholds is none of the gates that it is reported as",
    "tau against its calls": "the gate that was run is not the one that is reported",
    "calls of no threshold": "no gate on D makes these calls: they are of several, or of another D",
    "constant signal": "it ranks nothing: areas are 0.5, correlations undefined",
    "saturated signal": "ties decide what its ranking says",
    "one cluster": "there is no interval, and a standard error of 0 would be false certainty",
    "clusters of one": "nothing is paired with these runs",
    "no study record": "nothing says which model, precision or settings the runs are of",
    "no common input": "nothing was held against the reference",
    "prompt length drift": "D, kept counts and answers are of other prompts than the reference's",
    "prompt drift": "D and answers are of other prompts than the reference's",
    "D drift": "thresholds and gate decisions of the reference do not carry over",
    "gate flips": "the gated arm evicts other inputs than the reference's",
    "older than the registration": "claims on these rows were written when they could be known",
    "no time": "whether these rows are older than the registration cannot be told",
    "name of a bad file": "rows that whoever made them set aside",
    "numbered twin": "the same runs counted twice, or one of two attempts chosen by its result",
    "stub beside a large file": "a few rows of another attempt, pooled with those of a whole one",
    "config missing": "what these results are of is a guess; a killed run leaves such a folder",
    "config unreadable": "what these results are of is a guess",
    "scores missing": "nothing shows that the rows are scored as they were when they were made",
    "scores unreadable": "nothing shows that the rows are scored as they were when they were made",
    "aggregates only": "nothing can be paired, and no interval is that of its rows",
    "scores of no samples": "a figure that its own count of samples does not bear out",
}
"""What findings of each check would bias, by the check's name."""


@dataclass(frozen=True)
class Finding:
    """What an audit found.

    Attributes
    ----------
    check : str
        Name of the check, one of `BIAS`.
    severity : str
        ``error`` where estimators refuse such rows, or where what is made of them is wrong; ``warning`` where
        estimates may be wrong; ``note`` where an analysis may say little.
    count : int
        How many rows, or other things, are concerned.
    message : str
        What was found.
    examples : tuple of str
        The first of them.
    """

    check: str
    severity: str
    count: int
    message: str
    examples: tuple[str, ...] = ()

    @property
    def bias(self) -> str:
        """What it would bias."""
        return BIAS[self.check]


def several(count: int, noun: str) -> str:
    """Return a count with its noun.

    Examples
    --------
    >>> several(1, "run"), several(1200, "run")
    ('1 run', '1,200 runs')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def named(rows: pl.DataFrame, key: Sequence[str]) -> tuple[str, ...]:
    """Return the keys of the first rows as text, without the fields that are null."""
    shown = rows.select(name for name in key if name in rows.columns).unique().sort(pl.all()).head(SHOWN)
    return tuple(
        ", ".join(f"{name}={value}" for name, value in row.items() if value is not None)
        for row in shown.iter_rows(named=True)
    )


def evicted(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the runs from whose cache something was evicted; budgets in tokens count as such."""
    return runs.filter(pl.col("arm") != FULL, (pl.col("budget") < 1.0) | pl.col("budget").is_null())


def full_runs(runs: pl.DataFrame) -> pl.Expr:
    """Return the condition that a run is of the full cache: arm ``full``, or else ``plain`` at budget 1."""
    if (runs["arm"] == FULL).any():
        return pl.col("arm") == FULL
    return (pl.col("arm") == PLAIN) & (pl.col("budget") == 1.0).fill_null(value=False)


def arm_of(row: dict[str, object]) -> str:
    """Name an arm and the model that it was run on.

    Examples
    --------
    >>> arm_of({"model": "m", "arm": "gated", "rows": 3})
    'arm gated of model m'
    """
    return f"arm {row['arm']} of model {row['model']}"
