"""The plan of a collection: a YAML file, decoded strictly."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import yaml
from msgspec import Meta

from collectors.evictors import Evictor, Protected
from collectors.tasks import TASKS
from kvstats.errors import InputError, nearest_name

__all__ = ["Arm", "CertificatePlan", "Condition", "ReplayPlan", "StudyPlan", "read_plan"]

Condition = Literal["aware", "stream"]
Budget = Annotated[float, Meta(gt=0.0, le=1.0)]
Positive = Annotated[int, Meta(ge=1)]
Name = Annotated[str, Meta(min_length=1)]


class Arm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An evictor under a name, at some budgets, with some draws of its chance.

    Attributes
    ----------
    name : str
        Name of the arm in the log.
    evictor : Evictor
        The method and its options.
    budgets : tuple of float
        Fractions of the cache to keep.
    seeds : tuple of int
        One draw for each; evictors without chance need only the default.
    """

    name: Name
    evictor: Evictor
    budgets: Annotated[tuple[Budget, ...], Meta(min_length=1)]
    seeds: Annotated[tuple[int, ...], Meta(min_length=1)] = (0,)


class CertificatePlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which reads of a Poisson-sampled run are certified.

    Attributes
    ----------
    head_stride, layer_stride : int
        Every how many query heads and layers.
    steps : int
        Decode steps, from the first.
    delta : float
        Nominal failure probability of the radius.
    per_head : bool
        Whether the run records hold the radius of each layer and head.
    """

    head_stride: Positive = 4
    layer_stride: Positive = 1
    steps: Positive = 6
    delta: Annotated[float, Meta(gt=0.0, lt=1.0)] = 0.1
    per_head: bool = False


class ReplayPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which certified reads are held against the truth.

    Attributes
    ----------
    inputs : int
        The first so many inputs of each task.
    steps : tuple of int
        Decode steps, each below the certificate's number of steps.
    """

    inputs: Annotated[int, Meta(ge=0)] = 0
    steps: tuple[Annotated[int, Meta(ge=0)], ...] = (0,)


class StudyPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that decides what a collection records.

    Attributes
    ----------
    suite : str
        Name of the set of tasks and inputs.
    model : str
        Local folder, GGUF file, hub id, or ``smollm2-135m``.
    dtype : str
        Floating-point type of the weights.
    length : int
        Tokens of each whole prompt.
    seed : int
        Seed of the inputs.
    tasks : dict of str to int
        Number of inputs by task.
    conditions : list of {"aware", "stream"}
        Eviction after the question (the model knew it), or before it.
    arms : list of Arm
        Compressed arms; the full cache is always run, as arm ``full``.
    window, agreement_top_k : int
        Prefill queries averaged, and keys per head in the head agreement.
    sinks, recents : int
        First and last positions that are always kept.
    success_threshold : float
        Score from which a run counts as a success.
    certificate : CertificatePlan
        Which reads are certified.
    replay : ReplayPlan
        Which of them are held against the truth.
    """

    suite: Name
    model: Name
    length: Positive
    seed: int
    tasks: dict[str, Positive]
    conditions: Annotated[list[Condition], Meta(min_length=1)]
    arms: Annotated[list[Arm], Meta(min_length=1)]
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    window: Positive = 32
    agreement_top_k: Positive = 32
    sinks: Annotated[int, Meta(ge=0)] = 4
    recents: Annotated[int, Meta(ge=0)] = 32
    success_threshold: float = 1.0
    certificate: CertificatePlan = CertificatePlan()
    replay: ReplayPlan = ReplayPlan()

    @property
    def protected(self) -> Protected:
        """Positions that are always kept."""
        return Protected(self.sinks, self.recents)


def read_plan(path: str | os.PathLike[str]) -> StudyPlan:
    """Read and check the plan of a collection.

    Parameters
    ----------
    path : str or path-like
        A YAML file with the fields of `StudyPlan`.

    Returns
    -------
    StudyPlan

    Raises
    ------
    InputError
        The file is not YAML, has an unknown field or a value of the wrong type, names an unknown task,
        gives two arms one name or one arm the name ``full``, or replays steps that are not certified.
    """
    file = Path(path)
    if not file.is_file():
        raise InputError.argument("read_plan", "path", str(path), "is not a file", "check the path")
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        plan = msgspec.convert(content, StudyPlan)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise InputError(f"{file}: {error}; correct the plan") from error
    for task in plan.tasks:
        if task not in TASKS:
            raise InputError(f"{file}: unknown task {task!r}; {nearest_name(task, TASKS)}")
    names = [arm.name for arm in plan.arms]
    for name in names:
        if name == "full" or names.count(name) > 1:
            raise InputError(f"{file}: the arm name {name!r} is taken; rename the arm")
    late = [step for step in plan.replay.steps if step >= plan.certificate.steps]
    if plan.replay.inputs and late:
        raise InputError(
            f"{file}: replay steps {late} are not among the {plan.certificate.steps} certified; "
            "raise certificate.steps"
        )
    return plan
