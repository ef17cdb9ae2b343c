import re

import polars as pl
import pytest

from kvstats.errors import InputError
from kvstats.log import InputRecord, ReplayRecord, RunRecord, log_from_records
from kvstats.selection import part_of, select, truth

FRAME = pl.DataFrame(
    {"budget": [0.25, 0.5, 1.0], "task": ["qa", "vt", None], "drop": [0.1, None, 0.2], "layers": [[1.0]] * 3}
)


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        (None, [0, 1, 2]),
        ("budget < 1", [0, 1]),
        ("budget < 1 AND task = 'qa'", [0]),
        ("task IN ('qa', 'fwe') OR budget = 1", [0, 2]),
        ("task IS NULL", [2]),
        ("task <> 'qa'", [1]),
        ("drop < 0.15", [0]),
        ("NOT (drop < 0.15)", [2]),
        ("drop BETWEEN 0.1 AND 0.2", [0, 2]),
        ("budget >= AVG(budget)", [2]),
        ("true", [0, 1, 2]),
        ("1 = 2", []),
    ],
)
def test_select_keeps_the_rows_for_which_the_expression_is_true(where, rows):
    assert select(FRAME, where, "f").equals(FRAME[rows])


def test_select_on_no_rows():
    assert select(FRAME.clear(), "budget < 1", "f").height == 0


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("budgt < 1", "f: where='budgt < 1' names the unknown column 'budgt'; did you mean 'budget'?"),
        ('task = "qa"', "names the unknown column 'qa'; text is quoted so: 'qa'"),
        ("budget <", "f: where='budget <' is no SQL expression ("),
        ("", "f: where='' is no SQL expression ("),
        ("SELECT * FROM runs", "has a subquery ('select'); use only columns"),
        ("budget < 1; DROP TABLE runs", "has ';'"),
        ("nothing(budget) > 1", "is no SQL expression ("),
        ("(SELECT 1) > 0", "has a subquery ('select'); use only columns"),
        ("task < 1", "f: where='task < 1' cannot be computed ("),
        ("budget", "f: where='budget' is not true or false but Float64; write a comparison"),
        ("layers", "is not true or false but List(Float64); write a comparison"),
        (3, "f: where=3 is not text; pass an SQL expression such as 'budget < 1'"),
        (True, "f: where=True is not text"),
    ],
)
def test_select_refuses_what_is_no_condition(where, message):
    with pytest.raises(InputError, match=re.escape(message)):
        select(FRAME, where, "f")


def test_truth_is_null_where_the_expression_is():
    assert truth(FRAME, "drop < 0.15", "f").to_list() == [True, None, False]


def test_a_part_of_a_log_is_a_part_of_all_its_tables():
    keys = [
        {"suite": "s", "model": "m", "task": task, "input_id": str(i), "condition": condition}
        for task in ("a", "b")
        for i in range(3)
        for condition in ("aware", "stream")
    ]
    cell = {"design": "poisson", "layer": 0, "head": 0, "step": 0, "delta": 0.1}
    figures = {"variance_estimate": 0.1, "radius": 0.2, "true_error": 0.1}
    log = log_from_records(
        [
            record
            for key in keys
            for record in (
                InputRecord(**key, drop=0.1, signals={"entropy": 0.5}),
                RunRecord(**key, arm="poisson", budget=0.5, score=1.0),
                ReplayRecord(**key, arm="poisson", budget=0.5, **cell, **figures),
            )
        ]
    )
    part = part_of(log, "condition = 'aware' AND task = 'a'")
    assert (part.runs.height, part.inputs.height, part.replays.height) == (3, 3, 3)
    assert part.input_signals == ("entropy",)
    for where in ("budget = 0.5", "drop > 0"):
        with pytest.raises(InputError, match=r"part_of: where=.* names the unknown column"):
            part_of(log, where)
