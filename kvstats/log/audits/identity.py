"""Checks of what rows are called: duplicates, twins, and ids that mean several things."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from kvstats.log.audits.finding import Finding, full_runs, named, several
from kvstats.log.frames import Log
from kvstats.log.records import INPUT_KEY, REPLAY_KEY, RUN_KEY

__all__ = ["duplicates", "lengths_by_arm", "lone_runs", "missing_twins", "one_cluster", "reused_ids"]

KEY = list(INPUT_KEY)
CLUSTER = ["suite", "task", "input_id"]
"""What one input is called on every model and under every condition."""

HASHES = ("doc_hash", "prompt_hash", "target_hash")
"""Hashes of an input's content that readers keep in the ``extra`` of runs."""


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


def missing_twins(runs: pl.DataFrame) -> Iterator[Finding]:
    """Find runs of inputs that have no run of the full cache."""
    full = full_runs(runs)
    alone = runs.filter(~full).join(runs.filter(full), on=KEY, how="anti", nulls_equal=True)
    if alone.height:
        message = f"{several(alone.height, 'run')} of inputs that the full cache was not run on"
        yield Finding("missing twin", "warning", alone.height, message, named(alone, KEY))


def reused_ids(log: Log) -> Iterator[Finding]:
    """Find ids that stand for other content: within one input's records, or across models and conditions.

    Content is told by the references, by the hash of the prompt, and by hashes of the document among the
    fields that the contract does not know. Prompts differ between models and conditions; references and
    documents do not.
    """
    references = pl.col("references").list.sort().list.join("\x1f")
    contents: list[tuple[str, pl.DataFrame, pl.Expr, bool]] = [
        ("references", log.runs, references, True),
        ("prompt hash", log.inputs, pl.col("prompt_hash"), False),
        *(
            (
                f"{name} of extra",
                log.runs,
                pl.col("extra").str.json_path_match(f"$.{name}"),
                name != "prompt_hash",
            )
            for name in HASHES
        ),
    ]
    for name, frame, content, everywhere in contents:
        told = frame.select(*KEY, content.alias("content")).drop_nulls("content")
        within = several_values(told, KEY)
        if within.height:
            message = f"{several(within.height, 'input')} with more than one {name} under the same key"
            yield Finding("reused id", "error", within.height, message, named(within, KEY))
        if everywhere:
            across = several_values(told, CLUSTER).join(within, on=CLUSTER, how="anti", nulls_equal=True)
            if across.height:
                message = f"{several(across.height, 'id')} with other {name} on another model or condition"
                check = "id reused across models or conditions"
                yield Finding(check, "warning", across.height, message, named(across, CLUSTER))


def several_values(told: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """Return the keys under which there is more than one content."""
    counts = told.group_by(key).agg(pl.col("content").n_unique().alias("contents"))
    return counts.filter(pl.col("contents") > 1).select(key)


def lengths_by_arm(runs: pl.DataFrame) -> Iterator[Finding]:
    """Find inputs whose prompt has another length in one arm than in another."""
    lengths = runs.drop_nulls("n_prompt").group_by(KEY).agg(pl.col("n_prompt").n_unique().alias("lengths"))
    rows = lengths.filter(pl.col("lengths") > 1)
    if rows.height:
        message = f"{several(rows.height, 'input')} whose prompt is longer in one arm than in another"
        check = "prompt length differs between arms"
        yield Finding(check, "warning", rows.height, message, named(rows, KEY))


def one_cluster(runs: pl.DataFrame) -> Iterator[Finding]:
    """Find tasks of which a model has a single input."""
    cell = ["suite", "model", "task", "condition"]
    counts = runs.group_by(cell).agg(pl.col("input_id").n_unique().alias("inputs"))
    rows = counts.filter(pl.col("inputs") == 1)
    if rows.height:
        message = f"{several(rows.height, 'task')} with a single input"
        yield Finding("one cluster", "note", rows.height, message, named(rows, cell))


def lone_runs(runs: pl.DataFrame) -> Iterator[Finding]:
    """Find inputs with a single run, in logs where others have more."""
    counts = runs.select(RUN_KEY).unique().group_by(CLUSTER).agg(pl.len().alias("runs"))
    rows = counts.filter(pl.col("runs") == 1)
    if 0 < rows.height < counts.height:
        verb = "has" if rows.height == 1 else "have"
        message = f"{rows.height:,} of {several(counts.height, 'input')} {verb} one run only"
        yield Finding("clusters of one", "note", rows.height, message, named(rows, CLUSTER))
