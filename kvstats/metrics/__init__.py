"""Metrics: what an answer is worth, held against one or several references."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kvstats.metrics.chinese import chinese_rouge_l, chinese_token_f1
from kvstats.metrics.classification import classification
from kvstats.metrics.code_similarity import code_similarity, first_code_line
from kvstats.metrics.exact_match import exact_match, substring_match
from kvstats.metrics.infinitebench import (
    bug_choice,
    first_number,
    last_number,
    letter_choice,
    number_value,
    speaker,
    whole_word,
)
from kvstats.metrics.normalise import normalised
from kvstats.metrics.retrieval import retrieval
from kvstats.metrics.rouge import longbench_rouge_l, rouge_l
from kvstats.metrics.string_match import string_match_all, string_match_part
from kvstats.metrics.token_f1 import character_f1, token_f1

__all__ = [
    "METRICS",
    "bug_choice",
    "character_f1",
    "chinese_rouge_l",
    "chinese_token_f1",
    "classification",
    "code_similarity",
    "exact_match",
    "first_code_line",
    "first_number",
    "last_number",
    "letter_choice",
    "longbench_rouge_l",
    "normalised",
    "number_value",
    "retrieval",
    "rouge_l",
    "speaker",
    "string_match_all",
    "string_match_part",
    "substring_match",
    "token_f1",
    "whole_word",
]

METRICS: dict[str, Callable[[str, Sequence[str]], float]] = {
    metric.__name__: metric
    for metric in (
        bug_choice,
        character_f1,
        chinese_rouge_l,
        chinese_token_f1,
        code_similarity,
        exact_match,
        first_number,
        last_number,
        letter_choice,
        longbench_rouge_l,
        number_value,
        retrieval,
        rouge_l,
        speaker,
        string_match_all,
        string_match_part,
        substring_match,
        token_f1,
        whole_word,
    )
}
"""Every metric that needs no more than an answer and its references, by name."""
