"""Re-running some inputs of a log, to see whether they come out as it says."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import torch

from collectors.comparison import Offender, Tally, Verdict, compare_records
from collectors.compute import Block, compute_unit, device_names, load_for
from collectors.config import StudyPlan
from collectors.failure import error_of, error_text, failed_block
from collectors.models import LoadedModel
from collectors.run import study_record
from collectors.units import Unit, UnitKey, plan_units
from kvstats.errors import InputError
from kvstats.log.ingest import read_file
from kvstats.log.lines import Reject
from kvstats.log.records import InputRecord, StudyRecord

__all__ = ["Check", "check_log", "shown_check"]

PUBLISHED_TAU = 0.07
MOST_OFFENDERS = 8


class Check(msgspec.Struct, frozen=True):
    """What a check found.

    Attributes
    ----------
    verdict : {"reproduced", "drifted", "different"}
        The worst of all comparisons.
    inputs, runs : int
        How many were run again.
    tau : float
        Threshold of the gate decision.
    tallies : list of Tally
        By quantity.
    offenders : list of Offender
        What did not come out the same, the worst first.
    notes : list of str
        What differs between then and now: versions of libraries, kind of machine, templates.
    """

    verdict: Verdict
    inputs: int
    runs: int
    tau: float
    tallies: list[Tally]
    offenders: list[Offender]
    notes: list[str]


def check_log(
    path: str | os.PathLike[str],
    *,
    inputs: int = 5,
    tau: float = PUBLISHED_TAU,
    seed: int = 0,
    model: str | None = None,
    device: str | None = None,
) -> Check:
    """Run some inputs of a log again and compare.

    The plan is taken from the study record of the log, and the weights must be those that it names.

    Parameters
    ----------
    path : str or path-like
        A log of one collection, plain or gzipped.
    inputs : int, default 5
        How many to run, each under one condition; drawn among those that did not fail.
    tau : float, default 0.07
        Threshold of the gate decision, drop < tau.
    seed : int, default 0
        Seed of the draw.
    model : str, optional
        Where the model is now, when not where the log says.
    device : str, optional
        Where to run, when not where the log says.

    Returns
    -------
    Check

    Raises
    ------
    InputError
        The file is no log of one collection, its settings are no plan, it holds none of the plan's inputs,
        or the weights are not those of the log.
    """
    file = Path(path)
    if inputs < 1:
        raise InputError.argument("check_log", "inputs", inputs, "is below 1", "run at least one input")
    study, done = survey(file)
    plan = logged_plan(file, study)
    if device is not None:
        plan = msgspec.structs.replace(plan, device=device)
    chosen = choose(file, plan, done, inputs, seed)
    logged = logged_blocks(file, {unit.key(plan.seed) for unit in chosen})
    (place,) = device_names(plan.device, 1)
    loaded = load_for(plan, place, name=model, revision=study.model_revision)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        pairs = [(logged[unit.key(plan.seed)], repeated(plan, loaded, unit)) for unit in chosen]
    finally:
        torch.set_num_threads(threads)
    before, after = ([record for block in side for record in block] for side in zip(*pairs, strict=True))
    compared = compare_records(before, after, tau)
    return Check(
        verdict=compared.verdict,
        inputs=len(pairs),
        runs=compared.runs,
        tau=tau,
        tallies=compared.tallies,
        offenders=compared.offenders[:MOST_OFFENDERS],
        notes=list(changes(study, study_record(plan, loaded))),
    )


def repeated(plan: StudyPlan, loaded: LoadedModel, unit: Unit) -> Block:
    """Run a unit again; whatever it raises is what came out."""
    try:
        return compute_unit(plan, loaded, unit)
    except Exception as error:
        return failed_block(plan, unit, error_text(error))


def records(file: Path) -> Iterator[msgspec.Struct]:
    for item in read_file(file):
        if isinstance(item, Reject):
            raise InputError.line(file, item.line, item.error, "repair the line")
        yield item


def survey(file: Path) -> tuple[StudyRecord, set[UnitKey]]:
    """Return the study of a log and the units that did not fail."""
    study: StudyRecord | None = None
    done: set[UnitKey] = set()
    block: Block = []
    for record in records(file):
        if isinstance(record, StudyRecord):
            if study is not None:
                raise InputError(f"{file}: holds several collections; check the log of one")
            study, block = record, []
            continue
        block.append(record)
        if isinstance(record, InputRecord):
            if error_of(block) is None:
                done.add((record.task, record.input_id, record.condition))
            block = []
    if study is None:
        raise InputError(f"{file}: holds no study record; pass a log that collect run wrote")
    return study, done


def logged_plan(file: Path, study: StudyRecord) -> StudyPlan:
    """Read the plan from the settings of a study."""
    try:
        return msgspec.convert(study.settings, StudyPlan)
    except (msgspec.ValidationError, InputError) as error:
        written = study.versions.get("kvstats", "unknown")
        raise InputError.line(
            file,
            1,
            f"has settings that are no plan ({error})",
            f"check it with kvstats {written}, which wrote it",
        ) from error


def choose(file: Path, plan: StudyPlan, done: set[UnitKey], inputs: int, seed: int) -> list[Unit]:
    """Draw units among those that a log holds, in the order of the plan."""
    held = [unit for unit in plan_units(plan) if unit.key(plan.seed) in done]
    if not held:
        raise InputError(f"{file}: holds none of its plan's inputs; pass a log that collect run wrote")
    rng = np.random.default_rng([seed, zlib.crc32(b"check")])
    drawn = rng.choice(len(held), size=min(inputs, len(held)), replace=False)
    return [held[place] for place in sorted(drawn)]


def logged_blocks(file: Path, wanted: set[UnitKey]) -> dict[UnitKey, Block]:
    """Return the records of some units."""
    found: dict[UnitKey, Block] = {key: [] for key in wanted}
    for record in records(file):
        if isinstance(record, StudyRecord):
            continue
        key = (record.task, record.input_id, record.condition)
        if key in found:
            found[key].append(record)
    return found


def changes(then: StudyRecord, now: StudyRecord) -> Iterator[str]:
    """Say what differs between two collections beside their numbers."""
    for name in ("model", "dtype", "host", "template_hash", "git_revision"):
        before, after = getattr(then, name), getattr(now, name)
        if before != after:
            yield f"{name}: {before} then, {after} now"
    for name in sorted(then.versions.keys() | now.versions.keys()):
        before, after = then.versions.get(name), now.versions.get(name)
        if before != after:
            yield f"{name}: version {before} then, {after} now"


def shown_check(found: Check) -> Iterator[str]:
    """Yield the lines that tell a check."""
    width = max(len("quantity"), *(len(tally.quantity) for tally in found.tallies))
    yield f"{'quantity':<{width}}  reproduced  drifted  different  largest"
    for tally in found.tallies:
        yield (
            f"{tally.quantity:<{width}}  {tally.reproduced:>10}  {tally.drifted:>7}  {tally.different:>9}"
            f"  {tally.largest:>7.2g}"
        )
    for item in found.offenders:
        yield f"{item.verdict}: {item.where}: {item.quantity} was {item.logged}, is {item.found}"
    for note in found.notes:
        yield f"note: {note}"
    yield f"{found.verdict}: {found.inputs} inputs, {found.runs} runs, gate at tau = {found.tau:g}"
