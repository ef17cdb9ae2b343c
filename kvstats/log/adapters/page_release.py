"""Wide rows of a gating study: one row an input and budget, a column ``correct_<arm>`` for each arm.

Each row becomes one run an arm, and each input one input record. Columns:

- ``id``, ``task``: the input. Ids become text.
- ``budget``: up to 1 the fraction kept; above 1 a number of tokens, of which no fraction follows. A file has
  one or the other. Up to 100 it may be per cent, so that a count must tell which.
- ``T``: tokens of the prompt; ``drop``: D of the input.
- ``correct_<arm>``: Boolean, or a fraction of full marks, which is the score; success is full marks. What
  differs from 0 or 1 by no more than 1e-6 is meant as such: it went through single precision.
- ``n_kept_<arm>``, ``kept_<arm>``, ``pred_<arm>``: kept tokens, kept fraction, prediction. Where neither
  figure is there for ``gated``, it is that of ``plain`` where the gate is open and, where budgets are
  fractions, all of it elsewhere.
  Where budgets are tokens and a count is above T, the counts are sums over layers and heads, of an unknown
  number: they stay under ``extra`` as they are, and no fraction is made of them.
- ``gate_open``, ``tau``: decision and threshold of arm ``gated``; the gate is open where D is at least tau.
  In a row without a gated arm they are kept under ``extra``.
- ``gold``, or without it ``answers``: the references.
- ``correct_full``: the full cache, repeated in each row of its input. Without it the rows of arm ``plain`` at
  budget 1 stand for it.

Other columns are kept under ``extra`` of each run. Rows that contradict each other are faults: two of the
same input and budget, another D or T for one input, another tau, a gate that no tau explains. Two arms that
agree on every evicting row are read, with a warning: one of them may be the other.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kvstats.log.adapters.reader import Labels, Reader, stem
from kvstats.log.adapters.release_checks import REPEATS, ReleaseChecks, identical_arms
from kvstats.log.adapters.release_row import CORRECT, FULL, ReleaseRow, is_gated, release_row
from kvstats.log.lines import REPEATED, Reject, json_object, numbered_lines, shown
from kvstats.log.records import InputRecord, Record, RunRecord

__all__ = ["PAGE_RELEASE"]


def recognises(file: Path, objects: Sequence[dict[str, Any]]) -> bool:
    """Say whether objects are wide rows: a task, a budget, an outcome by arm, and no kind of record."""
    return not any("record" in fields for fields in objects) and any(
        {"task", "budget"} <= fields.keys() and any(name.startswith(CORRECT) for name in fields)
        for fields in objects
    )


def read(file: Path, labels: Labels) -> Iterator[Record | Reject]:
    """Yield the records of a file, and a reject for each row that cannot be used."""
    checks = ReleaseChecks()
    rows: list[ReleaseRow] = []
    empty = True
    for item in numbered_lines(file):
        empty = False
        if isinstance(item, Reject):
            yield item
            break
        number, line = item
        fields = json_object(line, number)
        if isinstance(fields, Reject):
            yield fields
            continue
        row = release_row(fields)
        fault = row if isinstance(row, str) else checks.fault(number, row)
        if fault is not None and fault.startswith(REPEATS):
            yield Reject(number, fault, shown(line), REPEATED, duplicate=True)
        elif fault is not None:
            yield Reject(number, fault, shown(line))
        elif isinstance(row, ReleaseRow):
            rows.append(row)
    if empty:
        yield Reject(1, "the file is empty", "", "remove the file")
    for one, other, count in identical_arms(rows):
        warnings.warn(
            f"{file}: the arms {one!r} and {other!r} agree on all {count} evicting rows; check that "
            "one is not the other under two names",
            stacklevel=3,
        )
    yield from records(rows, labels.model or stem(file), labels.suite or stem(file))


def records(rows: Sequence[ReleaseRow], model: str, suite: str) -> Iterator[Record]:
    """Yield an input record and a full-cache run for the first row of an input, and the runs of each row."""
    summed = any(
        found.n_kept is not None and row.context_tokens is not None and found.n_kept > row.context_tokens
        for row in rows
        for found in row.arms.values()
    )
    seen = set()
    for row in rows:
        key: dict[str, Any] = {"suite": suite, "model": model, "task": row.task, "input_id": row.input_id}
        if (row.task, row.input_id) not in seen:
            seen.add((row.task, row.input_id))
            yield InputRecord(**key, context_tokens=row.context_tokens, drop=row.drop)
            if FULL in row.arms:
                yield run(row, key, FULL, summed)
        for arm in row.arms:
            if arm != FULL:
                yield run(row, key, arm, summed)


def run(row: ReleaseRow, key: dict[str, Any], arm: str, summed: bool) -> RunRecord:
    """Make the run of one arm of a row; the full cache is budget 1, whatever the row's."""
    found = row.arms[arm]
    full, gated = arm == FULL, is_gated(arm)
    extra = {} if full else dict(row.extra)
    untold = not full and not any(is_gated(name) for name in row.arms)
    if (gated or untold) and row.tau is not None:
        extra["tau"] = row.tau
    if untold and row.gate_open is not None:
        extra["gate_open"] = row.gate_open
    if summed and found.n_kept is not None:
        extra[f"n_kept_{arm}"] = found.n_kept
    kept = row.context_tokens if full and found.n_kept is None else found.n_kept
    return RunRecord(
        **key,
        arm=arm,
        budget=1.0 if full else row.budget,
        budget_tokens=None if full else row.budget_tokens,
        score=found.score,
        success=None if found.score is None else found.score == 1.0,
        n_prompt=row.context_tokens,
        n_kept=None if summed else kept,
        kept_fraction=1.0 if full else found.kept_fraction,
        gate_open=row.gate_open if gated else None,
        prediction=found.prediction,
        references=row.references,
        extra=extra,
    )


PAGE_RELEASE = Reader("page_release", recognises, read, takes=("model", "suite"))
