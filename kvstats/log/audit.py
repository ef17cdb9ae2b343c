"""Audit of a log: what its records show that would bias an analysis, or make one impossible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY, REPLAY_KEY, RUN_KEY

__all__ = ["Finding", "audit_log"]

FULL = "full"
PLAIN = "plain"

TIE = 1e-9
"""Scores that differ by no more are equal."""

SATURATED = 0.95
"""A signal is saturated where so large a share of its values is its smallest or its largest one."""

LEAST = 10
"""So many rows are needed to call arms identical, or a signal constant or saturated."""

SHOWN = 3
"""How many examples a finding names."""


@dataclass(frozen=True)
class Finding:
    """What an audit found.

    Attributes
    ----------
    check : str
        Name of the check.
    severity : str
        ``error`` where estimators refuse such rows, ``warning`` where estimates may be wrong, ``note`` where
        an analysis may say little.
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
    examples: tuple[str, ...]


def audit_log(log: Log) -> tuple[Finding, ...]:
    """Look for what would bias an analysis of a log.

    Parameters
    ----------
    log : Log
        The log as recorded, without virtual arms.

    Returns
    -------
    tuple of Finding
        In a fixed order: duplicates, runs without score, runs without a full-cache twin, runs at budget 1
        whose score is not that of the full cache, more tokens kept than the prompt has, arms that are
        identical on all rows that they share below budget 1 (in score and, where recorded, prediction; at
        least 10 rows), and signals of input records, or of an arm's runs below budget 1, that are constant or
        saturated (of at least 10 values 95% are the smallest or the largest).

    Examples
    --------
    >>> from kvstats.log import RunRecord, log_from_records
    >>> key = dict(suite="s", model="m", task="qa", input_id="1")
    >>> log = log_from_records([
    ...     RunRecord(**key, arm="full", budget=1.0, score=1.0),
    ...     RunRecord(**key, arm="snapkv", budget=1.0, score=0.0),
    ... ])
    >>> for finding in audit_log(log):
    ...     print(finding.severity, finding.check, finding.message)
    warning budget 1 differs from full 1 run of arm snapkv at budget 1 scores otherwise than the full cache
    """
    return (
        *duplicates(log),
        *without_score(log.runs),
        *against_full(log.runs),
        *kept_above_prompt(log.runs),
        *identical_arms(log.runs),
        *idle_signals("runs below budget 1", evicted(log.runs), log.run_signals, ["arm"]),
        *idle_signals("input records", log.inputs, (*log.input_signals, "drop"), []),
    )


def evicted(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the runs from whose cache something was evicted; budgets in tokens count as such."""
    return runs.filter(pl.col("arm") != FULL, (pl.col("budget") < 1.0) | pl.col("budget").is_null())


def several(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def named(rows: pl.DataFrame, key: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys of the first rows as text, without the fields that are null."""
    shown = rows.select(name for name in key if name in rows.columns).unique().sort(pl.all()).head(SHOWN)
    return tuple(
        ", ".join(f"{name}={value}" for name, value in row.items() if value is not None)
        for row in shown.iter_rows(named=True)
    )


def duplicates(log: Log) -> Iterator[Finding]:
    """Find rows that agree in their whole key."""
    for noun, frame, key in (
        ("run", log.runs, RUN_KEY),
        ("input record", log.inputs, INPUT_KEY),
        ("replay cell", log.replays, REPLAY_KEY),
    ):
        again = frame.filter(frame.select(key).is_duplicated())
        if again.height:
            message = f"{several(again.height, noun)} share their key with another"
            yield Finding("duplicates", "error", again.height, message, named(again, key))


def without_score(runs: pl.DataFrame) -> Iterator[Finding]:
    """Find runs that failed or were not scored."""
    missing = runs.filter(pl.col("score").is_null())
    if missing.height:
        message = f"{several(missing.height, 'run')} of {runs.height:,} without a score"
        yield Finding("no score", "warning", missing.height, message, named(missing, RUN_KEY))


def against_full(runs: pl.DataFrame) -> Iterator[Finding]:
    """Find runs without a twin, and runs of which nothing was evicted that differ from it."""
    key = list(INPUT_KEY)
    name = FULL if (runs["arm"] == FULL).any() else PLAIN
    full = runs.filter(pl.col("arm") == name, True if name == FULL else pl.col("budget") == 1.0)
    others = runs.filter(pl.col("arm") != name)
    if full.is_empty() or others.is_empty():
        return
    twins = full.select(*key, twin_score="score").unique(key)
    joined = others.join(twins, on=key, how="left", nulls_equal=True, maintain_order="left")
    paired = full.select(key).unique()
    alone = others.join(paired, on=key, how="anti", nulls_equal=True, maintain_order="left")
    if alone.height:
        message = f"{several(alone.height, 'run')} of inputs that the full cache was not run on"
        yield Finding("missing twin", "warning", alone.height, message, named(alone, RUN_KEY))
    differing = joined.filter(
        (pl.col("budget") == 1.0) & ((pl.col("score") - pl.col("twin_score")).abs() > TIE)
    )
    for arm in differing["arm"].unique().sort():
        rows = differing.filter(pl.col("arm") == arm)
        verb = "scores" if rows.height == 1 else "score"
        message = (
            f"{several(rows.height, 'run')} of arm {arm} at budget 1 {verb} otherwise than the full cache"
        )
        yield Finding("budget 1 differs from full", "warning", rows.height, message, named(rows, INPUT_KEY))


def kept_above_prompt(runs: pl.DataFrame) -> Iterator[Finding]:
    """Find runs that kept more tokens than there were."""
    rows = runs.filter(pl.col("n_kept") > pl.col("n_prompt"))
    if rows.height:
        message = f"{several(rows.height, 'run')} kept more tokens than the prompt has"
        yield Finding("kept above prompt", "warning", rows.height, message, named(rows, RUN_KEY))


def identical_arms(runs: pl.DataFrame) -> Iterator[Finding]:
    """Find pairs of arms that give the same on every row that both have."""
    below = evicted(runs)
    if below["arm"].n_unique() < 2:
        return
    place = pl.struct(name for name in RUN_KEY if name != "arm").rank("dense").alias("place")
    given = pl.struct("score", "prediction").rank("dense").alias("given")
    rows = below.select("arm", place, given)
    pairs = rows.join(rows, on="place", suffix="_other").filter(pl.col("arm") < pl.col("arm_other"))
    compared = pairs.group_by("arm", "arm_other").agg(
        pl.len().alias("rows"), (pl.col("given") == pl.col("given_other")).all().alias("same")
    )
    same = compared.filter("same", pl.col("rows") >= LEAST).sort("arm", "arm_other")
    for arm, other, count, _ in same.iter_rows():
        message = f"arms {arm} and {other} give the same on all {count:,} rows that both have below budget 1"
        yield Finding("identical arms", "warning", count, message, ())


def idle_signals(
    noun: str, frame: pl.DataFrame, signals: tuple[str, ...], within: list[str]
) -> Iterator[Finding]:
    """Find signals of which all or nearly all values are one."""
    for signal in signals:
        rows = frame.filter(pl.col(signal).is_not_null()).select(*within, pl.col(signal).alias("value"))
        ends = rows.group_by(within or pl.lit("").alias("all")).agg(
            pl.len().alias("rows"),
            (pl.col("value") == pl.col("value").min()).mean().alias("lowest"),
            (pl.col("value") == pl.col("value").max()).mean().alias("highest"),
        )
        for row in ends.filter(pl.col("rows") >= LEAST).sort(pl.first()).iter_rows(named=True):
            share = max(row["lowest"], row["highest"])
            if share < SATURATED:
                continue
            where = f" of arm {row['arm']}" if within else ""
            check = "constant signal" if share == 1.0 else "saturated signal"
            end = "smallest" if row["lowest"] >= row["highest"] else "largest"
            message = f"{signal} is constant in {row['rows']:,} {noun}{where}"
            if share < 1.0:
                message = f"{signal} is at its {end} value in {share:.1%} of {row['rows']:,} {noun}{where}"
            yield Finding(check, "note", round(share * row["rows"]), message, ())
