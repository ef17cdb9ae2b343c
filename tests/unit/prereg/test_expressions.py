"""Expressions: conditions on columns, and nothing that reads files, asks the clock or hides a slip."""

from __future__ import annotations

import polars as pl
import pytest

from kvstats.errors import InputError
from kvstats.prereg.expressions import check_expression, parse_rule

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
        ("EXISTS (SELECT * FROM read_csv('{file}'))", "has a subquery ('select')"),
        ("low IN (select a from read_parquet('{file}'))", "has a subquery ('select')"),
        ("low IN (FROM read_csv('{file}'))", "has a subquery ('from')"),
        ("low IN (TABLE t)", "has a subquery ('table')"),
        ("low IN (VALUES (1))", "has a subquery ('values')"),
        ("low IN (WITH x AS (SELECT 1) SELECT * FROM x)", "has a subquery ('with')"),
        ("task = E'\\'' OR EXISTS (SELECT * FROM read_csv('{file}')) OR task = ''", "has "),
        ("task = R'''a'b''' OR EXISTS (SELECT * FROM read_csv('{file}')) OR task = ''", "has "),
        ("task = $$'$$ OR EXISTS (SELECT 1) OR task = $$'$$", "has '$'"),
        ('"a\\" > 1', "has '\\\\'"),
        ("low > 0 -- AND high < 0", "has '--'"),
        ("low > 0 /* AND high < 0 */", "has '/*'"),
        ("low > 0; low < 0", "has ';'"),
        ("`low` > 0", "has '`'"),
        ("now() > 0", "asks the clock ('now')"),
        ("CURRENT_DATE > low", "asks the clock ('current_date')"),
        ("current_timestamp IS NULL", "asks the clock ('current_timestamp')"),
        ("low > 0 hgih", "ends with a word too many"),
        ("low > 0 AS low", "ends with a word too many"),
        ("low > 1e", "ends with a word too many"),
        ("COLUMNS('.*') > 0", "has several values"),
        ("low > 0 AND", "is no SQL expression ("),
        ("low > 0, high > 0", "is no SQL expression ("),
        ("low >", "is no SQL expression ("),
        ("lowest(low) > 0", "is no SQL expression (unsupported function 'lowest')"),
        ("*", "is no SQL expression ("),
        ("(" * 900 + "low > 0" + ")" * 900, "is no SQL expression ("),
    ],
)
def test_what_is_no_plain_condition_is_refused(text, fault, tmp_path):
    # The file is missing, so that opening it would be another error.
    text = text.replace("{file}", f"{tmp_path}/none.csv")
    with pytest.raises(InputError) as error:
        check_expression("plan.yaml:7", "where", text)
    assert str(error.value).startswith(f"plan.yaml:7: where={text!r} {fault}")


def test_length_is_limited():
    with pytest.raises(
        InputError, match=r"plan\.yaml:7: where has 180,007 characters; an expression has at most 2,000"
    ):
        check_expression("plan.yaml:7", "where", "low > 0" + " AND low > 0" * 15_000)
    longest = "(low>0)" + "AND(low>0)" * 199
    assert parse_rule("f:1", "holds", longest, COLUMNS).values(FRAME) == [True, False, None]


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
