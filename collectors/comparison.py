"""What was logged against what came out now: the same, moved a little, or something else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from collectors.failure import error_of
from kvstats.log.records import InputRecord, Record, RunRecord

__all__ = ["Comparison", "Verdict", "compare_blocks", "compare_numbers", "worst"]

Verdict = Literal["reproduced", "drifted", "different"]

REPRODUCED_WITHIN = 1e-4
DRIFTED_WITHIN = 0.05
SMALL = 0.1


class Comparison(msgspec.Struct, frozen=True):
    """One quantity of one input or run.

    Attributes
    ----------
    where : str
        The input, and the run if it is of one.
    quantity : str
        What was compared.
    logged, found : str
        What was logged, and what came out now.
    distance : float
        0 where they are the same; for numbers how far they are apart, relative to the logged one or to 0.1,
        whichever is larger; 1 for anything else that differs.
    verdict : {"reproduced", "drifted", "different"}
        For numbers: up to a distance of 0.0001, up to 0.05, and above. Anything else is reproduced only
        when it is the same.
    """

    where: str
    quantity: str
    logged: str
    found: str
    distance: float
    verdict: Verdict


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of some verdicts.

    Examples
    --------
    >>> worst(["reproduced", "drifted", "reproduced"])
    'drifted'
    """
    order: list[Verdict] = ["reproduced", "drifted", "different"]
    return max(verdicts, key=order.index)


def compare_numbers(where: str, quantity: str, logged: Sequence[float], found: Sequence[float]) -> Comparison:
    """Compare numbers one by one; the pair that is furthest apart stands for all.

    Examples
    --------
    >>> compare_numbers("1", "drop", [0.5], [0.501]).verdict
    'drifted'
    """
    if len(logged) != len(found):
        return compare_same(where, quantity, f"{len(logged)} numbers", f"{len(found)} numbers")
    if not logged:
        return compare_same(where, quantity, "none", "none")
    distances = [
        abs(before - after) / max(abs(before), SMALL) for before, after in zip(logged, found, strict=True)
    ]
    place = max(range(len(distances)), key=distances.__getitem__)
    distance = distances[place]
    verdict: Verdict = "different"
    if distance <= REPRODUCED_WITHIN:
        verdict = "reproduced"
    elif distance <= DRIFTED_WITHIN:
        verdict = "drifted"
    return Comparison(where, quantity, f"{logged[place]:.6g}", f"{found[place]:.6g}", distance, verdict)


def compare_same(where: str, quantity: str, logged: object, found: object) -> Comparison:
    """Compare what is the same or is not."""
    same = logged == found
    return Comparison(
        where,
        quantity,
        repr(logged),
        repr(found),
        0.0 if same else 1.0,
        "reproduced" if same else "different",
    )


def compare_optional(
    where: str, quantity: str, logged: Sequence[float] | float | None, found: Sequence[float] | float | None
) -> Iterator[Comparison]:
    """Compare numbers of which either may be undefined; nothing where both are."""
    if logged is None and found is None:
        return
    if logged is None or found is None:
        yield compare_same(where, quantity, logged, found)
        return
    before, after = ([item] if isinstance(item, float | int) else item for item in (logged, found))
    yield compare_numbers(where, quantity, list(before), list(after))


def compare_signals(
    where: str, logged: Mapping[str, float | None], found: Mapping[str, float | None]
) -> Iterator[Comparison]:
    """Compare the signals that were logged; those that are recorded since then are passed over."""
    for name, value in logged.items():
        yield from compare_optional(where, name, value, found.get(name))


def compare_blocks(logged: Sequence[Record], found: Sequence[Record], tau: float) -> Iterator[Comparison]:
    """Compare the records of one unit with those of its repetition.

    Parameters
    ----------
    logged, found : sequence of records
        Runs and the input record. Where the repetition failed, its error is all that is compared.
    tau : float
        Threshold of the gate decision.
    """
    (before,), (after,) = (
        [item for item in side if isinstance(item, InputRecord)] for side in (logged, found)
    )
    where = f"{before.input_id}, {before.condition}"
    error = error_of(found)
    if error is not None:
        yield compare_same(where, "error", error_of(logged), error)
        return
    yield compare_same(where, "prompt length", before.context_tokens, after.context_tokens)
    yield compare_same(where, "prompt", before.prompt_hash, after.prompt_hash)
    yield from compare_optional(where, "drop", before.drop, after.drop)
    yield from compare_optional(where, "drop_interior", before.drop_interior, after.drop_interior)
    yield compare_same(where, "gate", decision(before.drop, tau), decision(after.drop, tau))
    yield from compare_optional(
        where, "head agreement", before.head_agreement_per_layer, after.head_agreement_per_layer
    )
    yield from compare_signals(where, before.signals, after.signals)
    runs = {run_key(item): item for item in found if isinstance(item, RunRecord)}
    seen = set()
    for run in logged:
        if not isinstance(run, RunRecord):
            continue
        place = f"{where}, {run.arm} {run.budget} seed {run.seed}"
        again = runs.get(run_key(run))
        seen.add(run_key(run))
        if again is None:
            yield compare_same(place, "run", "logged", "not planned")
        else:
            yield from compare_runs(place, run, again)
    for key in runs.keys() - seen:
        yield compare_same(f"{where}, {key}", "run", "missing", "planned")


def decision(drop: float | None, tau: float) -> str:
    """Say what the gate does: undefined, closed (the whole cache is kept) or open."""
    if drop is None:
        return "undefined"
    return "closed" if drop < tau else "open"


def run_key(run: RunRecord) -> tuple[str, float | None, int | None, int]:
    return run.arm, run.budget, run.budget_tokens, run.seed


def compare_runs(where: str, logged: RunRecord, found: RunRecord) -> Iterator[Comparison]:
    """Compare a run with its repetition."""
    yield compare_same(where, "prediction", logged.prediction, found.prediction)
    yield compare_same(where, "kept tokens", logged.n_kept, found.n_kept)
    yield from compare_optional(where, "score", logged.score, found.score)
    yield from compare_signals(where, logged.signals, found.signals)
    before, after = (
        None if radii is None else [value for layer in radii for value in layer]
        for radii in (logged.certificate_per_head, found.certificate_per_head)
    )
    yield from compare_optional(where, "certificate_per_head", before, after)
