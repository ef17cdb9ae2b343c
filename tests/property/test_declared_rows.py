"""Whatever stands in a table, each row gives its runs or one reject that names its line."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

import kvstats as kv

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(["0.5", "1", "N/A", "true", "2026-11-01T00:00:00Z", "", "full", "snap"]),
    st.lists(st.text(max_size=3), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)
NAMES = (
    "id",
    "task",
    "arm",
    "score",
    "ok",
    "budget",
    "n",
    "seed",
    "said",
    "gold",
    "at",
    "drop",
    "margin",
    "full_score",
)
ROWS = st.lists(
    st.fixed_dictionaries(dict.fromkeys(NAMES, VALUES), optional={"other": VALUES}),
    min_size=1,
    max_size=5,
)

COLUMNS = kv.Columns(
    input_id="id",
    task="task",
    arm="arm",
    score="score",
    success="ok",
    budget="budget",
    budget_unit="percent_kept",
    n_prompt="n",
    seed="seed",
    prediction="said",
    references="gold",
    recorded_at="at",
    drop="drop",
    signals=("margin",),
    arms={"full": {"score": "full_score"}},
    na=("N/A",),
    constants={"suite": "s", "model": "m"},
)

GOOD = {
    "id": st.integers(0, 2),
    "task": st.just("t"),
    "arm": st.sampled_from(["snap", "uniform"]),
    "budget": st.sampled_from([25, "50"]),
    "n": st.sampled_from([480, 481.0]),
    "drop": st.sampled_from([0.1, 0.2]),
    "full_score": st.sampled_from([0, 1.0]),
}
NEARLY_GOOD = st.lists(
    st.fixed_dictionaries(GOOD, optional={name: VALUES for name in NAMES if name not in GOOD}),
    min_size=1,
    max_size=6,
)


def check(folder, rows):
    path = folder / "table.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    log = kv.read_log(path, columns=COLUMNS, on_error="skip")
    own = log.runs.filter(log.runs["arm"] != "full")
    # Declared columns that no row has would be an error; every row has them all, or lacks optional ones.
    assert own.height + log.rejects.height == len(rows)
    assert log.rejects["line"].is_unique().all()
    assert log.runs.select("task", "input_id", "arm", "budget", "seed").is_unique().all()
    inputs = own.select("task", "input_id").unique().height
    assert log.inputs.height == inputs == log.runs.filter(arm="full").height


@given(rows=ROWS)
def test_any_values(tmp_path_factory, rows):
    check(tmp_path_factory.mktemp("rows"), rows)


@given(rows=NEARLY_GOOD)
def test_rows_that_are_nearly_good(tmp_path_factory, rows):
    filled = [dict.fromkeys(NAMES) | row for row in rows]
    check(tmp_path_factory.mktemp("rows"), filled)
