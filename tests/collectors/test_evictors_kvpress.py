"""Kept positions of kvpress, made by tests/reference/kvpress/make.py in an environment of its own.

Where kvpress differs from the published method, or from what is done here, each test says how.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

from collectors.attention import scored, window_attention
from collectors.evictors import (
    H2O,
    TOVA,
    AdaKV,
    CapKV,
    KeyDiff,
    ManifoldKV,
    Protected,
    SnapKV,
    StreamingLLM,
    requested_scorers,
)
from collectors.evictors.allocation import pyramid_sizes
from collectors.prefill import Prefill
from collectors.scorers import AccumulatedAttention, CapKVLeverage, KeyDifference
from collectors.scorers.rotation import rotation_of

FILE = Path(__file__).parents[1] / "reference" / "kvpress" / "reference.npz"
RATIOS = [0.25, 0.5, 0.75]
EVICTORS = [H2O(stride=1), TOVA(), KeyDiff(), CapKV(), ManifoldKV(), ManifoldKV(before_rope=True)]


@pytest.fixture(scope="module")
def reference() -> dict[str, np.ndarray]:
    with np.load(FILE) as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def about(reference) -> dict:
    return json.loads(str(reference["about"]))


@pytest.fixture(scope="module")
def model(about) -> LlamaForCausalLM:
    return LlamaForCausalLM(LlamaConfig(**about["config"]))


@pytest.fixture(scope="module")
def filled(reference, about, model) -> Prefill:
    scorers = {
        label: scorer.bind(model, range(0)) if hasattr(scorer, "bind") else scorer
        for label, scorer in requested_scorers(EVICTORS).items()
    }
    cache, attention, scores = DynamicCache(), [], {}
    n_layers, scaling = len(reference["keys"]), reference["keys"].shape[-1] ** -0.5
    for layer in range(n_layers):
        query, key, value = (
            torch.from_numpy(reference[name][layer])[None] for name in ("queries", "keys", "values")
        )
        cache.update(key, value, layer)
        attention.append(window_attention(query, key, scaling, about["window"]))
        scores |= scored(scorers, query, key, value, scaling, layer)
    by_label = {label: torch.stack([scores[label, layer] for layer in range(n_layers)]) for label in scorers}
    return Prefill(cache, torch.stack(attention), about["window"], by_label)


def kept_by_key_head(evictor, filled: Prefill, ratio: float, protected: Protected) -> np.ndarray:
    """Return what an evictor keeps, by layer and key head, as kvpress does; ratio is what it evicts."""
    kept = evictor.select(filled, 1 - ratio, protected, np.random.default_rng(0)).kept
    n_layers = len(filled.cache)
    return kept.expand(n_layers, filled.n_heads, -1)[:, :: filled.n_heads // filled.n_key_heads].numpy()


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize(
    ("press", "evictor", "protected"),
    [
        # kvpress pools by the mean, before it averages over the heads of a group; here nothing is pooled.
        ("snapkv", SnapKV(scope="head", pool=1), Protected(0, 8)),
        # The published rule protects nothing; kvpress keeps the last position.
        ("tova", TOVA(), Protected(0, 1)),
        ("keydiff", KeyDiff(), Protected(0, 0)),
        ("streaming_llm", StreamingLLM(), Protected(4, 0)),
        ("capkv", CapKV(), Protected(4, 0)),
        # The press under Ada-KV protects nothing, nor do we here, so that both floors count the same.
        ("adakv_keydiff", AdaKV(scorer="keydiff", pool=1), Protected(0, 0)),
    ],
)
def test_the_kept_set_equals_that_of_kvpress(reference, filled, press, evictor, protected, ratio):
    ours = kept_by_key_head(evictor, filled, ratio, protected)
    np.testing.assert_array_equal(ours, reference[f"{press}/kept/{ratio}"])


@pytest.mark.parametrize("ratio", RATIOS)
def test_accumulated_attention_by_the_number_of_queries_is_observed_attention(reference, filled, ratio):
    """Unlike the published H2O, kvpress divides by the number of queries that see a position."""
    scores = torch.from_numpy(reference[f"observed_attention/scores/{ratio}"])
    total = scores.shape[-1]
    ours = filled.score(AccumulatedAttention(stride=1)).reshape(*scores.shape[:2], -1, total).mean(2)
    torch.testing.assert_close(ours, scores * torch.arange(total, 0, -1), rtol=1e-4, atol=1e-6)
    divided = Prefill(filled.cache, filled.attention, filled.window)
    divided.scores[repr(AccumulatedAttention(stride=1))] = ours / torch.arange(total, 0, -1)
    kept = kept_by_key_head(H2O(stride=1), divided, ratio, Protected(0, 0))
    np.testing.assert_array_equal(kept, reference[f"observed_attention/kept/{ratio}"])


def test_scores_equal_those_of_kvpress(reference, filled):
    """KeyDiff is 1 less the cosine here, minus the cosine there."""
    expected = torch.from_numpy(reference["keydiff/scores/0.5"])
    torch.testing.assert_close(filled.score(KeyDifference()) - 1, expected, rtol=0, atol=2e-6)
    expected = torch.from_numpy(reference["capkv/scores/0.5"])
    torch.testing.assert_close(filled.score(CapKVLeverage()), expected, rtol=1e-4, atol=1e-5)


def test_keys_before_rope_are_those_of_the_projection(reference, model):
    """Undoing the rotation gives the keys that kvpress takes before it."""
    rotation = rotation_of("test", model)
    for layer, keys in enumerate(torch.from_numpy(reference["keys"])):
        undone = rotation.undo(keys, torch.arange(keys.shape[1]))
        expected = torch.from_numpy(reference["keys_before_rope"][layer])
        torch.testing.assert_close(undone, expected, rtol=1e-4, atol=1e-5)


def test_pyramid_schedule(about):
    """The schedule of kvpress counts the window in, and rounds each layer alone; ours sums to the budget."""
    for case in about["pyramid_schedules"]:
        mean, most = round(case["length"] * case["fraction"]), case["length"] - case["window"]
        ours = pyramid_sizes(mean, len(case["sizes"]), most, case["beta"])
        assert int(ours.sum()) == mean * len(case["sizes"])
        assert np.abs(ours.numpy() - np.array(case["sizes"])).max() <= 1
        assert len(set(case["sizes"])) == len(case["sizes"])
