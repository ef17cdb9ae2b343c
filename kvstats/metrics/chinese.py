"""LongBench's metrics for Chinese answers, whose words the package ``jieba`` tells apart."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

from kvstats.errors import InputError
from kvstats.metrics.normalise import normalised_characters
from kvstats.metrics.references import require_references
from kvstats.metrics.rouge import longbench_rouge_l
from kvstats.metrics.token_f1 import shared_f1

__all__ = ["chinese_rouge_l", "chinese_token_f1"]


def words(function: str, text: str) -> list[str]:
    """Cut a Chinese text into words."""
    if find_spec("jieba") is None:
        raise InputError(f"{function}: needs the package jieba to cut Chinese text into words; install it")
    return list(import_module("jieba").cut(text, cut_all=False))


def chinese_token_f1(prediction: str, references: Sequence[str]) -> float:
    """Return the F1 of the words of a Chinese answer, for the reference that it fits best.

    Words are those of jieba, each after `normalised_characters`.

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
        Without a reference, and without jieba.

    Examples
    --------
    >>> chinese_token_f1("他住在上海。", ["上海"])
    0.4
    """
    require_references("chinese_token_f1", references)

    def tokens(text: str) -> list[str]:
        return [token for word in words("chinese_token_f1", text) if (token := normalised_characters(word))]

    said = tokens(prediction)
    return max(shared_f1(said, tokens(reference)) for reference in references)


def chinese_rouge_l(prediction: str, references: Sequence[str]) -> float:
    """Return `longbench_rouge_l` of the words of a Chinese answer, for the reference that it fits best.

    Words are those of jieba.

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
        Without a reference, and without jieba.

    Examples
    --------
    >>> chinese_rouge_l("他住在上海", ["他住在上海"]) > 0.99
    True
    """
    require_references("chinese_rouge_l", references)
    said, *right = (" ".join(words("chinese_rouge_l", text)) for text in (prediction, *references))
    return longbench_rouge_l(said, right)
