"""Answers of RULER: ``pred/<task>.jsonl``, one row an answer, without score.

Each row becomes one run. The task is the file's name, without the number of a part (``vt-0.jsonl``). In
RULER's own folders, ``<model>/<benchmark>/<length>/pred``, model and suite (``ruler_4096``) are those of the
path; elsewhere the model must be given. Arm and budget are not told and must be given. Columns:

- ``pred``, ``outputs``: prediction and references.
- ``index``, or an ``id`` under ``others``: the id of the input.
- ``input``: the prompt, of which only the SHA-256 is kept, as ``input_sha256``.

All but prediction and references are kept under ``extra`` (``length`` counts the tokens to generate too),
with metric and threshold. The score is that of RULER's own evaluation, in [0, 1]; success is full marks.

Scores are held against ``summary.csv`` in the same folder, which is rounded to two digits in per cent: where
a file's mean over all rows is not what is printed, there is a warning, and both are kept under ``extra`` of
its runs.
"""

from __future__ import annotations

import csv
import hashlib
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kvstats.errors import InputError
from kvstats.log.adapters.predictions import Answer, Scoring, answer_runs, reference_texts
from kvstats.log.adapters.printed_scores import ScoreDifference, score_differences
from kvstats.log.adapters.reader import Labels, Reader, stem
from kvstats.log.lines import Reject
from kvstats.log.records import Record
from kvstats.metrics import METRICS
from kvstats.metrics.string_match import ruler_metric, without_control

__all__ = ["RULER"]

THRESHOLD = 1.0
"""A run is a success where its score reaches this."""

PART = re.compile(r"-\d+$")
SUMMARIES = "summary*.csv"


def recognises(file: Path, objects: Sequence[dict[str, Any]]) -> bool:
    """Say whether objects are answers of RULER: a prediction, and references under the name of outputs."""
    return any({"pred", "outputs"} <= fields.keys() for fields in objects)


def read(file: Path, labels: Labels) -> Iterator[Record | Reject]:
    """Yield the run of each row, or a reject; warn where scores are not the printed ones."""
    key = key_of(file, labels)
    metric = ruler_metric(key["task"])

    def score(prediction: str, references: list[str], fields: Mapping[str, Any]) -> float:
        return METRICS[metric](without_control(prediction, "\n"), references)

    rows = list(answer_runs(file, labels, key, Scoring(metric, score, THRESHOLD), answer))
    scores = [row.score for row in rows if row.score is not None]
    extra: dict[str, Any] = {}
    for summary, found in differences(file, key["task"], scores):
        warnings.warn(f"{file}: {found}, unlike {summary.name}", stacklevel=3)
        extra = {"printed_score": found.printed, "recomputed_score": found.recomputed}
    for row in rows:
        if isinstance(row.item, Reject):
            yield row.item
        else:
            yield msgspec.structs.replace(row.item, extra={**row.item.extra, **extra})


def key_of(file: Path, labels: Labels) -> dict[str, str]:
    """Return model, suite and task: what the caller says, or else the path."""
    folders = [folder.name for folder in file.absolute().parents]
    of_ruler = len(folders) > 3 and folders[0] == "pred" and folders[1].isdigit()
    model = labels.model or (folders[3] if of_ruler else "")
    if not model:
        raise InputError.argument("read_log", "model", None, f"is not told by the path {file}", "pass model")
    suite = labels.suite or (f"ruler_{folders[1]}" if of_ruler else "ruler")
    return {"model": model, "suite": suite, "task": labels.task or PART.sub("", stem(file))}


def answer(fields: dict[str, Any]) -> Answer | str:
    """Take a row apart, or say what is wrong with it."""
    for name in ("pred", "outputs"):
        if name not in fields:
            return f"has no {name}"
    prediction, references = fields.pop("pred"), reference_texts(fields.pop("outputs"))
    if prediction is not None and not isinstance(prediction, str):
        return f"has pred={prediction!r}, which is not text"
    if references is None:
        return "has outputs that are not texts"
    content: dict[str, Any] = {"outputs": references}
    prompt = fields.pop("input", None)
    if prompt is not None:
        content["input_sha256"] = hashlib.sha256(str(prompt).encode()).hexdigest()
        fields["input_sha256"] = content["input_sha256"]
    others = fields.get("others")
    own = others.get("id") if isinstance(others, dict) else None
    return Answer(prediction, references, content, fields, fields.get("index") if own is None else own)


def differences(file: Path, task: str, scores: Sequence[float]) -> Iterator[tuple[Path, ScoreDifference]]:
    """Yield the summaries in which the printed score of a whole file is another; parts have none."""
    if PART.search(stem(file)) or not scores:
        return
    for summary in sorted(file.parent.glob(SUMMARIES)):
        # A row of tasks, and one of their scores, each behind its title.
        with summary.open(encoding="utf-8", newline="") as text:
            rows = {row[0]: row[1:] for row in csv.reader(text) if row}
        printed = dict(zip(rows.get("Tasks", ()), rows.get("Score", ()), strict=False)).get(task)
        try:
            told = {} if printed is None else {task: float(printed)}
        except ValueError:
            warnings.warn(
                f"{summary}: has the score {printed!r} for {task}, which is no number", stacklevel=4
            )
            continue
        yield from ((summary, found) for found in score_differences(told, {task: scores}) if told)


RULER = Reader(
    "ruler",
    recognises,
    read,
    takes=("model", "suite", "task", "arm", "condition", "budget", "pair_by"),
    requires=("arm",),
    companions=(SUMMARIES, "submission.csv"),
)
