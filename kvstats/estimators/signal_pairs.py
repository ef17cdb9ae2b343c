"""Pairs with a signal and a binary outcome: the population of estimators of discrimination."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.estimators.population import numeric_columns
from kvstats.log.frames import Log
from kvstats.statistics.statistic import IntArray
from kvstats.tables import pairs_of, require_values

__all__ = [
    "ATTRIBUTION",
    "check_signal",
    "oriented",
    "outcome_pairs",
    "strata_of",
    "with_outcome",
]

ATTRIBUTION = "attribution"
"""Outcome of failures: whether eviction induced them."""

DIRECTIONS = ("positive", "negative")


def outcome_pairs(
    function: str, log: Log, arm: str, baseline: str, outcome: str, where: str | None
) -> pl.DataFrame:
    """Return the pairs of an arm that have an outcome; see `with_outcome`.

    Raises
    ------
    InputError
        When a run has no twin, an outcome is null, or a name is not known.
    """
    return with_outcome(function, pairs_of(function, log, arm, baseline, where), outcome)


def with_outcome(function: str, pairs: pl.DataFrame, outcome: str) -> pl.DataFrame:
    """Return the pairs that an outcome is about, with the outcome as a Boolean column of its name.

    For ``induced_failure`` these are the pairs whose twin succeeded. For ``attribution`` they are the arm's
    failures, and the outcome is whether the twin succeeded: induced failures against inherent ones.

    Raises
    ------
    InputError
        When the outcome is not known or has nulls.
    """
    known = [name for name in pairs.columns if pairs.schema[name] == pl.Boolean]
    if outcome not in (*known, ATTRIBUTION):
        raise InputError.argument(
            function,
            "outcome",
            outcome,
            "is not a Boolean column of the pairs",
            nearest_name(str(outcome), [*known, ATTRIBUTION]),
        )
    if outcome in ("induced_failure", ATTRIBUTION):
        for column in ("success", "baseline_success"):
            require_values(function, pairs, column)
        pairs = pairs.filter("baseline_success" if outcome == "induced_failure" else "failure")
    if outcome == ATTRIBUTION:
        return pairs.with_columns(pl.col("baseline_success").alias(ATTRIBUTION))
    require_values(function, pairs, outcome)
    return pairs


def check_signal(function: str, argument: str, pairs: pl.DataFrame, signal: str) -> None:
    """Raise `InputError` where a signal is no numeric column of the pairs."""
    known = numeric_columns(pairs)
    if signal not in known:
        raise InputError.argument(
            function,
            argument,
            signal,
            "is not a numeric column of the pairs",
            nearest_name(str(signal), known),
        )


def oriented(function: str, argument: str, higher: str) -> float:
    """Return 1 where the positives are expected to have the higher signal, and else -1."""
    if higher not in DIRECTIONS:
        raise InputError.argument(
            function, argument, higher, "is not known", nearest_name(str(higher), DIRECTIONS)
        )
    return 1.0 if higher == "positive" else -1.0


def strata_of(part: pl.DataFrame, names: Sequence[str]) -> IntArray:
    """Return the number of each row's stratum; null is a value like any other.

    Examples
    --------
    >>> part = pl.DataFrame({"task": ["b", "a", "b", None]})
    >>> strata_of(part, ["task"]).tolist()
    [2, 1, 2, 0]
    """
    return part.select(pl.struct(names).rank("dense") - 1).to_series().to_numpy().astype(np.int64)
