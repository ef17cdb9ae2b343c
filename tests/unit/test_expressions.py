"""Expressions: conditions on columns, and nothing that reads files, asks the clock or hides a slip."""

from __future__ import annotations

import pytest

from kvstats.errors import InputError
from kvstats.expressions import check_expression


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
    assert check_expression("f", "where", longest).meta.root_names() == ["low"] * 200
