"""Broken logs: each line is read, an error that names it, or a counted reject."""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from kvstats.errors import InputError
from kvstats.log import InputRecord, ReplayRecord, RunRecord, StudyRecord, read_log
from kvstats.log.ingest import read_file
from kvstats.log.lines import Reject
from kvstats.log.write import encode_record

KEY = {"suite": "s", "model": "m", "task": "t"}
STUDY = StudyRecord(
    suite="s",
    model="m",
    dtype="float32",
    attention="sdpa",
    versions={"torch": "2.13"},
    host="x86_64",
    settings={"budgets": [0.5, 1.0]},
    template_hash="0f",
    schema_version=1,
    started_at=datetime(2026, 11, 1, tzinfo=UTC),
)
CELL = {"design": "poisson", "layer": 1, "head": 2, "step": 3, "variance_estimate": 0.5, "radius": None}
RECORDS = [
    STUDY,
    InputRecord(
        **KEY, input_id="1", drop=0.25, head_agreement_per_layer=[0.5, 0.25], signals={"entropy": 1.5}
    ),
    RunRecord(
        **KEY, input_id="1", arm="full", budget=1.0, score=1.0, success=True, prediction="é\n", n_kept=9
    ),
    RunRecord(
        **KEY, input_id="1", arm="a", budget=0.5, score=0.5, references=["7"], signals={"margin": None}
    ),
    ReplayRecord(**KEY, **CELL, input_id="1", arm="a", budget=0.5, true_error=0.25, delta=None),
]
LINES = [encode_record(record) + b"\n" for record in RECORDS]
PLAIN = b"".join(LINES)
FORMS = {
    "plain": PLAIN,
    "gzip": gzip.compress(PLAIN, mtime=0),
    "gzip of two members": gzip.compress(LINES[0], mtime=0) + gzip.compress(b"".join(LINES[1:]), mtime=0),
    "zstd": zstandard.compress(PLAIN),
    "zstd of two frames": zstandard.compress(LINES[0]) + zstandard.compress(b"".join(LINES[1:])),
}

WHOLE: dict[str, dict[int, int]] = {form: {} for form in FORMS}
"""By form the sizes at which what is there is a log of its own, and how many records it has."""
for number in range(1, len(LINES)):
    size = len(b"".join(LINES[:number]))
    WHOLE["plain"] |= {size - 1: number, size: number}
WHOLE["plain"][len(PLAIN) - 1] = len(LINES)
WHOLE["gzip of two members"][len(gzip.compress(LINES[0], mtime=0))] = 1
WHOLE["zstd of two frames"][len(zstandard.compress(LINES[0]))] = 1


def read_both_ways(content: bytes, lines: list[bytes] | None):
    """Read bytes, where faults are skipped and where they are raised, and hold both against each other.

    `lines` are those of the content, where it is known which they are.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.jsonl")
        path.write_bytes(content)
        log = read_log(path, on_error="skip")
        count = sum(frame.height for frame in (log.runs, log.inputs, log.replays, log.studies))
        assert log.files.select("records", "rejects").row(0) == (count, log.rejects.height)
        if log.rejects.height == 0:
            assert read_log(path).runs.equals(log.runs)
        else:
            with pytest.raises(InputError) as error:
                read_log(path)
            first = log.rejects.row(0, named=True)
            assert re.match(rf"{re.escape(str(path))}:{first['line']}: ", str(error.value)) or str(
                error.value
            ).startswith(f"{path}: is in no known format")
        if lines is not None:
            filled = [line for line in lines if line.strip(b" \t\n\r\x0b\x0c")]
            first_lacks_study = any(log.rejects["error"].str.starts_with("the first line is not"))
            empty = any(log.rejects["error"].str.starts_with("the file is empty"))
            assert count + log.rejects.height == len(filled) + first_lacks_study + empty
    return log, count


@pytest.mark.parametrize("form", FORMS)
def test_truncated_at_every_byte(form, tmp_path):
    content = FORMS[form]
    for size in range(len(content)):
        path = tmp_path / "a.jsonl"
        path.write_bytes(content[:size])
        items = list(read_file(path))
        read = [item for item in items if not isinstance(item, Reject)]
        rejects = [item for item in items if isinstance(item, Reject)]
        # What comes before the fault is as it was, and the fault is at the line after it.
        assert read == RECORDS[: len(read)]
        if size in WHOLE[form]:
            assert (len(read), rejects) == (WHOLE[form][size], [])
        else:
            assert [reject.line for reject in rejects] == [len(read) + 1]
        if size % 50 == 0:
            read_both_ways(content[:size], None)


@given(st.lists(st.tuples(st.integers(0, len(PLAIN) - 1), st.integers(1, 255)), min_size=1, max_size=4))
@settings(max_examples=100)
def test_flipped_bits_of_plain_text(flips):
    content = bytearray(PLAIN)
    for place, mask in flips:
        content[place] ^= mask
    # A file that begins as compressed data does is taken for such.
    known = not content.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd"))
    read_both_ways(bytes(content), bytes(content).split(b"\n") if known else None)


@given(
    st.sampled_from([form for form in FORMS if form != "plain"]),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 255)), min_size=1, max_size=3),
)
@settings(max_examples=100)
def test_flipped_bits_of_compressed_data(form, flips):
    content = bytearray(FORMS[form])
    for place, mask in flips:
        content[place % len(content)] ^= mask
    log, count = read_both_ways(bytes(content), None)
    assert count == len(RECORDS) or log.rejects.height > 0


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = sorted({name for record in RECORDS for name in (*record.__struct_fields__, "record", "unknown")})


@given(st.integers(0, len(RECORDS) - 1), st.sampled_from(FIELDS), JSON)
@settings(max_examples=100)
def test_any_value_in_any_field(place, field, value):
    fields = json.loads(LINES[place]) | {field: value}
    changed = [*LINES]
    changed[place] = json.dumps(fields).encode() + b"\n"
    log, _ = read_both_ways(b"".join(changed), changed)
    if log.rejects.height == 0 and field in RECORDS[place].__struct_fields__ and not isinstance(value, float):
        # What was taken is what was there: read back, the field has the very value.
        record = msgspec.convert({k: v for k, v in fields.items() if k != "record"}, type(RECORDS[place]))
        assert msgspec.to_builtins(getattr(record, field)) == value or field.endswith("_at")


@given(
    st.lists(st.sampled_from([*LINES, b"\n", b"   \n", b"junk\n", b"{}\n", b"\xff\n", b"[1]\n"]), max_size=8)
)
@settings(max_examples=100)
def test_any_lines_in_any_order(lines):
    _, count = read_both_ways(b"".join(lines), lines)
    assert count == sum(line in LINES for line in lines)


@given(st.binary(max_size=200))
@settings(max_examples=100)
def test_any_bytes(content):
    known = not content.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd"))
    read_both_ways(content, content.split(b"\n") if known else None)
