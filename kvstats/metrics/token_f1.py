"""F1 of the words, or of the characters, that an answer shares with a reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from kvstats.metrics.normalise import normalised, normalised_characters
from kvstats.metrics.references import require_references

__all__ = ["character_f1", "shared_f1", "token_f1"]


def shared_f1(prediction: Iterable[Hashable], reference: Iterable[Hashable]) -> float:
    r"""Return the F1 of two bags of tokens, :math:`2 |A \cap B| / (|A| + |B|)`; 0 where either is empty."""
    said, right = Counter(prediction), Counter(reference)
    common = (said & right).total()
    return 2 * common / (said.total() + right.total()) if common else 0.0


def token_f1(prediction: str, references: Sequence[str]) -> float:
    r"""Return the F1 of the words of an answer, for the reference that it fits best.

    .. math:: F_1 = \max_r \frac{2\, |A \cap B_r|}{|A| + |B_r|}

    with A and B the words of answer and reference after `normalised`, repeated ones as often as they come.

    Parameters
    ----------
    prediction : str
        The answer.
    references : sequence of str
        The right answers, at least one.

    Returns
    -------
    float
        In [0, 1], and 0 where answer or reference has no word left.

    Raises
    ------
    InputError
        Without a reference.

    References
    ----------
    Rajpurkar et al. (2016), arXiv:1606.05250, section 6.1. LongBench, InfiniteBench and the harnesses mean
    this where they say F1 of questions and answers.

    Examples
    --------
    >>> token_f1("The old mill, I think", ["an old mill", "mill"])
    0.6666666666666666
    """
    require_references("token_f1", references)
    words = normalised(prediction).split()
    return max(shared_f1(words, normalised(reference).split()) for reference in references)


def character_f1(prediction: str, references: Sequence[str]) -> float:
    """Return the F1 of the characters of an answer, as InfiniteBench takes it for Chinese answers.

    It is that of `token_f1` with the characters of `normalised_characters` as tokens.

    Parameters
    ----------
    prediction : str
        The answer.
    references : sequence of str
        The right answers, at least one.

    Returns
    -------
    float
        In [0, 1], and 0 where answer or reference has no character left.

    Raises
    ------
    InputError
        Without a reference.

    Examples
    --------
    >>> character_f1("北京市。", ["北京"])
    0.8
    """
    require_references("character_f1", references)
    said = normalised_characters(prediction)
    return max(shared_f1(said, normalised_characters(reference)) for reference in references)
