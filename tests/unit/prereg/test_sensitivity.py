"""Verdicts under other choices, against estimators that are asked directly."""

from __future__ import annotations

import pytest

import kvstats.estimators as estimators
from kvstats.errors import InputError
from kvstats.inference import Design
from kvstats.log import read_log
from kvstats.prereg import verify
from kvstats.prereg.conditions import without_conditions_on

PLAN = """\
study: toy
registered_at: 2026-10-31T12:00:00Z
data: {runs: [logs/*.jsonl]}
design: {n_resamples: 200}
claims:
  - {id: harm, statement: a, estimator: delta, arguments: {arm: evict}, where: budget = 0.5,
     supported: high < 0}
  - {id: chosen, statement: b, estimator: accuracy, arguments: {arm: evict}, by: task,
     where: budget = 0.5 AND score IS NOT NULL AND success, supported: low > 0.9}
  - {id: cells, statement: c, estimator: certificate_coverage, supported: low > 0.5}
  - {id: drops, statement: d, estimator: mean_drop, supported: low > 0}
"""

NAMES = [
    "interval: percentile",
    "interval: jackknife",
    "cluster: input_id",
    "cluster: task",
    "cluster: each row",
]


@pytest.fixture
def claims(toy, register):
    return {claim.id: claim for claim in verify(register(base=PLAN), sensitivity=True).claims}


def test_without_being_asked_for_there_is_none(toy, register):
    assert all(claim.sensitivity == () for claim in verify(register(base=PLAN)).claims)


def test_the_verdicts_proper_do_not_change(claims, toy, register):
    for claim in verify(register(base=PLAN)).claims:
        assert (claim.verdict, claim.rows) == (claims[claim.id].verdict, claims[claim.id].rows)


@pytest.mark.parametrize(
    ("name", "design"),
    [
        ("interval: percentile", Design(interval="percentile", n_resamples=200)),
        ("interval: jackknife", Design(interval="jackknife")),
        ("cluster: input_id", Design(cluster=["input_id"])),
        ("cluster: task", Design(cluster=["task"])),
        (
            "cluster: each row",
            Design(cluster=["suite", "model", "task", "input_id", "condition", "arm", "budget", "seed"]),
        ),
    ],
)
def test_each_choice_is_what_the_estimator_says_under_it(claims, toy, name, design):
    found = {variant.name: variant for variant in claims["harm"].sensitivity}[name]
    expected = estimators.delta(read_log(toy), arm="evict", where="budget = 0.5", design=design).frame.row(
        0, named=True
    )
    (row,) = found.rows
    assert {key: row[key] for key in ("estimate", "low", "high", "clusters", "status")} == {
        key: expected[key] for key in ("estimate", "low", "high", "clusters", "status")
    }
    assert found.verdict == ("supported" if expected["high"] < 0 else "not met")


def test_what_is_tried(claims):
    assert [variant.name for variant in claims["harm"].sensitivity] == NAMES
    assert [variant.name for variant in claims["chosen"].sensitivity] == [*NAMES, "no selection by outcome"]
    notes = {variant.name: variant.note for variant in claims["harm"].sensitivity}
    assert notes["cluster: task"] == "few clusters (2): not an interval to be trusted"
    assert notes["cluster: each row"] == "takes rows of one input for independent"
    assert notes["interval: jackknife"] is None


@pytest.mark.parametrize(("claim", "clusters"), [("cells", 10), ("drops", 20)])
def test_a_row_of_its_own_is_what_the_table_has(claims, claim, clusters):
    found = {variant.name: variant for variant in claims[claim].sensitivity}["cluster: each row"]
    assert found.rows[0]["clusters"] == clusters


def test_selection_by_outcome_is_undone(claims):
    assert [row["estimate"] for row in claims["chosen"].rows] == [1.0, 1.0]
    found = claims["chosen"].sensitivity[-1]
    assert [row["row"] for row in found.rows] == ["task=code", "task=qa"]
    assert [row["estimate"] for row in found.rows] == pytest.approx([0.9, 0.6])
    assert found.verdict == "not met"


def test_runs_without_a_score_have_failed(make_records, write_log, register):
    scores = {"full": {1.0: [1.0] * 4}, "evict": {0.5: [None, 1.0, 1.0, 0.0]}}
    write_log(make_records(scores))
    where = "score IS NOT NULL AND baseline_score > 0 AND budget = 0.5"
    path = register(("budget = 0.5", where))
    claim = verify(path, sensitivity=True).claims[0]
    assert claim.rows[0]["n"] == 3
    found = claim.sensitivity[-1]
    assert (found.name, found.rows[0]["estimate"]) == ("no selection by outcome", -0.5)


def test_a_bootstrap_is_held_against_the_plain_interval(toy, register):
    path = register(("claims:\n", "design: {interval: bca, n_resamples: 200}\nclaims:\n"))
    names = [variant.name for variant in verify(path, sensitivity=True).claims[0].sensitivity]
    assert names[:2] == ["interval: auto", "interval: jackknife"]


def test_a_family_is_adjusted_anew(toy, register):
    path = register(("claims:\n", "family: {method: bonferroni}\nclaims:\n"))
    path.write_text(
        path.read_text()
        + "  - {id: other, statement: b, estimator: delta, arguments: {arm: evict}, where: budget = 0.25,"
        " supported: high < 0}\n"
    )
    claim = verify(path, sensitivity=True, only="harm").claims[0]
    found = {variant.name: variant for variant in claim.sensitivity}["cluster: task"]
    assert found.rows[0]["p_value"] > 0.025
    assert found.verdict == "not met"


def test_what_a_choice_does_not_admit_is_undefined_with_its_reason(toy, register):
    strata = register(("claims:\n", "design: {strata: [task]}\nclaims:\n"))
    found = {v.name: v for v in verify(strata, sensitivity=True).claims[0].sensitivity}["cluster: input_id"]
    assert (found.verdict, found.rows) == ("undefined", ())
    assert "puts the cluster (input_id=i000) into several strata" in found.reason


@pytest.mark.parametrize(
    ("where", "left"),
    [
        (None, None),
        ("budget = 0.5", "budget = 0.5"),
        ("score > 0", None),
        ("budget = 0.5 AND score > 0", "budget = 0.5"),
        ("score > 0 and budget = 0.5 And task = 'a AND score'", "budget = 0.5 AND task = 'a AND score'"),
        ("budget BETWEEN 0.2 AND 0.5 AND score BETWEEN 0 AND 1", "budget BETWEEN 0.2 AND 0.5"),
        ("(budget = 0.5 AND score > 0) AND task = 'a'", "task = 'a'"),
        ("budget = 0.5 OR score > 0", None),
        ("task = 'a' AND budget = 0.5 OR score > 0 AND task = 'b'", None),
        ("task = 'a' AND budget = 0.5 OR task = 'b'", "task = 'a' AND budget = 0.5 OR task = 'b'"),
        ("CASE WHEN score > 0 AND budget = 1 THEN TRUE ELSE FALSE END AND task = 'a'", "task = 'a'"),
        ("\"score\" > 0 AND NOT task = 'it''s'", "NOT task = 'it''s'"),
    ],
)
def test_conditions_on_columns_are_taken_out(where, left):
    assert without_conditions_on({"score"}, where) == left


def test_what_is_no_expression_is_refused():
    with pytest.raises(InputError, match="where='budget = ' is no SQL expression"):
        without_conditions_on({"score"}, "budget = ")
