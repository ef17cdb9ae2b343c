"""F1 and exact match of words, held against plain definitions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvstats.errors import InputError
from kvstats.metrics import character_f1, exact_match, normalised, substring_match, token_f1

WORDS = st.lists(st.sampled_from(["harm", "rate", "cache", "7", "evicted"]), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  U.S.A., an 'old' friend", "usa old friend"),
        ("A", ""),
        ("theatre an", "theatre"),
        ("multi-key\ttask\n", "multikey task"),
        ("Ünïcode – kept", "ünïcode – kept"),
        ("", ""),
    ],
)
def test_normalisation(text, expected):
    assert normalised(text) == expected


@pytest.mark.parametrize("text", ["", "the", "a thing, THE thing", "x" * 5])
def test_normalising_twice_changes_nothing(text):
    assert normalised(normalised(text)) == normalised(text)


def brute_f1(prediction: str, reference: str) -> float:
    """Cross out each word of the reference at most once."""
    said, left = normalised(prediction).split(), normalised(reference).split()
    size, common = len(left), 0
    for word in said:
        if word in left:
            left.remove(word)
            common += 1
    if common == 0:
        return 0.0
    precision, recall = common / len(said), common / size
    return 2 * precision * recall / (precision + recall)


@given(WORDS, WORDS)
def test_f1_is_that_of_the_definition_and_symmetric(said, right):
    one, other = " ".join(said), " ".join(right)
    assert token_f1(one, [other]) == pytest.approx(brute_f1(one, other), abs=1e-12)
    assert token_f1(one, [other]) == token_f1(other, [one])


@given(WORDS, WORDS, st.randoms(use_true_random=False))
def test_f1_does_not_depend_on_the_order_of_words(said, right, random):
    shuffled = random.sample(said, len(said))
    assert token_f1(" ".join(said), [" ".join(right)]) == token_f1(" ".join(shuffled), [" ".join(right)])


@given(WORDS)
def test_f1_is_1_for_the_same_and_0_for_disjoint_words(said):
    assert token_f1(" ".join(said), [" ".join(said).upper() + "."]) == 1.0
    assert token_f1(" ".join(said), ["quite different"]) == 0.0


def test_the_best_reference_counts():
    assert token_f1("old mill", ["mill of the north", "the old mill"]) == 1.0
    assert exact_match("old mill", ["mill of the north", "the old mill"]) == 1.0


def test_texts_of_which_nothing_is_left():
    assert token_f1("the", ["an"]) == 0.0
    assert token_f1("", ["mill"]) == 0.0
    assert exact_match("the", ["an"]) == 1.0
    assert exact_match("", ["mill"]) == 0.0


def test_characters_are_the_tokens_of_chinese_answers():
    assert character_f1("北京， 市！", ["北京市"]) == 1.0
    assert character_f1("上海", ["北京"]) == 0.0
    assert character_f1("北京北京", ["北京"]) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("prediction", "expected"),
    [("It is the OLD  mill!", 1.0), ("It is a mill that is old", 0.0), ("It is the older mill", 0.0)],
)
def test_substring(prediction, expected):
    assert substring_match(prediction, ["old mill", "windmill"]) == expected


def test_a_substring_that_every_answer_contains():
    with pytest.raises(
        InputError, match=r"references=\['mill', 'A'\] holds 'A', of which normalisation leaves"
    ):
        substring_match("mill", ["mill", "A"])


@pytest.mark.parametrize("metric", [token_f1, character_f1, exact_match, substring_match])
@pytest.mark.parametrize("references", [[], "mill", [None]])
def test_references_are_texts(metric, references):
    with pytest.raises(InputError, match=rf"{metric.__name__}: references=.* is not a list of texts"):
        metric("mill", references)
