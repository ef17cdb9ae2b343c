"""Scorers, one a file: how much each position of a layer's cache is worth keeping.

A scorer is a function ``(queries, keys, values, layer) -> scores``, see `Scorer`. Packages register their own
by an entry point of the group ``collectors.scorers``:

.. code-block:: toml

    [project.entry-points."collectors.scorers"]
    key_norm = "my_package:key_norm"
"""

from collectors.scorers.capkv import CapKVLeverage
from collectors.scorers.h2o import AccumulatedAttention
from collectors.scorers.keydiff import KeyDifference
from collectors.scorers.manifold import CentroidDistance
from collectors.scorers.question import QuestionAttention
from collectors.scorers.registry import (
    AnyScorer,
    Bindable,
    Scorer,
    check_scorer,
    find_scorer,
    scorer_label,
    scorer_names,
)
from collectors.scorers.tova import LastQueryAttention

__all__ = [
    "AccumulatedAttention",
    "AnyScorer",
    "Bindable",
    "CapKVLeverage",
    "CentroidDistance",
    "KeyDifference",
    "LastQueryAttention",
    "QuestionAttention",
    "Scorer",
    "check_scorer",
    "find_scorer",
    "scorer_label",
    "scorer_names",
]
