"""How much two generated texts have in common."""

from __future__ import annotations

import re
from collections import Counter

__all__ = ["token_f1"]

WORD = re.compile(r"\w+")


def token_f1(first: str, second: str) -> float:
    r"""Return the F1 of the words of two texts, without regard to case, order and punctuation.

    .. math:: F_1 = \frac{2\, |A \cap B|}{|A| + |B|}

    with A and B the words of each text, repeated ones as often as they are there.

    Parameters
    ----------
    first, second : str
        The texts. A word is a run of letters, digits and underscores.

    Returns
    -------
    float
        In [0, 1]; 1 where both texts are without words, 0 where one is.

    Examples
    --------
    >>> token_f1("The code is 4711.", "the code: 4712")
    0.5714285714285714
    >>> token_f1("", "..."), token_f1("", "a")
    (1.0, 0.0)
    """
    words = [Counter(WORD.findall(text.casefold())) for text in (first, second)]
    size = words[0].total() + words[1].total()
    return 2 * (words[0] & words[1]).total() / size if size else 1.0
