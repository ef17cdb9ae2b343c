"""How much of a line of code is as it should be."""

from __future__ import annotations

from collections.abc import Sequence

from kvstats.metrics.references import require_references
from kvstats.metrics.subsequence import common_length

__all__ = ["code_similarity", "first_code_line"]


def code_similarity(prediction: str, references: Sequence[str]) -> float:
    r"""Return the similarity to the best reference by insertions and deletions, in whole percent.

    .. math:: \max_r \frac{2\, L(A, B_r)}{|A| + |B_r|}

    with L the length of the longest common subsequence of the characters of answer and reference.

    Parameters
    ----------
    prediction : str
        The answer.
    references : sequence of str
        The right answers, at least one.

    Returns
    -------
    float
        In [0, 1], rounded to two decimals; 1 where both are empty.

    Raises
    ------
    InputError
        Without a reference.

    Notes
    -----
    This is ``fuzz.ratio`` of fuzzywuzzy where python-Levenshtein is installed. Without it, fuzzywuzzy takes
    the ratio of `difflib.SequenceMatcher`, another and lower figure; which one a published score rests on
    depends on the machine that it was computed on.

    References
    ----------
    Bai et al. (2024), LongBench, arXiv:2308.14508, section 4: code completion; the ambiguity is issue 96 of
    its repository.

    Examples
    --------
    >>> code_similarity("return x + 1", ["return x - 1"])
    0.92
    """
    require_references("code_similarity", references)
    best = 0.0
    for reference in references:
        size = len(prediction) + len(reference)
        share = 2 * common_length(prediction, reference) / size if size else 1.0
        best = max(best, round(100 * share) / 100)
    return best


def first_code_line(text: str) -> str:
    r"""Return the first line without comment and fence, as LongBench takes it; empty if there is none.

    Parameters
    ----------
    text : str
        The answer.

    Returns
    -------
    str
        Its first line without a grave accent, ``#`` or ``//``, line breaks at the beginning aside.

    Examples
    --------
    >>> first_code_line("```python\n# adds\nx += 1\ny = 2")
    'x += 1'
    """
    lines = text.lstrip("\n").split("\n")
    return next((line for line in lines if not any(mark in line for mark in ("`", "#", "//"))), "")
