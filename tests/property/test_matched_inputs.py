"""What stays of a log is complete, and as much of it as can be."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

import kvstats as kv
from kvstats.log import RunRecord, log_from_records

CELLS = [("full", 1.0), ("a", 0.5), ("a", 0.25), ("b", 0.5)]


@given(
    st.sets(
        st.tuples(st.sampled_from(["t", "u"]), st.sampled_from("vwxyz"), st.sampled_from(CELLS)), min_size=1
    )
)
def test_what_stays_is_complete_and_as_much_as_can_be(rows):
    rows = rows | {("t", "v", ("full", 1.0))}
    key = {"suite": "s", "model": "m", "score": 1.0}
    log = log_from_records(
        [RunRecord(**key, task=t, input_id=one, arm=arm, budget=budget) for t, one, (arm, budget) in rows]
    )
    matched = kv.match_inputs(log, unpaired="count")
    cells = defaultdict(set)
    for task, _, cell in rows:
        cells[task].add(cell)
    expected = {
        (task, one)
        for task, one, _ in rows
        if ("full", 1.0) in cells[task] and all((task, one, cell) in rows for cell in cells[task])
    }
    assert set(matched.log.runs.select("task", "input_id").rows()) == expected
    for row in matched.counts.iter_rows(named=True):
        task, cell = row["task"], (row["arm"], row["budget"])
        inputs = {one for other, one, _ in rows if other == task}
        has = {one for one in inputs if (task, one, cell) in rows}
        stays = {one for one in inputs if (task, one) in expected}
        assert (row["n_paired"], row["n_unpaired"], row["n_missing"]) == (
            len(has & stays),
            len(has - stays),
            len(inputs - has),
        )
