"""Whether an answer names the right number."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kvstats.errors import InputError
from kvstats.metrics.references import require_references

__all__ = ["retrieval"]

NUMBER = re.compile(r"\d+")


def retrieval(prediction: str, references: Sequence[str]) -> float:
    """Return the share of the numbers in an answer that are the right one.

    Parameters
    ----------
    prediction : str
        The answer.
    references : sequence of str
        The right answers, at least one; the first number in each, as in ``Paragraph 15``, ``段落15`` or
        ``15``, is the right one, and the best counts.

    Returns
    -------
    float
        In [0, 1]; 0 where the answer has no number. A number is a run of digits, compared as text.

    Raises
    ------
    InputError
        Without a reference, and when one has no number.

    References
    ----------
    Bai et al. (2024), LongBench, arXiv:2308.14508, section 4: passage retrieval and passage count.

    Examples
    --------
    >>> retrieval("Paragraph 15, or perhaps 3", ["Paragraph 15"])
    0.5
    """
    require_references("retrieval", references)
    named = NUMBER.findall(prediction)
    best = 0.0
    for reference in references:
        right = NUMBER.search(reference)
        if right is None:
            raise InputError.argument(
                "retrieval",
                "references",
                list(references),
                f"holds {reference!r}, which has no number",
                "pass references such as 'Paragraph 3'",
            )
        if named:
            best = max(best, named.count(right[0]) / len(named))
    return best
