"""Answers of LongBench: ``pred/<model>/<task>.jsonl``, one row an answer, without id and without score.

Each row becomes one run. The task is the file's name, the model that of its folder, the suite ``longbench``,
or ``longbench_e`` below a folder ``pred_e``; the arm is not told and must be given, and so must the budget
where it is to be known. Columns:

- ``pred``, ``answers``: prediction and references.
- ``all_classes``: the classes of a classification.
- ``length``: of the context, in words or, in Chinese, characters.
- ``_id`` or ``id``, where a variant of the format has one. Otherwise ``pair_by="content"`` tells inputs apart
  by references, classes and length, which a few questions share, or ``pair_by="position"`` by their lines.

All but prediction and references are kept under ``extra``, with metric and threshold. The score is that of
LongBench's own evaluation, in [0, 1]; success is full marks in classification, retrieval and counting, and
null for F1, ROUGE-L and the similarity of code, for which LongBench knows no threshold: see
`kvstats.score_predictions`. A task that is none of LongBench's has predictions without a score.

Scores are held against ``result.json`` in the same folder, in per cent with two digits: where a file's mean
over all rows is not what is printed, or rows come twice, there is a warning with all figures.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kvstats.log.adapters.longbench_tasks import LONGBENCH_TASKS
from kvstats.log.adapters.predictions import NO_METRIC, Answer, Row, answer_runs, reference_texts
from kvstats.log.adapters.printed_scores import score_differences
from kvstats.log.adapters.reader import Labels, Reader, stem
from kvstats.log.lines import Reject
from kvstats.log.records import Record

__all__ = ["LONGBENCH"]

RESULT = "result.json"
SUITES = {"pred_e": "longbench_e"}
COLUMNS = ("pred", "answers", "all_classes")
CONTENT = ("answers", "all_classes", "length")

BUCKETS = (("0-4k", 4000), ("4-8k", 8000), ("8k+", math.inf))
"""Lengths of context by which LongBench-E prints its scores; each is below the second figure."""


def recognises(file: Path, objects: Sequence[dict[str, Any]]) -> bool:
    """Say whether objects are answers of LongBench."""
    return any(all(name in fields for name in COLUMNS) for fields in objects)


def read(file: Path, labels: Labels) -> Iterator[Record | Reject]:
    """Yield the run of each row, or a reject; warn where scores are not the printed ones."""
    task = labels.task or stem(file)
    folder = file.absolute().parent
    suite = labels.suite or SUITES.get(folder.parent.name, "longbench")
    key = {"model": labels.model or folder.name, "suite": suite, "task": task}
    known = LONGBENCH_TASKS.get(task)
    rows = list(answer_runs(file, labels, key, known.scoring if known else None, answer))
    if known is None:
        yield from (row.item for row in rows)
        fault = f"{file}: {NO_METRIC} ({task}); predictions are kept without a score"
        warnings.warn(fault, stacklevel=3)
        return
    printed, unreadable = printed_scores(file.with_name(RESULT), task)
    scores: dict[str, list[float]] = {}
    for row in rows:
        if row.score is not None:
            scores.setdefault(figure(task, row.fields, printed), []).append(row.score)
    differing = {found.task: found for found in score_differences(printed, scores)} if printed else {}
    for row in rows:
        difference = differing.get(figure(task, row.fields, printed))
        if difference is None or isinstance(row.item, Reject):
            yield row.item
        else:
            both = {"printed_score": difference.printed, "recomputed_score": difference.recomputed}
            yield msgspec.structs.replace(row.item, extra={**row.item.extra, **both})
    faults = [*unreadable, *(f"{found}, unlike {RESULT}" for found in differing.values())]
    faults += repeats(rows, printed)
    for fault in faults:
        warnings.warn(f"{file}: {fault}", stacklevel=3)


def answer(fields: dict[str, Any]) -> Answer | str:
    """Take a row apart, or say what is wrong with it."""
    for name in COLUMNS[:2]:
        if name not in fields:
            return f"has no {name}"
    content: dict[str, Any] = {name: fields[name] for name in CONTENT if name in fields}
    prediction, answers = fields.pop("pred"), reference_texts(fields.pop("answers"))
    if prediction is not None and not isinstance(prediction, str):
        return f"has pred={prediction!r}, which is not text"
    if answers is None:
        return "has answers that are not texts"
    if fields.get("all_classes") is None:
        fields.pop("all_classes", None)
    own_id = next((fields.pop(name) for name in ("_id", "id") if name in fields), None)
    return Answer(prediction, answers, content, fields, own_id)


def printed_scores(file: Path, task: str) -> tuple[dict[str, float], list[str]]:
    """Return the printed scores of a task in per cent, by length where they are so, and what is wrong."""
    if not file.is_file():
        return {}, []
    try:
        found = json.loads(file.read_bytes())
    except ValueError as error:
        return {}, [f"{RESULT} is not JSON ({error}), so that no score is held against it"]
    found = found.get(task) if isinstance(found, dict) else None
    if found is None:
        return {}, []
    printed = (
        {f"{task} {name}": one for name, one in found.items()} if isinstance(found, dict) else {task: found}
    )
    if not all(isinstance(one, int | float) for one in printed.values()):
        return {}, [f"{RESULT} has no number for {task}, so that no score is held against it"]
    # The mean of no row is printed as NaN.
    return {name: float(one) for name, one in printed.items() if not math.isnan(one)}, []


def figure(task: str, fields: Mapping[str, Any], printed: Mapping[str, float]) -> str:
    """Return which printed score a row is part of: that of its task, in LongBench-E of its length too."""
    length = fields.get("length")
    if not isinstance(length, int | float) or not any(f"{task} {name}" in printed for name, _ in BUCKETS):
        return task
    return f"{task} {next(name for name, end in BUCKETS if length < end)}"


def repeats(rows: Sequence[Row], printed: Mapping[str, float]) -> list[str]:
    """Say how many rows repeat an earlier one or its input, and what the mean is with and without them."""
    seen: set[bytes] = set()
    first: list[float] = []
    count = 0
    for row in rows:
        whole = msgspec.json.encode({name: row.fields.get(name) for name in ("pred", *CONTENT)})
        again = row.item.duplicate if isinstance(row.item, Reject) else whole in seen
        seen.add(whole)
        count += again
        if row.score is not None and not again:
            first.append(row.score)
    if not count or not first:
        return []
    every = [row.score for row in rows if row.score is not None]
    told = f"; {RESULT} prints " + ", ".join(f"{score:g}" for score in printed.values()) if printed else ""
    means = [100 * sum(part) / len(part) for part in (every, first)]
    verb = "repeats" if count == 1 else "repeat"
    return [
        f"{count:,} of {len(rows):,} rows {verb} the input of an earlier one; the mean is {means[0]:.2f} "
        f"with them and {means[1]:.2f} without{told}"
    ]


LONGBENCH = Reader(
    "longbench",
    recognises,
    read,
    takes=("model", "suite", "task", "arm", "condition", "budget", "pair_by"),
    requires=("arm",),
    companions=(RESULT,),
)
