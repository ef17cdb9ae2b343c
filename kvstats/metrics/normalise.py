"""Text as metrics on words compare it: without case, punctuation and articles."""

from __future__ import annotations

import re
import string

__all__ = ["normalised", "normalised_characters"]

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)
WIDE_PUNCTUATION = str.maketrans(
    "",
    "",
    string.punctuation
    + "！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」『』【】〔〕〖〗"
    "〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏",
)
"""ASCII punctuation, and that of Chinese text."""


def normalised(text: str) -> str:
    """Return a text in lower case, without ASCII punctuation and English articles, its words one space apart.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        Empty where nothing else was in the text: the answer ``A`` of a multiple choice is an article.

    References
    ----------
    Rajpurkar et al. (2016), SQuAD: 100,000+ Questions for Machine Comprehension of Text, arXiv:1606.05250,
    section 6.1, and the evaluation script published with it.

    Examples
    --------
    >>> normalised("The  U.S.A., an 'old' friend")
    'usa old friend'
    """
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def normalised_characters(text: str) -> str:
    """Return a text in lower case without white space, and without ASCII and Chinese punctuation.

    Examples
    --------
    >>> normalised_characters("北京， 2008。")
    '北京2008'
    """
    return "".join(text.lower().translate(WIDE_PUNCTUATION).split())
