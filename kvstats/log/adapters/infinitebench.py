"""Answers of InfiniteBench: ``results/<model>/preds_<task>.jsonl``, one row an answer, without score.

Each row becomes one run. The task is in the file's name, the model is that of its folder, the suite
``infinitebench``; the arm is not told and must be given, and so must the budget where it is to be known.
Columns:

- ``id``: of the input within its task.
- ``prediction`` or ``pred``; an empty one is a wrong answer.
- ``ground_truth`` or ``label``: the references, one or several.

Other columns are kept under ``extra``, with metric and threshold. The score is that of InfiniteBench's own
evaluation, and success is full marks; for F1, of which InfiniteBench knows no threshold, it is null: see
`kvstats.score_predictions`. There is no score for ``math_calc``, which is scored otherwise for one model,
for ``longbook_sum_eng``, and for tasks that are none of InfiniteBench's: their predictions are kept, and
there is a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kvstats.log.adapters.predictions import NO_METRIC, Answer, Scoring, answer_runs, reference_texts
from kvstats.log.adapters.reader import Labels, Reader, stem
from kvstats.log.lines import Reject
from kvstats.log.records import Record
from kvstats.metrics import (
    bug_choice,
    character_f1,
    first_number,
    last_number,
    letter_choice,
    number_value,
    speaker,
    token_f1,
    whole_word,
)

__all__ = ["INFINITEBENCH", "INFINITEBENCH_TASKS"]

PREFIX = "preds_"
PREDICTIONS = ("prediction", "pred")
REFERENCES = ("ground_truth", "label")


def scoring(metric: Callable[[str, Sequence[str]], float], threshold: float | None = 1.0) -> Scoring:
    """Make the rule of a metric that looks at nothing but answer and references."""

    def score(prediction: str, references: list[str], fields: Mapping[str, Any]) -> float:
        return metric(prediction, references)

    return Scoring(metric.__name__, score, threshold)


INFINITEBENCH_TASKS: dict[str, Scoring] = {
    "passkey": scoring(first_number),
    "number_string": scoring(first_number),
    "kv_retrieval": scoring(whole_word),
    "longdialogue_qa_eng": scoring(speaker),
    "longbook_choice_eng": scoring(letter_choice),
    "longbook_qa_eng": scoring(token_f1, None),
    "longbook_qa_chn": scoring(character_f1, None),
    "math_find": scoring(number_value),
    "code_run": scoring(last_number),
    "code_debug": scoring(bug_choice),
}
"""The tasks that are scored, by name."""


def recognises(file: Path, objects: Sequence[dict[str, Any]]) -> bool:
    """Say whether a file has the name, and its objects the columns, of answers of InfiniteBench."""
    return stem(file).startswith(PREFIX) and any(
        "id" in fields
        and any(name in fields for name in PREDICTIONS)
        and any(name in fields for name in REFERENCES)
        for fields in objects
    )


def read(file: Path, labels: Labels) -> Iterator[Record | Reject]:
    """Yield the run of each row, or a reject; warn where no metric is known."""
    task = labels.task or stem(file).removeprefix(PREFIX)
    model = labels.model or file.absolute().parent.name
    key = {"model": model, "suite": labels.suite or "infinitebench", "task": task}
    known = INFINITEBENCH_TASKS.get(task)
    for row in answer_runs(file, labels, key, known, answer):
        yield row.item
    if known is None:
        fault = f"{file}: {NO_METRIC} ({task}); predictions are kept without a score"
        warnings.warn(fault, stacklevel=3)


def answer(fields: dict[str, Any]) -> Answer | str:
    """Take a row apart, or say what is wrong with it."""
    taken: dict[str, Any] = {}
    for what, names in (("prediction", PREDICTIONS), ("references", REFERENCES)):
        found = [name for name in names if name in fields]
        if not found:
            return f"has neither {names[0]} nor {names[1]}"
        taken[what] = fields.pop(found[0])
    prediction, own_id = taken["prediction"], fields.pop("id", None)
    references = reference_texts(taken["references"])
    if prediction is not None and not isinstance(prediction, str):
        return f"has a prediction that is not text: {prediction!r}"
    if references is None:
        return "has references that are neither texts nor numbers"
    return Answer(prediction, references, {"references": taken["references"]}, fields, own_id)


INFINITEBENCH = Reader(
    "infinitebench",
    recognises,
    read,
    takes=("model", "suite", "task", "arm", "condition", "budget", "pair_by"),
    requires=("arm",),
)
