"""Computing units: worker processes of one thread or one GPU each, whose failures end no run."""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.queues import SimpleQueue

import msgspec
import torch

from collectors.config import DEVICE, StudyPlan
from collectors.failure import error_text, failed_block
from collectors.models import LoadedModel, load_model
from collectors.record import collect_input
from collectors.tasks import make_example
from collectors.units import Unit
from kvstats.errors import InputError
from kvstats.log.records import InputRecord, ReplayRecord, RunRecord
from kvstats.log.write import encode_record

__all__ = ["Outcome", "compute", "compute_unit", "device_names", "load_for"]

Block = list[RunRecord | ReplayRecord | InputRecord]


class Outcome(msgspec.Struct):
    """What became of a unit.

    Attributes
    ----------
    block : list of records
        Its runs and replay cells, and last its input record.
    seconds : float
        Time that it took.
    memory_bytes : int
        Most memory that its process held so far.
    device_bytes : int
        Most memory that its tensors held on a GPU so far; 0 on the processor.
    """

    block: Block
    seconds: float
    memory_bytes: int
    device_bytes: int


@dataclass
class Worker:
    """State of a worker process."""

    plan: StudyPlan
    loaded: LoadedModel


WORKER: list[Worker] = []


def device_names(device: str, workers: int) -> list[str]:
    """Name the device of each worker process.

    Parameters
    ----------
    device : str
        ``cpu``; ``cuda`` for a GPU of its own for each worker; or one GPU, such as ``cuda:0``.
    workers : int
        Number of processes.

    Raises
    ------
    InputError
        The name is no device, or the machine lacks the GPU, or has fewer than workers.

    Examples
    --------
    >>> device_names("cpu", 2)
    ['cpu', 'cpu']
    """
    if not re.fullmatch(DEVICE, device):
        raise InputError.argument("collect", "device", device, "is unknown", "write cpu, cuda or cuda:0")
    if device == "cpu":
        return [device] * workers
    count = torch.cuda.device_count()
    _, _, number = device.partition(":")
    if count <= (int(number) if number else 0):
        raise InputError.argument(
            "collect", "device", device, f"is not there: this machine has {count} GPUs", "use cpu"
        )
    most = 1 if number else count
    if workers > most:
        raise InputError.argument(
            "collect", "workers", workers, f"is more than the {most} GPUs of {device}", f"use {most}"
        )
    return [device] if number else [f"cuda:{index}" for index in range(workers)]


def load_for(
    plan: StudyPlan, device: str, *, name: str | None = None, revision: str | None = None
) -> LoadedModel:
    """Load the model of a plan onto a device."""
    loaded = load_model(name or plan.model, dtype=plan.dtype, revision=revision)
    loaded.model.to(device)
    return loaded


def compute_unit(plan: StudyPlan, loaded: LoadedModel, unit: Unit) -> Block:
    """Run one unit and return its records.

    Raises
    ------
    InputError
        A record holds what a log cannot, such as a number that overflowed.
    """
    example = make_example(
        unit.task,
        seed=plan.seed,
        index=unit.index,
        length=plan.length,
        tokenizer=loaded.tokenizer,
        source=plan.sources.get(unit.task),
    )
    block = collect_input(loaded, plan, example, unit.condition, index=unit.index)
    for record in block:
        encode_record(record)
    return block


def begin_worker(plan: StudyPlan, revision: str | None, devices: SimpleQueue[str]) -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    WORKER[:] = [Worker(plan, load_for(plan, devices.get(), revision=revision))]


def end_with_parent() -> None:
    """End this process when its parent is gone: a killed parent cannot tell its workers to stop."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def work(unit: Unit) -> Outcome:
    """Run one unit; whatever a model, a task or an evictor raises is what became of it."""
    (worker,) = WORKER
    began = time.perf_counter()
    try:
        block = compute_unit(worker.plan, worker.loaded, unit)
    except Exception as error:
        block = failed_block(worker.plan, unit, error_text(error))
    device_bytes = 0
    if worker.loaded.model.device.type == "cuda":
        device_bytes = torch.cuda.max_memory_allocated(worker.loaded.model.device)
        torch.cuda.empty_cache()
    return Outcome(block, time.perf_counter() - began, peak_memory(), device_bytes)


def peak_memory() -> int:
    """Return the most bytes of memory that this process held so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def compute(
    plan: StudyPlan, units: list[Unit], workers: int, revision: str | None = None
) -> Iterator[Outcome]:
    """Yield the outcome of each unit, in the order of the units; the model is to be of a revision.

    When a process dies, which is how a system without memory ends one, nobody can tell which unit was too
    much. So the first unfinished one is run again alone. When it ends its process again, that is its
    outcome; the units after it go on in new processes.
    """
    place = 0
    while place < len(units):
        try:
            for outcome in pooled(plan, units[place:], workers, revision):
                yield outcome
                place += 1
        except BrokenProcessPool:
            yield alone(plan, units[place], revision)
            place += 1


def alone(plan: StudyPlan, unit: Unit, revision: str | None) -> Outcome:
    """Run one unit in a process of its own, whose end is recorded as the unit's error."""
    try:
        (outcome,) = pooled(plan, [unit], 1, revision)
    except BrokenProcessPool:
        error = "WorkerDied: its process was ended, as happens when memory runs out"
        return Outcome(failed_block(plan, unit, error), 0.0, 0, 0)
    return outcome


def pooled(plan: StudyPlan, units: list[Unit], workers: int, revision: str | None) -> Iterator[Outcome]:
    context = get_context("spawn")
    devices = context.SimpleQueue()
    for name in device_names(plan.device, workers):
        devices.put(name)
    with ProcessPoolExecutor(workers, context, begin_worker, (plan, revision, devices)) as pool:
        try:
            with interrupts_held_back():
                outcomes = pool.map(work, units)
            yield from outcomes
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Start workers inside that Ctrl-C does not reach, and raise what came meanwhile at the end.

    An interrupt reaches a whole group of processes, and the parent alone decides what becomes of it. A new
    process inherits the blocked signals, from its first instruction on; a half-started one must not be left
    behind either, and another thread of the parent may take the signal although this one blocks it.
    """
    held_back: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, lambda number, _: held_back.append(number)) if main else None
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        if main:
            signal.signal(signal.SIGINT, handler)
    if held_back:
        raise KeyboardInterrupt
