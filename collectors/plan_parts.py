"""What a plan asks for besides its runs: replays, permutations, retrieval, times, pairs of heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from collectors.evictors import Evictor, Poisson
from kvstats.document import Document, Place, dotted
from kvstats.errors import nearest_name

if TYPE_CHECKING:
    from collectors.config import StudyPlan

__all__ = ["NO_CONTEXT", "FirstInputs", "PermutationPlan", "ReplayPlan", "RetrievalPlan", "check_parts"]

NO_CONTEXT = "no_context"
"""Name of the arm that is asked without its context."""

Budget = Annotated[float, Meta(gt=0.0, le=1.0)]
Positive = Annotated[int, Meta(ge=1)]
NonNegative = Annotated[int, Meta(ge=0)]
Name = Annotated[str, Meta(min_length=1)]


class FirstInputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that is recorded of some inputs only.

    Attributes
    ----------
    inputs : int
        The first so many inputs of each task.
    """

    inputs: NonNegative = 0


class ReplayPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which reads are held against the truth, for the sampled layers and heads of the certificate.

    Attributes
    ----------
    inputs : int
        The first so many inputs of each task.
    steps : tuple of int
        Decode steps, each below the certificate's number of steps.
    arms : tuple of str, optional
        Arms to replay; by default those with a certificate.
    queries : {"own", "full"}
        Whose query is held against the keys: each row's own, or, the same for all arms, the full cache's.
    without_offset : bool
        Whether reads of sampled caches that have the offset log(1/pi) are also replayed without it.
    """

    inputs: NonNegative = 0
    steps: tuple[NonNegative, ...] = (0,)
    arms: tuple[Name, ...] | None = None
    queries: Literal["own", "full"] = "own"
    without_offset: bool = False


class PermutationPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which replayed reads, of the first replayed step, are repeated with permuted evicted values.

    Attributes
    ----------
    inputs : int
        The first so many inputs of each task, at most as many as are replayed.
    arms : tuple of str
        Replayed arms.
    permutations : int
        Orders of the evicted values, besides the true one.
    layer_stride : int
        Every how many of the replayed layers.
    """

    inputs: NonNegative = 0
    arms: tuple[Name, ...] = ()
    permutations: Positive = 20
    layer_stride: Positive = 10


class RetrievalPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which runs answer again with blocks of the evicted context put back.

    Attributes
    ----------
    arm : str
        An arm with a certificate, which ranks the blocks.
    budgets : tuple of float
        Budgets of that arm.
    block_tokens : int
        Size of a block.
    blocks : tuple of int
        Numbers of blocks to put back.
    """

    arm: Name
    budgets: Annotated[tuple[Budget, ...], Meta(min_length=1)]
    block_tokens: Positive = 64
    blocks: Annotated[tuple[Positive, ...], Meta(min_length=1)] = (1,)

    @property
    def arms(self) -> list[str]:
        """Names of the arms that answer again: ranked and random by number of blocks, and the oracle."""
        sized = [
            f"{self.arm}+{kind}{count if count > 1 else ''}"
            for kind in ("ranked", "random")
            for count in self.blocks
        ]
        return [*sized, f"{self.arm}+oracle"]


def has_certificate(evictor: Evictor) -> bool:
    """Return whether the reads of what an evictor keeps have a certificate."""
    return isinstance(evictor, Poisson) and evictor.offset


def check_parts(document: Document, plan: StudyPlan) -> None:
    """Refuse replays, permutations and retrieval that do not fit the arms and steps of a plan."""
    check_steps(document, plan)
    check_named_arms(document, plan, ("replay", "arms"), plan.replay.arms or ())
    check_permutation(document, plan)
    check_retrieval(document, plan)
    made = {NO_CONTEXT} if plan.no_context else set()
    made |= set(plan.retrieval.arms if plan.retrieval else ())
    for index, arm in enumerate(plan.arms):
        if arm.name in made:
            place: Place = ("arms", index, "name")
            raise document.error(place, f"the arm name {arm.name!r} is taken", "rename the arm")


def check_steps(document: Document, plan: StudyPlan) -> None:
    """Refuse the replay of no step, or of one that is not certified."""
    if plan.replay.inputs and not plan.replay.steps:
        raise document.error(("replay", "steps"), "replay.steps is empty", "name a decode step, such as 0")
    check_once(document, ("replay", "steps"), plan.replay.steps)
    for index, step in enumerate(plan.replay.steps):
        if plan.replay.inputs and step >= plan.certificate.steps:
            place: Place = ("replay", "steps", index)
            raise document.error(
                place,
                f"{dotted(place)} is {step}, which is not among the {plan.certificate.steps} certified steps",
                "raise certificate.steps",
            )


def check_permutation(document: Document, plan: StudyPlan) -> None:
    """Refuse permutations of what is not replayed."""
    permutation, replay = plan.permutation, plan.replay
    check_named_arms(document, plan, ("permutation", "arms"), permutation.arms)
    if permutation.inputs > replay.inputs:
        raise document.error(
            ("permutation", "inputs"),
            f"permutation.inputs is {permutation.inputs}, more than the {replay.inputs} that are replayed",
            "raise replay.inputs",
        )
    if permutation.inputs and not permutation.arms:
        raise document.error(("permutation",), "permutation names no arms", "add arms, such as a top-k one")
    certified = [arm.name for arm in plan.arms if has_certificate(arm.evictor)]
    replayed = certified if replay.arms is None else replay.arms
    for index, name in enumerate(permutation.arms):
        if name not in replayed:
            place: Place = ("permutation", "arms", index)
            raise document.error(
                place, f"{dotted(place)} is {name!r}, which is not replayed", "add it to replay.arms"
            )


def check_retrieval(document: Document, plan: StudyPlan) -> None:
    """Refuse retrieval for an arm without certificate, or at a budget that it is not run at."""
    retrieval = plan.retrieval
    if retrieval is None:
        return
    check_arm_name(document, plan, ("retrieval", "arm"), retrieval.arm)
    (arm,) = (arm for arm in plan.arms if arm.name == retrieval.arm)
    if not has_certificate(arm.evictor):
        raise document.error(
            ("retrieval", "arm"),
            f"retrieval.arm is {arm.name!r}, which has no certificate to rank blocks by",
            "name a poisson arm with offset",
        )
    check_once(document, ("retrieval", "budgets"), retrieval.budgets)
    check_once(document, ("retrieval", "blocks"), retrieval.blocks)
    for index, budget in enumerate(retrieval.budgets):
        if budget not in arm.budgets:
            place: Place = ("retrieval", "budgets", index)
            raise document.error(
                place, f"{dotted(place)} is {budget}, at which {arm.name!r} is not run", "add it to the arm"
            )


def check_named_arms(document: Document, plan: StudyPlan, place: Place, names: Sequence[str]) -> None:
    """Refuse names that are not those of the plan's arms, or that come twice."""
    for index, name in enumerate(names):
        check_arm_name(document, plan, (*place, index), name)
    check_once(document, place, names)


def check_arm_name(document: Document, plan: StudyPlan, place: Place, name: str) -> None:
    """Refuse a name that is not that of an arm of the plan."""
    known = [arm.name for arm in plan.arms]
    if name not in known:
        raise document.error(
            place, f"{dotted(place)} is {name!r}, which is no arm of the plan", nearest_name(name, known)
        )


def check_once(document: Document, place: Place, values: Sequence[object]) -> None:
    """Refuse a list that names a value twice."""
    for index, value in enumerate(values):
        if value in values[:index]:
            raise document.error((*place, index), f"{dotted(place)} has {value!r} twice", "keep one of them")
