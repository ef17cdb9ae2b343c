"""How answers are scored, against definitions written out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from collectors.tasks import score
from kvstats.errors import InputError
from kvstats.log import read_log

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("references", "prediction", "all_found", "any_found"),
    [
        (["1234567"], " 1234567.", 1.0, 1.0),
        (["1234567"], "123456 7", 0.0, 0.0),
        (["1", "2", "3", "4"], "2, 4 and 2", 0.5, 1.0),
        (["1", "1"], "1", 1.0, 1.0),
        (["AB-c", "d"], "ab-C", 0.5, 1.0),
        (["1"], "", 0.0, 0.0),
    ],
)
def test_matches_are_the_share_of_references_found_or_whether_any_is(
    references, prediction, all_found, any_found
):
    assert score(references, prediction) == all_found
    assert score(references, prediction, metric="match_part") == any_found


@pytest.mark.parametrize(
    ("references", "prediction", "expected"),
    [
        (["Paris"], " paris.", 1.0),
        (["the city of Paris"], "Paris", 2 * 1 * (1 / 3) / (1 + 1 / 3)),
        (["x", "a green, green hill"], "The green hill!", 2 * 1 * (2 / 3) / (1 + 2 / 3)),
        (["Paris"], "London", 0.0),
        (["the"], "the", 0.0),
        (["Paris"], "", 0.0),
    ],
)
def test_token_f1_is_that_of_the_best_reference(references, prediction, expected):
    assert score(references, prediction, metric="token_f1") == pytest.approx(expected, abs=1e-15)


def test_the_first_line_is_all_that_counts_where_the_metric_says_so():
    assert score(["Paris"], "\n\nParis\nQuestion: more", metric="first_line_token_f1") == 1.0
    assert score(["Paris"], "\n\nParis\nQuestion: more", metric="token_f1") == 0.5
    assert score(["b"], "\na\nb", metric="first_line_classification", classes=["a", "b"]) == 0.0


@pytest.mark.parametrize(
    ("prediction", "expected"),
    [
        ("Number of something", 1.0),
        ("Number of something, or Date", 0.5),
        ("Number", 0.0),
        ("Date", 0.0),
        ("", 0.0),
    ],
)
def test_a_class_that_is_part_of_the_right_one_is_not_counted(prediction, expected):
    classes = ["Number", "Number of something", "Date"]
    found = score(["Number of something"], prediction, metric="classification", classes=classes)
    assert found == expected


@pytest.mark.parametrize(
    ("prediction", "expected"),
    [("Paragraph 3", 1.0), ("3 or 13, or 3", 2 / 3), ("Paragraph 13", 0.0), ("none", 0.0)],
)
def test_numbers_named_must_be_the_right_one(prediction, expected):
    assert score(["Paragraph 3"], prediction, metric="retrieval") == expected
    assert score(["3"], prediction, metric="count") == expected


def test_every_answer_of_the_released_log_has_the_score_that_was_logged():
    runs = read_log(f"{ROOT}/notebooks/needles/*.jsonl.gz").runs
    rows = runs.select("references", "prediction", "score").rows()
    assert len(rows) == 6840
    assert [score(references, prediction) for references, prediction, _ in rows] == [row[2] for row in rows]


@pytest.mark.parametrize("references", [[], "1234567", ["1", ""]])
def test_a_score_needs_references(references):
    message = (
        rf"score: references={re.escape(repr(references))} is not a list of non-empty texts; pass at least"
    )
    with pytest.raises(InputError, match=message):
        score(references, "1234567")


def test_what_a_metric_needs_is_asked_for():
    with pytest.raises(InputError, match=r"score: metric='token_f2' is unknown; did you mean 'token_f1'\?"):
        score(["a"], "a", metric="token_f2")
    with pytest.raises(
        InputError, match=r"classification: classes=\(\) is not a list of names; pass the names of all"
    ):
        score(["a"], "a", metric="classification")
    with pytest.raises(
        InputError,
        match=r"retrieval: references=\['Paragraph'\] holds 'Paragraph', which has no number; pass",
    ):
        score(["Paragraph"], "1", metric="retrieval")
