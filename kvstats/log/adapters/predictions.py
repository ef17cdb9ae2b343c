"""Files of one task and one arm, a line an answer with its references: what their readers have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from kvstats.errors import InputError
from kvstats.log.adapters.identity import Identities
from kvstats.log.adapters.reader import Labels
from kvstats.log.lines import Reject, json_object, numbered_lines, shown
from kvstats.log.records import RunRecord

__all__ = ["NO_METRIC", "Answer", "Row", "Scoring", "answer_runs", "reference_texts"]

FULL = "full"

NO_METRIC = "no metric is known for this task"
"""Why a run has no score, where its prediction is there."""


@dataclass(frozen=True)
class Scoring:
    """How the answers of a task are scored.

    Attributes
    ----------
    metric : str
        Name of the metric.
    score : callable
        Takes an answer, its references and the fields of its row, and returns the score.
    threshold : float or None
        A run is a success where its score reaches this. None for a metric of degree, such as F1, for which
        the benchmark has no threshold: success is null then.
    """

    metric: str
    score: Callable[[str, list[str], Mapping[str, Any]], float]
    threshold: float | None


@dataclass(frozen=True)
class Answer:
    """What a row says, by what it is; all that is not named here is `extra`."""

    prediction: str | None
    references: list[str]
    content: dict[str, Any]
    extra: dict[str, Any]
    own_id: object = None


@dataclass(frozen=True)
class Row:
    """What became of a line.

    Attributes
    ----------
    item : RunRecord or Reject
        Its run, or why there is none.
    fields : mapping of str to Any
        Its columns.
    score : float or None
        Its score, also where its run is rejected because it repeats another.
    """

    item: RunRecord | Reject
    fields: Mapping[str, Any]
    score: float | None = None


def answer_runs(
    file: Path,
    labels: Labels,
    key: Mapping[str, str],
    scoring: Scoring | None,
    answer_of: Callable[[dict[str, Any]], Answer | str],
) -> Iterator[Row]:
    """Yield what becomes of each line that is not blank.

    Parameters
    ----------
    file : Path
        The file.
    labels : Labels
        What the caller says of it. Without a budget the full cache has budget 1.
    key : mapping of str to str
        Model, suite and task.
    scoring : Scoring or None
        How answers are scored; None where that is not known.
    answer_of : callable
        Takes the fields of a row, and returns what they say or what is wrong with them.
    """
    budget = 1.0 if labels.arm == FULL and labels.budget is None else labels.budget
    shared = {**key, "arm": labels.arm, "condition": labels.condition, "budget": budget}
    ids = Identities(labels)
    number = 0
    for item in numbered_lines(file):
        if isinstance(item, Reject):
            yield Row(item, {})
            return
        number, line = item
        fields = json_object(line, number)
        if isinstance(fields, Reject):
            yield Row(fields, {})
            continue
        answer = answer_of(dict(fields))
        run = scored(answer, fields, scoring) if isinstance(answer, Answer) else answer
        if isinstance(run, str) or isinstance(answer, str):
            yield Row(Reject(number, str(run), shown(line)), fields)
            continue
        identity = ids.of(number, shown(line), own=answer.own_id, content=answer.content)
        if isinstance(identity, Reject):
            yield Row(identity, fields, run["score"])
            continue
        try:
            made = msgspec.convert({**run, **shared, "input_id": identity}, RunRecord)
        except msgspec.ValidationError as error:
            yield Row(Reject(number, f"breaks the form of its rows ({error})", shown(line)), fields)
        else:
            yield Row(made, fields, made.score)
    if not number:
        yield Row(Reject(1, "the file is empty", "", "remove the file"), {})


def scored(answer: Answer, fields: Mapping[str, Any], scoring: Scoring | None) -> dict[str, Any] | str:
    """Score an answer, or say why it cannot be."""
    run: dict[str, Any] = {"prediction": answer.prediction, "references": answer.references}
    if not answer.references:
        return "has no reference"
    if answer.prediction is None or scoring is None:
        reason = "no prediction" if answer.prediction is None else NO_METRIC
        return {**run, "score": None, "error": reason, "extra": answer.extra}
    try:
        score = scoring.score(answer.prediction, answer.references, fields)
    except InputError as error:
        return f"cannot be scored ({error})"
    success = None if scoring.threshold is None else score >= scoring.threshold
    rule = {"metric": scoring.metric, "threshold": scoring.threshold}
    return {**run, "score": score, "success": success, "extra": {**rule, **answer.extra}}


def reference_texts(value: Any) -> list[str] | None:
    """Return one reference or several as texts; None for what is none.

    Examples
    --------
    >>> reference_texts("a"), reference_texts(["a", 7]), reference_texts(-12), reference_texts(None)
    (['a'], ['a', '7'], ['-12'], None)
    """
    values = value if isinstance(value, list) else [value]
    if any(isinstance(one, bool) or not isinstance(one, str | int | float) for one in values):
        return None
    return [str(one) for one in values]
