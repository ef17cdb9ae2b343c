"""PyramidKV: early layers keep more than late ones."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
import torch

from collectors.evictors.allocation import pyramid_sizes
from collectors.evictors.ranking import keep_highest
from collectors.evictors.selection import Protected, Selection
from collectors.evictors.tail_score import check_pool, tail_score
from collectors.prefill import Prefill
from collectors.scorers.registry import WINDOW
from kvstats.errors import InputError

__all__ = ["PyramidKV"]


class PyramidKV(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="evictor", tag="pyramidkv"
):
    """Keep the positions of highest window attention, with a budget or a weight that falls with depth.

    Attributes
    ----------
    schedule : {"sizes", "weights"}
        ``sizes``, as published: each layer has a set of its own, of a size that falls from the first layer to
        the last, see `pyramid_sizes`. ``weights``, the depth-weighted variant: one set for all layers, from
        window attention averaged over them with weights that fall in the same line, from 2 - 1/beta to
        1/beta.
    scope : {"head", "layer"}
        Under ``sizes``: one set for each key head, as published, or for each layer.
    beta : float
        How steep: mean over last size; 1 makes all layers equal.
    pool : odd int
        As in `SnapKV`.

    Raises
    ------
    InputError
        When `beta` is below 1 or not finite, `pool` is even or below 1, or the scope is ``head`` under
        ``weights``.

    References
    ----------
    Cai et al. (2024), PyramidKV: Dynamic KV Cache Compression based on Pyramidal Information Funneling.
    """

    schedule: Literal["sizes", "weights"] = "sizes"
    scope: Literal["head", "layer"] = "layer"
    beta: float = 20.0
    pool: int = 7

    def __post_init__(self) -> None:
        """Check the steepness and the width of the pooling."""
        if not 1 <= self.beta < float("inf"):
            raise InputError.argument("PyramidKV", "beta", self.beta, "is not in [1, inf)", "pass 20.0")
        check_pool("PyramidKV", self.pool)
        if self.schedule == "weights" and self.scope == "head":
            raise InputError.argument(
                "PyramidKV", "scope", "head", "has no meaning under schedule 'weights'", "leave it out"
            )

    @property
    def scorer(self) -> str:
        """What the evictor ranks by."""
        return WINDOW

    def select(
        self, prefill: Prefill, budget: float, protected: Protected, rng: np.random.Generator
    ) -> Selection:
        """Select the kept positions; no chance is involved."""
        total, n_layers = prefill.n_tokens, prefill.attention.shape[0]
        size = protected.tail_size(total, budget)
        if self.schedule == "sizes":
            score = tail_score(prefill, WINDOW, protected, scope=self.scope, pool=self.pool)
            sizes = pyramid_sizes(size, n_layers, score.shape[-1], self.beta)[:, None]
        else:
            by_layer = tail_score(prefill, WINDOW, protected, scope="layer")
            weight = torch.linspace(2 - 1 / self.beta, 1 / self.beta, n_layers)
            score = (by_layer * weight[:, None, None]).mean(0, keepdim=True)
            if self.pool > 1:
                score = torch.nn.functional.max_pool1d(score, self.pool, stride=1, padding=self.pool // 2)
            sizes = torch.tensor([[size]])
        return keep_highest(
            score, sizes, total, protected, n_heads=prefill.n_heads, allocation=f"pyramid_{self.schedule}"
        )
