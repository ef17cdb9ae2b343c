"""The contract: what records hold, and that it does not change unnoticed."""

from __future__ import annotations

import json
from importlib import resources

import msgspec
import pytest

from kvstats.log import InputRecord, ReplayRecord, RunRecord, StudyRecord, log_schema
from kvstats.log.records import INPUT_KEY, RECORD_TYPES, RUN_KEY, SCHEMA_VERSION


def test_the_committed_schema_is_that_of_the_records():
    committed = json.loads(resources.files("kvstats.log").joinpath("schema.json").read_text())
    assert committed == log_schema(), "the contract has changed: raise SCHEMA_VERSION and write schema.json"


def test_the_schema_names_its_dialect_and_version():
    schema = log_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$comment"] == f"kvstats log contract, version {SCHEMA_VERSION}"
    assert set(schema["discriminator"]["mapping"]) == set(RECORD_TYPES)


def test_keys_are_fields_of_the_records():
    for record in (InputRecord, RunRecord, ReplayRecord):
        assert set(INPUT_KEY) <= set(record.__struct_fields__)
    assert set(RUN_KEY) <= set(RunRecord.__struct_fields__)


def test_every_field_is_documented():
    for record in RECORD_TYPES.values():
        for field in record.__struct_fields__:
            assert field in record.__doc__, f"{record.__name__}.{field}"


@pytest.mark.parametrize(
    ("kind", "fields", "fault"),
    [
        (RunRecord, {"budget": 0.0}, "Expected `float` > 0.0"),
        (RunRecord, {"budget": 1.01}, "Expected `float` <= 1.0"),
        (RunRecord, {"n_kept": -1}, "Expected `int` >= 0"),
        (RunRecord, {"input_id": ""}, "Expected `str` of length >= 1"),
        (RunRecord, {"input_id": 3}, "Expected `str`, got `int`"),
        (RunRecord, {"score": "1"}, "got `str`"),
        (RunRecord, {"success": 1}, "got `int`"),
        (RunRecord, {"seed": 1 << 63}, "Expected `int` <= 9223372036854775807"),
        (RunRecord, {"recorded_at": "2026-01-01T00:00:00"}, "timezone"),
        (RunRecord, {"scores": 1.0}, "unknown field `scores`"),
        (ReplayRecord, {"delta": 1.5}, "Expected `float` <= 1.0"),
    ],
)
def test_values_out_of_range_are_refused(kind, fields, fault):
    least = {"suite": "s", "model": "m", "task": "t", "input_id": "1", "arm": "full"}
    if kind is ReplayRecord:
        least |= {"design": "poisson", "budget": 0.5, "layer": 0, "head": 0, "step": 0, "delta": 0.1}
        least |= {"variance_estimate": None, "radius": None, "true_error": None}
    assert isinstance(msgspec.convert(least, kind), kind)
    with pytest.raises(msgspec.ValidationError, match=fault):
        msgspec.convert(least | fields, kind)


def test_a_study_says_when_and_how():
    with pytest.raises(msgspec.ValidationError, match="missing required field `model`"):
        msgspec.convert({"schema_version": 1, "suite": "s"}, StudyRecord)
