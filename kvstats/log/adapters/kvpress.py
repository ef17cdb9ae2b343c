"""Results folders of kvpress: ``predictions.csv``, one row an answer, and ``config.yaml``, ``metrics.json``.

Each row becomes one run. Model, arm (the press; ``full`` for ``no_press``), suite (data set and length) and
condition (``aware`` where the question was compressed too) are those of the configuration; where it is
missing, those of the folder's name. Columns:

- ``compression_ratio``: the fraction removed; `budget` is 1 minus that. It is what the press came to, which
  may differ from the setting of this name. Rows of presses that compress while
  decoding have none, so that the budget must be given.
- ``task``, ``predicted_answer``.
- ``answer``: the references, a printed array of texts or one text.
- ``id``, ``_id`` or ``index``: an id of the input, where there is one. Otherwise inputs are told apart by
  question, references and prefix; contexts are not part of these files.

Other columns are kept under ``extra`` as the text that they are. So are the folder's name, what was found
wrong with it (``findings``), settings of the run (``config``), the metric, and the threshold that a score
must reach to be a success.

The answers of RULER are scored as kvpress does, without control characters, and held against
``metrics.json``: where a task's mean is not the printed score, there is a warning, and both are kept under
``extra`` of its rows. Answers of other data sets have no score here.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from kvstats.errors import InputError
from kvstats.log.adapters.csv_rows import csv_columns, csv_rows
from kvstats.log.adapters.identity import Identities
from kvstats.log.adapters.kvpress_folder import (
    CONFIG,
    METRICS,
    PREDICTIONS,
    KvpressFolder,
    is_results_folder,
    kvpress_folder,
)
from kvstats.log.adapters.printed_arrays import parse_printed_array
from kvstats.log.adapters.printed_scores import score_differences
from kvstats.log.adapters.reader import Labels, Reader
from kvstats.log.cells import CellFault, budget_of
from kvstats.log.lines import Reject
from kvstats.log.records import Record, RunRecord
from kvstats.metrics.string_match import RULER_METRICS, ruler_metric, without_control

__all__ = ["KVPRESS", "THRESHOLD"]

THRESHOLD = 1.0
"""A run is a success where its score reaches this."""

ANSWER = "predicted_answer"
IDS = ("id", "_id", "index")
KEPT = ("press_init_command", "compression_ratio", "seed", "fraction", "max_new_tokens")
"""Settings that are kept with each run."""

SHOWN = 200


def recognises(file: Path, objects: Sequence[dict[str, Any]]) -> bool:
    """Say whether a file holds the rows of a results folder, or the scores of one that lacks its rows."""
    if file.name == PREDICTIONS:
        return ANSWER in csv_columns(file)
    return (
        file.name == METRICS and not (file.parent / PREDICTIONS).exists() and is_results_folder(file.parent)
    )


def read(file: Path, labels: Labels) -> Iterator[Record | Reject]:
    """Yield the run of each row, or a reject."""
    if file.name == METRICS:
        fault = "has scores by task only, and nothing can be paired without the rows behind them"
        yield Reject(1, fault, "", f"add {PREDICTIONS}, leave this folder out, or pass on_error='skip'")
        return
    folder = kvpress_folder(file.parent)
    for _, message in folder.findings:
        warnings.warn(message, stacklevel=3)
    shared = shared_fields(file, folder, labels)
    names = csv_columns(file)
    if ANSWER not in names:
        raise InputError(f"{file}: has no column {ANSWER}; pass the format that it is in")
    without_id = labels.pair_by == "key" and not any(name in names for name in IDS)
    ids = Identities(replace(labels, pair_by="content") if without_id else labels)
    items: list[RunRecord | Reject] = []
    scores: dict[str, list[float]] = {}
    for place, item in enumerate(csv_rows(file), 1):
        if isinstance(item, Reject):
            items.append(item)
            continue
        number, columns = item
        own = next((columns[name] for name in IDS if columns.get(name)), None)
        content = {name: columns.get(name) for name in ("question", "answer_prefix")}
        run = run_of(dict(columns), shared, folder, labels, number)
        if isinstance(run, RunRecord):
            if run.score is not None:
                scores.setdefault(run.task, []).append(run.score)
            found = ids.of(
                number,
                ",".join(columns.values())[:SHOWN],
                own=own,
                content=content | {"references": run.references},
                within=run.task,
                position=place,
            )
            run = found if isinstance(found, Reject) else msgspec.structs.replace(run, input_id=found)
        items.append(run)
    if not items:
        items.append(Reject(1, "is followed by no row", "", "remove the file"))
    yield from held_against_scores(file, folder, scores, items)


def shared_fields(file: Path, folder: KvpressFolder, labels: Labels) -> dict[str, Any]:
    """Return what all rows share: what the caller says, or else the folder."""
    shared: dict[str, Any] = {}
    for name, told in (("model", folder.told.get("model")), ("suite", folder.suite), ("arm", folder.arm)):
        value = getattr(labels, name) or told
        if not value:
            raise InputError(
                f"{file}: neither {CONFIG} nor the folder's name tells the {name}; pass {name}=..."
            )
        shared[name] = str(value)
    return shared | {"condition": labels.condition or folder.condition}


def run_of(
    columns: dict[str, str], shared: dict[str, Any], folder: KvpressFolder, labels: Labels, number: int
) -> RunRecord | Reject:
    """Make the run of a row, still without an id, or say what is wrong with it."""
    text = ",".join(columns.values())[:SHOWN]
    dataset = str(folder.told.get("dataset") or "")
    try:
        budget = kept(columns.pop("compression_ratio", None), labels.budget)
        if shared["arm"] == "full" and budget != 1.0:
            raise CellFault(f"keeps {budget:g} of the cache, and the full cache keeps all")
        prediction = columns.pop(ANSWER)
        references = references_in(columns.pop("answer", None))
        task = columns.pop("task", dataset)
        config = {name: folder.told[name] for name in KEPT if folder.told.get(name) is not None}
        extra: dict[str, Any] = {"folder": folder.path.name, "config": config}
        if folder.findings:
            extra["findings"] = [check for check, _ in folder.findings]
        score = error = None
        if dataset.startswith("ruler") and task == dataset:
            return Reject(number, "has no task", text)
        if not dataset.startswith("ruler"):
            error = f"answers of the data set {dataset!r} have no score here"
        elif references is None:
            error = "has no column answer with the references"
        else:
            extra |= {"metric": ruler_metric(task), "threshold": THRESHOLD}
            score = RULER_METRICS[ruler_metric(task)](without_control(prediction, ""), references)
        run = {
            "task": task,
            "input_id": "to be told",
            "budget": budget,
            "score": score,
            "success": None if score is None else score >= THRESHOLD,
            "prediction": prediction,
            "references": references,
            "error": error,
            "extra": extra | columns,
        }
        return msgspec.convert(shared | run, RunRecord)
    except CellFault as fault:
        return Reject(number, str(fault), text)
    except (InputError, msgspec.ValidationError) as fault:
        return Reject(number, f"cannot be used ({fault})", text)


def references_in(answer: str | None) -> list[str] | None:
    """Return the references: those of a printed array, or the one that is not printed as such."""
    if answer is None:
        return None
    return parse_printed_array(answer) if answer.startswith("[") else [answer]


def kept(ratio: str | None, given: float | None) -> float:
    """Return the fraction kept: what the fraction removed leaves, or else what the caller says."""
    if ratio is None:
        if given is None:
            raise CellFault("has no compression_ratio; pass budget, the fraction kept")
        return given
    try:
        budget = budget_of(ratio, "fraction_removed")["budget"]
    except CellFault as error:
        raise CellFault(f"has compression_ratio={ratio!r}, {error}") from error
    if given not in (None, budget):
        raise CellFault(f"has compression_ratio={ratio!r}, which keeps {budget:g}, not budget={given:g}")
    return budget


def held_against_scores(
    file: Path,
    folder: KvpressFolder,
    scores: Mapping[str, Sequence[float]],
    items: Sequence[RunRecord | Reject],
) -> Iterator[Record | Reject]:
    """Hold the scores against the printed ones, and add both to the runs of tasks where they differ."""
    differing = {}
    if folder.scores and scores:
        differing = {found.task: found for found in score_differences(folder.printed, scores)}
    if differing:
        shown = "; ".join(str(found) for found in [*differing.values()][:3]) + "; ..." * (len(differing) > 3)
        unread = sum(isinstance(item, Reject) and not item.duplicate for item in items)
        note = f" ({unread} more cannot be used)" if unread else ""
        count = f"{len(differing)} of {len(folder.printed.keys() | scores.keys())} tasks"
        warnings.warn(f"{file}: {count} do not have the score of {METRICS}: {shown}{note}", stacklevel=4)
    for item in items:
        if isinstance(item, RunRecord) and item.task in differing:
            found = differing[item.task]
            both = {"printed_score": found.printed, "recomputed_score": found.recomputed}
            yield msgspec.structs.replace(item, extra=item.extra | both)
        else:
            yield item


KVPRESS = Reader(
    "kvpress",
    recognises,
    read,
    takes=("model", "suite", "arm", "condition", "budget", "pair_by"),
    companions=(METRICS, CONFIG),
)
