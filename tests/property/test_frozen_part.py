"""The frozen part: the same hash for the same values in any order of keys, another for any other value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kvstats.document import parse_document
from kvstats.prereg.chain import chain_of

PLAN: dict[str, Any] = {
    "study": "toy",
    "registered_at": "2026-10-31T12:00:00Z",
    "data": {"runs": ["logs/*.jsonl"], "expected": {"runs": 80, "inputs": 20}},
    "design": {"level": 0.95, "seed": 3},
    "family": {"method": "bh", "level": 0.05, "claims": ["harm", "help"]},
    "claims": [
        {
            "id": "harm",
            "estimator": "delta",
            "arguments": {"arm": "evict"},
            "supported": "high < 0",
            "null": 0.1,
        },
        {
            "id": "help",
            "estimator": "delta",
            "arguments": {"arm": "gate"},
            "supported": "low > 0",
            "by": ["task"],
        },
    ],
}

TEXT = st.text(st.characters(categories=["L", "N", "P", "S"]))


def frozen(content: Any) -> str:
    return chain_of(
        parse_document(Path("a.yaml"), json.dumps(content, ensure_ascii=False).encode())
    ).frozen_sha256


def shuffled(value: Any, data: st.DataObject) -> Any:
    """Return a value with the keys of every mapping in another order."""
    if isinstance(value, dict):
        keys = data.draw(st.permutations(list(value)))
        return {key: shuffled(value[key], data) for key in keys}
    return [shuffled(item, data) for item in value] if isinstance(value, list) else value


def places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return where text and numbers stand."""
    if isinstance(value, dict | list):
        steps = value.items() if isinstance(value, dict) else enumerate(value)
        return [found for step, item in steps for found in places(item, (*place, step))]
    return [place]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_order_of_keys_does_not_matter(data):
    assert frozen(shuffled(PLAN, data)) == frozen(PLAN)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(places(PLAN)), st.data())
def test_any_value_matters(place, data):
    changed = json.loads(json.dumps(PLAN))
    at = changed
    for step in place[:-1]:
        at = at[step]
    old = at[place[-1]]
    number = st.integers(-100, 100) | st.integers(-1000, 1000).map(lambda whole: whole / 64)
    at[place[-1]] = data.draw((TEXT if isinstance(old, str) else number).filter(lambda new: new != old))
    assert frozen(changed) != frozen(PLAN)


@settings(max_examples=20, deadline=None)
@given(st.permutations(["harm", "help", "more"]))
def test_the_order_of_a_list_matters(order):
    first = {**PLAN, "family": {"claims": ["harm", "help", "more"]}}
    second = {**PLAN, "family": {"claims": list(order)}}
    assert (frozen(first) == frozen(second)) is (first == second)
