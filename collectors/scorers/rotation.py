"""Undoing the rotary position embedding of queries and keys."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from kvstats.errors import InputError

__all__ = ["Rotation", "rotation_of"]


@dataclass(frozen=True)
class Rotation:
    r"""The rotary embedding of a model, in both directions.

    A model rotates by :math:`x \cos + h(x) \sin`, where h is its own ``rotate_half``; the inverse has the
    sign of the sine changed, and is divided by the square of the scaling that is part of both.

    Attributes
    ----------
    angles : module
        The model's rotary embedding: cosines and sines [1, T, r] of positions [1, T].
    rotate_half : callable
        The model's quarter turn of each pair of coordinates.
    """

    angles: nn.Module
    rotate_half: Callable[[Tensor], Tensor]

    def undo(self, rotated: Tensor, positions: Tensor) -> Tensor:
        """Turn vectors [heads, T, d] at positions [T] back; coordinates beyond the first r are left."""
        cosine, sine = self.cosine_and_sine(rotated, positions)
        width = cosine.shape[-1]
        turned, rest = rotated[..., :width], rotated[..., width:]
        scale = float(getattr(self.angles, "attention_scaling", 1.0)) ** 2
        return torch.cat([(turned * cosine - self.rotate_half(turned) * sine) / scale, rest], -1)

    def mean_apply(self, vectors: Tensor, positions: Tensor) -> Tensor:
        """Rotate vectors [..., d] to each of the positions [P] and average the results."""
        cosine, sine = (part.mean(0) for part in self.cosine_and_sine(vectors, positions))
        width = cosine.shape[-1]
        turned, rest = vectors[..., :width], vectors[..., width:]
        return torch.cat([turned * cosine + self.rotate_half(turned) * sine, rest], -1)

    def cosine_and_sine(self, like: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cosines and sines [T, r] of positions [T], of the type of another tensor."""
        cosine, sine = self.angles(like, positions[None])
        return cosine[0], sine[0]


def rotation_of(function: str, model: PreTrainedModel) -> Rotation:
    """Find the rotary embedding of a model.

    Raises
    ------
    InputError
        When the model has none where transformers keeps it.
    """
    angles = getattr(model.get_decoder(), "rotary_emb", None)
    rotate_half = getattr(sys.modules[type(model).__module__], "rotate_half", None)
    if angles is None or rotate_half is None:
        raise InputError.argument(
            function,
            "model",
            type(model).__name__,
            "has no rotary embedding that could be undone",
            "use a scorer that takes the keys as they stand in the cache",
        )
    return Rotation(angles, rotate_half)
