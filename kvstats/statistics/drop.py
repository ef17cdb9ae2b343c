"""The drop of head agreement with depth, and other statistics of the shape of a profile over layers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from kvstats.errors import InputError, nearest_name
from kvstats.statistics.statistic import FloatArray, IntArray

__all__ = [
    "BINS",
    "Layers",
    "agreement_slope",
    "decreasing_share",
    "depth_correlation",
    "drop",
    "layer_bins",
]

BINS = ("first_last", "strict_thirds")
"""Names of the ways to cut layers into an early and a late bin."""

Layers = None | int | str | Sequence[int]
"""Which layers are used: all, every k-th, ``early`` for the first third, or a list of indices."""


def layer_bins(
    n_layers: int, bins: str = "first_last", share: float = 1 / 3, layers: Layers = None
) -> tuple[IntArray, IntArray]:
    """Return the layers of the early and of the late bin.

    Parameters
    ----------
    n_layers : int
        L, the number of layers of the model.
    bins : {"first_last", "strict_thirds"}
        With m layers in use, ``first_last`` takes the first and the last max(1, floor(m * share)), bins of
        equal size whatever m; ``strict_thirds`` takes [0, floor(m / 3)) and [floor(2 m / 3), m), of which
        the late one has a layer more where m is no multiple of 3.
    share : float, default 1/3
        Share of the layers in each bin of ``first_last``, in (0, 1/2].
    layers : None, int, "early" or sequence of int
        Which layers are in use: all; every k-th from the first; the first floor(L/3); or those of the given
        indices, of which negative ones count from the end. The bins are made of these layers alone.

    Returns
    -------
    tuple of two arrays of int
        Indices in [0, L), ascending.

    Raises
    ------
    InputError
        When a name is not known, a number is out of range, or fewer layers are in use than make two bins.

    Examples
    --------
    >>> [bin.tolist() for bin in layer_bins(8)]
    [[0, 1], [6, 7]]
    >>> [bin.tolist() for bin in layer_bins(8, "strict_thirds")]
    [[0, 1], [5, 6, 7]]
    >>> [bin.tolist() for bin in layer_bins(8, share=1 / 2, layers=2)]
    [[0, 2], [4, 6]]
    >>> [bin.tolist() for bin in layer_bins(8, layers=[0, -1])]
    [[0], [7]]
    """
    used = layers_in_use(n_layers, layers)
    if bins not in BINS:
        raise InputError.argument("layer_bins", "bins", bins, "is not known", nearest_name(str(bins), BINS))
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 0.5:
        raise InputError.argument("layer_bins", "share", share, "is not in (0, 1/2]", "pass one such as 1/3")
    least = 2 if bins == "first_last" else 3
    if used.size < least:
        raise InputError.argument(
            "layer_bins",
            "layers",
            layers,
            f"leaves {used.size} of {n_layers} layers, fewer than make two bins",
            f"use at least {least}",
        )
    if bins == "strict_thirds":
        return used[: used.size // 3], used[2 * used.size // 3 :]
    # A share such as 1/3 is rounded: 3 times it must be 1 all the same.
    size = max(1, math.floor(used.size * share + 1e-9))
    return used[:size], used[-size:]


def layers_in_use(n_layers: int, layers: Layers) -> IntArray:
    """Return the indices of the layers in use, ascending."""
    every = np.arange(n_layers)
    if layers is None:
        return every
    if isinstance(layers, str):
        if layers == "early":
            return every[: n_layers // 3]
        fault, remedy = "is not known", nearest_name(layers, ["early"])
    elif isinstance(layers, bool):
        fault, remedy = "is neither a step nor a list of layers", "pass one such as 2, 'early' or [0, -1]"
    elif isinstance(layers, int | np.integer):
        if layers >= 1:
            return every[::layers]
        fault, remedy = "is no step of at least 1", "pass one such as 2"
    else:
        chosen = [layer + n_layers if layer < 0 else layer for layer in layers]
        if all(0 <= layer < n_layers for layer in chosen) and len(set(chosen)) == len(chosen):
            return np.array(sorted(chosen), dtype=np.int64)
        fault = f"names a layer twice, or one that a model of {n_layers} layers has not"
        remedy = f"pass different indices from {-n_layers} to {n_layers - 1}"
    raise InputError.argument("layer_bins", "layers", layers, fault, remedy)


def drop(agreement: npt.ArrayLike, early: IntArray, late: IntArray) -> FloatArray:
    """D: mean agreement of the early layers minus that of the late ones.

    Parameters
    ----------
    agreement : array of float, shape [n, L]
        Head agreement by input and layer, in [0, 1].
    early, late : arrays of int
        The bins, from `layer_bins`.

    Returns
    -------
    array of float, shape [n]
        In [-1, 1].

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", the definition of D.

    Examples
    --------
    >>> drop([[0.75, 0.5, 0.5, 0.25]], *layer_bins(4)).tolist()
    [0.5]
    """
    values = profiles("drop", agreement)
    return np.asarray(values[:, early].mean(axis=1) - values[:, late].mean(axis=1))


def agreement_slope(agreement: npt.ArrayLike) -> FloatArray:
    """Least-squares slope of agreement on relative depth, l / (L - 1) from 0 to 1.

    Parameters
    ----------
    agreement : array of float, shape [n, L]
        Head agreement by input and layer; L at least 2.

    Returns
    -------
    array of float, shape [n]
        Change of agreement from the first to the last layer of the fitted line, comparable between models
        of different depth; below 0 where agreement falls.

    Examples
    --------
    >>> agreement_slope([[0.6, 0.5, 0.4], [0.2, 0.2, 0.2]]).round(12).tolist()
    [-0.2, 0.0]
    """
    values = profiles("agreement_slope", agreement)
    depth = np.linspace(0.0, 1.0, values.shape[1])
    centred = depth - depth.mean()
    return np.asarray((values - values.mean(axis=1, keepdims=True)) @ centred / (centred @ centred))


def decreasing_share(agreement: npt.ArrayLike) -> FloatArray:
    """Share of steps from a layer to the next at which agreement falls; equal values do not fall.

    Parameters
    ----------
    agreement : array of float, shape [n, L]
        Head agreement by input and layer; L at least 2.

    Returns
    -------
    array of float, shape [n]
        In [0, 1].

    Examples
    --------
    >>> decreasing_share([[0.6, 0.4, 0.4, 0.5, 0.1]]).tolist()
    [0.5]
    """
    return np.asarray((np.diff(profiles("decreasing_share", agreement), axis=1) < 0).mean(axis=1))


def depth_correlation(agreement: npt.ArrayLike) -> FloatArray:
    """Spearman's rank correlation of agreement with depth: whether it falls throughout, however steeply.

    Parameters
    ----------
    agreement : array of float, shape [n, L]
        Head agreement by input and layer; L at least 2.

    Returns
    -------
    array of float, shape [n]
        In [-1, 1], with mid-ranks for ties; NaN where agreement is the same in all layers.

    Examples
    --------
    >>> depth_correlation([[0.9, 0.5, 0.4], [0.1, 0.1, 0.1]]).tolist()
    [-1.0, nan]
    """
    values = profiles("depth_correlation", agreement)
    ranks = rankdata(values, axis=1) - (values.shape[1] + 1) / 2
    depth = np.arange(values.shape[1]) - (values.shape[1] - 1) / 2
    spread = np.sqrt((ranks**2).sum(axis=1) * (depth @ depth))
    with np.errstate(invalid="ignore"):
        return np.asarray(ranks @ depth / spread)


def profiles(function: str, agreement: npt.ArrayLike) -> FloatArray:
    """Return agreement as an array, or raise `InputError` where it is none of shape [n, L], L at least 2."""
    values = np.asarray(agreement, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] < 2:
        raise InputError.argument(
            function,
            "agreement",
            f"array of shape {values.shape}",
            "is not one of inputs by 2 layers or more",
            "pass shape [n, L]",
        )
    if not np.isfinite(values).all():
        raise InputError.argument(
            function, "agreement", "array", "holds a number that is not finite", "leave such inputs out"
        )
    return values
