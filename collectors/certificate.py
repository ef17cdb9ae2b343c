"""The certificate of a run: an observer of the decode steps of rows whose tail was sampled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from kvstats.errors import InputError
from kvstats.statistics.certificate import NORM_GUARD

__all__ = ["Cell", "CertificateObserver"]

# Logits further below the largest are raised to this: their exponentials are slow, and count for nothing.
LEAST_LOGIT = -80.0


@dataclass(frozen=True)
class Cell:
    """The certificates of one layer at one decode step.

    Attributes
    ----------
    layer, step : int
        Where and when.
    variance, radius : Tensor, shape [R, H'], float32
        By observed row and sampled head.
    """

    layer: int
    step: int
    variance: Tensor
    radius: Tensor


@dataclass
class LayerReads:
    """What was seen of one layer: the queries of each step, and the keys and values at the last of them."""

    key: Tensor
    value: Tensor
    scaling: float
    n_heads: int
    steps: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    queries: list[Tensor] = field(default_factory=list)


@dataclass
class CertificateObserver:
    r"""Certify the reads of some rows of a batch whose evicted positions are still in the cache.

    The rows are copies of one prefilled sequence, as `collectors.cache.expand_cache` makes them. The read of
    decode step s is the one whose output gives generated token s. Positions after the prefilled ones are
    certain.

    Attributes
    ----------
    rows : list of int, length R
        Rows of the batch to observe.
    kept, inclusion_probability : Tensor, shape [L, R, 1 or H, T]
        The designs of those rows.
    heads : list of int, length H'
        Query heads to sample.
    layers : collection of int
        Layers to sample.
    steps : int
        Decode steps to certify, from the first.
    delta : float
        Nominal failure probability of the radius.
    step : int
        The current decode step, set by the decoder.

    Raises
    ------
    InputError
        The rows are not of one prefilled sequence; raised where `cells` are asked for.

    Notes
    -----
    A decode step only takes note of its queries; keys and values stay where they are. All steps and rows of
    a layer are certified together when the cells are asked for, so that the prefilled keys and values are
    read once, from the first row. The numbers are those of
    `kvstats.statistics.certificate.attention_certificate`, up to rounding in float32.
    Estimates and distances are computed in float64, so that the distances come from one product of matrices,

    .. math:: \lVert v - \hat y \rVert^2 = \lVert v \rVert^2 - 2 v \cdot \hat y + \lVert \hat y \rVert^2,

    and the cancellation does no harm where one value makes up nearly all of the estimate.
    """

    rows: list[int]
    kept: Tensor
    inclusion_probability: Tensor
    heads: list[int]
    layers: frozenset[int]
    steps: int = 6
    delta: float = 0.1
    step: int = 0
    reads: dict[int, LayerReads] = field(default_factory=dict, init=False, repr=False)
    certified: list[Cell] = field(default_factory=list, init=False, repr=False)

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scaling: float) -> None:
        """Take note of one layer's read by the last query."""
        if self.step >= self.steps or layer not in self.layers:
            return
        reads = self.reads.setdefault(layer, LayerReads(key, value, scaling, query.shape[1]))
        reads.key, reads.value = key, value
        reads.steps.append(self.step)
        reads.lengths.append(key.shape[2])
        reads.queries.append(query[:, :, -1])

    def begin_step(self, step: int) -> None:
        """Take note of the decode step that follows."""
        self.step = step

    @property
    def cells(self) -> list[Cell]:
        """What was observed, by step and layer."""
        if self.reads:
            cells = [cell for layer, reads in self.reads.items() for cell in self._certify(layer, reads)]
            self.certified = sorted([*self.certified, *cells], key=lambda cell: (cell.step, cell.layer))
            self.reads.clear()
        return self.certified

    def per_head(self, row: int, *, n_reads: int) -> Tensor:
        """Return the radius of a batch row by step, layer and head, shape [S, L', H'].

        Parameters
        ----------
        row : int
            One of `rows`.
        n_reads : int
            Reads that the row's own generation made; later ones followed its end and are left out.
        """
        place = self.rows.index(row)
        steps = sorted({cell.step for cell in self.cells if cell.step < n_reads})
        found = {(cell.step, cell.layer): cell.radius[place] for cell in self.cells}
        return torch.stack(
            [torch.stack([found[step, layer] for layer in sorted(self.layers)]) for step in steps]
        )

    @torch.inference_mode()
    def _certify(self, layer: int, reads: LayerReads) -> list[Cell]:
        """Certify all reads of a layer; axes are key heads, rows, their query heads, steps, positions."""
        group = head_groups(self.heads, reads.n_heads // reads.key.shape[1])
        total, device = self.kept.shape[-1], reads.key.device
        rows = torch.tensor(self.rows, device=device)
        key, later_key = self._parts(reads.key, rows, group, torch.float32)
        value, later_value = self._parts(reads.value, rows, group, torch.float64)
        query = group.grouped(torch.stack(reads.queries, dim=2).index_select(0, rows)).float() * reads.scaling
        kept = group.of_design(self.kept[layer].to(device))
        pi = group.of_design(self.inclusion_probability[layer].to(device, torch.float32))
        position = torch.arange(total, reads.key.shape[2], device=device)
        ahead = position >= torch.tensor(reads.lengths, device=device)[:, None]

        shown = product(query, key.mT).add_(torch.where(kept, 0.0, -math.inf))
        later = product(query, later_key.mT).masked_fill_(ahead, -math.inf)
        largest_logit = torch.cat([shown.amax(-1, keepdim=True), later], dim=-1).amax(-1, keepdim=True)
        weight = shown.sub_(largest_logit).clamp_(min=LEAST_LOGIT).exp_()
        inflated = weight.mul_(torch.where(kept, 1.0 / pi, 0.0)).double()
        certain = later.sub_(largest_logit).exp_().double()
        mass = inflated.sum(-1) + certain.sum(-1)
        estimate = (product(inflated, value) + product(certain, later_value)) / mass[..., None]
        # The mass is left to the end, and the root of the squares to the largest of them.
        squares = inflated.square_().mul_(1.0 - pi).mul_(squared_distances(estimate, value))
        variance = squares.sum(-1) / mass.square()
        largest = squares.amax(-1).sqrt() / mass
        log_term = math.log(1.0 / self.delta)
        norm = torch.linalg.vector_norm(estimate, dim=-1) + NORM_GUARD
        radius = ((2.0 * log_term * variance).sqrt() + largest * log_term) / norm

        by_step = zip(reads.steps, group.flat(variance), group.flat(radius), strict=True)
        return [Cell(layer, step, *found) for step, *found in by_step]

    def _parts(
        self, states: Tensor, rows: Tensor, group: HeadGroups, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """Take [U, T, d] at the prefilled positions, from the first row, and [U, R, T', d] at those after."""
        total = self.kept.shape[-1]
        last = states[:, :, total - 1].index_select(0, rows)
        if not torch.equal(last, last[:1].expand_as(last)):
            raise InputError.argument(
                "CertificateObserver",
                "rows",
                self.rows,
                "do not hold the same prefilled positions",
                "observe copies of one sequence",
            )
        key_heads = torch.tensor(group.key_heads, device=states.device)
        later = states[:, :, total:].index_select(0, rows).index_select(1, key_heads).transpose(0, 1)
        return states[self.rows[0], :, :total].index_select(0, key_heads).to(dtype), later.to(dtype)


@dataclass(frozen=True)
class HeadGroups:
    """Sampled query heads by key head; where a key head has fewer than others, its last one is repeated.

    Attributes
    ----------
    key_heads : list of int, length U
        Key heads that sampled query heads read.
    members : list of list of int, shape [U, C]
        Their query heads.
    places : list of (int, int), length H'
        Where each sampled query head stands in `members`.
    """

    key_heads: list[int]
    members: list[list[int]]
    places: list[tuple[int, int]]

    def grouped(self, states: Tensor) -> Tensor:
        """Lay [R, H, ...] out as [U, R, C, ...]."""
        members = torch.tensor(self.members, device=states.device)
        return states.index_select(1, members.flatten()).unflatten(1, members.shape).transpose(0, 1)

    def of_design(self, design: Tensor) -> Tensor:
        """Lay [R, 1 or H, T] out as [1 or U, R, 1 or C, 1, T]."""
        return (self.grouped(design) if design.shape[1] > 1 else design[None])[..., None, :]

    def flat(self, values: Tensor) -> Tensor:
        """Return [U, R, C, S] as [S, R, H'], on the processor."""
        used, member = zip(*self.places, strict=True)
        return values[list(used), :, list(member)].float().cpu().permute(2, 1, 0)


def head_groups(heads: Sequence[int], per_key_head: int) -> HeadGroups:
    """Group query heads by the key head that they read.

    Examples
    --------
    >>> head_groups([0, 4, 8], 7)
    HeadGroups(key_heads=[0, 1], members=[[0, 4], [8, 8]], places=[(0, 0), (0, 1), (1, 0)])
    """
    by_key_head: dict[int, list[int]] = {}
    places = []
    for head in heads:
        mine = by_key_head.setdefault(head // per_key_head, [])
        places.append((list(by_key_head).index(head // per_key_head), len(mine)))
        mine.append(head)
    widest = max(map(len, by_key_head.values()))
    members = [mine + [mine[-1]] * (widest - len(mine)) for mine in by_key_head.values()]
    return HeadGroups(list(by_key_head), members, places)


def product(left: Tensor, right: Tensor) -> Tensor:
    """Multiply [U, R, C, S, n] by matrices [U, n, m] of one sequence, or [U, R, n, m] of each row."""
    joined = left.flatten(1, 3) if right.ndim == 3 else left.flatten(2, 3)
    return (joined @ right).view(*left.shape[:-1], right.shape[-1])


def squared_distances(points: Tensor, values: Tensor) -> Tensor:
    """Return the squared distances of points [U, R, C, S, d] from values [U, T, d] as [U, R, C, S, T].

    All are float64: where one value dominates, it and the estimate cancel.
    """
    squared = product(points * -2.0, values.mT)
    squared += points.square().sum(-1, keepdim=True)
    squared += values.square().sum(-1)[:, None, None, None, :]
    return squared.clamp_(min=0.0)
