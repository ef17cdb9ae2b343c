"""Classes, numbers, options and lines of code in answers."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvstats.errors import InputError
from kvstats.metrics import (
    METRICS,
    bug_choice,
    classification,
    code_similarity,
    first_code_line,
    first_number,
    last_number,
    letter_choice,
    number_value,
    retrieval,
    speaker,
    whole_word,
)

CLASSES = ["Date", "City", "Other city", "Food"]


@pytest.mark.parametrize(
    ("prediction", "reference", "expected"),
    [
        ("Date", "Date", 1.0),
        ("Date or Food", "Date", 0.5),
        ("Food", "Date", 0.0),
        ("date", "Date", 0.0),
        ("", "Date", 0.0),
        ("Other city", "Other city", 1.0),
        # "city" of "Other city" is no class by itself, as names are compared with their case.
        ("City", "Other city", 0.0),
    ],
)
def test_classification(prediction, reference, expected):
    assert classification(prediction, [reference], classes=CLASSES) == expected


def test_names_that_are_part_of_the_right_one_are_not_counted():
    nested = ["number", "phone number", "e", "phone"]
    assert classification("phone number", ["phone number"], classes=nested) == 1.0
    assert classification("phone number", ["number"], classes=nested) == pytest.approx(1 / 3)
    assert classification("phone number", ["absent", "phone"], classes=nested) == pytest.approx(1 / 3)


def test_classification_needs_classes():
    for classes in ((), "Date", ["Date", 3], 3):
        with pytest.raises(InputError, match=r"classification: classes=.* is not a list of names"):
            classification("Date", ["Date"], classes=classes)


@pytest.mark.parametrize(
    ("prediction", "references", "expected"),
    [
        ("Paragraph 15", ["Paragraph 15"], 1.0),
        ("15 or 3", ["Paragraph 15"], 0.5),
        ("15, 15 and 3", ["段落15"], 2 / 3),
        ("Paragraph 1", ["Paragraph 15"], 0.0),
        ("none", ["15"], 0.0),
        ("3", ["15", "3"], 1.0),
        ("015", ["15"], 0.0),
    ],
)
def test_retrieval(prediction, references, expected):
    assert retrieval(prediction, references) == pytest.approx(expected)


def test_retrieval_needs_a_number():
    with pytest.raises(
        InputError, match=r"retrieval: references=\['none'\] holds 'none', which has no number"
    ):
        retrieval("15", ["none"])


@given(st.text("ab=( ", max_size=9), st.text("ab=( ", max_size=9))
def test_similarity_of_code_counts_insertions_and_deletions(first, second):
    # The fewest insertions and deletions, by the table of distances.
    table = [list(range(len(second) + 1))]
    for i, a in enumerate(first, 1):
        row = [i]
        for j, b in enumerate(second, 1):
            row.append(table[-1][j - 1] if a == b else 1 + min(table[-1][j], row[-1]))
        table.append(row)
    size = len(first) + len(second)
    expected = round(100 * (1 - table[-1][-1] / size)) if size else 100
    assert code_similarity(first, [second]) == pytest.approx(expected / 100, abs=0.01 + 1e-12)
    assert code_similarity(first, [second]) == code_similarity(second, [first])
    assert code_similarity(first, [second]) >= round(difflib.SequenceMatcher(None, first, second).ratio(), 2)


def test_similarity_of_code_at_its_ends():
    assert code_similarity("x", ["x", "y"]) == code_similarity("", [""]) == 1.0
    assert code_similarity("x", ["y"]) == code_similarity("", ["y"]) == 0.0
    # What tells this ratio from that of difflib, which is 0.33.
    assert code_similarity("ababab", ["aaaaab"]) == 0.67


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\n\nx = 1\ny = 2", "x = 1"),
        ("# note\nx = 1", "x = 1"),
        ("```\nint x; // note\nint y;\n```", "int y;"),
        ("  \nx", "  "),
        ("# only\n`", ""),
        ("", ""),
    ],
)
def test_the_first_line_of_code(text, line):
    assert first_code_line(text) == line


@pytest.mark.parametrize(
    ("prediction", "expected"),
    [
        ('"4a-7c"', 1.0),
        ("The value is: 4a-7c.", 1.0),
        ('{"key": "4a-7c"}', 1.0),
        ("4a-7c3", 0.0),
        ("4A-7C", 0.0),
        ("", 0.0),
    ],
)
def test_a_whole_word(prediction, expected):
    assert whole_word(prediction, ["4a-7c"]) == expected


def test_the_speaker_is_the_first_reference_in_capitals():
    assert speaker("I think it is Ada.", ["ADA", "BEN"]) == 1.0
    assert speaker("Ben", ["ADA", "BEN"]) == 0.0


@pytest.mark.parametrize(
    ("metric", "prediction", "reference", "expected"),
    [
        (first_number, "key 04711, not 5", "04711", 1.0),
        (first_number, "key 4711", "04711", 0.0),
        (first_number, "none", "04711", 0.0),
        (number_value, "about 3.50 or 4", "3.5", 1.0),
        (number_value, "3.5", "3", 0.0),
        (number_value, "none", "3", 0.0),
        (last_number, "f(2) is 7, so `-12`", "-12", 1.0),
        (last_number, "+7.", "7", 1.0),
        (last_number, "-12 is it", "-12", 0.0),
        (last_number, "12x", "12", 0.0),
        (last_number, "  ", "12", 0.0),
    ],
)
def test_numbers(metric, prediction, reference, expected):
    assert metric(prediction, [reference]) == expected


@pytest.mark.parametrize("metric", [number_value, last_number])
def test_numbers_have_any_length_and_references_are_numbers(metric):
    assert metric("9" * 5000, ["9" * 5000]) == 1.0
    assert metric("9" * 5000, ["9" * 4999 + "8"]) == 0.0
    with pytest.raises(
        InputError, match=rf"{metric.__name__}: references=\['7', 'seven'\] holds what is no num"
    ):
        metric("7", ["7", "seven"])


@pytest.mark.parametrize(
    ("prediction", "expected"),
    [
        ("C", 1.0),
        ("C. Snowfield", 1.0),
        ("B. Snowfield", 0.0),
        ("the answer is: C", 1.0),
        ("the answer is Snowfield", 1.0),
        ("the answer is\nD", 0.0),
        ("the correct option is C, not B", 1.0),
        ("answer is", 0.0),
        # No phrase: the first letter that stands alone.
        ("maybe B, or C", 0.0),
        ("maybe (C) or C", 1.0),
        ("not known", 0.0),
        ("", 0.0),
    ],
)
def test_options(prediction, expected):
    assert letter_choice(prediction, ["Snowfield", "C"]) == expected


@pytest.mark.parametrize(
    ("prediction", "expected"),
    [
        ("B. parse_line", 1.0),
        ("B: because", 1.0),
        ("B parse_line", 0.0),
        ("The answer is: Option B", 1.0),
        ("answer: `parse_line`", 1.0),
        ("the faulty one is: read_line", 0.0),
        ("it is parse_line", 0.0),
        ("answer:", 0.0),
        ("", 0.0),
    ],
)
def test_faulty_functions(prediction, expected):
    assert bug_choice(prediction, ["parse_line", "B"]) == expected


@pytest.mark.parametrize("name", sorted(METRICS))
def test_metrics_have_names_and_refuse_no_reference(name):
    assert METRICS[name].__name__ == name
    with pytest.raises(InputError, match=rf"{name}: references=\[\]"):
        METRICS[name]("a", [])
