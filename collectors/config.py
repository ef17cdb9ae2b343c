"""The plan of a collection: a YAML file, decoded strictly."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from collectors.evictors import Evictor, Poisson, Protected
from collectors.tasks import TASKS
from kvstats.decoding import decode
from kvstats.document import Document, Place, dotted, read_document
from kvstats.errors import nearest_name

__all__ = ["Arm", "CertificatePlan", "Condition", "ReplayPlan", "StudyPlan", "read_plan"]

Condition = Literal["aware", "stream"]
Budget = Annotated[float, Meta(gt=0.0, le=1.0)]
Positive = Annotated[int, Meta(ge=1)]
NonNegative = Annotated[int, Meta(ge=0)]
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
    seeds: Annotated[tuple[NonNegative, ...], Meta(min_length=1)] = (0,)


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

    inputs: NonNegative = 0
    steps: tuple[NonNegative, ...] = (0,)


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
    seed: NonNegative
    tasks: Annotated[dict[str, Positive], Meta(min_length=1)]
    conditions: Annotated[list[Condition], Meta(min_length=1)]
    arms: Annotated[list[Arm], Meta(min_length=1)]
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    window: Positive = 32
    agreement_top_k: Positive = 32
    sinks: NonNegative = 4
    recents: NonNegative = 32
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
        ``{file}:{line}: {fault}; {remedy}``: the file is not plain YAML, has a key twice, an unknown key or
        word, or a value of the wrong type or out of range; names an unknown task; gives two arms one name or
        one arm the name ``full``; names a condition, budget or seed twice; replays steps that are not
        certified; or has a `length` that leaves nothing to evict, fewer evictable positions than
        `agreement_top_k`, or no more than the protected positions at a budget of a Poisson arm.
    """
    document = read_document(path)
    plan = decode(document, StudyPlan)
    for task in plan.tasks:
        if task not in TASKS:
            raise document.error(("tasks", task), f"has the unknown task {task!r}", nearest_name(task, TASKS))
    check_once(document, ("conditions",), plan.conditions)
    check_arms(document, plan)
    check_length(document, plan)
    for index, step in enumerate(plan.replay.steps):
        if plan.replay.inputs and step >= plan.certificate.steps:
            place: Place = ("replay", "steps", index)
            raise document.error(
                place,
                f"{dotted(place)} is {step}, which is not among the {plan.certificate.steps} certified steps",
                "raise certificate.steps",
            )
    return plan


def check_once(document: Document, place: Place, values: Sequence[object]) -> None:
    """Refuse a list that names a value twice."""
    for index, value in enumerate(values):
        if value in values[:index]:
            raise document.error((*place, index), f"{dotted(place)} has {value!r} twice", "keep one of them")


def check_arms(document: Document, plan: StudyPlan) -> None:
    """Refuse arms without a name of their own, and budgets and seeds that are named twice."""
    taken = {"full"}
    for index, arm in enumerate(plan.arms):
        place: Place = ("arms", index)
        if arm.name in taken:
            raise document.error((*place, "name"), f"the arm name {arm.name!r} is taken", "rename the arm")
        taken.add(arm.name)
        check_once(document, (*place, "budgets"), arm.budgets)
        check_once(document, (*place, "seeds"), arm.seeds)


def check_length(document: Document, plan: StudyPlan) -> None:
    """Refuse prompts that are too short for what is kept, sampled and compared of them."""
    protected = plan.protected.count
    evictable = plan.length - protected
    if evictable <= 0:
        raise document.error(
            ("length",),
            f"length is {plan.length}, which leaves nothing to evict beside {protected} protected tokens",
            "raise length, or lower sinks or recents",
        )
    if plan.agreement_top_k > evictable:
        raise document.error(
            ("agreement_top_k" if "agreement_top_k" in document.value else "length",),
            f"agreement_top_k is {plan.agreement_top_k}, more than the {evictable} evictable of "
            f"{plan.length} tokens",
            "lower it, or raise length",
        )
    for index, arm in enumerate(plan.arms):
        for position, budget in enumerate(arm.budgets):
            if isinstance(arm.evictor, Poisson) and budget * plan.length <= protected:
                place: Place = ("arms", index, "budgets", position)
                raise document.error(
                    place,
                    f"{dotted(place)} is {budget}, which of {plan.length} tokens does not exceed {protected} "
                    "protected",
                    "raise the budget or length",
                )
