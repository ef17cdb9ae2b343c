"""Scorers by name: the built-in ones and those that installed packages register."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Protocol, runtime_checkable

from torch import Tensor
from transformers import PreTrainedModel

from collectors.scorers.capkv import CapKVLeverage
from collectors.scorers.h2o import AccumulatedAttention
from collectors.scorers.keydiff import KeyDifference
from collectors.scorers.manifold import CentroidDistance
from collectors.scorers.question import QuestionAttention
from collectors.scorers.tova import LastQueryAttention
from kvstats.errors import InputError, nearest_name

__all__ = [
    "GROUP",
    "WINDOW",
    "AnyScorer",
    "Bindable",
    "Scorer",
    "check_scorer",
    "find_scorer",
    "scorer_label",
    "scorer_names",
]

GROUP = "collectors.scorers"
"""Entry-point group in which packages register scorers."""

WINDOW = "window"
"""Name of the attention of the last queries, which every prefill records."""


class Scorer(Protocol):
    """A score of each position of a layer's cache; higher means keep.

    Queries have shape [H, Q, d] and are multiplied by the attention scaling, so that logits are q.k; they
    stand at the last Q positions, all T in a prefill from the start. Keys and values have shape [H_kv, T, d],
    as in the cache, the keys after RoPE. All are float32. The scores have shape [1 or H_kv or H, T], finite.
    """

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, layer: int) -> Tensor:
        """Score the positions of one layer."""


@runtime_checkable
class Bindable(Protocol):
    """A scorer that must know more than the tensors of a layer."""

    def bind(self, model: PreTrainedModel, question: range) -> Scorer:
        """Return the scorer for one prefill: its model, and the positions of its question, if any."""


AnyScorer = Scorer | Bindable

BUILT_IN: Mapping[str, AnyScorer] = {
    "capkv": CapKVLeverage(),
    "h2o": AccumulatedAttention(),
    "keydiff": KeyDifference(),
    "manifold": CentroidDistance(),
    "manifold_before_rope": CentroidDistance(before_rope=True),
    "question": QuestionAttention(),
    "tova": LastQueryAttention(),
}


def scorer_names() -> list[str]:
    """List the names that a plan can give as `scorer`."""
    return sorted({WINDOW, *BUILT_IN, *entry_points(group=GROUP).names})


def find_scorer(name: str) -> AnyScorer:
    """Return a scorer by its name.

    Parameters
    ----------
    name : str
        A built-in scorer, or the name of an entry point of the group ``collectors.scorers``. A built-in
        name cannot be registered anew.

    Returns
    -------
    Scorer or Bindable

    Raises
    ------
    InputError
        When no scorer has the name, or what is registered cannot be called.

    Examples
    --------
    >>> find_scorer("h2o")
    AccumulatedAttention(stride=8)
    >>> find_scorer("keydif")
    Traceback (most recent call last):
    ...
    kvstats.errors.InputError: find_scorer: name='keydif' is unknown; did you mean 'keydiff'?
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    registered = entry_points(group=GROUP, name=name)
    if not registered:
        known = [known for known in scorer_names() if known != WINDOW]
        raise InputError.argument("find_scorer", "name", name, "is unknown", nearest_name(name, known))
    found = next(iter(registered)).load()
    if not callable(found) and not isinstance(found, Bindable):
        raise InputError.argument(
            "find_scorer", "name", name, "is registered but cannot be called", "register a function"
        )
    scorer: AnyScorer = found
    return scorer


def check_scorer(evictor: str, name: str) -> None:
    """Refuse the name of no scorer."""
    if name not in (names := scorer_names()):
        raise InputError.argument(evictor, "scorer", name, "is unknown", nearest_name(name, names))


def scorer_label(scorer: str | AnyScorer) -> str:
    """Return the key of a scorer's results: equal for a built-in name and the object that it stands for.

    Examples
    --------
    >>> scorer_label("h2o"), scorer_label(AccumulatedAttention(stride=1)), scorer_label("window")
    ('AccumulatedAttention(stride=8)', 'AccumulatedAttention(stride=1)', 'window')
    """
    if isinstance(scorer, str):
        return repr(BUILT_IN[scorer]) if scorer in BUILT_IN else scorer
    return repr(scorer)
