"""Signals of prefills and selections against their definitions in loops."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from transformers import DynamicCache

from collectors.evictors import Selection
from collectors.prefill import Prefill
from collectors.signals import cache_bytes, evicted_mass, keep_margin, prefill_signals, retained_entropy

LAYERS, HEADS, KEY_HEADS, TOTAL = 4, 6, 2, 60
TAIL = slice(4, 52)


def gamma_attention(seed: int, layers: int = LAYERS, heads: int = HEADS, total: int = TOTAL) -> torch.Tensor:
    weight = np.random.default_rng(seed).gamma(0.3, size=(layers, heads, total)).astype(np.float32) + 1e-6
    return torch.from_numpy(weight / weight.sum(-1, keepdims=True))


@pytest.fixture
def ragged() -> Selection:
    """Highest scores, another number in each layer and head; one keeps its whole tail, one none of it."""
    score = torch.rand(LAYERS, HEADS, 48, generator=torch.Generator().manual_seed(1))
    kept = torch.ones(LAYERS, HEADS, TOTAL, dtype=torch.bool)
    kept[..., TAIL] = False
    for number, (layer, head) in enumerate(itertools.product(range(LAYERS), range(HEADS))):
        size = {0: 0, 1: 48}.get(number, 5 + number)
        kept[layer, head, 4 + score[layer, head].argsort(descending=True)[:size]] = True
    return Selection(kept, torch.ones(kept.shape), "deterministic", TAIL, score=score)


def test_signals_of_heads_that_keep_other_positions_and_numbers(ragged):
    attention = gamma_attention(0)
    mass, entropy, margin = [], [], []
    for layer, head in itertools.product(range(LAYERS), range(HEADS)):
        weight = attention[layer, head].double().numpy()
        kept = ragged.kept[layer, head].numpy()
        mass.append(weight[~kept].sum())
        share = weight[kept] / weight[kept].sum()
        entropy.append(-(share * np.log(share)).sum() / math.log(kept.sum()))
        score, inside = ragged.score[layer, head].double().numpy(), kept[TAIL]
        if 0 < inside.sum() < 48:
            margin.append((score[inside].min() - score[~inside].max()) / score.std())
    assert evicted_mass(ragged, attention) == pytest.approx(np.mean(mass), rel=1e-6)
    assert retained_entropy(ragged, attention) == pytest.approx(np.mean(entropy), rel=1e-6)
    assert len(margin) == LAYERS * HEADS - 2
    assert keep_margin(ragged) == pytest.approx(np.mean(margin), rel=1e-6)


def test_a_margin_of_shared_positions_and_scores_of_any_shape(ragged):
    shared = Selection(
        ragged.kept[:1, 2:3], torch.ones(1, 1, TOTAL), "deterministic", TAIL, ragged.score[:1, 2:3]
    )
    flat = Selection(
        shared.kept, shared.inclusion_probability, "deterministic", TAIL, ragged.score[0, 2][None]
    )
    assert keep_margin(shared) == keep_margin(flat)
    assert keep_margin(shared) > 0


def test_a_margin_is_negative_where_scores_were_overruled(ragged):
    kept = ragged.kept.clone()
    kept[..., TAIL] = ~kept[..., TAIL]
    assert keep_margin(Selection(kept, torch.ones(kept.shape), "deterministic", TAIL, ragged.score)) < 0


def test_the_entropy_of_kept_positions_without_attention_is_undefined(ragged):
    attention = gamma_attention(0)
    attention[1, 1, ragged.kept[1, 1]] = 0.0
    assert retained_entropy(ragged, attention) is None


def test_bytes_of_a_cache_count_a_position_that_any_head_of_a_group_keeps(ragged):
    cache = DynamicCache()
    for layer in range(LAYERS):
        cache.update(torch.zeros(1, KEY_HEADS, TOTAL, 8), torch.zeros(1, KEY_HEADS, TOTAL, 8), layer)
    count = 0
    for layer, group in itertools.product(range(LAYERS), range(KEY_HEADS)):
        count += int(ragged.kept[layer, 3 * group : 3 * group + 3].any(0).sum())
    assert cache_bytes(ragged, cache) == count * 2 * 8 * 4
    half = torch.zeros(1, 1, TOTAL, dtype=torch.bool)
    half[..., :30] = True
    shared = Selection(half, torch.ones(1, 1, TOTAL), "deterministic", TAIL)
    assert cache_bytes(shared, cache) == LAYERS * KEY_HEADS * 30 * 2 * 8 * 4


def prefilled(attention: torch.Tensor, keys: torch.Tensor) -> Prefill:
    cache = DynamicCache()
    for layer in range(len(keys)):
        cache.update(keys[layer][None], keys[layer][None], layer)
    return Prefill(cache, attention, 32)


def test_prefill_signals_equal_their_definitions():
    attention = gamma_attention(2)
    keys = torch.randn(LAYERS, KEY_HEADS, TOTAL, 8, generator=torch.Generator().manual_seed(0))
    found = prefill_signals(prefilled(attention, keys), top_k=5)
    weight = attention.double().numpy()
    entropy = [[-sum(a * math.log(a) for a in head) / math.log(TOTAL) for head in layer] for layer in weight]
    mass = [sum(sorted(head)[-5:]) for layer in weight for head in layer]
    norms = [[np.linalg.norm(key) for key in head] for layer in keys.double().numpy() for head in layer]
    kappa = []
    for layer in weight:
        logits = [[math.log(a) for a in head] for head in layer]
        logits = np.array([[s - sum(head) / TOTAL for s in head] for head in logits])
        common = logits.sum(0) / HEADS
        sigma = math.sqrt(((logits - common) ** 2).sum() / ((HEADS - 1) * TOTAL))
        ordered = sorted(common, reverse=True)
        kappa.append((ordered[4] - ordered[5]) / sigma)
    assert found == {
        "attention_entropy": pytest.approx(np.mean(entropy)),
        "entropy_drop": pytest.approx(np.mean(entropy[0]) - np.mean(entropy[3])),
        "top_5_mass": pytest.approx(np.mean(mass)),
        "max_share": pytest.approx(weight.max(-1).mean()),
        "key_norm_dispersion": pytest.approx(
            np.mean([np.std(head) / np.mean(head) for head in norms]), rel=1e-5
        ),
        "margin_to_noise": pytest.approx(np.mean(kappa)),
    }


def test_a_common_signal_far_above_the_noise_meets_the_requirement():
    """Heads that share ten logits far above the rest, with noise of sd 0.1, agree; kappa says so."""
    noise = 0.1 * np.random.default_rng(0).normal(size=(3, 8, 200))
    common = np.zeros(200)
    common[:10] = 3.0
    attention = torch.from_numpy(common + noise).softmax(-1)
    found = prefill_signals(prefilled(attention, torch.ones(3, 1, 200, 4)), top_k=10)
    requirement = 2 * math.sqrt(math.log(2 * 8**2 * 3 * 200**2 / 0.1))
    assert found["margin_to_noise"] == pytest.approx(30, rel=0.1)
    assert found["margin_to_noise"] > requirement


def test_signals_of_even_and_concentrated_attention():
    even = torch.full((3, 2, 50), 1 / 50)
    found = prefill_signals(prefilled(even, torch.ones(3, 1, 50, 4)))
    assert found["attention_entropy"] == pytest.approx(1.0)
    assert found["entropy_drop"] == pytest.approx(0.0)
    assert found["top_32_mass"] == pytest.approx(32 / 50)
    assert found["max_share"] == pytest.approx(1 / 50)
    assert found["key_norm_dispersion"] == 0.0
    assert found["margin_to_noise"] is None
    one = torch.zeros(3, 2, 50)
    one[..., 7] = 1.0
    found = prefill_signals(prefilled(one, torch.ones(3, 1, 50, 4)))
    assert found["attention_entropy"] == 0.0
    assert found["top_32_mass"] == found["max_share"] == 1.0


def test_signals_are_none_where_undefined():
    single = prefill_signals(prefilled(torch.ones(3, 2, 1), torch.zeros(3, 1, 1, 4)))
    assert single["attention_entropy"] is None
    assert single["entropy_drop"] is None
    assert single["key_norm_dispersion"] is None
    assert single["margin_to_noise"] is None
    assert single["top_32_mass"] == 1.0
    shallow = prefill_signals(prefilled(gamma_attention(0, layers=2), torch.ones(2, 1, TOTAL, 4)))
    assert shallow["entropy_drop"] is None
    assert shallow["attention_entropy"] > 0
    alone = prefill_signals(prefilled(gamma_attention(0, heads=1), torch.ones(LAYERS, 1, TOTAL, 4)))
    assert alone["margin_to_noise"] is None
    short = prefill_signals(prefilled(gamma_attention(0, total=32), torch.ones(LAYERS, 1, 32, 4)))
    assert short["margin_to_noise"] is None
    assert short["top_32_mass"] == pytest.approx(1.0)


def test_shares_that_underflow_leave_numbers():
    attention = gamma_attention(3)
    attention[0, 0, 40:] = 0.0
    found = prefill_signals(prefilled(attention, torch.ones(LAYERS, 1, TOTAL, 4)))
    assert all(math.isfinite(value) for value in found.values())
