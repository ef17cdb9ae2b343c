import re
from dataclasses import replace

import polars as pl
import pytest

from kvstats.errors import InputError
from kvstats.inference import Design, infer, samples_by
from kvstats.statistics import Mean

FRAME = pl.DataFrame(
    {
        "task": ["a", "a", "b", "b", "c", "c", None, None],
        "budget": [0.5, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0],
        "id": ["1", "2", "1", "2", "1", "2", "1", "2"],
        "y": [0.1, 0.5, 0.7, 0.9, 0.2, 0.0, 0.4, 0.4],
    }
)
DESIGN = Design(cluster="id", interval="percentile", n_resamples=200)


def result_of(*by, frame=FRAME):
    samples = samples_by("mean", frame, by, DESIGN, lambda part: (Mean(part["y"].to_numpy()), "mean"))
    return infer("mean", samples, DESIGN, {name: frame.schema[name] for name in by}, null=0.0)


def test_the_value_of_the_only_row():
    assert result_of().value == pytest.approx(0.4)
    assert result_of(frame=FRAME.clear()).value is None


def test_an_item_by_its_values():
    result = result_of("task", "budget")
    assert result.item(task="b", budget=1.0) == pytest.approx(0.9)
    assert result.item(task=None) == pytest.approx(0.4)
    assert result_of().item() == pytest.approx(0.4)


def test_several_rows_are_no_value():
    result = result_of("task", "budget")
    message = "Result.item: 2 rows match, not one; name budget, as in result.item(budget=...)"
    with pytest.raises(InputError, match=re.escape(message)):
        result.item(task="b")
    with pytest.raises(
        InputError, match=re.escape("Result.value: 5 rows match, not one; name task and budget")
    ):
        _ = result.value
    with pytest.raises(InputError, match=re.escape("Result.value: 0 rows match, not one; select some")):
        _ = result_of("task", frame=FRAME.clear()).value


def test_a_part_is_a_result_of_its_own():
    whole = result_of("task", "budget")
    part = whole.part(task="b")
    assert part.frame.equals(whole.frame.filter(task="b"))
    assert [sample.key for sample in part.samples] == [("b", 0.5), ("b", 1.0)]
    assert part.p_value().equals(whole.p_value().filter(task="b"))
    assert part.contrast(budget=(1.0, 0.5)).value == pytest.approx(0.2)
    assert whole.part().frame.equals(whole.frame)


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ({"tasks": "a"}, "Result.part: tasks='a' is no by-column of this result; did you mean 'task'?"),
        ({"task": "d"}, "Result.part: task='d' is not among the values of this result"),
        (
            {"task": "a", "budget": 1.0},
            "Result.part: no row has all of {'task': 'a', 'budget': 1.0}; ask for",
        ),
    ],
)
def test_rows_that_are_not_there_are_refused(by, message):
    with pytest.raises(InputError, match=re.escape(message)):
        result_of("task", "budget").part(**by)


def test_a_result_without_by_has_no_parts():
    with pytest.raises(
        InputError, match=re.escape("is no by-column of this result; pass `by` to the estimator")
    ):
        result_of().item(task="a")


def test_rows_are_sorted_with_their_samples_undefined_last():
    whole = result_of("task", frame=pl.concat([FRAME, FRAME[:1].with_columns(task=pl.lit("d"))]))
    known = pl.when(pl.col("task").ne_missing("d")).then("estimate")
    whole = replace(whole, frame=whole.frame.with_columns(estimate=known))
    for descending, order in ((False, ["c", "a", None, "b", "d"]), (True, ["b", None, "a", "c", "d"])):
        found = whole.sort("estimate", descending=descending)
        assert found.frame["task"].to_list() == order
        assert [sample.key[0] for sample in found.samples] == order
    assert whole.sort("n", "task").frame["task"].to_list() == ["d", "a", "b", "c", None]
    assert whole.sort("estimate").head(2).frame["task"].to_list() == ["c", "a"]
    assert whole.head(100).frame.equals(whole.frame)


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "3"])
def test_the_number_of_first_rows(n):
    with pytest.raises(
        InputError, match=re.escape(f"Result.head: n={n!r} is not a whole number of at least 1")
    ):
        result_of("task").head(n)


def test_what_to_sort_by():
    with pytest.raises(
        InputError, match=re.escape("Result.sort: no column is named; pass one such as 'estimate'")
    ):
        result_of("task").sort()
    with pytest.raises(
        InputError, match=re.escape("columns='estimat' is not a column; did you mean 'estimate'?")
    ):
        result_of("task").sort("estimat")
