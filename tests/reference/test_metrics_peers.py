"""Metrics against the packages that benchmarks take them from, where these are installed."""

from __future__ import annotations

import random
import warnings
from collections import Counter

import pytest

from kvstats.metrics import character_f1, code_similarity, longbench_rouge_l, rouge_l
from kvstats.metrics.chinese import chinese_rouge_l, chinese_token_f1
from kvstats.metrics.subsequence import common_length

WORDS = ["the", "cache", "Evicts", "keys", "and", "values,", "7", "answers", "wrong", "x-ray"]


def texts(seed: int, count: int) -> list[tuple[str, str]]:
    """Return pairs of texts of up to five sentences, which have much in common."""
    chance = random.Random(seed)

    def text() -> str:
        sentences = (chance.choices(WORDS, k=chance.randint(0, 9)) for _ in range(chance.randint(0, 5)))
        return chance.choice([".", ". "]).join(" ".join(words) for words in sentences)

    return [(text(), text()) for _ in range(count)]


def test_rouge_l_is_that_of_rouge_score():
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rougeL"], use_stemmer=False)
    for prediction, reference in texts(1, 200):
        expected = scorer.score(reference, prediction)["rougeL"].fmeasure
        assert rouge_l(prediction, [reference]) == pytest.approx(expected, abs=1e-12)


def test_longbench_rouge_l_is_that_of_rouge():
    scorer = pytest.importorskip("rouge").Rouge()
    for prediction, reference in texts(2, 200):
        try:
            expected = scorer.get_scores([prediction], [reference], avg=True)["rouge-l"]["f"]
        except ValueError:
            # Without any sentence there is no score; LongBench counts it as 0.
            expected = 0.0
        # The package adds 1e-8 to a denominator.
        assert longbench_rouge_l(prediction, [reference]) == pytest.approx(expected, abs=1e-7)


def test_code_similarity_is_that_of_rapidfuzz():
    ratio = pytest.importorskip("rapidfuzz.fuzz").ratio
    lcs = pytest.importorskip("rapidfuzz.distance.LCSseq").similarity
    for prediction, reference in texts(3, 200):
        assert common_length(prediction, reference) == lcs(prediction, reference)
        assert common_length(prediction.split(), reference.split()) == lcs(
            prediction.split(), reference.split()
        )
        expected = round(ratio(prediction, reference)) / 100
        assert code_similarity(prediction, [reference]) == pytest.approx(expected, abs=1e-12)


def test_code_similarity_is_that_of_fuzzywuzzy_with_levenshtein():
    pytest.importorskip("Levenshtein")
    ratio = pytest.importorskip("fuzzywuzzy.fuzz").ratio
    for prediction, reference in texts(4, 200):
        assert code_similarity(prediction, [reference]) == ratio(prediction, reference) / 100


def test_chinese_words_are_those_of_jieba():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cut = pytest.importorskip("jieba").lcut
    prediction, reference = "我来到北京的清华大学。", "她在清华大学学习, 大学在北京"
    said, right = (
        Counter(word for word in cut(text) if word not in "。, ") for text in (prediction, reference)
    )
    expected = 2 * (said & right).total() / (said.total() + right.total())
    assert chinese_token_f1(prediction, ["没有", reference]) == pytest.approx(expected, abs=1e-12)
    assert 0 < expected < character_f1(prediction, [reference])
    spaced = [" ".join(cut(text)) for text in (prediction, reference)]
    assert chinese_rouge_l(prediction, [reference]) == longbench_rouge_l(spaced[0], spaced[1:]) > 0
