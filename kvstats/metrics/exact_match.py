"""Whether an answer is a reference, or has one in it."""

from __future__ import annotations

from collections.abc import Sequence

from kvstats.errors import InputError
from kvstats.metrics.normalise import normalised
from kvstats.metrics.references import require_references

__all__ = ["exact_match", "substring_match"]


def exact_match(prediction: str, references: Sequence[str]) -> float:
    """Return 1 if an answer is one of the references after `normalised`, and 0 otherwise.

    Parameters
    ----------
    prediction : str
        The answer.
    references : sequence of str
        The right answers, at least one.

    Returns
    -------
    float
        1 or 0. Texts of which nothing is left, such as two articles, are equal.

    Raises
    ------
    InputError
        Without a reference.

    References
    ----------
    Rajpurkar et al. (2016), arXiv:1606.05250, section 6.1.

    Examples
    --------
    >>> exact_match("The old mill.", ["mill", "old mill"])
    1.0
    """
    require_references("exact_match", references)
    said = normalised(prediction)
    return float(any(said == normalised(reference) for reference in references))


def substring_match(prediction: str, references: Sequence[str]) -> float:
    """Return 1 if an answer contains one of the references, both after `normalised`, and 0 otherwise.

    Parameters
    ----------
    prediction : str
        The answer.
    references : sequence of str
        The right answers, at least one.

    Returns
    -------
    float
        1 or 0. A reference may be part of a word: "mill" is in "million".

    Raises
    ------
    InputError
        Without a reference, and when nothing is left of one after normalisation, such as of ``A``: every
        answer contains that.

    References
    ----------
    Liu et al. (2024), Lost in the Middle: How Language Models Use Long Contexts, arXiv:2307.03172, section
    2.1.

    Examples
    --------
    >>> substring_match("It is the Old Mill, I think", ["old mill"])
    1.0
    """
    require_references("substring_match", references)
    said = normalised(prediction)
    right = [normalised(reference) for reference in references]
    if "" in right:
        raise InputError.argument(
            "substring_match",
            "references",
            list(references),
            f"holds {references[right.index('')]!r}, of which normalisation leaves nothing",
            "use another metric",
        )
    return float(any(reference in said for reference in right))
