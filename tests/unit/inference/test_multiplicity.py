import re

import numpy as np
import polars as pl
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from kvstats.errors import InputError
from kvstats.inference import adjust, adjust_e_values
from kvstats.inference.multiplicity import METHODS

P = [0.001, 0.04, 0.03, 0.5, 0.03]


def brute_force(p, method):
    m, order = len(p), np.argsort(p, kind="stable")
    harmonic = sum(1 / i for i in range(1, m + 1))
    adjusted = np.empty(m)
    for rank, i in enumerate(order):
        if method in ("bh", "by"):
            factor = harmonic if method == "by" else 1
            adjusted[i] = min(p[j] * m * factor / (r + 1) for r, j in enumerate(order) if r >= rank)
        elif method == "holm":
            adjusted[i] = max(p[j] * (m - r) for r, j in enumerate(order) if r <= rank)
        elif method == "bonferroni":
            adjusted[i] = p[i] * m
        else:
            adjusted[i] = p[i]
    return np.minimum(adjusted, 1)


@pytest.mark.parametrize("method", METHODS)
def test_the_definition(method):
    np.testing.assert_allclose(adjust(P, method), brute_force(P, method))


def test_bh_is_scipys():
    np.testing.assert_allclose(adjust(P), stats.false_discovery_control(P))


@pytest.mark.parametrize("method", METHODS)
def test_an_undefined_p_value_counts_as_one_and_stays_in_the_family(method):
    np.testing.assert_array_equal(adjust([0.01, None, 0.02], method), adjust([0.01, 1.0, 0.02], method))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("family", [[], [0.0, 0.0], [1.0, 1.0], [None], [0.2]])
def test_small_and_extreme_families(method, family):
    expected = [1.0 if p is None else p for p in family]
    assert adjust(family, method).tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("p_values", "method", "message"),
    [
        ([0.5, 1.5], "bh", "adjust: p_values=1.5 is no probability; pass p-values in [0, 1], or None"),
        ([-0.1], "holm", "adjust: p_values=-0.1 is no probability"),
        ([float("nan")], "none", "adjust: p_values=nan is no probability"),
        ([0.5], "hommel", "adjust: method='hommel' is not known; did you mean 'holm'?"),
    ],
)
def test_what_is_no_family_is_refused(p_values, method, message):
    with pytest.raises(InputError, match=re.escape(message)):
        adjust(p_values, method)


@pytest.mark.parametrize(
    ("method", "name"), [("bh", "fdr_bh"), ("by", "fdr_by"), ("holm",) * 2, ("bonferroni",) * 2]
)
def test_statsmodels_agrees(method, name):
    random = np.random.default_rng(0)
    for family in (P, random.uniform(size=40) ** 3, np.round(random.uniform(size=30), 1)):
        np.testing.assert_allclose(adjust(family, method), multipletests(family, method=name)[1])


def test_e_bh_by_its_definition():
    random = np.random.default_rng(1)
    for _ in range(20):
        e = np.round(random.exponential(size=9) ** -2, 1)
        levels = adjust_e_values(e)
        for alpha in (0.05, 0.2, 0.7):
            order = np.argsort(-e, kind="stable")
            sizes = [k for k in range(1, 10) if k * e[order[k - 1]] >= 9 / alpha]
            rejected = set(order[: max(sizes, default=0)])
            ties = set(np.flatnonzero(np.isclose(levels, alpha)))
            assert set(np.flatnonzero(levels <= alpha)) - ties == rejected - ties


def test_e_values_that_are_undefined_zero_or_infinite():
    assert adjust_e_values([]).size == 0
    assert adjust_e_values([None, 0.0, 0.5]).tolist() == [1, 1, 1]
    assert adjust_e_values([float("inf"), None]).tolist() == [0, 1]
    assert adjust_e_values([None, 50.0]).tolist() == adjust_e_values([0.0, 50.0]).tolist() == [1, 0.04]


@pytest.mark.parametrize("value", [-0.1, float("nan")])
def test_what_is_no_e_value_is_refused(value):
    message = f"adjust_e_values: e_values={value} is no e-value; pass numbers of at least 0, or None"
    with pytest.raises(InputError, match=re.escape(message)):
        adjust_e_values([1.0, value])


def test_a_frame_of_p_values_gets_them_beside_it():
    frame = pl.DataFrame({"task": ["a", "b", "c"], "p_value": [0.01, None, 0.03]})
    found = adjust(frame, method="holm")
    assert found.columns == ["task", "p_value", "p_adjusted"]
    assert found["p_adjusted"].to_list() == adjust([0.01, None, 0.03], method="holm").tolist()
    assert adjust(frame.clear()).schema["p_adjusted"] == pl.Float64
    with pytest.raises(InputError, match="has no column p_value; pass what"):
        adjust(frame.drop("p_value"))
