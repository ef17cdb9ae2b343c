"""Running a plan: several processes compute, one writes, and a killed run goes on where it stopped."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import msgspec
import torch

from collectors.compute import compute, device_names
from collectors.config import StudyPlan
from collectors.failure import error_of
from collectors.models import LoadedModel, load_model
from collectors.resume import drop_failed_units, finished_units, written_alone
from collectors.tasks import template_hash
from collectors.units import plan_units
from kvstats.errors import InputError
from kvstats.log.records import SCHEMA_VERSION, StudyRecord
from kvstats.log.write import LogWriter

__all__ = ["Added", "run_plan", "study_record"]

FAILURES_BEFORE_STOP = 3


@dataclass(frozen=True)
class Added:
    """What a collection added to a log.

    Attributes
    ----------
    units : int
        Inputs, each under one condition.
    failed : int
        Those of them that are recorded with an error.
    """

    units: int
    failed: int


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
        host=f"{platform.system()} {platform.machine()}, {device_kind(plan.device)}",
        settings=msgspec.to_builtins(plan),
        template_hash=template_hash(),
        started_at=datetime.now(UTC).replace(microsecond=0),
        git_revision=git_revision(),
    )


def device_kind(device: str) -> str:
    return device if device == "cpu" else torch.cuda.get_device_name(device)


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


def run_plan(
    plan: StudyPlan,
    path: str | os.PathLike[str],
    *,
    workers: int = 1,
    retry_errors: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Added:
    """Collect what a plan asks for and a log does not hold yet.

    Parameters
    ----------
    plan : StudyPlan
        The plan.
    path : str or path-like
        The log, plain JSONL; begun when it is not there, else continued.
    workers : int, default 1
        Processes, of one thread each; on GPUs one for each GPU.
    retry_errors : bool, default False
        Whether inputs that the log holds with an error are taken out of it and run again.
    progress : callable
        Called with the numbers of finished and of all units, at the start and after each unit.

    Returns
    -------
    Added

    Raises
    ------
    InputError
        The log is a compressed one, was begun by another plan or with other versions of the libraries, holds
        a line that breaks the contract, or is being written by another process; the machine lacks the GPUs;
        or the first three inputs that were run all failed.

    Notes
    -----
    Units are written in the order of the plan, each as one block that is flushed to the disk; times apart,
    an interrupted and resumed log equals one that ran through. A unit that fails is written with its error
    in every run, and is not run again unless that is asked for; then it comes last.
    """
    file = Path(path)
    if file.suffix == ".gz":
        raise InputError.argument(
            "run_plan",
            "path",
            str(file),
            "cannot be appended to",
            "name a .jsonl file; compress it when done",
        )
    device_names(plan.device, workers)
    study = study_record(plan, load_model(plan.model, dtype=plan.dtype))
    with written_alone(file):
        if retry_errors and file.exists():
            # Opening the log refuses that of another study before anything is taken out of it.
            LogWriter(file, study).close()
            drop_failed_units(file)
        with LogWriter(file, study) as writer:
            done = finished_units(file)
            units = plan_units(plan)
            todo = [unit for unit in units if unit.key(plan.seed) not in done]
            progress(len(units) - len(todo), len(units))
            failed = 0
            with closing(compute(plan, todo, workers, study.model_revision)) as outcomes:
                for count, outcome in enumerate(outcomes, start=1):
                    writer.append(outcome.block)
                    progress(len(units) - len(todo) + count, len(units))
                    error = error_of(outcome.block)
                    failed += error is not None
                    if failed == count == FAILURES_BEFORE_STOP:
                        raise InputError(
                            f"{file}: the first {count} inputs all failed, the last with {error}; mend the "
                            "cause and run again with --retry-errors"
                        )
    return Added(len(todo), failed)
