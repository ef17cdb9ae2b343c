"""Records of each kind, with every field filled."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from kvstats.log import InputRecord, ReplayRecord, RunRecord, StudyRecord

TIME = datetime(2026, 11, 1, 12, 30, 15, 250000, tzinfo=UTC)


@pytest.fixture
def study() -> StudyRecord:
    return StudyRecord(
        schema_version=1,
        suite="needles",
        model="smollm2",
        model_revision="abc",
        dtype="float32",
        attention="sdpa",
        versions={"torch": "2.13"},
        host="x86_64",
        settings={"budgets": [0.25, 1.0]},
        template_hash="0f",
        started_at=TIME,
        git_revision="def",
        extra={"note": "a"},
    )


@pytest.fixture
def make_run() -> Callable[..., RunRecord]:
    def run(input_id: str = "i1", **fields: object) -> RunRecord:
        return RunRecord(
            suite="needles", model="smollm2", task="single", input_id=input_id, arm="full", **fields
        )

    return run


@pytest.fixture
def full_records() -> list[InputRecord | RunRecord | ReplayRecord]:
    key = {"suite": "needles", "model": "smollm2", "task": "single", "input_id": "i1", "condition": "aware"}
    return [
        InputRecord(
            **key,
            context_tokens=480,
            prompt_hash="aa",
            agreement_window=32,
            agreement_top_k=32,
            agreement_bin_layers=10,
            head_agreement_per_layer=[0.5, 0.25, 0.0],
            drop=0.5,
            head_agreement_interior_per_layer=[0.4, 0.2, 0.1],
            drop_interior=0.3,
            signals={"entropy": 1.25, "unknown": None},
            recorded_at=TIME,
            extra={"page": 3},
        ),
        RunRecord(
            **key,
            arm="poisson",
            budget=0.5,
            budget_tokens=240,
            seed=7,
            score=0.5,
            success=False,
            n_prompt=480,
            n_kept=241,
            kept_fraction=241 / 480,
            signals={"certificate": 0.125, "margin": None},
            certificate_per_head=[[0.1, 0.2], [0.3, 0.4]],
            prediction="seven – π",
            references=["7", "8"],
            seconds={"decode": 1.5},
            memory_bytes={"cache": 1 << 40},
            error=None,
            recorded_at=TIME,
            extra={"page": [1, {"a": None}]},
        ),
        ReplayRecord(
            **key,
            arm="poisson",
            budget=0.5,
            seed=7,
            design="poisson",
            layer=4,
            head=0,
            step=2,
            variance_estimate=0.01,
            radius=0.2,
            true_error=0.1,
            delta=0.1,
            extra={"z": 1},
        ),
    ]
