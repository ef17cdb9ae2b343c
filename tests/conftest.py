"""Logs of known truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from kvstats.log import InputRecord, Log, ReplayRecord, RunRecord, log_from_records

Scores = Mapping[str, Mapping[float, Sequence[float | None]]]
Records = list[InputRecord | RunRecord | ReplayRecord]


def records_of(
    scores: Scores,
    *,
    drop: Sequence[float | None] | None = None,
    signals: Mapping[str, Sequence[float | None]] | None = None,
    cells: Sequence[tuple[float | None, float | None]] = (),
    task: str = "qa",
    model: str = "m",
    condition: str | None = None,
    **fields: Any,
) -> Records:
    """Make the records of one task.

    `scores[arm][budget]` lists one score for each input (None: the run failed); a score of 1 is a success.
    `drop` lists the inputs' D, `signals[name]` one value an input for its runs in all arms, and `cells` one
    pair of radius and true error an input. `fields` go to every run.
    """
    size = len(next(iter(next(iter(scores.values())).values()))) if scores else len(cells)
    keys = [
        {"suite": "s", "model": model, "task": task, "input_id": f"i{number:03}", "condition": condition}
        for number in range(size)
    ]
    records: Records = []
    if drop is not None:
        records += [InputRecord(**key, drop=value) for key, value in zip(keys, drop, strict=True)]
    for arm, by_budget in scores.items():
        for budget, values in by_budget.items():
            for number, (key, score) in enumerate(zip(keys, values, strict=True)):
                defaults: dict[str, Any] = {
                    "budget": budget,
                    "success": None if score is None else score >= 1,
                    "n_prompt": 100,
                    "n_kept": round(100 * budget),
                    "signals": {name: column[number] for name, column in (signals or {}).items()},
                }
                records.append(RunRecord(**key, arm=arm, score=score, **(defaults | fields)))
    for key, (radius, error) in zip(keys, cells, strict=False):
        records.append(
            ReplayRecord(
                **key,
                arm="poisson",
                design="poisson",
                budget=0.5,
                layer=0,
                head=0,
                step=0,
                variance_estimate=0.01,
                radius=radius,
                true_error=error,
                delta=0.1,
            )
        )
    return records


@pytest.fixture
def make_records() -> Callable[..., Records]:
    return records_of


@pytest.fixture
def make_log() -> Callable[..., Log]:
    return lambda *args, **kwargs: log_from_records(records_of(*args, **kwargs))
