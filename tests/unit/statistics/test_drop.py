"""The drop and the shape of profiles, against their definitions in plain loops."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
from scipy.stats import linregress, spearmanr

from kvstats.errors import InputError
from kvstats.statistics.drop import (
    agreement_slope,
    decreasing_share,
    depth_correlation,
    drop,
    layer_bins,
)


@pytest.fixture
def agreement():
    return np.random.default_rng(3).random((7, 11))


def by_definition(row, early, late):
    return sum(row[i] for i in early) / len(early) - sum(row[i] for i in late) / len(late)


@pytest.mark.parametrize("denominator", [2, 3, 4, 5])
@pytest.mark.parametrize("n_layers", range(3, 100))
def test_equal_bins_are_the_first_and_last_whole_share(n_layers, denominator):
    early, late = layer_bins(n_layers, share=1 / denominator)
    size = max(1, n_layers // denominator)
    assert early.tolist() == list(range(size))
    assert late.tolist() == list(range(n_layers - size, n_layers))


@pytest.mark.parametrize("n_layers", [3, 4, 5, 28, 32, 36, 48])
def test_strict_thirds_differ_where_the_layers_are_no_multiple_of_three(n_layers):
    early, late = layer_bins(n_layers, "strict_thirds")
    assert early.tolist() == list(range(n_layers // 3))
    assert late.tolist() == list(range(2 * n_layers // 3, n_layers))
    same = [part.tolist() for part in layer_bins(n_layers)] == [early.tolist(), late.tolist()]
    assert same == (math.ceil(n_layers / 3) == n_layers // 3)


@pytest.mark.parametrize(
    ("layers", "early", "late"),
    [
        (None, [0, 1, 2], [8, 9, 10]),
        (2, [0, 2], [8, 10]),
        (4, [0], [8]),
        ("early", [0], [2]),
        ([0, -1], [0], [10]),
        ([5, 1, 3, 9], [1], [9]),
        (np.array([2, 4, -2]).tolist(), [2], [9]),
    ],
)
def test_bins_are_made_of_the_layers_in_use(agreement, layers, early, late):
    assert [part.tolist() for part in layer_bins(11, layers=layers)] == [early, late]
    expected = [by_definition(row, early, late) for row in agreement]
    np.testing.assert_allclose(drop(agreement, *layer_bins(11, layers=layers)), expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"bins": "thirds"}, "layer_bins: bins='thirds' is not known; did you mean 'strict_thirds'?"),
        ({"share": 0}, "share=0 is not in (0, 1/2]; pass one such as 1/3"),
        ({"share": 0.6}, "share=0.6 is not in (0, 1/2]"),
        ({"share": True}, "share=True is not in (0, 1/2]"),
        ({"share": float("nan")}, "share=nan is not in (0, 1/2]"),
        ({"layers": "late"}, "layers='late' is not known; known: early"),
        ({"layers": 0}, "layers=0 is no step of at least 1"),
        ({"layers": True}, "layers=True is neither a step nor a list of layers"),
        ({"layers": [0, 11]}, "names a layer twice, or one that a model of 11 layers has not"),
        ({"layers": [0, -12]}, "names a layer twice, or one that a model of 11 layers has not"),
        ({"layers": [10, -1]}, "names a layer twice"),
        ({"layers": [4]}, "layers=[4] leaves 1 of 11 layers, fewer than make two bins; use at least 2"),
        ({"layers": []}, "layers=[] leaves 0 of 11 layers"),
        (
            {"layers": [0, 1], "bins": "strict_thirds"},
            "leaves 2 of 11 layers, fewer than make two bins; use at",
        ),
    ],
)
def test_definitions_that_are_none(arguments, fault):
    with pytest.raises(InputError, match=re.escape(fault)):
        layer_bins(11, **arguments)


def test_shapes_are_those_of_plain_definitions(agreement):
    # Ties too.
    profile = np.round(agreement, 1)
    depth = np.arange(11) / 10
    for row, slope, share, correlation in zip(
        profile, agreement_slope(profile), decreasing_share(profile), depth_correlation(profile), strict=True
    ):
        assert slope == pytest.approx(linregress(depth, row).slope, abs=1e-13)
        assert share == sum(b < a for a, b in itertools.pairwise(row)) / 10
        assert correlation == pytest.approx(spearmanr(depth, row).statistic, abs=1e-13)


def test_shapes_of_a_flat_profile():
    flat = [[0.3, 0.3, 0.3]]
    assert agreement_slope(flat).tolist() == [0.0]
    assert decreasing_share(flat).tolist() == [0.0]
    assert np.isnan(depth_correlation(flat)).tolist() == [True]


def test_reversing_the_layers_changes_the_sign(agreement):
    backwards = agreement[:, ::-1]
    bins = layer_bins(11)
    np.testing.assert_allclose(drop(backwards, *bins), -drop(agreement, *bins), atol=1e-15)
    np.testing.assert_allclose(agreement_slope(backwards), -agreement_slope(agreement), atol=1e-14)
    np.testing.assert_allclose(decreasing_share(backwards), 1 - decreasing_share(agreement), atol=1e-15)
    np.testing.assert_allclose(depth_correlation(backwards), -depth_correlation(agreement), atol=1e-14)


@pytest.mark.parametrize("function", [agreement_slope, decreasing_share, depth_correlation])
def test_arrays_that_are_no_profiles(function):
    with pytest.raises(
        InputError, match=r"agreement='array of shape \(3,\)' is not one of inputs by 2 layers"
    ):
        function([0.1, 0.2, 0.3])
    with pytest.raises(InputError, match=r"array of shape \(2, 1\)"):
        function([[0.1], [0.2]])
    with pytest.raises(InputError, match="holds a number that is not finite; leave such inputs out"):
        function([[0.1, np.nan]])


def test_a_step_may_be_a_number_of_numpy():
    for found, expected in zip(layer_bins(11, layers=np.int64(2)), layer_bins(11, layers=2), strict=True):
        assert found.tolist() == expected.tolist()
