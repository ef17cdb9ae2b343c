"""Rules: conditions on the rows of a result, checked before there are any."""

from __future__ import annotations

import polars as pl
import pytest

from kvstats.errors import InputError
from kvstats.prereg.rules import parse_rule

COLUMNS = {
    "task": pl.String(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "n": pl.Int64(),
    "status": pl.String(),
    "own": None,
}
FRAME = pl.DataFrame(
    {"task": ["a", "b", "c"], "low": [0.1, -0.1, None], "high": [1.0, 2.0, None], "n": [3, 4, 5]},
    schema_overrides={"low": pl.Float64},
).with_columns(status=pl.lit("ok"), own=pl.lit(1))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("low > 0", [True, False, None]),
        ('"low" > 0 AND "n" >= 3', [True, False, None]),
        ("low BETWEEN -1 AND 0.5", [True, True, None]),
        ("NOT low > 0 OR status = 'ok'", [True, True, True]),
        ("low IS NULL", [False, False, True]),
        ("abs(low) <= 5e-1", [True, True, None]),
        ("task IN ('a', 'x')", [True, False, False]),
        ("task LIKE 'a%' OR task = 'it''s'", [True, False, False]),
        ("task = 'select -- from; now()' OR n = 4", [False, True, False]),
        ("SUM(CASE WHEN low > 0 THEN 1 ELSE 0 END) >= 1", [True, True, True]),
        ("COUNT(*) FILTER (WHERE low > 0) >= 2", [False, False, False]),
        ("low > MAX(low) - 0.1", [True, False, None]),
        ("own = 1", [True, True, True]),
    ],
)
def test_conditions_are_evaluated_row_by_row(text, values):
    assert parse_rule("f:1", "holds", text, COLUMNS).values(FRAME) == values


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("lw > 0", "names the unknown column 'lw'; did you mean 'low'?"),
        ("LOW > 0", "names the unknown column 'LOW'; "),
        ('task = "qa"', "names the unknown column 'qa'; "),
        ("r.low > 0", "names the unknown column 'r'"),
        ("1 = 1", "names no column of the result; write a condition such as 'low > 0'"),
        ("TRUE", "names no column of the result"),
        ("low > 'a'", "cannot be computed (cannot compare string with numeric type"),
        ("task > 0", "cannot be computed ("),
        ("low", "is not true or false but Float64; write a comparison"),
        ("low - high", "is not true or false but Float64"),
        ("status", "is not true or false but String"),
    ],
)
def test_rules_are_checked_without_data(text, fault):
    with pytest.raises(InputError) as error:
        parse_rule("plan.yaml:9", "supported", text, COLUMNS)
    assert f"plan.yaml:9: supported={text!r} {fault}" in str(error.value)


def test_a_column_of_unknown_type_is_checked_with_the_data():
    rule = parse_rule("plan.yaml:9", "supported", "own = 'x'", COLUMNS)
    with pytest.raises(InputError, match=r"plan\.yaml:9: supported=\"own = 'x'\" cannot be computed \("):
        rule.values(FRAME)
    with pytest.raises(InputError, match="supported='own' is not true or false but Int32"):
        parse_rule("plan.yaml:9", "supported", "own", COLUMNS).values(FRAME)
