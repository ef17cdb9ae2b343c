"""A log held against a reference log: the same, moved a little, or something else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from kvstats.errors import InputError
from kvstats.log.compared_fields import (
    REFERENCE,
    Field,
    distances,
    gate_call,
    input_fields,
    run_fields,
    told,
)
from kvstats.log.compared_logs import (
    FIELD_SCHEMA,
    OFFENDER_SCHEMA,
    OFFENDERS,
    REPRODUCED_WITHIN,
    VERDICTS,
    LogComparison,
    verdict_of,
    where_texts,
    worst,
)
from kvstats.log.frames import Log, require_log
from kvstats.log.records import INPUT_KEY, RUN_KEY

__all__ = ["compare_logs"]


def compare_logs(new: Log, reference: Log, *, tau: float | None = None) -> LogComparison:
    r"""Hold a log against a reference log of the same inputs.

    Parameters
    ----------
    new, reference : Log
        The logs. Rows are matched by their whole key: suite, model, task, input and condition for input
        records, and arm, budgets and seed too for runs.
    tau : float, optional
        Threshold of the gate decision ``drop < tau``. Default: only recorded decisions are compared.

    Returns
    -------
    LogComparison
        The verdict is the worst of all fields, and that of a field the worst of its rows. Prompt lengths and
        hashes, gate decisions, kept counts, predictions, outcomes and errors are reproduced when they are the
        same, and different otherwise. The distance of numbers (D, head agreement, score, kept fraction, and
        every signal) is :math:`|x - r| / \max(|r|, 0.1)` for a value x and the reference's r: up to 0.0001
        they are reproduced, up to 0.05 drifted, and above different. Of lists the pair furthest apart counts,
        and lists of other lengths are different.

        A field that the reference records nowhere is passed over. A value where the other log has none is
        different, but for predictions, which are compared where both have one. Where a run failed in either
        log its error is all that is compared, and so for inputs all of whose runs failed. Replays, times and
        memory are not compared.

    Raises
    ------
    InputError
        When the logs have no row in common, when the reference records nothing of those that both have, when
        rows of one share their key, or when tau is no finite number.

    Examples
    --------
    >>> from kvstats.log import InputRecord, log_from_records
    >>> def drop(value: float) -> Log:
    ...     return log_from_records([InputRecord(suite="s", model="m", task="t", input_id="1", drop=value)])
    >>> compare_logs(drop(0.081), drop(0.08), tau=0.0805)
    different: 1 input record and 0 runs in both logs
    field  compared  reproduced  drifted  different  share    max   mean  distance  verdict
    drop          1           0        1          0      1  0.001  0.001      0.01  drifted
    gate          1           0        0          1      1      –      –         1  different
    different: input_id=1: gate was 'closed', is 'open'
    drifted: input_id=1: drop was 0.08, is 0.081
    """
    if tau is not None and not (isinstance(tau, int | float) and math.isfinite(tau)):
        raise InputError.argument(
            "compare_logs", "tau", tau, "is no finite number", "pass a threshold such as 0.07"
        )
    require_log("compare_logs", new, "new")
    require_log("compare_logs", reference, "reference")
    runs = matched("runs", new.runs, reference.runs, RUN_KEY)
    inputs = matched("input records", with_gate(new.inputs, tau), with_gate(reference.inputs, tau), INPUT_KEY)
    if runs.is_empty() and inputs.is_empty():
        raise InputError(
            "compare_logs: the logs have no run and no input record in common; read both with the same model "
            "and suite"
        )
    failed = pl.col("error").is_not_null() | pl.col("error" + REFERENCE).is_not_null()
    bare = runs.group_by(INPUT_KEY).agg(failed.all().alias("failed")).filter("failed")
    whole = inputs.join(bare, on=list(INPUT_KEY), how="anti", nulls_equal=True, maintain_order="left")
    sides = [
        (
            whole,
            INPUT_KEY,
            [field for field in input_fields(reference) if field.name != "gate" or tau is not None],
        ),
        (runs, RUN_KEY, [Field("error", "error", "exact")]),
        (runs.filter(~failed), RUN_KEY, list(run_fields(reference))),
    ]
    fields: list[dict[str, Any]] = []
    offenders: list[dict[str, Any]] = []
    for pairs, key, wanted in sides:
        for field in wanted:
            apart = distances(pairs, field)
            if apart.height:
                fields.append(field_row(field, apart))
                offenders += offending(field, apart, pairs, key)
    if not fields:
        raise InputError(
            "compare_logs: the reference records nothing of the rows that both logs have; pass one with "
            "scores, signals or D"
        )
    offenders.sort(key=lambda row: (row["verdict"] != "different", -row["distance"]))
    return LogComparison(
        verdict=worst(row["verdict"] for row in fields),
        frame=pl.DataFrame(fields, schema=FIELD_SCHEMA),
        offenders=pl.DataFrame(offenders, schema=OFFENDER_SCHEMA),
        inputs=inputs.height,
        runs=runs.height,
        only_new=unmatched(new, reference),
        only_reference=unmatched(reference, new),
    )


def with_gate(inputs: pl.DataFrame, tau: float | None) -> pl.DataFrame:
    """Add what a gate at a threshold does."""
    return inputs if tau is None else inputs.with_columns(gate_call(tau))


def matched(noun: str, new: pl.DataFrame, reference: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Return the rows that both have, with the reference's columns beside the new ones."""
    for name, frame in (("new", new), ("reference", reference)):
        again = frame.filter(frame.select(key).is_duplicated())
        if again.height:
            texts = where_texts(again.head(1), again)
            raise InputError(
                f"compare_logs: {again.height} {noun} of the {name} log share their key with another, "
                f"such as {texts[0]}; remove the duplicates"
            )
    beside = reference.rename({name: name + REFERENCE for name in reference.columns if name not in key})
    rows = new.join(beside, on=list(key), nulls_equal=True, maintain_order="left")
    # A signal that only the reference has is missing from every new row.
    absent = [name for name in reference.columns if name not in new.columns]
    return rows.with_columns(
        pl.lit(None, reference.schema[name]).alias(name) for name in absent
    ).with_row_index("row")


def unmatched(one: Log, other: Log) -> pl.DataFrame:
    """Return the keys of runs, and of inputs without a run, that the other log lacks."""
    runs = one.runs.join(other.runs, on=list(RUN_KEY), how="anti", nulls_equal=True).select(RUN_KEY)
    bare = one.inputs.join(one.runs, on=list(INPUT_KEY), how="anti", nulls_equal=True)
    inputs = bare.join(other.inputs, on=list(INPUT_KEY), how="anti", nulls_equal=True).select(INPUT_KEY)
    return pl.concat([runs, inputs], how="diagonal").sort(RUN_KEY)


def field_row(field: Field, apart: pl.DataFrame) -> dict[str, Any]:
    """Count the verdicts of a field's rows."""
    verdicts = [verdict_of(distance) for distance in apart["distance"]]
    counts: dict[str, int] = {verdict: verdicts.count(verdict) for verdict in VERDICTS}
    return {
        "field": field.name,
        "compared": apart.height,
        **counts,
        "share": 1 - counts["reproduced"] / apart.height,
        "max": apart["difference"].max(),
        "mean": apart["difference"].mean(),
        "distance": apart["distance"].max(),
        "verdict": worst(verdicts),
    }


def offending(
    field: Field, apart: pl.DataFrame, pairs: pl.DataFrame, key: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a field that are furthest from the reference."""
    far = apart.filter(pl.col("distance") > REPRODUCED_WITHIN)
    rows = far.sort("distance", "row", descending=[True, False]).head(OFFENDERS)
    beside = rows.join(pairs, on="row", maintain_order="left")
    for row, where in zip(beside.iter_rows(named=True), where_texts(beside.select(key), pairs), strict=True):
        reference, new = told(row[field.column + REFERENCE], row[field.column])
        yield {
            "field": field.name,
            "where": where,
            "reference": reference,
            "new": new,
            "distance": row["distance"],
            "verdict": verdict_of(row["distance"]),
        }
