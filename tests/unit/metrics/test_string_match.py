"""String match as RULER defines it: all references, one of them, control characters."""

from __future__ import annotations

import pytest

from kvstats.errors import InputError
from kvstats.metrics import METRICS, string_match_all, string_match_part
from kvstats.metrics.string_match import ruler_metric, without_control

BOTH = pytest.mark.parametrize("metric", [string_match_all, string_match_part])


@pytest.mark.parametrize(
    ("prediction", "references", "every", "one"),
    [
        ("12 and 34", ["12", "34"], 1.0, 1.0),
        ("12 and 34", ["12", "56"], 0.5, 1.0),
        ("12 and 34", ["56", "78", "90"], 0.0, 0.0),
        ("in NORMANDY", ["Normandy", "Rollo"], 0.5, 1.0),
        ("123", ["12", "12", "4"], 2 / 3, 1.0),
        ("", ["12"], 0.0, 0.0),
        ("Straße 7", ["STRASSE"], 0.0, 0.0),
    ],
)
def test_shares_and_any(prediction, references, every, one):
    found = [reference.lower() in prediction.lower() for reference in references]
    assert string_match_all(prediction, references) == sum(found) / len(found) == pytest.approx(every)
    assert string_match_part(prediction, references) == float(any(found)) == one


@BOTH
@pytest.mark.parametrize(
    ("references", "fault"),
    [
        ([], r"references=\[\] is not a list of texts"),
        ("12", "references='12' is not a list of texts"),
        (["12", ""], "holds an empty text, which every prediction contains; remove it"),
    ],
)
def test_references_that_mean_nothing_are_errors(metric, references, fault):
    with pytest.raises(InputError, match=f"^{metric.__name__}: .*{fault}"):
        metric("12", references)


def test_both_are_among_the_metrics():
    assert [METRICS[f"string_match_{name}"] for name in ("all", "part")] == [
        string_match_all,
        string_match_part,
    ]


def test_questions_need_one_reference():
    tasks = ("qa_1", "qa_2", "qa", "niah_single_1", "vt", "cwe", "fwe", "aqa_1")
    assert [ruler_metric(task) for task in tasks] == ["string_match_part"] * 3 + ["string_match_all"] * 5


@pytest.mark.parametrize(
    ("text", "taken_out", "as_lines"),
    [
        (" 12\n34 ", "1234", "12\n34"),
        ("\x00 a\x1fb \t", "ab", "a\nb"),
        ("a\x7f\u2028b", "a\x7f\u2028b", "a\x7f\u2028b"),
        ("\n", "", ""),
    ],
)
def test_control_characters(text, taken_out, as_lines):
    assert without_control(text, "") == taken_out
    assert without_control(text, "\n") == as_lines
