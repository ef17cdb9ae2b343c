"""The allocator of inclusion probabilities against a bisection, on numpy and on torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvstats.errors import InputError
from kvstats.statistics.allocation import proportional_inclusion


def by_bisection(score: np.ndarray, expected_size: float, floor: float) -> np.ndarray:
    """Find the factor c for which clip(c * score, floor, 1) sums to the expected size."""
    low, high = 0.0, 1.0
    while np.clip(high * score, floor, 1).sum() < expected_size:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if np.clip(middle * score, floor, 1).sum() < expected_size else (low, middle)
        )
    return np.clip(high * score, floor, 1)


@given(
    score=st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=40).map(np.array),
    share=st.floats(0.02, 1.0),
    floor=st.sampled_from([1e-6, 1e-3, 0.01]),
)
@settings(max_examples=300, deadline=None)
def test_iterated_is_the_clipped_proportional_allocation_of_the_size(score, share, floor):
    size = share * len(score)
    pi = proportional_inclusion(score, size, floor=floor)
    assert pi.sum() == pytest.approx(size, rel=1e-9)
    assert ((pi >= floor) & (pi <= 1)).all()
    np.testing.assert_allclose(pi, by_bisection(score, size, floor), rtol=1e-6, atol=1e-12)


def test_one_pass_is_the_formula_and_under_spends():
    score = np.array([100.0, 1.0, 1.0, 2.0])
    pi = proportional_inclusion(score, 2.0, rule="one_pass")
    np.testing.assert_allclose(pi, np.clip(2.0 * score / score.sum(), 1e-6, 1))
    assert pi.sum() < 1.1
    assert proportional_inclusion(score, 2.0).sum() == pytest.approx(2.0)


def test_rows_are_allocated_apart_and_numpy_equals_torch():
    score = np.random.default_rng(0).gamma(0.3, size=(5, 3, 30))
    pi = proportional_inclusion(score, 11.0)
    np.testing.assert_allclose(pi[2, 1], proportional_inclusion(score[2, 1], 11.0), rtol=1e-12)
    found = proportional_inclusion(torch.from_numpy(score), 11.0)
    assert isinstance(found, torch.Tensor)
    np.testing.assert_allclose(found.numpy(), pi, rtol=1e-12)


def test_float32_keeps_the_size_to_its_precision():
    score = torch.from_numpy(np.random.default_rng(1).gamma(0.1, size=500)).float()
    pi = proportional_inclusion(score, 200.0)
    assert pi.dtype == torch.float32
    assert float(pi.sum()) == pytest.approx(200.0, rel=1e-5)


@pytest.mark.parametrize("rule", ["iterated", "one_pass"])
def test_scores_that_are_all_zero_share_equally(rule):
    np.testing.assert_allclose(proportional_inclusion(np.zeros(8), 2.0, rule=rule), 0.25)


def test_certain_units_leave_the_rest_to_zero_scores_in_equal_parts():
    np.testing.assert_allclose(proportional_inclusion(np.array([5.0, 0.0, 0.0]), 2.0), [1.0, 0.5, 0.5])


@pytest.mark.parametrize(
    ("score", "arguments", "message"),
    [
        (np.array([]), {}, "score='an empty array' has no units; pass at least one unit"),
        (np.array([1.0, -1.0]), {}, "holds negative or undefined sizes; pass finite sizes >= 0"),
        (np.array([1.0, np.nan]), {}, "holds negative or undefined sizes"),
        (np.array([1.0, np.inf]), {}, "holds negative or undefined sizes"),
        (np.ones(3), {"expected_size": 0.0}, r"expected_size=0.0 is not in \(0, 3\], the number of units"),
        (np.ones(3), {"expected_size": 3.5}, r"expected_size=3.5 is not in \(0, 3\]"),
        (np.ones(3), {"floor": 0.0}, r"floor=0.0 is not in \(0, 1\]; pass a small probability"),
        (np.ones(3), {"floor": 0.9}, r"expected_size=1.0 is below n \* floor"),
        (np.ones(3), {"rule": "twice"}, "rule='twice' is unknown; pass 'iterated' or 'one_pass'"),
    ],
)
def test_bad_input(score, arguments, message):
    with pytest.raises(InputError, match=message):
        proportional_inclusion(score, **{"expected_size": 1.0, **arguments})
