"""ROUGE-L: the words that an answer has in common with a reference, in the same order."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kvstats.metrics.references import require_references
from kvstats.metrics.subsequence import common_length, common_subsequence

__all__ = ["longbench_rouge_l", "rouge_l"]

WORD = re.compile(r"[a-z0-9]+")


def rouge_l(prediction: str, references: Sequence[str]) -> float:
    r"""Return the F-measure of the longest common subsequence of words, for the best reference.

    .. math:: F = \max_r \frac{2\, L(A, B_r)}{|A| + |B_r|}

    with L the length of the longest common subsequence of the words of answer and reference: recall is
    :math:`L / |B|` and precision :math:`L / |A|`, with equal weight.

    Parameters
    ----------
    prediction : str
        The answer.
    references : sequence of str
        The right answers, at least one.

    Returns
    -------
    float
        In [0, 1]; 0 where either has no word. Words are runs of Latin letters and digits in lower case,
        so that text in another script has none.

    Raises
    ------
    InputError
        Without a reference.

    References
    ----------
    Lin (2004), ROUGE: A Package for Automatic Evaluation of Summaries, section 3.1; the words are those of
    the package rouge-score without stemming, whose ``rougeL`` this is.

    Examples
    --------
    >>> rouge_l("police kill the gunman", ["police killed the gunman"])
    0.75
    """
    require_references("rouge_l", references)
    said = WORD.findall(prediction.lower())
    best = 0.0
    for reference in references:
        right = WORD.findall(reference.lower())
        if common := common_length(said, right):
            best = max(best, 2 * common / (len(said) + len(right)))
    return best


def longbench_rouge_l(prediction: str, references: Sequence[str]) -> float:
    r"""Return ROUGE-L as the package ``rouge`` 1.0 computes it, which LongBench uses, for the best reference.

    .. math:: F = \max_r \frac{2\, |\bigcup_{s, t} L(s, t)|}{|A| + |B_r|}

    with s and t the sentences of answer and reference, L their longest common subsequence, and A, B the
    *different* words: a repeated word counts once. Sentences end at a full stop; words are what white space
    separates, upper case differs from lower, and punctuation belongs to the word.

    Parameters
    ----------
    prediction : str
        The answer.
    references : sequence of str
        The right answers, at least one.

    Returns
    -------
    float
        In [0, 1]; 0 where either has no sentence.

    Raises
    ------
    InputError
        Without a reference.

    Notes
    -----
    The package adds 1e-8 to precision plus recall, which is left out here, and LongBench scores 0 where its
    recursion breaks off, at sentences of about 1,000 words together, which are scored here.

    References
    ----------
    Bai et al. (2024), LongBench, arXiv:2308.14508, section 4, and its ``metrics.py``.

    Examples
    --------
    >>> longbench_rouge_l("police kill the gunman.", ["police killed the gunman"])
    0.75
    """
    require_references("longbench_rouge_l", references)
    said = sentences(prediction)
    return max(union_f1(said, sentences(reference)) for reference in references)


def sentences(text: str) -> list[list[str]]:
    """Return the words of each sentence; one of white space has one word, which is empty."""
    return [sentence.split() or [""] for sentence in text.split(".") if sentence]


def union_f1(prediction: list[list[str]], reference: list[list[str]]) -> float:
    common = {word for right in reference for said in prediction for word in common_subsequence(right, said)}
    sizes = [len({word for sentence in text for word in sentence}) for text in (prediction, reference)]
    return 2 * len(common) / sum(sizes) if common else 0.0
