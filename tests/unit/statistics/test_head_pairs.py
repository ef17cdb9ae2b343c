"""Pairs of heads and random subsets of them."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from kvstats.errors import InputError
from kvstats.statistics.head_pairs import head_pairs, pair_draws


@pytest.mark.parametrize("heads", [2, 3, 9, 40])
def test_pairs_of_heads_are_in_the_order_of_the_contract(heads):
    expected = [(a, b) for a in range(heads) for b in range(a + 1, heads)]
    assert head_pairs(len(expected)) == expected


@pytest.mark.parametrize("n_pairs", [0, 2, 4, 5, -1])
def test_numbers_that_are_no_number_of_pairs(n_pairs):
    with pytest.raises(InputError, match=rf"n_pairs={n_pairs} is no H \(H - 1\) / 2; record every pair"):
        head_pairs(n_pairs)


def test_a_draw_of_heads_takes_all_their_pairs():
    for subset in pair_draws(45, heads=4, draws=30, seed=1):
        pairs = [head_pairs(45)[i] for i in subset]
        chosen = sorted({head for pair in pairs for head in pair})
        assert len(chosen) == 4
        assert pairs == list(itertools.combinations(chosen, 2))


def test_draws_are_without_replacement_and_each_pair_comes_as_often():
    draws = pair_draws(10, pairs=3, draws=4000, seed=2)
    assert all(len(set(draw.tolist())) == 3 for draw in draws)
    counts = np.bincount(np.concatenate(draws), minlength=10)
    # Binomial with probability 3/10: five standard deviations.
    assert np.abs(counts - 1200).max() < 5 * np.sqrt(4000 * 0.3 * 0.7)


def test_draws_depend_on_the_seed_and_the_size_alone():
    def drawn(**arguments):
        return [draw.tolist() for draw in pair_draws(45, **arguments)]

    assert drawn(pairs=7, seed=1) == drawn(pairs=7, seed=1)
    assert drawn(pairs=7, seed=1)[:5] == drawn(pairs=7, seed=1, draws=5)
    assert drawn(pairs=7, seed=1) != drawn(pairs=7, seed=2)
    assert drawn(pairs=45, draws=1) == [list(range(45))]
    assert drawn(heads=10, draws=1) == [list(range(45))]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({}, "heads, pairs=(None, None) are both or neither given; pass one of them"),
        ({"heads": 2, "pairs": 2}, "heads, pairs=(2, 2) are both or neither given"),
        ({"heads": 1}, "heads=1 is no whole number from 2 to 10"),
        ({"heads": 11}, "heads=11 is no whole number from 2 to 10"),
        ({"pairs": 0}, "pairs=0 is no whole number from 1 to 45"),
        ({"pairs": 2.0}, "pairs=2.0 is no whole number from 1 to 45"),
        ({"pairs": 2, "draws": 0}, "draws=0 is no whole number at least 1"),
        ({"pairs": 2, "seed": -1}, "seed=-1 is no whole number at least 0"),
        ({"pairs": True}, "pairs=True is no whole number"),
    ],
)
def test_draws_that_are_none(arguments, fault):
    with pytest.raises(InputError, match=re.escape(fault)):
        pair_draws(45, **arguments)
