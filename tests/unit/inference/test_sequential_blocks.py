"""Blocks of steps that share draws: formulas, stopping in mid-block, and bad input."""

import itertools
import math

import numpy as np
import pytest

from kvstats.errors import InputError
from kvstats.inference.sequential import block_e_process, block_means


def test_blocks_multiply_their_averages_and_charge_for_steps_to_come():
    values = [2.0, 0.0, 4.0, 3.0, 5.0]
    blocks = [0, 0, 1, 2, 2]
    assert block_e_process(values, blocks).tolist() == [1.0, 1.0, 4.0, 6.0, 16.0]
    assert block_e_process(values, blocks, size=4).tolist() == [0.5, 0.5, 0.5, 0.375, 1.0]
    alone = block_e_process(values, range(5))
    np.testing.assert_allclose(alone, np.cumprod(values))


def test_capital_lost_for_good_stays_lost():
    assert block_e_process([0.0, math.inf], ["a", "b"]).tolist() == [0, 0]
    assert block_e_process([math.inf, 0.5], ["a", "b"]).tolist() == [math.inf, math.inf]


def test_stopping_inside_a_block_at_the_best_moment_keeps_the_expectation():
    """Two blocks of two steps that share one draw; every stopping rule of the first crossing kind."""
    pairs = [((3.0, 0.0), 0.25), ((0.0, 2.0), 0.25), ((1.0, 2.0), 0.25), ((0.0, 0.0), 0.25)]
    assert sum(p * a for (a, _), p in pairs) <= 1
    assert sum(p * b for (_, b), p in pairs) <= 1
    for level in (0.4, 0.5, 0.9, 1.4, 1.5, 2.0, 2.2):
        expected = 0.0
        for (one, p), (two, q) in itertools.product(pairs, repeat=2):
            process = block_e_process([*one, *two], [0, 0, 1, 1])
            reached = np.flatnonzero(process >= level)
            expected += p * q * process[reached[0] if reached.size else -1]
        assert expected <= 1 + 1e-12


def test_block_means():
    assert block_means([1, 0, 1, 1, 0, 0], list("aabccc")).tolist() == [0.5, 1, 1 / 3]


@pytest.mark.parametrize("function", [block_e_process, block_means])
@pytest.mark.parametrize(
    ("values", "blocks", "message"),
    [
        (
            [1, 0],
            [1],
            r"blocks='an array' has shape \(1,\) for values of shape \(2,\); pass one label a step",
        ),
        ([1, 0, 1], [1, 2, 1], "blocks='an array' has a label that returns after another; number the blocks"),
    ],
)
def test_bad_blocks(function, values, blocks, message):
    with pytest.raises(InputError, match=f"{function.__name__}: {message}"):
        function(values, blocks)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: block_e_process([], []), r"block_e_process: blocks='an array' has shape \(0,\)"),
        (lambda: block_e_process([1, 1], [0, 0], size=1), "size=1 is below the 2 steps of a block; pass the"),
        (lambda: block_means([2], [0]), r"block_means: outcomes=2.0 is outside \[0, 1\]"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
