"""The certificate of a run: an observer of the decode steps of rows whose tail was sampled."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from kvstats.statistics.certificate import attention_certificate, relative_error

__all__ = ["Cell", "CertificateObserver"]


@dataclass(frozen=True)
class Cell:
    """The certificates of one layer at one decode step.

    Attributes
    ----------
    layer, step : int
        Where and when.
    variance, radius : Tensor, shape [R, H']
        By observed row and sampled head.
    true_error : Tensor, shape [R, H'], optional
        Error relative to the norm of the estimate, where it was asked for.
    """

    layer: int
    step: int
    variance: Tensor
    radius: Tensor
    true_error: Tensor | None


@dataclass
class CertificateObserver:
    """Certify the reads of some rows of a batch whose evicted positions are still in the cache.

    The read of decode step s is the one whose output gives generated token s. Positions after the
    prefilled ones are certain. As evicted keys and values are only masked, the full attention output is
    at hand, and the true error of a read costs one more softmax.

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
    truth_steps : frozenset of int
        Steps at which the true error is computed as well.
    delta : float
        Nominal failure probability of the radius.
    step : int
        The current decode step, set by the decoder.
    cells : list of Cell
        What was observed.
    """

    rows: list[int]
    kept: Tensor
    inclusion_probability: Tensor
    heads: list[int]
    layers: frozenset[int]
    steps: int = 6
    truth_steps: frozenset[int] = frozenset()
    delta: float = 0.1
    step: int = 0
    cells: list[Cell] = field(default_factory=list)

    def __call__(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scaling: float) -> None:
        """Certify one layer's read by the last query."""
        if self.step >= self.steps or layer not in self.layers:
            return
        group = query.shape[1] // key.shape[1]
        key_heads = [head // group for head in self.heads]
        rows = torch.tensor(self.rows)[:, None]
        read = query[rows, self.heads, -1].float()
        keys, values = key[rows, key_heads].float(), value[rows, key_heads].float()
        logits = torch.einsum("rhd,rhtd->rht", read, keys) * scaling
        kept = self._extend(self.kept[layer], logits, True)
        pi = self._extend(self.inclusion_probability[layer], logits, 1.0)
        certificate = attention_certificate(logits, values, pi, kept, delta=self.delta)
        error = None
        if self.step in self.truth_steps:
            error = relative_error(logits, values, certificate.estimate)
        self.cells.append(Cell(layer, self.step, certificate.variance, certificate.radius, error))

    def _extend(self, design: Tensor, logits: Tensor, later: float | bool) -> Tensor:
        """Take the sampled heads of [R, 1 or H, T] and append the certain positions after the prefill."""
        if design.shape[1] > 1:
            design = design[:, self.heads]
        extra = logits.shape[-1] - design.shape[-1]
        return torch.nn.functional.pad(design, (0, extra), value=later).expand_as(logits)

    def begin_step(self, step: int) -> None:
        """Take note of the decode step that follows."""
        self.step = step

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
