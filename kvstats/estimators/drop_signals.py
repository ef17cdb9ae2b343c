"""Prefill signals made from logged head agreement: other definitions of the drop, and shapes of profiles.

A threshold means something for the definition that it was calibrated on only. So each signal is a column of
its own, whose name states the definition, and none takes the place of the recorded ``drop``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from kvstats.errors import InputError, nearest_name
from kvstats.log.frames import Log
from kvstats.statistics.drop import (
    Layers,
    agreement_slope,
    decreasing_share,
    depth_correlation,
    drop,
    layer_bins,
)
from kvstats.statistics.head_pairs import pair_draws
from kvstats.statistics.statistic import FloatArray
from kvstats.tables import unique_inputs

__all__ = ["PROFILES", "with_agreement_shape", "with_drop", "with_head_draws"]

PROFILES = {"head_agreement_per_layer": "", "head_agreement_interior_per_layer": "_interior"}
"""Columns of agreement by layer, and what the names of signals made from them bear."""

PER_PAIR = "head_agreement_per_pair"

SHARES = {1 / 2: "half", 1 / 3: "third", 1 / 4: "quarter"}

POSITION = "__position__"


def with_drop(
    log: Log,
    *,
    bins: str = "first_last",
    share: float = 1 / 3,
    layers: Layers = None,
    profile: str = "head_agreement_per_layer",
) -> Log:
    """Add a prefill signal: the drop of head agreement by a stated definition.

    Formula: mean agreement of the early bin minus that of the late bin, in [-1, 1].

    Parameters
    ----------
    log : Log
        The log, whose input records have agreement by layer.
    bins : {"first_last", "strict_thirds"}
        With m layers in use, ``first_last`` takes the first and the last max(1, floor(m * share));
        ``strict_thirds`` takes [0, floor(m / 3)) and [floor(2 m / 3), m).
    share : float, default 1/3
        Share of the layers in each bin of ``first_last``, in (0, 1/2].
    layers : None, int, "early" or sequence of int
        Which layers are in use: all; every k-th from the first; the first floor(L/3); or those of the given
        indices, of which negative ones count from the end. The bins are made of these layers alone.
    profile : {"head_agreement_per_layer", "head_agreement_interior_per_layer"}
        Column of agreement by layer.

    Returns
    -------
    Log
        With a column more in `inputs` and in `input_signals`. Its name states the definition, such as
        ``drop_first_last_third``, ``drop_strict_thirds``, ``drop_first_last_third_every_2`` or
        ``drop_interior_first_last_third_layers_0_m1`` (m1 for -1). Null where an input has no profile.

    Raises
    ------
    InputError
        When no input has a profile, a value is not finite, the signal is there already, two input records
        have the same key, or an argument is out of range for a model of the log.

    Notes
    -----
    The defaults are the definition of the recorded ``drop``. A gate on any of these signals needs a
    `Threshold` of that signal: a plain number is one of the recorded ``drop``.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", the definition of D and its ablations.

    Examples
    --------
    >>> from kvstats.log import InputRecord, log_from_records
    >>> key = dict(suite="s", model="m", task="qa", input_id="1")
    >>> log = log_from_records([InputRecord(**key, head_agreement_per_layer=[0.75, 0.5, 0.5, 0.25])])
    >>> with_drop(with_drop(log), share=1 / 2).inputs.select("^drop_first.*$").rows()
    [(0.5, 0.25)]
    """

    def definition(agreement: FloatArray) -> dict[str, FloatArray]:
        early, late = layer_bins(agreement.shape[1], bins, share, layers)
        return {name: drop(agreement, early, late)}

    name = drop_name("with_drop", bins, share, layers, profile)
    return with_signals("with_drop", log, profile, [name], definition)


def with_agreement_shape(log: Log, *, profile: str = "head_agreement_per_layer") -> Log:
    """Add four prefill signals: the shape of head agreement over depth.

    Parameters
    ----------
    log : Log
        The log, whose input records have agreement by layer.
    profile : {"head_agreement_per_layer", "head_agreement_interior_per_layer"}
        Column of agreement by layer.

    Returns
    -------
    Log
        With four columns more in `inputs` and in `input_signals`, null where an input has no profile:

        - ``late_plateau``: mean agreement of the last floor(L/3) layers, in [0, 1];
        - ``agreement_slope``: least-squares slope on relative depth, from 0 to 1;
        - ``decreasing_share``: share of steps from layer to layer at which agreement falls, in [0, 1];
        - ``depth_correlation``: Spearman's rank correlation with depth, in [-1, 1]; null where agreement
          is the same in all layers.

        Those of the interior profile end in ``_interior``.

    Raises
    ------
    InputError
        As `with_drop`.

    Examples
    --------
    >>> from kvstats.log import InputRecord, log_from_records
    >>> key = dict(suite="s", model="m", task="qa", input_id="1")
    >>> log = log_from_records([InputRecord(**key, head_agreement_per_layer=[0.5, 0.25, 0.125])])
    >>> shape = with_agreement_shape(log)
    >>> shape.inputs.select(shape.input_signals).row(0, named=True)
    {'agreement_slope': -0.375, 'decreasing_share': 1.0, 'depth_correlation': -1.0, 'late_plateau': 0.125}
    """

    def definition(agreement: FloatArray) -> dict[str, FloatArray]:
        late = layer_bins(agreement.shape[1])[1]
        found = (
            agreement[:, late].mean(axis=1),
            agreement_slope(agreement),
            decreasing_share(agreement),
            depth_correlation(agreement),
        )
        return dict(zip(names, found, strict=True))

    suffix = profile_suffix("with_agreement_shape", profile)
    shapes = ("late_plateau", "agreement_slope", "decreasing_share", "depth_correlation")
    names = [shape + suffix for shape in shapes]
    return with_signals("with_agreement_shape", log, profile, names, definition)


def with_head_draws(
    log: Log,
    *,
    heads: int | None = None,
    pairs: int | None = None,
    draws: int = 20,
    seed: int = 0,
    bins: str = "first_last",
    share: float = 1 / 3,
    layers: Layers = None,
) -> Log:
    """Add prefill signals: the drop from random subsets of the pairs of heads, one a draw, and their spread.

    Parameters
    ----------
    log : Log
        The log, whose input records have agreement by layer and pair of heads.
    heads, pairs : int
        Either the number of heads to draw, of which all pairs are used; or the number of pairs.
    draws : int, default 20
        How many subsets. A subset is the same for all layers and for all inputs of models with as many
        heads.
    seed : int, default 0
        Seed of the subsets.
    bins, share, layers
        The definition of the drop; see `with_drop`.

    Returns
    -------
    Log
        With the columns ``<drop>_<heads or pairs>_<size>_draw_00`` and so on, their mean over draws
        ``..._mean``, and with two draws or more their standard deviation ``..._sd`` (denominator draws - 1).
        Null where an input has no pairs. To see whether tasks stay separated, pass the draws as `signals` to
        `kvstats.task_separation`.

    Raises
    ------
    InputError
        As `with_drop`; when an input's layers differ in their number of pairs, or it is no H (H - 1) / 2.

    References
    ----------
    .. [1] "PAGE: Partition-Aware Gated KV-Cache Eviction", the cost of D in pairs of heads.

    Examples
    --------
    >>> from kvstats.log import InputRecord, log_from_records
    >>> key = dict(suite="s", model="m", task="qa", input_id="1")
    >>> agreement = [[0.5, 0.75, 1.0], [0.5, 0.5, 0.5], [0.5, 0.25, 0.0]]
    >>> log = log_from_records([InputRecord(**key, head_agreement_per_pair=agreement)])
    >>> with_head_draws(log, pairs=3, draws=2).input_signals
    ('drop_first_last_third_pairs_3_draw_00', 'drop_first_last_third_pairs_3_draw_01',
     'drop_first_last_third_pairs_3_mean', 'drop_first_last_third_pairs_3_sd')
    """

    def definition(agreement: FloatArray) -> dict[str, FloatArray]:
        early, late = layer_bins(agreement.shape[1], bins, share, layers)
        subsets = pair_draws(agreement.shape[2], heads=heads, pairs=pairs, draws=draws, seed=seed)
        drawn = np.array([drop(agreement[:, :, subset].mean(axis=2), early, late) for subset in subsets])
        found = [*drawn, drawn.mean(axis=0)]
        if draws > 1:
            found.append(drawn.std(axis=0, ddof=1))
        return dict(zip(names, found, strict=True))

    # Their number must be one before the columns can be named.
    pair_draws(1, pairs=1, draws=draws)
    size = f"heads_{heads}" if heads is not None else f"pairs_{pairs}"
    stem = drop_name("with_head_draws", bins, share, layers, "head_agreement_per_layer") + "_" + size
    names = [f"{stem}_draw_{draw:02}" for draw in range(draws)] + [f"{stem}_mean"]
    names += [f"{stem}_sd"] if draws > 1 else []
    return with_signals("with_head_draws", log, PER_PAIR, names, definition)


def profile_suffix(function: str, profile: str) -> str:
    if profile not in PROFILES:
        raise InputError.argument(
            function, "profile", profile, "is not known", nearest_name(str(profile), PROFILES)
        )
    return PROFILES[profile]


def drop_name(function: str, bins: str, share: float, layers: Layers, profile: str) -> str:
    """Return the column name that states a definition; arguments out of range are an error later."""
    parts = ["drop" + profile_suffix(function, profile), bins]
    if bins == "first_last" and isinstance(share, int | float):
        word = next((word for known, word in SHARES.items() if math.isclose(share, known)), None)
        parts.append(word or f"{share:g}".replace(".", "p"))
    if isinstance(layers, int | np.integer):
        parts.append(f"every_{layers}")
    elif isinstance(layers, str):
        parts.append(layers)
    elif layers is not None:
        parts.append("layers_" + "_".join(f"m{-layer}" if layer < 0 else str(layer) for layer in layers))
    return "_".join(parts)


def with_signals(
    function: str,
    log: Log,
    column: str,
    names: list[str],
    definition: Callable[[FloatArray], Mapping[str, FloatArray]],
) -> Log:
    """Add signals that a definition makes from a nested column, model by model as their layers differ."""
    inputs = unique_inputs(log, function)
    taken = [name for name in names if name in inputs.columns or name in log.runs.columns]
    if taken:
        raise InputError.argument(
            function, "log", taken[0], "is a column of the log already", "use it, or leave it out"
        )
    shapes = [None if value is None else shape_of(function, column, value) for value in inputs[column]]
    if not any(shapes):
        raise InputError.argument(
            function, "log", column, "is null for every input", "collect it, or use the recorded drop"
        )
    values = {name: np.full(inputs.height, np.nan) for name in names}
    for shape in sorted({shape for shape in shapes if shape is not None}):
        rows = [row for row, found in enumerate(shapes) if found == shape]
        for name, found in definition(np.array(inputs[column][rows].to_list(), dtype=np.float64)).items():
            values[name][rows] = found
    columns = [pl.Series(name, found).fill_nan(None) for name, found in values.items()]
    return replace(
        log,
        inputs=inputs.with_columns(columns),
        input_signals=tuple(sorted((*log.input_signals, *names))),
    )


def shape_of(function: str, column: str, value: pl.Series) -> tuple[int, ...]:
    """Return layers, and pairs where there are such, of one input; its layers must not differ."""
    if not value.dtype.is_nested():
        return (value.len(),)
    pairs = value.list.len().unique().to_list()
    if len(pairs) != 1:
        raise InputError.argument(
            function, "log", column, f"has layers of {pairs} pairs for one input", "record all pairs"
        )
    return (value.len(), pairs[0])
