"""From one input to its records: prefill, one batch of rows, and what is asked of them besides."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from collectors.attention import recording
from collectors.certified_rows import make_certificate, radii_of_runs
from collectors.config import Condition, StudyPlan
from collectors.evictors import requested_scorers
from collectors.input_record import input_record
from collectors.models import LoadedModel
from collectors.no_context import answer_without_context
from collectors.prefill import prefill
from collectors.replay import make_replay, replay_records
from collectors.retrieval import make_block_observer, retrieval_rows
from collectors.rows import decode_rows, draw_rows, question_positions, split_prompt
from collectors.run_record import no_context_record, run_record
from collectors.tasks import Example
from collectors.timing import decode_seconds
from kvstats.log.records import InputRecord, ReplayRecord, RunRecord

__all__ = ["collect_input"]


def collect_input(
    loaded: LoadedModel,
    plan: StudyPlan,
    example: Example,
    condition: Condition,
    *,
    index: int,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> list[RunRecord | ReplayRecord | InputRecord]:
    """Run one input with its full cache and with every arm of a plan.

    Parameters
    ----------
    loaded : LoadedModel
        Model and tokenizer.
    plan : StudyPlan
        What to run and to record.
    example : Example
        The input.
    condition : {"aware", "stream"}
        ``aware``: the whole prompt but its last token is prefilled and evicted from, so that the last
        queries have seen the question and the begun answer; ``stream``: only the context is, the question
        and the begun answer come after.
    index : int
        Number of the input within its task: what a plan asks of some inputs, it asks of the first ones.
    now : callable
        The clock.

    Returns
    -------
    list of records
        Runs, replay cells, and last the input record, which marks the input as complete.
    """
    label = f"{example.input_id}|{condition}"
    context, fed = split_prompt(example, condition)
    most = example.max_new_tokens
    with recording(loaded.model) as recorder:
        began = time.perf_counter()
        filled = prefill(
            loaded.model,
            context,
            recorder,
            window=plan.window,
            scorers=requested_scorers(arm.evictor for arm in plan.arms_under(condition)),
            question=question_positions(example, condition),
        )
        prefilled = time.perf_counter() - began

        rows = draw_rows(plan, filled, label, condition)
        shape = filled.attention.shape[:2]
        certificate = make_certificate(plan, rows, shape)
        replay = make_replay(plan, rows, shape, label, index)
        blocks = make_block_observer(plan, rows, shape)
        observers = [observer for observer in (certificate, replay, blocks) if observer is not None]
        began = time.perf_counter()
        generations = decode_rows(loaded, recorder, filled, rows, fed, most, observers)
        radii = radii_of_runs(certificate, generations)
        seconds = {"prefill": prefilled, "decode_batch": time.perf_counter() - began}

        restored = [] if blocks is None else retrieval_rows(plan, example, blocks, generations, label)
        began = time.perf_counter()
        again = [item.row for item in restored]
        answers = decode_rows(loaded, recorder, filled, again, fed, most) if again else []
        seconds_again = {"prefill": prefilled, "decode_batch": time.perf_counter() - began}

        timed = {}
        if index < plan.timing.inputs:
            timed = decode_seconds(loaded, recorder, plan, filled, rows, fed, most)
        began = time.perf_counter()
        alone = answer_without_context(loaded, recorder, example) if plan.no_context else None
        seconds_alone = {"decode_batch": time.perf_counter() - began}

    key = {
        "suite": plan.suite,
        "model": loaded.name,
        "task": example.task,
        "input_id": example.input_id,
        "condition": condition,
    }
    runs: list[RunRecord | ReplayRecord | InputRecord] = []
    for number, (row, generation) in enumerate(zip(rows, generations, strict=True)):
        certified = radii.get(number)
        times = seconds if certified is None else {**seconds, **timed}
        runs.append(
            run_record(plan, loaded, key, example, filled, row, generation, times, now(), certified=certified)
        )
    for (row, signals), generation in zip(restored, answers, strict=True):
        runs.append(
            run_record(
                plan, loaded, key, example, filled, row, generation, seconds_again, now(), signals=signals
            )
        )
    if alone is not None:
        runs.append(no_context_record(plan, loaded, key, example, filled, alone, seconds_alone, now()))
    cells = [] if replay is None else replay_records(key, replay, generations)
    per_pair = index < plan.head_pairs.inputs
    return [*runs, *cells, input_record(plan, key, example, filled, now(), per_pair=per_pair)]
