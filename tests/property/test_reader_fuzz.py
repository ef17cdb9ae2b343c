"""Broken files of other formats: rows that are read, rejects, or an error naming the file, and no crash."""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvstats as kv
from kvstats.errors import InputError


def lines(*rows: dict) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


GATED = {"task": "qa", "T": 100, "drop": 0.09, "gate_open": True, "tau": 0.07, "answers": ["7"]}
PLAIN = {"n_kept_plain": 50, "correct_plain": True, "correct_gated": True, "pred_plain": "7"}
SAMPLE = {"doc": {"q": "?"}, "target": "7", "arguments": {}, "resps": [["7"]], "filtered_resps": ["7"]}
SAMPLE |= {"filter": "none", "metrics": ["acc"], "acc": 1.0, "doc_hash": "a", "prompt_hash": "b"}
EXTRACT = {"question": "?", "choices": ["a"], "ground_truth": ["7"], "prediction": "It is 7."}
HEADER = b"index,task,question,answer,answer_prefix,predicted_answer,compression_ratio\n"

FILES: dict[str, tuple[str, bytes, dict]] = {
    "page_release": (
        "cell.jsonl",
        lines({"id": 1, "budget": 1.0} | GATED | PLAIN, {"id": 1, "budget": 0.5} | GATED | PLAIN),
        {},
    ),
    "page_profiles": (
        "profiles.jsonl",
        lines({"task": "qa", "T": 9, "drop": 0.1, "head_agreement_per_layer": [0.5, 0.25]}, {"task": "qa"}),
        {},
    ),
    "longbench": (
        "pred/m/qasper.jsonl",
        lines(*({"pred": "a b", "answers": ["b"], "all_classes": None, "length": n} for n in (7, 8))),
        {"arm": "full", "pair_by": "content"},
    ),
    "infinitebench": (
        "m/preds_kv_retrieval.jsonl",
        lines(*({"id": n} | EXTRACT for n in (0, 1))),
        {"arm": "full"},
    ),
    "ruler": (
        "m/synthetic/4096/pred/vt.jsonl",
        lines(*({"index": n, "pred": "A B", "outputs": ["A"], "input": "?", "others": {}} for n in (0, 1))),
        {"arm": "full", "budget": 1.0},
    ),
    "lm_eval": (
        "m/samples_copa_2025-01-01T00-00-00.0.jsonl",
        lines(*({"doc_id": n} | SAMPLE for n in (0, 1))),
        {"arm": "full", "model": "m"},
    ),
    "kvpress": (
        "ruler__4096__org--m__snapkv__0.50/predictions.csv",
        HEADER + b"0,vt,?,\"['A' 'B']\",So:,\"A, B\",0.5\n1,vt,?,\"['A'\n 'C']\",So:,A,0.5\n",
        {},
    ),
}


def read_broken(format: str, content: bytes) -> int:
    """Read bytes as a format, raising and skipping, and return the number of records."""
    name, _, given_labels = FILES[format]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        try:
            log = kv.read_log(path, format=format, **given_labels, on_error="skip")
        except InputError as error:
            fault, log = str(error), None
        if log is None:
            assert str(path) in fault
            return -1
        (_, _, records, rejects) = log.files.row(0)
        assert records == sum(frame.height for frame in (log.runs, log.inputs, log.replays, log.studies))
        assert rejects == log.rejects.height
        assert records + rejects > 0
        if rejects:
            with pytest.raises(InputError) as raised:
                kv.read_log(path, format=format, **given_labels)
            assert str(path) in str(raised.value)
        else:
            kv.read_log(path, format=format, **given_labels)
        return records


@pytest.mark.parametrize("format", FILES)
def test_what_is_broken_below_was_whole(format):
    assert read_broken(format, FILES[format][1]) >= 1


@pytest.mark.parametrize("format", FILES)
def test_truncated(format):
    content = FILES[format][1]
    whole = read_broken(format, content)
    for size in range(0, len(content), 3):
        assert read_broken(format, content[:size]) <= whole


@pytest.mark.parametrize("format", FILES)
@given(flips=st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 255)), min_size=1, max_size=3))
def test_flipped_bits(format, flips):
    content = bytearray(FILES[format][1])
    for place, mask in flips:
        content[place % len(content)] ^= mask
    read_broken(format, bytes(content))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("format", [format for format in FILES if format != "kvpress"])
@given(data=st.data())
@settings(max_examples=60)
def test_any_value_in_any_column(format, data):
    rows = [json.loads(line) for line in FILES[format][1].splitlines()]
    row = data.draw(st.sampled_from(rows))
    row[data.draw(st.sampled_from(sorted({name for one in rows for name in one})))] = data.draw(JSON)
    read_broken(format, lines(*rows))
