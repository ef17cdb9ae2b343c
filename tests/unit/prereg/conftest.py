"""A registration to be varied, and logs of known truth for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kvstats.log import LogWriter, StudyRecord

BASE = """\
study: toy
registered_at: 2026-10-31T12:00:00Z
data:
  runs: [logs/*.jsonl]
claims:
  - id: harm
    statement: Eviction harms.
    estimator: delta
    arguments: {arm: evict}
    where: budget = 0.5
    supported: high < 0
"""

STUDY = StudyRecord(
    schema_version=1,
    suite="s",
    model="m",
    dtype="float32",
    attention="sdpa",
    versions={},
    host="x86_64",
    settings={},
    template_hash="0",
    started_at=datetime(2026, 11, 1, tzinfo=UTC),
)


@pytest.fixture
def register(tmp_path) -> Callable[..., Path]:
    """Write the base registration with pieces of it replaced, without any data."""

    def write(*replacements: tuple[str, str], base: str = BASE) -> Path:
        text = base
        for old, new in replacements:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        path = tmp_path / "plan.yaml"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def write_log(tmp_path) -> Callable[..., Path]:
    """Write records to a log below the registration's folder."""

    def write(records, name: str = "logs/a.jsonl") -> Path:
        path = tmp_path / name
        path.unlink(missing_ok=True)
        with LogWriter(path, STUDY) as writer:
            writer.append(records)
        return path

    return write


@pytest.fixture
def toy_records(make_records):
    """Ten inputs of two tasks; at half the cache four and one of ten fail, at budget 1 none that did not."""
    ones = [1.0] * 10
    qa = {"full": {1.0: ones}, "evict": {1.0: ones, 0.5: [0.0] * 4 + [1.0] * 6, 0.25: [0.0] * 9 + [1.0]}}
    code = {"full": {1.0: ones}, "evict": {1.0: ones, 0.5: [0.0] + [1.0] * 9, 0.25: ones}}
    drop = [0.01 * number for number in range(10)]
    cells = [(0.2 + 0.01 * number, 0.1 + 0.01 * number) for number in range(10)]
    return [
        *make_records(qa, drop=drop, cells=cells, signals={"margin": drop}),
        *make_records(code, task="code", drop=[0.5] * 10, signals={"margin": drop}),
    ]


@pytest.fixture
def toy(write_log, toy_records) -> Path:
    """Write the toy log."""
    return write_log(toy_records)
