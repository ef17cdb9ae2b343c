"""Wide rows: whatever is in them, no row is lost and no other row changes; drops keep their bounds."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kvstats as kv
from kvstats.statistics.drop import BINS, decreasing_share, depth_correlation, drop, layer_bins

COLUMNS = (
    *("id", "task", "budget", "T", "drop", "gate_open", "tau", "gold", "answers", "pred_plain", "kept_plain"),
    *("n_kept_plain", "n_kept_gated", "correct_plain", "correct_gated", "correct_full", "note", "record"),
)

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from([0.5, 1, 0.99999994, 128, 1e-9])
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=3,
)


def rows_of(n):
    return [
        {"id": i, "task": "t", "budget": budget, "T": 100, "drop": 0.01 * i, "gate_open": i >= 3, "tau": 0.03}
        | {"n_kept_plain": int(100 * budget), "correct_plain": True, "correct_gated": i % 2 == 0}
        for i in range(n)
        for budget in (1.0, 0.5)
    ]


def read(lines):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cell.jsonl")
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return kv.read_log(path, format="page_release", on_error="skip")


@given(st.dictionaries(st.sampled_from(COLUMNS), VALUES, min_size=1, max_size=3), st.integers(0, 9))
def test_whatever_a_row_holds_each_row_is_read_or_listed(columns, index):
    rows = rows_of(5)
    rows[index] = rows[index] | columns
    log = read([json.dumps(row).encode() for row in rows])
    # Every row here has an outcome of the arm plain.
    assert log.runs.filter(arm="plain").height + log.rejects.height == 10
    # What a row says is held against rows before it: it can be a fault of later rows, never of earlier ones.
    assert all(line > index for line in log.rejects["line"])


@given(st.data())
def test_a_flipped_byte_loses_no_row_in_silence(data):
    lines = [json.dumps(row).encode() for row in rows_of(3)]
    number = data.draw(st.integers(1, 5))
    place = data.draw(st.integers(0, len(lines[number]) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda b: b not in (10, lines[number][place])))
    lines[number] = lines[number][:place] + bytes([byte]) + lines[number][place + 1 :]
    log = read(lines)
    named = set(log.rejects["line"])
    assert all(line > number for line in named)
    # An arm whose column lost its name is under extra; the rows themselves are all there.
    read_rows = log.runs.select("task", "input_id", "budget", "budget_tokens").unique().height
    assert read_rows + len(named) == 6


@given(
    st.integers(3, 40).flatmap(lambda size: st.lists(st.floats(0, 1), min_size=size, max_size=size)),
    st.sampled_from(BINS),
    st.floats(0.01, 0.5),
    st.floats(-0.5, 0.5),
)
def test_drops_are_bounded_and_know_no_level(row, bins, share, level):
    early, late = layer_bins(len(row), bins, share)
    assert not set(early) & set(late)
    profile = np.array([row])
    (found,) = drop(profile, early, late)
    assert -1 <= found <= 1
    assert drop(profile + level, early, late)[0] == pytest.approx(found, abs=1e-12)
    assert drop(2 * profile, early, late)[0] == pytest.approx(2 * found, abs=1e-12)
    assert 0 <= decreasing_share(profile)[0] <= 1
    correlation = depth_correlation(profile)[0]
    assert np.isnan(correlation) == (len(set(row)) == 1)
    assert np.isnan(correlation) or -1 - 1e-12 <= correlation <= 1 + 1e-12


@given(st.lists(st.lists(st.floats(0, 1), min_size=6, max_size=6), min_size=2, max_size=8))
def test_the_mean_drop_is_the_drop_of_the_mean_profile(rows):
    records = [
        kv.log.InputRecord(suite="s", model="m", task="t", input_id=str(i), head_agreement_per_layer=row)
        for i, row in enumerate(rows)
    ]
    log = kv.with_drop(kv.log.log_from_records(records))
    profile = kv.agreement_profile(log).frame["estimate"].to_numpy()
    mean = kv.mean_drop(log, column="drop_first_last_third").frame["estimate"].item()
    assert mean == pytest.approx(drop(profile[None, :], *layer_bins(6))[0], abs=1e-12)
