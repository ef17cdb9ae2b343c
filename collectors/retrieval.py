"""Partial retrieval: answer again with blocks of the evicted context put back.

The evictable positions are cut into blocks. A block is put back whole, in all layers and heads, and its
positions are certain from then on. Which blocks: those that add most to the estimated variance, random ones,
or, as the ceiling, those that hold the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

from collectors.config import RetrievalPlan, StudyPlan
from collectors.decode import Generation
from collectors.evictors import Selection
from collectors.reads import design_of_read, read_of_row
from collectors.rows import Row, generator_of
from collectors.tasks import Example
from kvstats.statistics.variance_contributions import variance_contributions

__all__ = [
    "BlockObserver",
    "RetrievalRow",
    "answer_blocks",
    "make_block_observer",
    "restore",
    "restored_rows",
    "retrieval_rows",
    "tail_blocks",
]


class RetrievalRow(NamedTuple):
    """A row that answers again, and what is recorded of its blocks.

    Attributes
    ----------
    row : Row
        The base row with blocks put back.
    signals : dict of str to float or None
        ``n_blocks`` put back, of ``candidate_blocks``; ``true_block_rank``: place, from 1, of the first block
        with a part of the answer in the order in which this arm takes blocks; None when it is not known where
        the answer stands, or no block holds it.
    """

    row: Row
    signals: dict[str, float | None]


def tail_blocks(tail: slice, size: int) -> list[slice]:
    """Cut the evictable positions into blocks of `size`, the last one shorter if need be.

    Examples
    --------
    >>> tail_blocks(slice(4, 10), 4)
    [slice(4, 8, None), slice(8, 10, None)]
    """
    return [slice(start, min(start + size, tail.stop)) for start in range(tail.start, tail.stop, size)]


def answer_blocks(blocks: Sequence[slice], spans: Sequence[tuple[int, int]]) -> list[int]:
    """Return the numbers of the blocks that hold a part of one of the spans, in order.

    Examples
    --------
    >>> answer_blocks([slice(0, 4), slice(4, 8), slice(8, 10)], [(3, 5)])
    [0, 1]
    """
    return [
        number
        for number, block in enumerate(blocks)
        if any(start < block.stop and block.start < stop for start, stop in spans)
    ]


def restore(selection: Selection, blocks: Sequence[slice]) -> Selection:
    """Put blocks back into a selection, in all layers and heads; they are certain from then on."""
    kept, pi = selection.kept.clone(), selection.inclusion_probability.clone()
    for block in blocks:
        kept[..., block] = True
        pi[..., block] = 1.0
    return replace(selection, kept=kept, inclusion_probability=pi)


@dataclass
class BlockObserver:
    r"""Attribute the estimated variance of the certified reads to the blocks of the cache.

    The contribution of block B is its share of the estimated variance, averaged over the reads of the
    sampled layers, heads and steps whose variance is not 0:

    .. math:: C_B = \operatorname{mean}_{reads} \frac{\sum_{i \in B \cap S} c_i}{\sum_{i \in S} c_i}

    with :math:`c_i` of `kvstats.statistics.variance_contributions`. Only kept positions count: what was
    evicted is not looked at.

    Attributes
    ----------
    rows : mapping of int to Row
        Rows of the batch whose cache was sampled.
    heads : sequence of int
        Query heads to sample.
    layers : collection of int
        Layers to sample.
    steps : int
        Decode steps, from the first.
    block_tokens : int
        Size of a block.
    step : int
        The current decode step, set by the decoder.
    shares : dict of (row, step) to list of Tensor, shape [number of blocks]
        Sums over the heads of a layer of the blocks' shares.
    """

    rows: Mapping[int, Row]
    heads: Sequence[int]
    layers: Collection[int]
    steps: int
    block_tokens: int
    step: int = 0
    shares: dict[tuple[int, int], list[Tensor]] = field(default_factory=dict)

    def begin_step(self, step: int) -> None:
        """Take note of the decode step that follows."""
        self.step = step

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scaling: float) -> None:
        """Attribute one layer's reads by the last query."""
        if self.step >= self.steps or layer not in self.layers:
            return
        for index, row in self.rows.items():
            read = read_of_row(index, self.heads, query, key, value, scaling)
            kept, pi = design_of_read(row.selection, layer, self.heads, read.logits)
            parts = variance_contributions(read.logits, read.values, pi, kept)
            total = parts.sum(-1, keepdim=True)
            share = torch.where(total > 0, parts / total, torch.zeros_like(parts)).sum(0)
            blocks = tail_blocks(row.selection.tail, self.block_tokens)
            by_block = torch.stack([share[block].sum() for block in blocks])
            self.shares.setdefault((index, self.step), []).append(by_block)

    def ranking(self, row: int, *, n_reads: int) -> list[int]:
        """Return the blocks of a batch row from the largest contribution down; among equals the earlier.

        Parameters
        ----------
        row : int
            One of `rows`.
        n_reads : int
            Reads that the row's own generation made; later ones followed its end and are left out.
        """
        sums = [
            part
            for (where, step), parts in self.shares.items()
            if where == row and step < n_reads
            for part in parts
        ]
        total = torch.stack(sums).sum(0)
        return torch.sort(total, descending=True, stable=True).indices.tolist()


def make_block_observer(plan: StudyPlan, rows: Sequence[Row], shape: Sequence[int]) -> BlockObserver | None:
    """Make the observer of the rows whose blocks a plan puts back; None without retrieval.

    Parameters
    ----------
    plan : StudyPlan
        The plan.
    rows : sequence of Row
        Rows of the batch.
    shape : sequence of int
        Number of layers and of query heads.
    """
    retrieval = plan.retrieval
    if retrieval is None:
        return None
    return BlockObserver(
        rows={
            number: row
            for number, row in enumerate(rows)
            if row.arm == retrieval.arm and row.budget in retrieval.budgets
        },
        heads=range(0, shape[1], plan.certificate.head_stride),
        layers=range(0, shape[0], plan.certificate.layer_stride),
        steps=plan.certificate.steps,
        block_tokens=retrieval.block_tokens,
    )


def retrieval_rows(
    plan: StudyPlan, example: Example, observer: BlockObserver, generations: Sequence[Generation], label: str
) -> list[RetrievalRow]:
    """Make the rows that answer again, after all rows of the batch have answered.

    Parameters
    ----------
    plan : StudyPlan
        A plan with retrieval.
    example : Example
        The input.
    observer : BlockObserver
        After the decoding.
    generations : sequence of Generation
        What the rows of the batch generated.
    label : str
        Names the input and condition.
    """
    rows = []
    for number, row in observer.rows.items():
        ranking = observer.ranking(number, n_reads=len(generations[number].token_ids) + 1)
        rows += restored_rows(plan.retrieval, row, ranking, example.answer_spans, label)
    return rows


def restored_rows(
    retrieval: RetrievalPlan,
    base: Row,
    ranking: Sequence[int],
    spans: Sequence[tuple[int, int]],
    label: str,
) -> list[RetrievalRow]:
    """Put blocks back into a row, once for each arm of `RetrievalPlan.arms`.

    Parameters
    ----------
    retrieval : RetrievalPlan
        Size and numbers of blocks.
    base : Row
        The row that answered.
    ranking : sequence of int
        Its blocks by contribution.
    spans : sequence of (int, int)
        Where the answer stands in the cache. The oracle puts back every block with a part of it, one or
        more; without such a block there is no oracle row.
    label : str
        Names the input and condition; the random order depends on it and on the row's own name.
    """
    blocks = tail_blocks(base.selection.tail, retrieval.block_tokens)
    true = answer_blocks(blocks, spans)
    rng = generator_of(base.seed, f"{label}|blocks", base.arm, base.budget)
    orders = {"ranked": list(ranking), "random": rng.permutation(len(blocks)).tolist()}
    chosen = [(orders[kind], count) for kind in ("ranked", "random") for count in retrieval.blocks]
    rows = []
    for arm, (order, count) in zip(retrieval.arms, [*chosen, (true, len(true))], strict=True):
        if not count:
            continue
        taken = order[:count]
        selection = restore(base.selection, [blocks[number] for number in taken])
        signals = {
            "true_block_rank": min((order.index(number) + 1.0 for number in true), default=None),
            "n_blocks": float(len(taken)),
            "candidate_blocks": float(len(blocks)),
        }
        rows.append(RetrievalRow(Row(arm, base.budget, base.seed, selection), signals))
    return rows
