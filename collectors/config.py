"""The plan of a collection: a YAML file, decoded strictly."""

from __future__ import annotations

import os
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from collectors.evictors import ConditionalPoisson, Evictor, Poisson, Protected, needs_question
from collectors.plan_parts import (
    Budget,
    FirstInputs,
    Name,
    NonNegative,
    PermutationPlan,
    Positive,
    ReplayPlan,
    RetrievalPlan,
    check_once,
    check_parts,
)
from collectors.tasks import TASKS, Source
from kvstats.decoding import decode
from kvstats.document import Document, Place, dotted, read_document
from kvstats.errors import nearest_name

__all__ = ["Arm", "CertificatePlan", "Condition", "ReplayPlan", "StudyPlan", "read_plan"]

Condition = Literal["aware", "stream"]
DEVICE = r"^(cpu|cuda(:[0-9]{1,3})?)$"


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
    conditions : tuple of {"aware", "stream"}, optional
        Those of the plan's conditions under which the arm is run; all by default.
    """

    name: Name
    evictor: Evictor
    budgets: Annotated[tuple[Budget, ...], Meta(min_length=1)]
    seeds: Annotated[tuple[NonNegative, ...], Meta(min_length=1)] = (0,)
    conditions: Annotated[tuple[Condition, ...], Meta(min_length=1)] | None = None


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


class StudyPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that decides what a collection records.

    Attributes
    ----------
    suite : str
        Name of the set of tasks and inputs.
    model : str
        Local folder, GGUF file, hub id, or a built-in one: ``smollm2-135m`` or ``qwen2.5-coder-0.5b``.
    dtype : str
        Floating-point type of the weights.
    device : str
        ``cpu``; ``cuda`` for a GPU of its own for each worker process; or one GPU, such as ``cuda:0``.
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
        Which reads are held against the truth.
    permutation : PermutationPlan
        Which of them are repeated with permuted evicted values.
    retrieval : RetrievalPlan, optional
        Which runs answer again with a part of the context put back; none by default.
    timing : FirstInputs
        Inputs whose certified rows are decoded twice more, to time them with and without the certificate.
    head_pairs : FirstInputs
        Inputs whose records hold the agreement of each pair of heads.
    no_context : bool
        Whether each question is also asked without its context, as arm ``no_context``.
    sources : dict of str to Source
        Tasks whose inputs are read from files or the hub, by the name that `tasks` gives them.
    """

    suite: Name
    model: Name
    length: Positive
    seed: NonNegative
    tasks: Annotated[dict[str, Positive], Meta(min_length=1)]
    conditions: Annotated[list[Condition], Meta(min_length=1)]
    arms: Annotated[list[Arm], Meta(min_length=1)]
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    device: Annotated[str, Meta(pattern=DEVICE)] = "cpu"
    window: Positive = 32
    agreement_top_k: Positive = 32
    sinks: NonNegative = 4
    recents: NonNegative = 32
    success_threshold: float = 1.0
    certificate: CertificatePlan = CertificatePlan()
    replay: ReplayPlan = ReplayPlan()
    permutation: PermutationPlan = PermutationPlan()
    retrieval: RetrievalPlan | None = None
    timing: FirstInputs = FirstInputs()
    head_pairs: FirstInputs = FirstInputs()
    no_context: bool = False
    sources: dict[Name, Source] = {}

    @property
    def protected(self) -> Protected:
        """Positions that are always kept."""
        return Protected(self.sinks, self.recents)

    def arms_under(self, condition: Condition) -> list[Arm]:
        """List the arms that are run under a condition."""
        return [arm for arm in self.arms if arm.conditions is None or condition in arm.conditions]


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
        word, or a value of the wrong type or out of range; names an unknown task; gives two arms one name, or
        one arm the name of an arm that the collection adds, such as ``full``; names a condition, budget or
        seed twice; has an arm for a condition that is not run, or one that ranks by the question under
        ``stream``; asks for replays, permutations or retrieval that do not fit its arms and certified steps;
        or has a `length` that leaves nothing to evict, fewer evictable positions than `agreement_top_k`, or
        no more than the protected positions at a budget of a sampled arm.
    """
    document = read_document(path)
    plan = decode(document, StudyPlan, {DEVICE: "write cpu, cuda or one GPU such as cuda:0"})
    known = (*TASKS, *plan.sources)
    for task in plan.tasks:
        if task not in known:
            raise document.error(("tasks", task), f"has the unknown task {task!r}", nearest_name(task, known))
    for task in plan.sources:
        if task in TASKS:
            raise document.error(
                ("sources", task), f"has a source for {task!r}, which needs none", "give it another name"
            )
    check_once(document, ("conditions",), plan.conditions)
    check_arms(document, plan)
    check_length(document, plan)
    check_parts(document, plan)
    return plan


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
        check_conditions(document, plan, index)


def check_conditions(document: Document, plan: StudyPlan, index: int) -> None:
    """Refuse an arm that is never run, or that ranks by a question which was not prefilled."""
    arm, place = plan.arms[index], ("arms", index, "conditions")
    for position, condition in enumerate(arm.conditions or ()):
        if condition not in plan.conditions:
            raise document.error(
                (*place, position),
                f"{dotted((*place, position))} is {condition!r}, which the plan does not run",
                "remove it, or add it to the plan's conditions",
            )
    check_once(document, place, arm.conditions or ())
    if needs_question(arm.evictor) and arm in plan.arms_under("stream") and "stream" in plan.conditions:
        raise document.error(
            place if arm.conditions else ("arms", index),
            f"the arm {arm.name!r} ranks by the question, which comes after the eviction under 'stream'",
            "give the arm conditions: [aware]",
        )


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
            match arm.evictor:
                case Poisson():
                    kept = budget * plan.length
                case ConditionalPoisson():
                    kept = round(budget * plan.length)
                case _:
                    continue
            if kept <= protected:
                place: Place = ("arms", index, "budgets", position)
                raise document.error(
                    place,
                    f"{dotted(place)} is {budget}, which of {plan.length} tokens does not exceed {protected} "
                    "protected",
                    "raise the budget or length",
                )
