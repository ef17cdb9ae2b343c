"""Running a plan: several processes compute, one writes, and a killed run goes on where it stopped."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from multiprocessing import get_context, parent_process
from pathlib import Path

import msgspec
import torch
from filelock import FileLock, Timeout

from collectors.config import Condition, StudyPlan
from collectors.models import LoadedModel, load_model
from collectors.record import collect_input
from collectors.tasks import example_id, make_example, template_hash
from kvstats.errors import InputError
from kvstats.log.records import SCHEMA_VERSION, InputRecord, Record, ReplayRecord, RunRecord, StudyRecord
from kvstats.log.write import LogWriter

__all__ = ["Unit", "plan_units", "run_plan", "study_record"]

Block = list[RunRecord | ReplayRecord | InputRecord]


class Unit(msgspec.Struct, frozen=True):
    """One input under one condition: what is computed, written and resumed as a whole."""

    task: str
    index: int
    condition: Condition

    def input_id(self, seed: int) -> str:
        """Return the id of the input, for the seed of the plan."""
        return example_id(self.task, seed, self.index)


def plan_units(plan: StudyPlan) -> list[Unit]:
    """List the units of a plan, tasks in turn, so that a log cut short still covers all of them."""
    most = max(plan.tasks.values())
    return [
        Unit(task, index, condition)
        for index in range(most)
        for task, count in plan.tasks.items()
        if index < count
        for condition in plan.conditions
    ]


def study_record(plan: StudyPlan, loaded: LoadedModel) -> StudyRecord:
    """Describe a collection for the first line of its log."""
    libraries = ("kvstats", "torch", "transformers", "numpy")
    return StudyRecord(
        schema_version=SCHEMA_VERSION,
        suite=plan.suite,
        model=plan.model,
        model_revision=loaded.revision,
        dtype=plan.dtype,
        attention="sdpa",
        versions={"python": platform.python_version(), **{name: version(name) for name in libraries}},
        host=f"{platform.system()} {platform.machine()}, {device_name(loaded.model.device)}",
        settings=msgspec.to_builtins(plan),
        template_hash=template_hash(),
        started_at=datetime.now(UTC).replace(microsecond=0),
        git_revision=git_revision(),
    )


def device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def git_revision() -> str | None:
    """Return the commit that holds this file; None outside a checkout or without git."""
    here = Path(__file__).resolve()
    try:
        tracked = subprocess.run(
            ["git", "ls-files", "--error-unmatch", here.name],
            cwd=here.parent,
            capture_output=True,
            check=False,
        )
        if tracked.returncode:
            return None
        head = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=here.parent, capture_output=True, text=True, check=True
        )
    except FileNotFoundError:
        return None
    return head.stdout.strip()


def finished_units(path: Path) -> set[tuple[str, str, str | None]]:
    """Find the complete units of a log, and cut off the incomplete one that a kill left at its end.

    A unit's block ends with its input record, so what follows the last input record is incomplete.

    Returns
    -------
    set of (task, input_id, condition)
    """
    decoder = msgspec.json.Decoder(Record)
    done: set[tuple[str, str, str | None]] = set()
    position = complete = 0
    with path.open("rb+") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                break
            try:
                record = decoder.decode(line)
            except msgspec.MsgspecError as error:
                raise InputError.line(
                    path, number, f"breaks the log contract ({error})", "repair the log"
                ) from error
            position += len(line)
            if isinstance(record, InputRecord):
                done.add((record.task, record.input_id, record.condition))
            if isinstance(record, InputRecord | StudyRecord):
                complete = position
        file.truncate(complete)
    return done


WORKER: dict[str, tuple[StudyPlan, LoadedModel]] = {}


def begin_worker(plan: StudyPlan) -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    WORKER["state"] = (plan, load_model(plan.model, dtype=plan.dtype))


def end_with_parent() -> None:
    """End this process when its parent is gone: a killed parent cannot tell its workers to stop."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def work(unit: Unit) -> Block:
    plan, loaded = WORKER["state"]
    example = make_example(
        unit.task, seed=plan.seed, index=unit.index, length=plan.length, tokenizer=loaded.tokenizer
    )
    return collect_input(loaded, plan, example, unit.condition, replay=unit.index < plan.replay.inputs)


def compute(plan: StudyPlan, units: list[Unit], workers: int) -> Iterator[Block]:
    """Yield the records of each unit, in the order of the units."""
    with ProcessPoolExecutor(workers, get_context("spawn"), begin_worker, (plan,)) as pool:
        try:
            with interrupts_held_back():
                blocks = pool.map(work, units)
            yield from blocks
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


@contextmanager
def written_alone(file: Path) -> Iterator[None]:
    """Hold a lock beside a log, so that no second collection cuts off or repeats what this one writes."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(f"{file}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise InputError(
            f"{file}: is being written by another collection; wait for it, or name another log"
        ) from error
    try:
        yield
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def run_plan(
    plan: StudyPlan,
    path: str | os.PathLike[str],
    *,
    workers: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Collect what a plan asks for and a log does not hold yet.

    Parameters
    ----------
    plan : StudyPlan
        The plan.
    path : str or path-like
        The log, plain JSONL; begun when it is not there, else continued.
    workers : int, default 1
        Processes, of one thread each.
    progress : callable
        Called with the numbers of finished and of all units, at the start and after each unit.

    Returns
    -------
    int
        Number of units that were added.

    Raises
    ------
    InputError
        The log was begun by another plan or with other versions of the libraries, holds a line that breaks
        the contract, or is being written by another process.

    Notes
    -----
    Units are written in the order of the plan, each as one block that is flushed to the disk; times apart,
    an interrupted and resumed log equals one that ran through.
    """
    file = Path(path)
    loaded = load_model(plan.model, dtype=plan.dtype)
    with written_alone(file), LogWriter(file, study_record(plan, loaded)) as writer:
        done = finished_units(file)
        units = plan_units(plan)
        todo = [unit for unit in units if (unit.task, unit.input_id(plan.seed), unit.condition) not in done]
        progress(len(units) - len(todo), len(units))
        for count, block in enumerate(compute(plan, todo, workers), start=1):
            writer.append(block)
            progress(len(units) - len(todo) + count, len(units))
    return len(todo)
