"""Samples of lm-evaluation-harness: ``samples_<task>_<time>.jsonl``, one row a document and filter.

Each row becomes one run; arm and budget are the caller's to say. Columns:

- ``doc_id``: the input's id. ``doc_hash`` is kept: a document that has another hash in another file read
  with it is an error, for then the ids stand for other documents.
- ``filter``: a document has a row for each filter that took an answer out of the same text. Where there are
  several, `answer_filter` says which one counts; the others are no runs. A document without a row of this
  filter is a fault.
- ``metrics``: names of the columns that hold scores. Where there are several, `metric` says which one is the
  score. Success is a score of 1, where all scores of the file lie between 0 and 1.
- ``target``: the reference; ``filtered_resps``: the prediction, where it is one text.

All other columns are kept under ``extra``. The task is in the name of the file. ``results_<time>.json``
beside it says the model, else the folder's name does, and how many documents there should be: that some are
missing is a fault. The suite is ``lm-evaluation-harness`` unless the caller names it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.log.adapters.identity import Identities, id_text
from kvstats.log.adapters.reader import Labels, Reader, stem
from kvstats.log.cells import CellFault, full_marks, real
from kvstats.log.lines import Reject, json_object, numbered_lines, shown
from kvstats.log.records import Record, RunRecord

__all__ = ["LM_EVAL"]

SUITE = "lm-evaluation-harness"

NAME = re.compile(r"samples_(?P<task>.+?)(_(?P<time>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(\.\d+)?))?")

OF_ROW = (
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
    *("doc_hash", "prompt_hash", "target_hash"),
)
"""Columns that hold no score."""

Row = tuple[int, dict[str, Any], str]
"""Line, columns, and the beginning of the line."""


def recognises(file: Path, objects: Sequence[dict[str, Any]]) -> bool:
    """Say whether objects are samples."""
    return any({"doc_id", "doc", "filtered_resps"} <= fields.keys() for fields in objects)


def read(file: Path, labels: Labels) -> Iterator[Record | Reject]:
    """Yield the run of each document, or a reject."""
    found = NAME.fullmatch(stem(file))
    task = labels.task or (found["task"] if found else None)
    if task is None:
        raise InputError(
            f"{file}: its name, which is not samples_<task>_<time>, tells no task; pass task=..."
        )
    results = results_beside(file, found["time"] if found else None)
    rows: list[Row] = []
    for item in numbered_lines(file):
        if isinstance(item, Reject):
            yield item
            break
        number, line = item
        fields = json_object(line, number)
        if isinstance(fields, Reject):
            yield fields
        else:
            rows.append((number, fields, shown(line)))
    every, rows = rows, of_filter(file, rows, labels.answer_filter)
    metric = the_metric(file, rows, labels.metric)
    if results.get("higher_is_better", {}).get(task, {}).get(metric) is False:
        fault = "is better where it is lower, and scores are better where they are higher"
        raise InputError.argument("read_log", "metric", metric, fault, "choose another metric")
    shared = {
        "suite": labels.suite or SUITE,
        "model": labels.model or results.get("model_name") or file.resolve().parent.name,
        "task": task,
        "arm": labels.arm,
        "condition": labels.condition,
        "budget": 1.0 if labels.budget is None and labels.arm == "full" else labels.budget,
    }
    yield from runs_of(rows, metric, shared, Identities(labels))
    yield from without_row(every, rows)
    expected = results.get("n-samples", {}).get(task, {}).get("effective")
    if isinstance(expected, int) and len(rows) != expected:
        last = rows[-1][0] if rows else 1
        fault = f"ends with {len(rows)} of {expected} documents by the results beside it"
        yield Reject(
            last, fault, "", "complete the file, or pass on_error='skip' to list this in log.rejects"
        )


def results_beside(file: Path, time: str | None) -> dict[str, Any]:
    """Return the results of the run that wrote a file; empty where they are not beside it."""
    path = file.with_name(f"results_{time}.json")
    if time is None or not path.is_file():
        return {}
    try:
        results = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: is no results file ({error}); repair or remove it") from error
    if not isinstance(results, dict):
        raise InputError(f"{path}: is no results file (it holds no object); repair or remove it")
    return {
        name: value
        for name, value in results.items()
        if (name == "model_name" and isinstance(value, str))
        or (name in ("n-samples", "higher_is_better") and tables(value))
    }


def tables(value: Any) -> bool:
    """Say whether a value is an object of objects."""
    return isinstance(value, dict) and all(isinstance(inner, dict) for inner in value.values())


def of_filter(file: Path, rows: Sequence[Row], wanted: str | None) -> list[Row]:
    """Return the rows of one filter, so that no document counts twice."""
    filters = sorted({str(fields.get("filter", "none")) for _, fields, _ in rows})
    if len(filters) > 1 and wanted is None:
        fault = f"is needed: {file} has a row of each document for {', '.join(map(repr, filters))}"
        raise InputError.argument("read_log", "answer_filter", None, fault, "name one of them")
    # A task without a choice of filters has one of this name, whatever is wanted of the others.
    if len(filters) < 2 and (wanted is None or filters == ["none"] or not filters):
        return list(rows)
    if wanted not in filters:
        fault = f"is no filter of {file}"
        raise InputError.argument(
            "read_log", "answer_filter", wanted, fault, nearest_name(str(wanted), filters)
        )
    return [row for row in rows if str(row[1].get("filter", "none")) == wanted]


def without_row(every: Sequence[Row], chosen: Sequence[Row]) -> Iterator[Reject]:
    """Yield a reject for each document that has rows of other filters only."""
    read = {id_text(fields.get("doc_id")) for _, fields, _ in chosen}
    for number, fields, text in every:
        document = id_text(fields.get("doc_id"))
        if document is not None and document not in read:
            read.add(document)
            fault = f"is of document {document}, which has no row of the filter that counts"
            yield Reject(number, fault, text, "complete the file, or pass on_error='skip' to list this")


def the_metric(file: Path, rows: Sequence[Row], wanted: str | None) -> str:
    """Return the name of the column that holds the score."""
    names = sorted({name for _, fields, _ in rows for name in metrics_of(fields)})
    if rows and not names:
        raise InputError(f"{file}: has no column of a metric; check that its rows are whole")
    if wanted is None and len(names) > 1:
        fault = f"is needed: {file} has {', '.join(map(repr, names))}"
        raise InputError.argument("read_log", "metric", None, fault, "name one of them")
    if wanted is not None and names and wanted not in names:
        fault = f"is no metric of {file}"
        raise InputError.argument("read_log", "metric", wanted, fault, nearest_name(wanted, names))
    return wanted or (names[0] if names else "")


def metrics_of(fields: dict[str, Any]) -> list[str]:
    """Return the names of a row's scores; older versions of the harness do not list them."""
    listed = fields.get("metrics")
    if isinstance(listed, list):
        return [name for name in listed if isinstance(name, str)]
    return [name for name in fields if name not in OF_ROW]


def runs_of(
    rows: Sequence[Row], metric: str, shared: dict[str, Any], ids: Identities
) -> Iterator[RunRecord | Reject]:
    """Yield the run of each row."""
    scores = {number: score_of(fields, metric) for number, fields, _ in rows}
    numbers = [score for score in scores.values() if isinstance(score, float)]
    for place, (number, fields, text) in enumerate(rows, 1):
        score = scores[number]
        if isinstance(score, str):
            yield Reject(number, score, text)
            continue
        content = {"doc": fields.get("doc_hash") or fields.get("doc"), "target": fields.get("target")}
        identity = ids.of(number, text, own=fields.get("doc_id"), content=content, position=place)
        if isinstance(identity, Reject):
            yield identity
            continue
        target = fields.get("target")
        run = {
            **shared,
            "input_id": identity,
            "score": score,
            "success": full_marks(score, numbers),
            "error": f"{metric} is null" if score is None else None,
            "prediction": one_text(fields.get("filtered_resps")),
            "references": None if target is None else [str(target)],
            "extra": {name: value for name, value in fields.items() if name not in ("target", metric)}
            | {"metric": metric},
        }
        try:
            yield msgspec.convert(run, RunRecord)
        except msgspec.ValidationError as error:
            yield Reject(number, f"breaks the contract of run records ({error})", text)


def score_of(fields: dict[str, Any], metric: str) -> float | str | None:
    """Return the score of a row, or what is wrong with it."""
    if metric not in fields:
        return f"has no column {metric!r}, the metric"
    value = fields[metric]
    if isinstance(value, str):
        return f"has {metric}={value!r}, which is text"
    try:
        return None if value is None else real(value)
    except CellFault as fault:
        return f"has {metric}={value!r}, {fault}; it is no score of a document"


def one_text(responses: Any) -> str | None:
    """Return the answer that a filter took; None for what is no text, such as log-likelihoods of choices."""
    if isinstance(responses, list) and len(responses) == 1:
        return one_text(responses[0])
    return responses if isinstance(responses, str) else None


def check_documents(runs: pl.DataFrame) -> None:
    """Raise `InputError` where files have other documents under the same id."""
    documents = runs.select(
        "suite", "task", "input_id", pl.col("extra").str.json_path_match("$.doc_hash").alias("hash")
    ).drop_nulls("hash")
    other = (
        documents.group_by("suite", "task", "input_id", maintain_order=True)
        .agg(pl.col("hash").n_unique())
        .filter(pl.col("hash") > 1)
    )
    if other.height:
        shown_ids = ", ".join(f"{task} {one}" for _, task, one, _ in other.head(3).iter_rows())
        raise InputError(
            f"read_log: {other.height} documents have another doc_hash in another file, such as {shown_ids}; "
            "read files of the same version of the data, or pass pair_by='content'"
        )


LM_EVAL = Reader(
    "lm_eval",
    recognises,
    read,
    takes=(
        *("model", "suite", "task", "arm", "condition", "budget"),
        *("answer_filter", "metric", "pair_by"),
    ),
    requires=("arm",),
    companions=("results_*.json",),
    check_runs=check_documents,
)
