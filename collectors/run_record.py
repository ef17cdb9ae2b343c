"""The record of one run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from torch import Tensor

from collectors.config import StudyPlan
from collectors.decode import Generation
from collectors.models import LoadedModel
from collectors.plan_parts import NO_CONTEXT
from collectors.prefill import Prefill
from collectors.rows import Row
from collectors.signals import cache_bytes, selection_signals
from collectors.tasks import Example
from kvstats.log.records import RunRecord

__all__ = ["no_context_record", "run_record"]


def run_record(
    plan: StudyPlan,
    loaded: LoadedModel,
    key: Mapping[str, str],
    example: Example,
    filled: Prefill,
    row: Row,
    generation: Generation,
    seconds: dict[str, float],
    recorded_at: datetime,
    *,
    certified: Tensor | None = None,
    signals: Mapping[str, float | None] | None = None,
) -> RunRecord:
    """Make the record of one row.

    Parameters
    ----------
    plan, loaded, example, filled
        What was run.
    key : mapping of str to str
        The key of the input.
    row : Row
        The row.
    generation : Generation
        What it generated.
    seconds : dict of str to float
        Times by phase.
    recorded_at : datetime
        Now.
    certified : Tensor, shape [S, L', H'], optional
        Its radius by step, layer and head.
    signals : mapping of str to float or None, optional
        Signals besides those of the certificate, the selection and the output.
    """
    selection = row.selection
    certificate, per_head = certificate_of_run(certified)
    return RunRecord(
        **key,
        arm=row.arm,
        budget=row.budget,
        seed=row.seed,
        n_prompt=filled.n_tokens,
        n_kept=round(selection.kept_fraction * filled.n_tokens),
        kept_fraction=selection.kept_fraction,
        signals={
            "certificate": certificate,
            **selection_signals(selection, filled.attention),
            **output_signals(generation),
            **(signals or {}),
        },
        certificate_per_head=per_head if plan.certificate.per_head else None,
        seconds=seconds,
        memory_bytes={"cache": cache_bytes(selection, filled.cache)},
        recorded_at=recorded_at,
        **scored(plan, loaded, example, generation),
    )


def no_context_record(
    plan: StudyPlan,
    loaded: LoadedModel,
    key: Mapping[str, str],
    example: Example,
    filled: Prefill,
    generation: Generation,
    seconds: dict[str, float],
    recorded_at: datetime,
) -> RunRecord:
    """Make the record of the control that kept nothing of the context; arguments as for `run_record`."""
    return RunRecord(
        **key,
        arm=NO_CONTEXT,
        n_prompt=filled.n_tokens,
        n_kept=0,
        kept_fraction=0.0,
        signals=output_signals(generation),
        seconds=seconds,
        memory_bytes={"cache": 0},
        recorded_at=recorded_at,
        **scored(plan, loaded, example, generation),
    )


def scored(plan: StudyPlan, loaded: LoadedModel, example: Example, generation: Generation) -> dict[str, Any]:
    """Return the fields of a record that say what was generated and how good it was."""
    prediction = loaded.tokenizer.decode(generation.token_ids)
    score = example.score(prediction)
    return {
        "score": score,
        "success": score >= plan.success_threshold,
        "prediction": prediction,
        "references": example.references,
    }


def output_signals(generation: Generation) -> dict[str, float | None]:
    """Return the mean, lowest and first log-probability of what was generated, the end token included."""
    return {
        "logprob": generation.mean_log_probability,
        "logprob_min": min(generation.log_probabilities),
        "logprob_first": generation.log_probabilities[0],
    }


def certificate_of_run(certified: Tensor | None) -> tuple[float | None, list[list[float]] | None]:
    """Reduce the radii of a run to its signal and to a matrix.

    Parameters
    ----------
    certified : Tensor, shape [S, L', H'], optional
        The radius by step, layer and head.

    Returns
    -------
    signal : float or None
        Mean over layers and heads, largest over the steps.
    per_head : list of list of float, shape [L'][H'], or None
        Largest over the steps, rounded to the six significant digits that float32 carries.
    """
    if certified is None:
        return None, None
    per_head = [[float(f"{radius:.6g}") for radius in layer] for layer in certified.amax(0).tolist()]
    return float(certified.mean((1, 2)).max()), per_head
