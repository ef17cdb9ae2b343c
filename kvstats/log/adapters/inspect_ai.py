"""Logs of Inspect, ``.eval`` and JSON, read by the package `inspect_ai` itself.

Each sample becomes one run; the arm and the budget are the caller's to say. Task and model are those of the
log, the suite is its data set, the seed is the epoch. Scores are numbers as Inspect makes them of values: C,
yes and true are 1, P is 0.5, I, N, no and false are 0, numbers are themselves. A value of several numbers
has a score by the name ``scorer.key`` for each. Where a log has several scores, `metric` says which one
counts. Success is a score of 1, where all scores of the file lie between 0 and 1.

No sample leaves the log: one that ended in an error, or that no scorer scored, is a run without score whose
``error`` says why. Samples that were planned but are not in the log are a fault, and so is a log without any.
Metadata, all scores, usage, limit and the sample's own id of this run are kept under ``extra``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kvstats.errors import InputError, nearest_name
from kvstats.log.adapters.identity import Identities
from kvstats.log.adapters.reader import Labels, Reader
from kvstats.log.cells import CellFault, full_marks, real
from kvstats.log.lines import Reject
from kvstats.log.records import Record, RunRecord

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

__all__ = ["INSPECT"]

BEGIN = re.compile(rb'\s*\{\s*"version":\s*\d+,\s*"status":\s*"')
"""How a log in JSON begins."""

ZIP_MAGIC = b"PK"

WORDS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
LOWER_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def recognises(file: Path, objects: Sequence[dict[str, Any]]) -> bool:
    """Say whether a file is a log of Inspect, by how it begins."""
    if file.suffix not in (".eval", ".json"):
        return False
    with file.open("rb") as stream:
        begin = stream.read(200)
    return begin.startswith(ZIP_MAGIC) if file.suffix == ".eval" else BEGIN.match(begin) is not None


def read(file: Path, labels: Labels) -> Iterator[Record | Reject]:
    """Yield the run of each sample, by its place in the log."""
    log = open_log(file)
    samples = log.samples or []
    planned = len(log.eval.dataset.sample_ids or []) * (log.eval.config.epochs or 1)
    if len(samples) < planned or not samples:
        count = f"{len(samples)} of {planned} planned samples" if planned else "no samples"
        fault = f"holds {count}; its status is {log.status!r}"
        yield Reject(1, fault, "", "complete it, leave it out, or pass on_error='skip' to list this")
    scores = [scores_of(sample) for sample in samples]
    metric = the_metric(file, sorted({name for found in scores for name in found}), labels.metric)
    values = [number(found.get(metric)) for found in scores]
    numbers = [value for value in values if isinstance(value, float)]
    shared = {
        "suite": labels.suite or log.eval.dataset.name or log.eval.task,
        "model": labels.model or log.eval.model,
        "task": log.eval.task,
        "arm": labels.arm,
        "condition": labels.condition,
        "budget": 1.0 if labels.budget is None and labels.arm == "full" else labels.budget,
    }
    ids = Identities(labels)
    for place, (sample, found, value) in enumerate(zip(samples, scores, values, strict=True), 1):
        text = f"sample {sample.id!r}, epoch {sample.epoch}"
        if isinstance(value, Reject):
            yield Reject(place, f"{text}: has {metric}={found[metric]!r}, {value.error}", text)
            continue
        content = {"input": messages(sample.input), "target": sample.target, "choices": sample.choices}
        identity = ids.of(place, text, own=sample.id, content=content, within=sample.epoch, position=place)
        if isinstance(identity, Reject):
            yield identity
            continue
        run = {
            **shared,
            "input_id": identity,
            "seed": sample.epoch,
            "score": value,
            "success": full_marks(value, numbers),
            "error": None if value is not None else why_unscored(sample, metric),
            "prediction": sample.output.completion if sample.output.choices else None,
            "references": [sample.target] if isinstance(sample.target, str) else list(sample.target),
            "recorded_at": sample.completed_at or log.eval.created,
            "extra": extra_of(sample, found, metric),
        }
        try:
            yield msgspec.convert(run, RunRecord)
        except msgspec.ValidationError as error:
            yield Reject(place, f"{text}: breaks the contract of run records ({error})", text)


def open_log(file: Path) -> EvalLog:
    """Read a log whole."""
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise InputError(f"{file}: needs the package inspect-ai ({error}); pip install inspect-ai") from error
    try:
        return read_eval_log(str(file))
    except Exception as error:  # Zip, JSON, pydantic and Inspect itself have each their own.
        raise InputError(
            f"{file}: cannot be read by inspect_ai ({type(error).__name__}: {error}); check the file"
        ) from error


def scores_of(sample: EvalSample) -> dict[str, Any]:
    """Return the values of a sample's scores by name; those of several numbers by ``scorer.key``."""
    found: dict[str, Any] = {}
    for name, score in (sample.scores or {}).items():
        if isinstance(score.value, Mapping):
            found |= {f"{name}.{key}": value for key, value in score.value.items()}
        else:
            found[name] = score.value
    return found


def the_metric(file: Path, names: Sequence[str], wanted: str | None) -> str:
    """Return the name of the score that counts; empty where nothing was scored."""
    if wanted is None and len(names) > 1:
        fault = f"is needed: {file} has {', '.join(map(repr, names))}"
        raise InputError.argument("read_log", "metric", None, fault, "name one of them")
    if wanted is not None and names and wanted not in names:
        fault = f"is no score of {file}"
        raise InputError.argument("read_log", "metric", wanted, fault, nearest_name(wanted, names))
    return wanted or (names[0] if names else "")


def number(value: Any) -> float | Reject | None:
    """Return the number that Inspect makes of a value, None for none and for NaN, which is its unscored."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        value = WORDS.get(value, LOWER_WORDS.get(value.lower(), value))
    try:
        return real(value)
    except CellFault as fault:
        return Reject(0, str(fault), "")


def why_unscored(sample: EvalSample, metric: str) -> str:
    """Say why a sample has no score."""
    if sample.error is not None:
        return sample.error.message or "error"
    reasons = [score.reason for score in (sample.scores or {}).values() if score.reason]
    return f"no score{f' by {metric}' if metric else ''}{f': {reasons[0]}' if reasons else ''}"


def messages(given: Any) -> Any:
    """Return an input as its texts by role; messages have ids that are drawn anew for each run."""
    return given if isinstance(given, str) else [[message.role, message.text] for message in given]


def extra_of(sample: EvalSample, found: Mapping[str, Any], metric: str) -> dict[str, Any]:
    """Return what the contract of runs has no field for."""
    usage = sample.output.usage
    extra = {
        "metric": metric,
        "scores": dict(found),
        "answers": {name: score.answer for name, score in (sample.scores or {}).items() if score.answer},
        "metadata": sample.metadata,
        "usage": None if usage is None else usage.model_dump(exclude_none=True),
        "limit": None if sample.limit is None else sample.limit.type,
        "uuid": sample.uuid,
        "error": None if sample.error is None else sample.error.message,
    }
    builtins: dict[str, Any] = msgspec.to_builtins(
        {name: value for name, value in extra.items() if value not in (None, {}, "")}, enc_hook=str
    )
    return builtins


INSPECT = Reader(
    "inspect",
    recognises,
    read,
    takes=("model", "suite", "arm", "condition", "budget", "metric", "pair_by"),
    requires=("arm",),
)
