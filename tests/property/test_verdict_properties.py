"""Verdicts are the same bytes whatever the order of rows, files, claims, keys, or the number of threads."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kvstats.log import InputRecord, LogWriter, ReplayRecord, RunRecord, StudyRecord
from kvstats.prereg import verify

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

PLAN: dict[str, Any] = {
    "study": "permuted",
    "registered_at": "2026-11-01T12:00:00Z",
    "data": {"runs": ["*.jsonl*"]},
    "design": {"interval": "percentile", "n_resamples": 100, "seed": 3},
    "policies": [
        {"policy": "gate", "arguments": {"tau": 0.05, "base": "evict"}},
        {"policy": "random_gate",
         "arguments": {"base": "evict", "share": 0.5, "to_budget": 0.9, "name": "none"}},
    ],
    "guards": [
        {"id": "there", "statement": "a", "estimator": "accuracy", "arguments": {"arm": "full"},
         "holds": "estimate >= 0"},
    ],
    "family": {"method": "bh", "level": 0.1, "claims": ["gain", "ranks"]},
    "claims": [
        {"id": "gain", "statement": "b", "estimator": "delta",
         "arguments": {"arm": "gate", "baseline": "evict"}, "where": "task = 'qa'", "by": ["task"],
         "quantifier": "any", "supported": "low > 0", "killed": "high <= 0"},
        {"id": "ranks", "statement": "c", "estimator": "rank_correlation", "where": "task = 'qa'",
         "supported": "low > 0.3"},
        {"id": "harms", "statement": "d", "estimator": "harm_rate", "arguments": {"arm": "evict"},
         "contrast": {"task": ["qa", "code"]}, "supported": "low > 0"},
        {"id": "signal", "statement": "e", "estimator": "auc",
         "arguments": {"arm": "evict", "signal": "margin", "higher": "negative"}, "supported": "low > 0.5"},
        {"id": "levels", "statement": "f", "estimator": "accuracy", "where": "arm = 'evict'",
         "by": ["arm", "task"], "supported": "estimate > 0.05"},
        {"id": "lost", "statement": "g", "estimator": "delta", "arguments": {"arm": "none"},
         "supported": "low > 0"},
    ],
}  # fmt: skip


def records() -> list[InputRecord | RunRecord | ReplayRecord]:
    made: list[InputRecord | RunRecord | ReplayRecord] = []
    for task, harmed in (("qa", 5), ("code", 2)):
        for number in range(9):
            key: dict[str, Any] = {"suite": "s", "model": "m", "task": task, "input_id": f"{task}-{number}"}
            # The records of one input are from before the registration.
            when = {"recorded_at": datetime(2026, 11, 1 if number == 8 and task == "code" else 2, tzinfo=UTC)}
            made.append(InputRecord(**key, **when, drop=0.01 * number, signals={"entropy": 0.1 * number}))
            for arm, budget, score in (("full", 1.0, 1.0), ("evict", 0.5, float(number >= harmed))):
                signals = {"margin": 0.1 * (7 * number % 9) + score / 5}
                made.append(
                    RunRecord(
                        **key,
                        **when,
                        arm=arm,
                        budget=budget,
                        score=score,
                        success=score == 1,
                        signals=signals,
                    )
                )
            made.append(
                ReplayRecord(
                    **key,
                    arm="evict",
                    design="poisson",
                    budget=0.5,
                    layer=0,
                    head=0,
                    step=0,
                    variance_estimate=0.1,
                    radius=0.3 + 0.1 * number,
                    true_error=0.2 + 0.1 * (number % 4),
                    delta=0.1,
                )
            )
    return made


RECORDS = records()


@contextmanager
def written(rows: list[int], cuts: list[int], plan: dict[str, Any], packed: bool = False) -> Iterator[Path]:
    """Write the records in an order, cut into files, and a registration."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ends = sorted({0, *cuts, len(rows)})
        for number, (start, end) in enumerate(itertools.pairwise(ends)):
            path = folder / f"{number}.jsonl"
            with LogWriter(path, STUDY) as log:
                log.append([RECORDS[row] for row in rows[start:end]])
            if packed:
                Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes()))
                path.unlink()
        (folder / "plan.yaml").write_text(yaml.safe_dump(plan, sort_keys=False))
        yield folder / "plan.yaml"


def verdict_bytes(path: Path, **choices: Any) -> dict[str, bytes]:
    """Return each claim as bytes, and with them all that does not tell the files apart."""
    content = json.loads(verify(path, git=False, **choices).to_json())
    found = {claim["id"]: json.dumps(claim).encode() for claim in content["claims"]}
    rest = {name: content[name] for name in ("audit", "guards", "order", "family", "policies")}
    rest["family"]["claims"].sort()
    return found | {"rest": json.dumps(rest, sort_keys=True).encode()}


with written(list(range(len(RECORDS))), [], PLAN) as REGISTERED:
    EXPECTED = verdict_bytes(REGISTERED)


def shuffled_keys(value: Any, draw: st.DrawFn) -> Any:
    """Return the same mappings with their keys in another order."""
    if isinstance(value, dict):
        keys = draw(st.permutations(list(value)))
        return {key: shuffled_keys(value[key], draw) for key in keys}
    return [shuffled_keys(item, draw) for item in value] if isinstance(value, list) else value


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the registration with claims and keys in another order."""
    plan = dict(PLAN)
    plan["claims"] = draw(st.permutations(PLAN["claims"]))
    plan["policies"] = draw(st.permutations(PLAN["policies"]))
    found: dict[str, Any] = shuffled_keys(plan, draw)
    return found


def test_the_registration_has_many_verdicts():
    with written(list(range(len(RECORDS))), [], PLAN) as path:
        found = {claim.id: claim.verdict for claim in verify(path, git=False).claims}
    assert found == {
        "gain": "supported",
        "ranks": "not met",
        "harms": "exploratory",
        "signal": "exploratory",
        "levels": "exploratory",
        "lost": "undefined",
    }


@settings(max_examples=15, deadline=None)
@given(
    rows=st.permutations(range(len(RECORDS))),
    cuts=st.lists(st.integers(1, len(RECORDS) - 1), max_size=4),
    packed=st.booleans(),
)
def test_rows_and_files_in_any_order_give_the_same_bytes(rows, cuts, packed):
    with written(rows, cuts, PLAN, packed) as path:
        assert verdict_bytes(path) == EXPECTED


@settings(max_examples=15, deadline=None)
@given(plan=plans())
def test_claims_and_keys_in_any_order_give_the_same_bytes(plan):
    with written(list(range(len(RECORDS))), [], plan) as path:
        found = verdict_bytes(path)
    found["rest"] = EXPECTED["rest"] if plan["policies"] != PLAN["policies"] else found["rest"]
    assert found == EXPECTED


@settings(max_examples=8, deadline=None)
@given(
    rows=st.permutations(range(len(RECORDS))), only=st.sampled_from([claim["id"] for claim in PLAN["claims"]])
)
def test_a_claim_by_itself_is_what_it_is_among_all(rows, only):
    with written(rows, [], PLAN) as path:
        found = verdict_bytes(path, only=only)
    assert found[only] == EXPECTED[only]
    assert set(found) == {only, "rest"}


@pytest.mark.slow
def test_one_thread_and_four_give_the_same_bytes():
    code = (
        "import sys, kvstats.prereg as p; "
        "sys.stdout.buffer.write(p.verify(sys.argv[1], git=False, sensitivity=True).to_json())"
    )
    with written(list(range(len(RECORDS))), [20], PLAN) as path:
        outputs = [
            subprocess.run(
                [sys.executable, "-c", code, path],
                env={**os.environ, **dict.fromkeys(("OMP_NUM_THREADS", "POLARS_MAX_THREADS"), threads)},
                capture_output=True,
                check=True,
            ).stdout
            for threads in ("1", "4")
        ]
    assert outputs[0] == outputs[1]
    assert b'"sensitivity": [\n' in outputs[0]
