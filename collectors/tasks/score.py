"""How an answer is scored."""

from __future__ import annotations

from collections.abc import Sequence

from kvstats.errors import InputError

__all__ = ["score"]


def score(references: Sequence[str], prediction: str) -> float:
    """Return the share of references that the prediction contains.

    Upper and lower case are the same. This is RULER's ``string_match_all`` for one example.

    Parameters
    ----------
    references : sequence of str
        What should be in the answer, at least one, none of them empty.
    prediction : str
        The answer.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    InputError
        When there is no reference, or an empty one, which every answer contains.

    References
    ----------
    Hsieh et al. (2024), RULER: What's the Real Context Size of Your Long-Context Language Models?,
    arXiv:2404.06654, section 3.

    Examples
    --------
    >>> score(["7205513", "9914402"], "They are 9914402 and 1.")
    0.5
    """
    if isinstance(references, str) or not references or not all(references):
        raise InputError.argument(
            "score",
            "references",
            references,
            "is not a list of non-empty texts",
            "pass at least one reference",
        )
    found = sum(reference.casefold() in prediction.casefold() for reference in references)
    return found / len(references)
