"""Head agreement against a loop over sets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.agreement import head_agreement, pair_agreement, top_keys
from kvstats.errors import InputError


def by_sets(attention: np.ndarray, top_k: int, positions: list[int]) -> tuple[list[float], float]:
    """D as the definition reads: sets of top keys, earlier positions first among equals."""
    per_layer = []
    for layer in attention:
        sets = [
            set(sorted(positions, key=lambda position: (-head[position], position))[:top_k]) for head in layer
        ]
        pairs = [len(one & other) / len(one | other) for one, other in itertools.combinations(sets, 2)]
        per_layer.append(sum(pairs) / len(pairs))
    size = len(per_layer) // 3
    return per_layer, sum(per_layer[:size]) / size - sum(per_layer[-size:]) / size


@given(
    layers=st.integers(3, 8),
    heads=st.integers(2, 5),
    total=st.integers(6, 30),
    levels=st.sampled_from([3, 1000]),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_equals_the_definition_with_and_without_ties(layers, heads, total, levels, seed):
    rng = np.random.default_rng(seed)
    attention = rng.integers(0, levels, (layers, heads, total)) / levels
    found = head_agreement(torch.from_numpy(attention), top_k=4)
    per_layer, drop = by_sets(attention, 4, list(range(total)))
    np.testing.assert_allclose(found.per_layer, per_layer, rtol=1e-12)
    assert found.drop == pytest.approx(drop, abs=1e-12)
    assert found.bin_layers == layers // 3


def test_candidates_leave_positions_out():
    attention = np.random.default_rng(0).random((6, 3, 40))
    inside = list(range(4, 30))
    candidates = torch.zeros(40, dtype=torch.bool)
    candidates[inside] = True
    found = head_agreement(torch.from_numpy(attention), top_k=5, candidates=candidates)
    per_layer, drop = by_sets(attention, 5, inside)
    np.testing.assert_allclose(found.per_layer, per_layer, rtol=1e-12)
    assert found.drop == pytest.approx(drop, abs=1e-12)


def test_equal_heads_agree_wholly_and_disjoint_heads_not_at_all():
    same = torch.rand(1, 1, 20).expand(1, 4, 20)
    apart = torch.eye(20).reshape(4, 5, 20).sum(1)[None]
    found = head_agreement(torch.cat([same, same, apart]), top_k=5)
    assert found.per_layer == [1.0, 1.0, 0.0]
    assert found.drop == 1.0


def test_the_earlier_position_wins_a_tie():
    assert top_keys(torch.tensor([0.0, 0.5, 0.5, 0.5]), 2).tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    ("shape", "top_k", "message"),
    [
        ((2, 4, 9), 3, r"attention=\(2, 4, 9\) has fewer than 3 layers or 2 heads; D is undefined"),
        ((3, 1, 9), 3, "has fewer than 3 layers or 2 heads"),
        ((3, 2, 9), 10, r"top_k=10 is not in \[1, 9\], the number of candidate positions; lower top_k"),
        ((3, 2, 9), 0, "top_k=0 is not in"),
    ],
)
def test_bad_input(shape, top_k, message):
    with pytest.raises(InputError, match=message):
        head_agreement(torch.rand(shape), top_k=top_k)


def test_pairs_of_heads_equal_the_sets_and_average_to_the_layer():
    attention = np.random.default_rng(3).random((4, 5, 30))
    found = pair_agreement(torch.from_numpy(attention), top_k=6)
    for layer, pairs in zip(attention, found, strict=True):
        sets = [set(np.argsort(-head, kind="stable")[:6].tolist()) for head in layer]
        expected = [len(one & other) / len(one | other) for one, other in itertools.combinations(sets, 2)]
        assert pairs == [round(value, 4) for value in expected]
    per_layer = head_agreement(torch.from_numpy(attention), top_k=6).per_layer
    np.testing.assert_allclose(np.mean(found, axis=1), per_layer, atol=5e-5)
