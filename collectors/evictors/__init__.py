"""Evictors, one a file: from a prefill and a budget to a `Selection`.

An evictor is a small frozen struct, written in a plan as ``{evictor: <tag>, ...}``. Its `scorer` says what it
ranks or samples by, and ``select(prefill, budget, protected, rng)`` makes the selection.
"""

from collections.abc import Iterable

from collectors.evictors.adakv import AdaKV
from collectors.evictors.capkv import CapKV
from collectors.evictors.conditional_poisson import ConditionalPoisson
from collectors.evictors.h2o import H2O
from collectors.evictors.keydiff import KeyDiff
from collectors.evictors.manifoldkv import ManifoldKV
from collectors.evictors.poisson import Poisson
from collectors.evictors.pyramidkv import PyramidKV
from collectors.evictors.question_aware import QuestionAware
from collectors.evictors.ranking import keep_highest, keep_top
from collectors.evictors.selection import Protected, Selection, keep_everything
from collectors.evictors.snapkv import SnapKV
from collectors.evictors.streaming_llm import StreamingLLM
from collectors.evictors.tail_score import tail_score
from collectors.evictors.top_k import TopK
from collectors.evictors.tova import TOVA
from collectors.evictors.uniform import Uniform
from collectors.scorers import AnyScorer, QuestionAttention, find_scorer, scorer_label
from collectors.scorers.registry import WINDOW

Evictor = (
    SnapKV
    | Uniform
    | Poisson
    | ConditionalPoisson
    | TopK
    | H2O
    | StreamingLLM
    | TOVA
    | PyramidKV
    | KeyDiff
    | ManifoldKV
    | AdaKV
    | CapKV
    | QuestionAware
)

__all__ = [
    "H2O",
    "TOVA",
    "AdaKV",
    "CapKV",
    "ConditionalPoisson",
    "Evictor",
    "KeyDiff",
    "ManifoldKV",
    "Poisson",
    "Protected",
    "PyramidKV",
    "QuestionAware",
    "Selection",
    "SnapKV",
    "StreamingLLM",
    "TopK",
    "Uniform",
    "keep_everything",
    "keep_highest",
    "keep_top",
    "needs_question",
    "requested_scorers",
    "tail_score",
]


def requested_scorers(evictors: Iterable[Evictor]) -> dict[str, AnyScorer]:
    """Collect what must be scored during the prefill for some evictors to select, each scorer once.

    Parameters
    ----------
    evictors : iterable of Evictor

    Returns
    -------
    dict of str to scorer
        By label; empty when nothing but the window attention is asked for.

    Examples
    --------
    >>> sorted(requested_scorers([SnapKV(), H2O(), AdaKV(scorer="h2o"), KeyDiff()]))
    ['AccumulatedAttention(stride=8)', 'KeyDifference()']
    """
    requested: dict[str, AnyScorer] = {}
    for evictor in evictors:
        scorer = evictor.scorer
        if scorer is not None and scorer != WINDOW:
            found = find_scorer(scorer) if isinstance(scorer, str) else scorer
            requested[scorer_label(scorer)] = found
    return requested


def needs_question(evictor: Evictor) -> bool:
    """Say whether an evictor can select only where the question was prefilled."""
    return any(isinstance(scorer, QuestionAttention) for scorer in requested_scorers([evictor]).values())
