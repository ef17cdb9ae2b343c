"""One row's attention read: its logits and values, and the design by which its cache was kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from collectors.evictors import Selection

__all__ = ["Read", "design_of_read", "read_of_row"]


class Read(NamedTuple):
    """The read of a row's last query by some heads of a layer, in float32.

    Attributes
    ----------
    logits : Tensor, shape [H', T]
        Scaled logits, without offsets, of all positions, kept or not.
    keys, values : Tensor, shape [H', T, d]
        What is read; heads of a group share them.
    """

    logits: Tensor
    keys: Tensor
    values: Tensor


def read_of_row(
    row: int, heads: Sequence[int], query: Tensor, key: Tensor, value: Tensor, scaling: float
) -> Read:
    """Take one row's read out of a batch.

    Parameters
    ----------
    row : int
        Row of the batch.
    heads : sequence of int, length H'
        Query heads.
    query : Tensor, shape [B, H, Q, d]
        Queries of a layer; the last one reads.
    key, value : Tensor, shape [B, H_kv, T, d]
        Keys and values of the layer.
    scaling : float
        Factor of the logits.
    """
    group = query.shape[1] // key.shape[1]
    key_heads = [head // group for head in heads]
    keys, values = key[row, key_heads].float(), value[row, key_heads].float()
    logits = torch.einsum("hd,htd->ht", query[row, list(heads), -1].float(), keys) * scaling
    return Read(logits, keys, values)


def design_of_read(
    selection: Selection, layer: int, heads: Sequence[int], like: Tensor
) -> tuple[Tensor, Tensor]:
    """Return which positions of a read are kept, and with which probability they were to be.

    Parameters
    ----------
    selection : Selection
        The kept positions of the prefilled tokens.
    layer : int
        The layer.
    heads : sequence of int, length H'
        Query heads.
    like : Tensor, shape [H', T]
        Logits of the read. Its positions after the prefilled ones are certain.

    Returns
    -------
    kept : Tensor of bool, shape [H', T]
    inclusion_probability : Tensor of float32, shape [H', T]
    """

    def extended(design: Tensor, later: float | bool) -> Tensor:
        mine = design[layer if design.shape[0] > 1 else 0]
        mine = mine[list(heads)] if mine.shape[0] > 1 else mine
        longer = torch.nn.functional.pad(mine, (0, like.shape[-1] - mine.shape[-1]), value=later)
        return longer.expand_as(like).to(like.device)

    return extended(selection.kept, True), extended(selection.inclusion_probability.float(), 1.0)
