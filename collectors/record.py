"""From one input to its records: prefill, selections, one batch of rows, signals, replay cells."""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import torch
from torch import Tensor

from collectors.agreement import head_agreement
from collectors.attention import recording
from collectors.cache import expand_cache
from collectors.certificate import CertificateObserver
from collectors.config import Condition, StudyPlan
from collectors.decode import Generation, decode, end_tokens
from collectors.evictors import Selection, keep_everything
from collectors.models import LoadedModel
from collectors.prefill import Prefill, prefill
from collectors.signals import evicted_mass, keep_margin, retained_entropy
from collectors.tasks import Example, score
from kvstats.log.records import InputRecord, ReplayRecord, RunRecord

__all__ = ["Row", "collect_input", "draw_rows", "split_prompt", "stack_rows"]


@dataclass(frozen=True)
class Row:
    """One row of the batch: an arm at a budget."""

    arm: str
    budget: float
    seed: int
    selection: Selection


def draw_rows(plan: StudyPlan, attention: Tensor, label: str) -> list[Row]:
    """Select the kept positions of every arm, budget and seed of a plan; the full cache comes first.

    Parameters
    ----------
    plan : StudyPlan
        The plan.
    attention : Tensor, shape [L, H, T]
        Window attention of the prefill.
    label : str
        Names the input and condition; the draws of a row depend on it, on the row's own name and on
        nothing else, so that neither order nor the other arms change them.
    """
    protected = plan.protected
    rows = [Row("full", 1.0, 0, keep_everything(attention.shape[-1], protected))]
    for arm in plan.arms:
        for budget in arm.budgets:
            for seed in arm.seeds:
                name = f"{label}|{arm.name}|{budget!r}"
                rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
                selection = arm.evictor.select(attention, budget, protected, rng)
                rows.append(Row(arm.name, budget, seed, selection))
    return rows


def collect_input(
    loaded: LoadedModel,
    plan: StudyPlan,
    example: Example,
    condition: Condition,
    *,
    replay: bool,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> list[RunRecord | ReplayRecord | InputRecord]:
    """Run one input with its full cache and with every arm of a plan.

    Parameters
    ----------
    loaded : LoadedModel
        Model and tokenizer.
    plan : StudyPlan
        What to run and to record.
    example : Example
        The input.
    condition : {"aware", "stream"}
        ``aware``: the whole prompt but its last token is prefilled and evicted from, so that the last
        queries have seen the question and the begun answer; ``stream``: only the context is, the question
        and the begun answer come after.
    replay : bool
        Whether to hold certified reads against the truth.
    now : callable
        The clock.

    Returns
    -------
    list of records
        Runs, replay cells, and last the input record, which marks the input as complete.
    """
    context, fed = split_prompt(example, condition)
    with recording(loaded.model) as recorder:
        began = time.perf_counter()
        filled = prefill(loaded.model, context, recorder, window=plan.window)
        prefill_seconds = time.perf_counter() - began
        rows = draw_rows(plan, filled.attention, f"{example.input_id}|{condition}")
        n_layers, n_heads, _ = filled.attention.shape
        offsets = stack_rows([row.selection.logit_offsets(n_layers) for row in rows])
        observer = make_observer(plan, rows, n_layers, n_heads, replay)
        recorder.observer = observer
        began = time.perf_counter()
        generations = decode(
            loaded.model,
            recorder,
            expand_cache(filled.cache, len(rows), len(fed) + example.max_new_tokens),
            fed,
            position=len(context),
            rows=len(rows),
            max_new_tokens=example.max_new_tokens,
            ends=end_tokens(loaded.model),
            offsets=offsets,
            before_step=None if observer is None else observer.begin_step,
        )
        seconds = {"prefill": prefill_seconds, "decode_batch": time.perf_counter() - began}
    runs: list[RunRecord | ReplayRecord | InputRecord] = []
    cells: list[RunRecord | ReplayRecord | InputRecord] = []
    for index, (row, generation) in enumerate(zip(rows, generations, strict=True)):
        certified = None
        if observer is not None and index in observer.rows:
            certified = observer.per_head(index, n_reads=len(generation.token_ids) + 1)
            cells += replay_records(plan, loaded.name, example, condition, row, generation, observer, index)
        runs.append(
            run_record(plan, loaded, example, condition, row, generation, filled, certified, seconds, now())
        )
    return [*runs, *cells, input_record(plan, loaded.name, example, condition, context, filled, now())]


def split_prompt(example: Example, condition: Condition) -> tuple[list[int], list[int]]:
    """Split a prompt into what is prefilled and evicted from, and what is fed after the eviction."""
    if condition == "stream":
        return example.context_ids, example.question_ids + example.prefix_ids
    prompt = example.context_ids + example.question_ids + example.prefix_ids
    return prompt[:-1], prompt[-1:]


def stack_rows(tensors: list[Tensor]) -> Tensor:
    """Stack [L, 1 or H, T] tensors of rows into [L, B, 1 or H, T]."""
    heads = max(tensor.shape[1] for tensor in tensors)
    return torch.stack([tensor.expand(-1, heads, -1) for tensor in tensors], dim=1)


def make_observer(
    plan: StudyPlan, rows: list[Row], n_layers: int, n_heads: int, replay: bool
) -> CertificateObserver | None:
    sampled = [index for index, row in enumerate(rows) if row.selection.design == "poisson"]
    if not sampled:
        return None
    designs = [rows[index].selection for index in sampled]
    certificate = plan.certificate
    return CertificateObserver(
        rows=sampled,
        kept=stack_rows([design.kept.expand(n_layers, -1, -1) for design in designs]),
        inclusion_probability=stack_rows(
            [design.inclusion_probability.expand(n_layers, -1, -1) for design in designs]
        ),
        heads=list(range(0, n_heads, certificate.head_stride)),
        layers=frozenset(range(0, n_layers, certificate.layer_stride)),
        steps=certificate.steps,
        truth_steps=frozenset(plan.replay.steps) if replay else frozenset(),
        delta=certificate.delta,
    )


def run_record(
    plan: StudyPlan,
    loaded: LoadedModel,
    example: Example,
    condition: Condition,
    row: Row,
    generation: Generation,
    filled: Prefill,
    certified: Tensor | None,
    seconds: dict[str, float],
    recorded_at: datetime,
) -> RunRecord:
    """Make the record of one row; `certified` holds its radius by step, layer and head."""
    selection = row.selection
    prediction = loaded.tokenizer.decode(generation.token_ids)
    value = score(example.references, prediction)
    per_head = None
    if certified is not None and plan.certificate.per_head:
        per_head = [rounded(layer) for layer in certified.amax(0).tolist()]
    return RunRecord(
        suite=plan.suite,
        model=loaded.name,
        task=example.task,
        input_id=example.input_id,
        condition=condition,
        arm=row.arm,
        budget=row.budget,
        seed=row.seed,
        score=value,
        success=value >= plan.success_threshold,
        n_prompt=filled.n_tokens,
        n_kept=round(selection.kept_fraction * filled.n_tokens),
        kept_fraction=selection.kept_fraction,
        signals={
            "certificate": None if certified is None else float(certified.mean((1, 2)).max()),
            "retained_entropy": retained_entropy(selection, filled.attention),
            "evicted_mass": evicted_mass(selection, filled.attention),
            "margin": keep_margin(selection),
            "logprob": generation.mean_log_probability,
        },
        certificate_per_head=per_head,
        prediction=prediction,
        references=example.references,
        seconds=seconds,
        recorded_at=recorded_at,
    )


def replay_records(
    plan: StudyPlan,
    model: str,
    example: Example,
    condition: Condition,
    row: Row,
    generation: Generation,
    observer: CertificateObserver,
    index: int,
) -> list[ReplayRecord]:
    """Make the records of one row's cells whose true error is known; reads past its end are left out."""
    position = observer.rows.index(index)
    records = []
    for cell in observer.cells:
        if cell.true_error is None or cell.step > len(generation.token_ids):
            continue
        for place, head in enumerate(observer.heads):
            variance, radius, error = rounded(
                [float(part[position, place]) for part in (cell.variance, cell.radius, cell.true_error)]
            )
            records.append(
                ReplayRecord(
                    suite=plan.suite,
                    model=model,
                    task=example.task,
                    input_id=example.input_id,
                    condition=condition,
                    arm=row.arm,
                    design=row.selection.design,
                    budget=row.budget,
                    seed=row.seed,
                    layer=cell.layer,
                    head=head,
                    step=cell.step,
                    variance_estimate=variance,
                    radius=radius,
                    true_error=error,
                    delta=plan.certificate.delta,
                )
            )
    return records


def input_record(
    plan: StudyPlan,
    model: str,
    example: Example,
    condition: Condition,
    context: list[int],
    filled: Prefill,
    recorded_at: datetime,
) -> InputRecord:
    """Make the record of the prefill: head agreement over all positions, and over the evictable ones."""
    interior = torch.zeros(filled.n_tokens, dtype=torch.bool)
    interior[plan.protected.tail(filled.n_tokens)] = True
    everywhere = head_agreement(filled.attention, top_k=plan.agreement_top_k)
    inside = head_agreement(filled.attention, top_k=plan.agreement_top_k, candidates=interior)
    prompt = example.context_ids + example.question_ids + example.prefix_ids
    return InputRecord(
        suite=plan.suite,
        model=model,
        task=example.task,
        input_id=example.input_id,
        condition=condition,
        context_tokens=len(context),
        prompt_hash=hashlib.sha256(" ".join(map(str, prompt)).encode()).hexdigest(),
        agreement_window=filled.window,
        agreement_top_k=everywhere.top_k,
        agreement_bin_layers=everywhere.bin_layers,
        head_agreement_per_layer=everywhere.per_layer,
        drop=everywhere.drop,
        head_agreement_interior_per_layer=inside.per_layer,
        drop_interior=inside.drop,
        recorded_at=recorded_at,
    )


def rounded(values: list[float]) -> list[float]:
    """Round to six significant digits, all that float32 carries."""
    return [float(f"{value:.6g}") for value in values]
