"""Logs and registrations with the verdicts that they must give.

A verdict changes only on purpose: `kvstats verify preregistration.yaml --json --no-git > verdict.json` in the
folder.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvstats.prereg import verify

CASES = sorted(path.parent for path in Path(__file__).parent.glob("*/preregistration.yaml"))


def approximately(value: Any) -> Any:
    """Allow the last digits of numbers to differ, which depend on the processor, and nothing else."""
    if isinstance(value, dict):
        return {key: approximately(item) for key, item in value.items()}
    if isinstance(value, list):
        return [approximately(item) for item in value]
    return pytest.approx(value, rel=1e-9, abs=1e-12) if isinstance(value, float) else value


def test_there_are_cases():
    assert [case.name for case in CASES] == ["toy"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_report_is_the_recorded_one(case):
    report = json.loads(verify(case / "preregistration.yaml", git=False).to_json())
    assert report == approximately(json.loads((case / "verdict.json").read_text()))


def test_the_toy_case_has_every_verdict_that_intact_data_can_have():
    report = verify(Path(__file__).parent / "toy" / "preregistration.yaml")
    expected = {"supported", "killed", "inconclusive", "not met", "undefined"}
    assert {claim.verdict for claim in report.claims} == expected
