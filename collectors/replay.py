"""Replay: attention reads of a run held against the truth, which the masked cache still holds.

What is replayed is one read: a query against the keys and values of its row. The cache of a row that only
masks what it evicted holds all prefilled keys and values, and those of the row's own later tokens, so the
full output of the same query is known, and the error of the read with it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from collectors.certified_rows import is_certified
from collectors.config import StudyPlan
from collectors.decode import Generation
from collectors.permutation import permute_evicted, retained_hash
from collectors.reads import Read, design_of_read, read_of_row
from collectors.rows import Row, generator_of
from kvstats.log.records import ReplayRecord
from kvstats.statistics.certificate import attention_certificate, relative_error

__all__ = ["Permuted", "ReplayCell", "ReplayObserver", "make_replay", "replay_records"]


class ReplayCell(NamedTuple):
    """The reads of one row by the replayed heads of a layer at one decode step.

    Attributes
    ----------
    row : int
        Row of the batch.
    design : str
        How the cache was chosen and is read.
    layer, step, permutation : int
        Where and when, and the order of the evicted values; 0 is the true one.
    variance, radius : Tensor, shape [H'], optional
        The certificate; None where nothing is certified.
    true_error : Tensor, shape [H']
        Error relative to the norm of the estimate.
    hashes : list of str, length H', optional
        What is retained, where evicted values are permuted.
    """

    row: int
    design: str
    layer: int
    step: int
    permutation: int
    variance: Tensor | None
    radius: Tensor | None
    true_error: Tensor
    hashes: list[str] | None


class Permuted(NamedTuple):
    """Which of the replayed reads are repeated with permuted evicted values, and how often.

    Attributes
    ----------
    arms : collection of str
        Arms.
    layers : collection of int
        Layers.
    step : int
        The decode step.
    permutations : int
        How many, besides the true order.
    """

    arms: Collection[str]
    layers: Collection[int]
    step: int
    permutations: int


@dataclass
class ReplayObserver:
    """Hold the reads of some rows against the truth.

    Attributes
    ----------
    rows : mapping of int to Row
        Rows of the batch to replay.
    heads : sequence of int, length H'
        Query heads to replay.
    layers, steps : collection of int
        Layers and decode steps to replay.
    delta : float
        Nominal failure probability of the radius.
    label : str
        Names the input and condition; the permutations depend on it and on the row's own name.
    queries : {"own", "full"}
        Whose read is replayed: the row's own, or that of the batch's first row, the full cache, so that all
        rows are held against the truth at the same queries.
    without_offset : bool
        Whether to read each sampled cache that has an offset without it too.
    permuted : Permuted, optional
        The reads to repeat with permuted values.
    step : int
        The current decode step, set by the decoder.
    cells : list of ReplayCell
        What was observed.
    """

    rows: Mapping[int, Row]
    heads: Sequence[int]
    layers: Collection[int]
    steps: Collection[int]
    delta: float
    label: str
    queries: Literal["own", "full"] = "own"
    without_offset: bool = False
    permuted: Permuted | None = None
    step: int = 0
    cells: list[ReplayCell] = field(default_factory=list)

    def begin_step(self, step: int) -> None:
        """Take note of the decode step that follows."""
        self.step = step

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scaling: float) -> None:
        """Replay one layer's read by the last query."""
        if self.step not in self.steps or layer not in self.layers:
            return
        for index, row in self.rows.items():
            source = index if self.queries == "own" else 0
            read = read_of_row(source, self.heads, query, key, value, scaling)
            kept, pi = design_of_read(row.selection, layer, self.heads, read.logits)
            permutations = self._permutations(row, layer)
            for design, with_offset in designs_of(row, self.without_offset).items():
                divisor = pi if with_offset else torch.ones_like(pi)
                certified = with_offset and is_certified(row)
                for number in range(permutations + 1):
                    seen = self._permute(read, kept, row, number) if number else read
                    certificate = attention_certificate(
                        seen.logits, seen.values, divisor, kept, delta=self.delta
                    )
                    cell = ReplayCell(
                        row=index,
                        design=design,
                        layer=layer,
                        step=self.step,
                        permutation=number,
                        variance=certificate.variance if certified else None,
                        radius=certificate.radius if certified else None,
                        true_error=relative_error(seen.logits, seen.values, certificate.estimate),
                        hashes=retained_hash(seen, kept, divisor, certificate) if permutations else None,
                    )
                    self.cells.append(cell)

    def _permutations(self, row: Row, layer: int) -> int:
        """Return how often a read is repeated with permuted values."""
        if self.permuted is None or row.arm not in self.permuted.arms:
            return 0
        here = layer in self.permuted.layers and self.step == self.permuted.step
        return self.permuted.permutations if here else 0

    def _permute(self, read: Read, kept: Tensor, row: Row, number: int) -> Read:
        rng = generator_of(row.seed, f"{self.label}|permutation {number}", row.arm, row.budget)
        return read._replace(values=permute_evicted(read.values, kept, rng))


def designs_of(row: Row, without_offset: bool) -> dict[str, bool]:
    """Name the designs under which a row's cache is read, and whether each reads with the offset."""
    design, sampled = row.selection.design, bool((row.selection.inclusion_probability < 1).any())
    plain = f"{design}_without_offset"
    if not row.selection.offset:
        return {plain: False}
    return {design: True, plain: False} if sampled and without_offset else {design: True}


def make_replay(
    plan: StudyPlan, rows: Sequence[Row], shape: Sequence[int], label: str, index: int
) -> ReplayObserver | None:
    """Make the observer that a plan asks for on the input of a number within its task; None for no replay.

    Parameters
    ----------
    plan : StudyPlan
        The plan.
    rows : sequence of Row
        Rows of the batch; those that keep everything have no error and are left out.
    shape : sequence of int
        Number of layers and of query heads.
    label : str
        Names the input and condition.
    index : int
        Number of the input within its task.
    """
    if index >= plan.replay.inputs:
        return None
    replayed = {
        number: row
        for number, row in enumerate(rows)
        if not bool(row.selection.kept.all())
        and (is_certified(row) if plan.replay.arms is None else row.arm in plan.replay.arms)
    }
    layers = range(0, shape[0], plan.certificate.layer_stride)
    permuted = None
    if index < plan.permutation.inputs:
        permuted = Permuted(
            arms=plan.permutation.arms,
            layers=layers[:: plan.permutation.layer_stride],
            step=plan.replay.steps[0],
            permutations=plan.permutation.permutations,
        )
    return ReplayObserver(
        rows=replayed,
        heads=range(0, shape[1], plan.certificate.head_stride),
        layers=layers,
        steps=plan.replay.steps,
        delta=plan.certificate.delta,
        label=label,
        queries=plan.replay.queries,
        without_offset=plan.replay.without_offset,
        permuted=permuted,
    )


def replay_records(
    key: Mapping[str, str], observer: ReplayObserver, generations: Sequence[Generation]
) -> list[ReplayRecord]:
    """Make the records of what was replayed, one for each head; reads past the end of a row are left out.

    Parameters
    ----------
    key : mapping of str to str
        The key of the input.
    observer : ReplayObserver
        After the decoding.
    generations : sequence of Generation
        What the rows of the batch generated.
    """
    records = []
    for cell in observer.cells:
        row = observer.rows[cell.row]
        source = cell.row if observer.queries == "own" else 0
        if cell.step > len(generations[source].token_ids):
            continue
        for place, head in enumerate(observer.heads):
            certified = cell.radius is not None
            records.append(
                ReplayRecord(
                    **key,
                    arm=row.arm,
                    design=cell.design,
                    budget=row.budget,
                    seed=row.seed,
                    layer=cell.layer,
                    head=head,
                    step=cell.step,
                    variance_estimate=figure(cell.variance, place),
                    radius=figure(cell.radius, place),
                    true_error=figure(cell.true_error, place),
                    delta=observer.delta if certified else None,
                    permutation=cell.permutation,
                    retained_hash=None if cell.hashes is None else cell.hashes[place],
                )
            )
    return records


def figure(numbers: Tensor | None, place: int) -> float | None:
    """Return one number, rounded to the six significant digits that float32 carries."""
    return None if numbers is None else float(f"{float(numbers[place]):.6g}")
