"""The certificate of a run: an observer of the decode steps of rows whose tail was sampled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from kvstats.statistics.certificate import NORM_GUARD

__all__ = ["Cell", "CertificateObserver"]


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

    The read of decode step s is the one whose output gives generated token s. Positions after the
    prefilled ones are certain.

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

    Notes
    -----
    A decode step only takes note of its queries; keys and values stay where they are. All steps of a layer
    are certified together when the cells are asked for, so that its keys and values are read once. The
    numbers are those of `kvstats.statistics.certificate.attention_certificate`, up to rounding in float32.
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
        reads.queries.append(query[self.rows, :, -1][:, self.heads])

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

    def _design(self, design: Tensor, group: HeadGroups, shape: Sequence[int], later: float | bool) -> Tensor:
        """Lay [R, 1 or H, T] out as [R, 1 or U, 1 or C, 1, T], with the certain positions appended."""
        heads = design[:, self.heads][:, group.members] if design.shape[1] > 1 else design[:, :, None]
        return torch.nn.functional.pad(heads[:, :, :, None], (0, shape[-1] - design.shape[-1]), value=later)

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
        """Certify all reads of a layer; axes are rows, key heads, their query heads, steps, positions."""
        group = head_groups(self.heads, reads.n_heads // reads.key.shape[1])
        key = of_heads(of_rows(reads.key, self.rows), group.key_heads).float()
        value = of_heads(of_rows(reads.value, self.rows), group.key_heads).double()
        query = torch.stack(reads.queries, dim=2)[:, group.members].float() * reads.scaling
        shape = (*query.shape[:-1], key.shape[2])
        logits = (query.flatten(2, 3) @ key.mT).view(shape)
        position = torch.arange(shape[-1], device=key.device)
        visible = position < torch.tensor(reads.lengths, device=key.device)[:, None]
        kept = self._design(self.kept[layer], group, shape, True).to(key.device) & visible
        pi = self._design(self.inclusion_probability[layer], group, shape, 1.0).to(key.device, torch.float32)

        shown = logits.masked_fill(~kept, -math.inf)
        weight = (shown - shown.amax(-1, keepdim=True)).exp_()
        inflated = (weight / pi).double()
        total = inflated.sum(-1, keepdim=True)
        estimate = (inflated.flatten(2, 3) @ value).view(query.shape) / total
        distance = distances(estimate.flatten(2, 3), value).view(shape)
        spread = weight.mul_((1.0 - pi).sqrt() / pi).mul_(distance).div_(total)
        variance, largest = spread.square().sum(-1), spread.amax(-1)
        log_term = math.log(1.0 / self.delta)
        norm = torch.linalg.vector_norm(estimate, dim=-1) + NORM_GUARD
        radius = ((2.0 * log_term * variance).sqrt() + largest * log_term) / norm

        return [
            Cell(layer, step, group.flat(variance[..., place]), group.flat(radius[..., place]))
            for place, step in enumerate(reads.steps)
        ]


@dataclass(frozen=True)
class HeadGroups:
    """Sampled query heads by key head; where a key head has fewer than others, its last one is repeated.

    Attributes
    ----------
    key_heads : list of int, length U
        Key heads that sampled query heads read.
    members : list of list of int, shape [U, C]
        Places of their query heads among the sampled ones.
    places : list of (int, int), length H'
        Where each sampled query head stands in `members`.
    """

    key_heads: list[int]
    members: list[list[int]]
    places: list[tuple[int, int]]

    def flat(self, values: Tensor) -> Tensor:
        """Return [R, U, C] as [R, H'], on the processor."""
        used, member = zip(*self.places, strict=True)
        return values[:, list(used), list(member)].float().cpu()


def head_groups(heads: Sequence[int], per_key_head: int) -> HeadGroups:
    """Group query heads by the key head that they read.

    Examples
    --------
    >>> head_groups([0, 4, 8], 7)
    HeadGroups(key_heads=[0, 1], members=[[0, 1], [2, 2]], places=[(0, 0), (0, 1), (1, 0)])
    """
    by_key_head: dict[int, list[int]] = {}
    places = []
    for place, head in enumerate(heads):
        mine = by_key_head.setdefault(head // per_key_head, [])
        places.append((list(by_key_head).index(head // per_key_head), len(mine)))
        mine.append(place)
    widest = max(map(len, by_key_head.values()))
    members = [mine + [mine[-1]] * (widest - len(mine)) for mine in by_key_head.values()]
    return HeadGroups(list(by_key_head), members, places)


def of_rows(tensor: Tensor, rows: list[int]) -> Tensor:
    """Take rows of a batch, without a copy where they follow one another."""
    if rows == list(range(rows[0], rows[-1] + 1)):
        return tensor[rows[0] : rows[-1] + 1]
    return tensor[rows]


def of_heads(tensor: Tensor, heads: list[int]) -> Tensor:
    """Take key heads [R, U, T, d], without a copy where it takes all."""
    return tensor if heads == list(range(tensor.shape[1])) else tensor[:, heads]


def distances(points: Tensor, values: Tensor) -> Tensor:
    """Return the distances of points [R, U, P, d] from values [R, U, T, d] as [R, U, P, T], float32.

    All are float64: where one value dominates, it and the estimate cancel.
    """
    squared = (points @ values.mT).mul_(-2.0)
    squared += torch.linalg.vector_norm(points, dim=-1, keepdim=True).square()
    squared += torch.linalg.vector_norm(values, dim=-1).square()[:, :, None]
    return squared.clamp_(min=0.0).sqrt_().float()
