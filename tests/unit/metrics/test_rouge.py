"""Longest common subsequences and ROUGE-L, held against exhaustive search."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvstats.errors import InputError
from kvstats.metrics import longbench_rouge_l, rouge_l
from kvstats.metrics.subsequence import common_length, common_subsequence

LETTERS = st.text("abc", max_size=8)
SENTENCES = st.lists(st.text("ab c", max_size=6), max_size=3)


def is_subsequence(part, whole) -> bool:
    rest = iter(whole)
    return all(item in rest for item in part)


def brute_length(first, second) -> int:
    """Try every subsequence of the first, the longest ones first."""
    return next(
        size
        for size in range(len(first), -1, -1)
        if any(is_subsequence(part, second) for part in combinations(first, size))
    )


@given(LETTERS, LETTERS)
def test_length_of_the_common_subsequence(first, second):
    assert common_length(first, second) == common_length(second, first) == brute_length(first, second)


@given(LETTERS, LETTERS)
def test_the_common_subsequence_is_one_and_as_long(first, second):
    found = common_subsequence(first, second)
    assert is_subsequence(found, first)
    assert is_subsequence(found, second)
    assert len(found) == brute_length(first, second)


def test_of_several_the_one_that_leaves_out_items_of_the_second():
    assert common_subsequence("ab", "ba") == ["b"]
    assert common_subsequence("", "ab") == common_subsequence("ab", "") == []


@given(LETTERS, LETTERS)
def test_rouge_l_is_the_f_measure_of_the_subsequence(first, second):
    said, right = " ".join(first), " ".join(second)
    common = brute_length(first, second)
    expected = 2 * common / (len(first) + len(second)) if common else 0.0
    assert rouge_l(said, [right]) == pytest.approx(expected, abs=1e-12)


def test_rouge_l_by_hand():
    # Lin (2004), section 3.1: the order of words counts.
    reference = ["police killed the gunman"]
    assert rouge_l("police kill the gunman", reference) == 0.75
    assert rouge_l("the gunman kill police", reference) == 0.5
    assert rouge_l("The GUNMAN, police killed.", ["other words", *reference]) == 0.5
    assert rouge_l("", reference) == rouge_l("警察", reference) == 0.0


def brute_longbench(prediction: str, reference: str) -> float:
    """Fill the table of lengths, walk back through it, and collect words over all pairs of sentences."""
    texts = [
        [sentence.split() or [""] for sentence in text.split(".") if len(sentence)]
        for text in (prediction, reference)
    ]
    found = set()
    for x in texts[1]:
        for y in texts[0]:
            table = [[0] * (len(y) + 1) for _ in range(len(x) + 1)]
            for i, a in enumerate(x, 1):
                for j, b in enumerate(y, 1):
                    longer = max(table[i - 1][j], table[i][j - 1])
                    table[i][j] = table[i - 1][j - 1] + 1 if a == b else longer
            i, j = len(x), len(y)
            while i and j:
                if x[i - 1] == y[j - 1]:
                    i, j = i - 1, j - 1
                    found.add(x[i])
                elif table[i - 1][j] > table[i][j - 1]:
                    i -= 1
                else:
                    j -= 1
    words = [{word for sentence in text for word in sentence} for text in texts]
    if not found:
        return 0.0
    precision, recall = len(found) / len(words[0]), len(found) / len(words[1])
    return 2 * precision * recall / (precision + recall)


@given(SENTENCES, SENTENCES)
def test_the_union_over_sentences(said, right):
    prediction, reference = ".".join(said), ".".join(right)
    expected = brute_longbench(prediction, reference)
    assert longbench_rouge_l(prediction, [reference]) == pytest.approx(expected, abs=1e-12)


def test_longbench_rouge_l_by_hand():
    # Repeated words count once, case and punctuation tell words apart.
    assert longbench_rouge_l("a a a b", ["a b"]) == 1.0
    assert longbench_rouge_l("A b", ["a b"]) == 0.5
    assert longbench_rouge_l("a, b", ["a b"]) == 0.5
    # Both sentences of the answer together have what the reference has.
    assert longbench_rouge_l("a b x. c y", ["a b c"]) == pytest.approx(2 * 3 / (5 + 3))
    assert longbench_rouge_l("", ["a"]) == longbench_rouge_l("...", ["a"]) == 0.0
    assert longbench_rouge_l("a b", ["x", "b a"]) == 0.5


@pytest.mark.parametrize("metric", [rouge_l, longbench_rouge_l])
def test_references_are_texts(metric):
    with pytest.raises(InputError, match=rf"{metric.__name__}: references='a' is not a list of texts"):
        metric("a", "a")
